"""Fixtures of the tests with the real OpenClaw."""

import pytest

from tests.conftest import require_openclaw
from tests.openclaw.real import RealOpenClaw


@pytest.fixture(scope="session")
def real_openclaw() -> RealOpenClaw:
    """The real OpenClaw; without it the test is skipped, or fails if CI requires it."""
    return require_openclaw()
