"""Whole pytest sessions with a scripted provider, added through the public hook."""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import os
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import pytest_openclaw
from pytest_openclaw import CallFailed, ProviderSetup, Request
from pytest_openclaw.providers import BUILTIN
from pytest_openclaw.values.run_files import load_schema
from tests.conftest import NO_OTHER_PLUGINS


def _import_everything() -> None:
    """Import every module that a session may import, so that there is one copy of each.

    A session inside this process forgets the modules that it imported, while earlier modules keep references
    to them. The HTTP library imports more at its first request; a closed port is enough for that.
    """
    for module in pkgutil.walk_packages(pytest_openclaw.__path__, "pytest_openclaw."):
        if module.name != "pytest_openclaw.providers.llama_cpp.server":
            importlib.import_module(module.name)
    provider = BUILTIN[0](ProviderSetup(name="lab", base_url="http://127.0.0.1:9/v1"))

    async def ask_closed_port() -> None:
        with pytest.raises(CallFailed):
            await provider.ask(Request(model="m", prompt="hello"))
        await provider.aclose()

    asyncio.run(ask_closed_port())


_import_everything()

# Does what its prompt says: "say X", "fault NAME", "wait S", "crash", "offered", …
PROVIDER = '''
import asyncio
from pytest_openclaw import CallFailed, Provider, Reply, ToolCall
from pytest_openclaw import faults


class Scripted(Provider):
    """Does what the prompt says."""

    name = "scripted"
    takes_tools = True

    async def ask(self, request):
        word, _, rest = request.prompt.partition(" ")
        if word == "say":
            return Reply(text=rest, finish_reason="stop", output_tokens=len(rest.split()))
        if word == "log":
            with open(rest, "a") as file:
                file.write(request.model + "\\n")
            return Reply(text="logged")
        if word == "call":
            return Reply(tool_calls=(ToolCall(name=rest, arguments="{}"),))
        if word == "offered":
            return Reply(text=" ".join(tool.name for tool in request.tools))
        if word == "crash":
            raise RuntimeError("the provider is broken")
        if word == "wait":
            await asyncio.sleep(float(rest))
            return Reply(text="waited")
        if word == "level":
            return Reply(text=str(request.thinking_level))
        if word == "other":
            return Reply(text="hi", effective_model=rest)
        fault = {
            "refused": faults.unreachable("scripted", "nowhere", "refused"),
            "timeout": faults.timed_out("scripted", 1.0),
            "nologin": faults.auth_missing("scripted", "log in"),
            "nomodel": faults.refused_by_server(
                "scripted", "m", faults.WireError(status=404, message="model 'm' not found")
            ),
            "busy": faults.refused_by_server("scripted", "m", faults.WireError(status=429), retry_after_s=0.0),
            "quota": faults.refused_by_server("scripted", "m", faults.WireError(status=429, code="insufficient_quota")),
            "broken": faults.refused_by_server("scripted", "m", faults.WireError(status=400, message="bad")),
            "filtered": faults.refused_by_server("scripted", "m", faults.WireError(status=400, code="content_filter")),
        }[word]
        raise CallFailed(fault)

    async def models(self):
        return ("alpha", "beta", "gamma:1b")


def pytest_openclaw_providers():
    return [Scripted]
'''


@functools.cache
def validator_of(name: str) -> Any:
    """Return the validator of a published schema; checking the schema itself is the slow part."""
    schema = load_schema(name)
    return jsonschema.validators.validator_for(schema)(schema)


@dataclass(frozen=True)
class Session:
    """A finished session: pytest's result and the files of the run."""

    result: pytest.RunResult
    folder: Path

    @property
    def status(self) -> int:
        return int(self.result.ret)

    @property
    def text(self) -> str:
        return self.result.stdout.str() + self.result.stderr.str()

    @property
    def run_dir(self) -> Path:
        (run_dir,) = (path for path in (self.folder / "runs").iterdir() if path.is_dir())
        return run_dir

    @property
    def rows(self) -> list[dict[str, Any]]:
        lines = (self.run_dir / "results.jsonl").read_text("utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        for row in rows:
            validator_of("row").validate(row)
        return rows

    def row(self, prompt_id: str) -> dict[str, Any]:
        (row,) = (row for row in self.rows if row["prompt_id"] == prompt_id)
        return row

    @property
    def summary(self) -> dict[str, Any]:
        summary = self.load("summary.json")
        validator_of("summary").validate(summary)
        return summary

    def load(self, name: str) -> dict[str, Any]:
        value = json.loads((self.run_dir / name).read_text("utf-8"))
        assert isinstance(value, dict)
        return value

    @property
    def has_run(self) -> bool:
        runs = self.folder / "runs"
        return runs.is_dir() and any(runs.iterdir())

    def outcomes(self, **expected: int) -> None:
        self.result.assert_outcomes(**expected)


@dataclass(frozen=True)
class Project:
    """A user's project, with suites, a conftest and an emptied environment."""

    pytester: pytest.Pytester
    mode: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.pytester.path

    def suite(
        self, prompts: dict[str, Any] | Sequence[dict[str, Any]] | str, name: str = "prompts_a.toml"
    ) -> Path:
        """Write a suite: TOML text, whole prompts, or prompt id → (prompt, validator)."""
        path = self.folder / "benchmarks" / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(prompts, dict):
            prompts = [
                {"id": key, "prompt": text, "validator": rule} for key, (text, rule) in prompts.items()
            ]
        if not isinstance(prompts, str):
            prompts = json.dumps(prompts)
            path = path.with_suffix(".json")
        path.write_text(prompts, "utf-8")
        return path

    def extend_conftest(self, source: str) -> None:
        """Append code to the project's root conftest.py."""
        conftest = self.folder / "conftest.py"
        conftest.write_text(conftest.read_text("utf-8") + source, "utf-8")

    def at_start(self, source: str) -> None:
        """Let every process that a session starts run this first."""
        (self.folder / "sitecustomize.py").write_text(source)
        self.pytester._monkeypatch.setenv("PYTHONPATH", str(self.folder))

    def run(
        self,
        *args: str | Path,
        models: str | None = "scripted/m",
        target: str = "benchmarks",
        apart: bool = False,
    ) -> Session:
        """Run pytest on the benchmarks.

        Args:
            args: words of the command line.
            models: the value of `--openclaw-models`; None leaves the option out.
            target: the path to run.
            apart: whether to use a separate process. Inside this one a session, or under xdist its
                controller, starts much faster, but passes a Ctrl-C on and has no terminal of its own.
        """
        chosen = [f"--openclaw-models={models}"] if models else []
        named = [target] if target else []
        words = [*named, *chosen, *self.mode, *args]
        if apart:
            result = self.pytester.runpytest_subprocess(*words, timeout=600)
        else:
            result = self.pytester.runpytest_inprocess(*words)
        return Session(result, self.folder)


WORKERS = ("-n", "2")
MODES = [pytest.param((), id="plain"), pytest.param(WORKERS, id="workers", marks=pytest.mark.workers)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave a test's session under workers to the nightly run, unless it is marked `under_workers`.

    A session under workers costs ten times as much as a plain one, and most of what tests check is decided
    before or after the workers' part in it.
    """
    for item in items:
        callspec = getattr(item, "callspec", None)
        mode = callspec.params.get("project") if callspec else None
        if mode == WORKERS and not item.get_closest_marker("under_workers"):
            item.add_marker("nightly")


@pytest.fixture
def _emptied(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        ends = name.upper().endswith(("_API_KEY", "_BASE_URL", "_PROXY"))
        if ends or name.startswith(("OLLAMA", "OPENAI", "ANTHROPIC", "CLAUDE")):
            monkeypatch.delenv(name)
    # pytest words its short summary otherwise under CI.
    for name in ("GITHUB_STEP_SUMMARY", "COLUMNS", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", NO_OTHER_PLUGINS)
    pytester.makeconftest(PROVIDER)


@pytest.fixture(params=MODES)
def project(request: pytest.FixtureRequest, pytester: pytest.Pytester, _emptied: None) -> Project:
    """A project whose sessions run plain and, in a second test, with two workers."""
    return Project(pytester, request.param)


@pytest.fixture
def plain_project(pytester: pytest.Pytester, _emptied: None) -> Project:
    """A project whose sessions run plain, for behavior that does not depend on workers."""
    return Project(pytester)
