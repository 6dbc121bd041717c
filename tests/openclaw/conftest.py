"""Fixtures of the tests with the real OpenClaw."""

import pytest

from tests.conftest import require_openclaw


@pytest.fixture(scope="session")
def real_openclaw():
    return require_openclaw()
