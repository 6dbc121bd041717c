"""The real parts: one engine for the whole folder, the real Claude CLI, projects in emptied environments."""

import asyncio
import os

import pytest

from pytest_openclaw.providers.llama_cpp.provider import EMBEDDED_MODEL, start_engine
from tests.conftest import require_claude, require_engine
from tests.e2e.sessions import Project


@pytest.fixture(scope="session")
def embedded_model():
    require_engine()
    return EMBEDDED_MODEL


@pytest.fixture(scope="session")
def engine(embedded_model):
    with asyncio.Runner() as runner:
        engine = runner.run(start_engine(embedded_model, os.environ))
        yield engine
        runner.run(engine.process.stop())


@pytest.fixture(scope="session")
def claude():
    return require_claude()


@pytest.fixture
def project(tmp_path):
    return Project.create(tmp_path / "project")


@pytest.fixture(scope="session")
def served(engine):
    """The environment in which the HTTP providers and the CLI find the engine, with its key as theirs."""
    return {
        "OLLAMA_OPENAI_BASE": f"{engine.url}/v1",
        "OPENAI_BASE_URL": f"{engine.url}/v1",
        "ANTHROPIC_BASE_URL": engine.url,
        "OLLAMA_API_KEY": engine.token,
        "OPENAI_API_KEY": engine.token,
        "ANTHROPIC_API_KEY": engine.token,
    }
