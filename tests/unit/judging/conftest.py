"""Validators as a suite defines them: from a description, with all built-in types."""

from typing import Any

import pytest

from pytest_openclaw.judging.registry import BUILTIN, Registry, build_registry, build_validator
from pytest_openclaw.values.protocols import Validator

REGISTRY = build_registry([("pytest-openclaw", validator) for validator in BUILTIN])


def build(kind: str, **keys: Any) -> Validator:
    """Make a validator of this type from the keys of a suite."""
    return build_validator({"type": kind, **keys}, REGISTRY)


@pytest.fixture(scope="session")
def registry() -> Registry:
    """All built-in validators."""
    return REGISTRY
