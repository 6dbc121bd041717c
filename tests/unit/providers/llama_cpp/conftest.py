"""Fixtures of the engine's tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def any_machine(monkeypatch):
    """This machine can run the engine, whatever is installed: the engines of these tests are fake."""
    monkeypatch.setattr("pytest_openclaw.providers.llama_cpp.engine.engine_is_installed", lambda: True)
