"""Fixtures of the tests with the real OpenClaw."""

import pytest

from tests.conftest import require_openclaw


@pytest.fixture(scope="session")
def real_openclaw():
    """The real OpenClaw; without it the test is skipped, or fails if CI requires it."""
    return require_openclaw()
