"""The built-in validators, and one of them from the keys of a suite."""

from typing import Any

from pytest_openclaw.judging.registry import BUILTIN, build_registry, build_validator
from pytest_openclaw.values.protocols import Validator

REGISTRY = build_registry(("pytest-openclaw", validator) for validator in BUILTIN)


def build(kind: str, **keys: Any) -> Validator:
    """Make a validator of this type."""
    return build_validator({"type": kind, **keys}, REGISTRY)
