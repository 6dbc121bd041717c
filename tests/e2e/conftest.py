"""The real parts: one engine for the whole folder, the real Claude CLI, projects in emptied environments."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_openclaw.providers.llama_cpp.supervisor import EngineHandle, EngineSpec, acquire
from pytest_openclaw.providers.llama_cpp.weights import EMBEDDED_MODEL, find_weights, template_for
from tests.conftest import require_claude, require_engine
from tests.e2e.sessions import Project


@pytest.fixture(scope="session")
def embedded_model() -> str:
    """The embedded model's name, if engine and weights are installed."""
    require_engine()
    return EMBEDDED_MODEL


@pytest.fixture(scope="session")
def engine(embedded_model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineHandle]:
    """A running engine with the template that supports tools; it answers three APIs and requires its key."""
    spec = EngineSpec(
        weights=find_weights(embedded_model), alias=embedded_model, template=template_for(embedded_model)
    )
    with asyncio.Runner() as runner:
        handle = runner.run(acquire(spec, tmp_path_factory.mktemp("engine"), environ=os.environ))
        yield handle
        runner.run(handle.release())


@pytest.fixture(scope="session")
def claude() -> str:
    """The real Claude CLI's command."""
    return require_claude()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project for one test."""
    return Project.create(tmp_path / "project")


@pytest.fixture(scope="session")
def served(engine: EngineHandle) -> dict[str, str]:
    """The environment in which the HTTP providers and the CLI find the engine, with its key as theirs."""
    return {
        "OLLAMA_OPENAI_BASE": f"{engine.url}/v1",
        "OPENAI_BASE_URL": f"{engine.url}/v1",
        "ANTHROPIC_BASE_URL": engine.url,
        "OLLAMA_API_KEY": engine.token,
        "OPENAI_API_KEY": engine.token,
        "ANTHROPIC_API_KEY": engine.token,
    }
