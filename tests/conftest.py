"""What several rooms of tests share."""

from __future__ import annotations

import os

import pytest

REQUIRED = os.environ.get("OPENCLAW_TEST_REQUIRE", "").split()


def skip_or_fail(what: str, reason: str) -> None:
    """Skip a test whose real part is missing here, but fail where CI requires that part."""
    if what in REQUIRED:
        pytest.fail(f"{what} is required here, but {reason}", pytrace=False)
    pytest.skip(reason)
