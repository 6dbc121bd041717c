"""Validators as a suite defines them: from a description, with all built-in types."""

import pytest

from pytest_openclaw.judging.registry import BUILTIN, Registry, build_registry


@pytest.fixture(scope="session")
def registry() -> Registry:
    """All built-in validators."""
    return build_registry([("pytest-openclaw", validator) for validator in BUILTIN])
