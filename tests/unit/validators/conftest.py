"""Validators as a suite makes them: from a description, with all built-in types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_openclaw.protocols import Validator
from pytest_openclaw.records import Reply, Verdict
from pytest_openclaw.validators import BUILTIN, Registry, build_registry, build_validator

Check = Callable[..., Verdict]


@pytest.fixture(scope="session")
def registry() -> Registry:
    """All built-in validators."""
    return build_registry([("pytest-openclaw", validator) for validator in BUILTIN])


@pytest.fixture(scope="session")
def build(registry: Registry) -> Callable[..., Validator]:
    """Build a validator from its type and keys."""
    return lambda type_, **keys: build_validator({"type": type_, **keys}, registry)


@pytest.fixture(scope="session")
def check(build: Callable[..., Validator]) -> Check:
    """Judge a text: `check(text, type, **keys)`."""

    def judge(text: str, type_: str, **keys: Any) -> Verdict:
        return build(type_, **keys).check(Reply(text=text))

    return judge
