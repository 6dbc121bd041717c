"""Whole pytest sessions with a scripted provider, added through the public hook."""

import asyncio
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import pytest_openclaw
from pytest_openclaw import CallFailed, ProviderSetup, Request
from pytest_openclaw.providers import BUILTIN
from tests.conftest import NO_OTHER_PLUGINS
from tests.run_files import RunFiles, StoredRun


def _import_everything():
    # A session inside this process forgets what it imported, to which earlier modules keep references.
    # The HTTP library imports more at its first request; a closed port is enough for that.
    for module in pkgutil.walk_packages(pytest_openclaw.__path__, "pytest_openclaw."):
        if module.name != "pytest_openclaw.providers.llama_cpp.server":
            importlib.import_module(module.name)
    provider = BUILTIN[0](ProviderSetup(name="lab", base_url="http://127.0.0.1:9/v1"))

    async def ask_closed_port():
        with pytest.raises(CallFailed):
            await provider.ask(Request(model="m", prompt="hello"))
        await provider.aclose()

    asyncio.run(ask_closed_port())


_import_everything()

NOOP = {"type": "noop"}
YES = {"type": "exact", "value": "yes"}

# Does what its prompt says, and records each request in asked.txt: model, prompt, and seed if there is one.
# "miss 2 4" is answered with no in the second and fourth repeat and with yes in the others; "down 3" is a fault
# in the third, and "gone 3" finds no server there. A conftest that is extended adds its classes to PROVIDERS.
PROVIDER = '''
import asyncio
import json
import pathlib
from pytest_openclaw import CallFailed, Provider, Reply, ToolCall, faults
from pytest_openclaw.values.replies import Fault

FOLDER = pathlib.Path(__file__).parent


def note(*words):
    with open(FOLDER / "asked.txt", "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(" ".join(str(word) for word in words if word is not None) + "\\n")


class Scripted(Provider):
    """Does what the prompt says."""

    name = "scripted"
    takes_tools = True

    async def ask(self, request):
        note(request.model, request.prompt, request.seed)
        word, _, rest = request.prompt.partition(" ")
        if word == "say":
            return Reply(text=rest, finish_reason="stop", output_tokens=len(rest.split()))
        if word == "pay":
            return Reply(text="hi", input_tokens=int(rest.split()[0]), output_tokens=10)
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
        if word in ("miss", "down", "gone"):
            is_named = str(request.seed or 1) in rest.split()
            if word == "miss" or not is_named:
                return Reply(text="no" if is_named else "yes")
        fault = {
            "refused": faults.unreachable("scripted", "nowhere", "refused"),
            "timeout": faults.timed_out("scripted", 1.0),
            "down": faults.timed_out("scripted", 1.0),
            # Not `unreachable`, after which no more requests are sent there.
            "gone": Fault(failure_type="connect_error", status="skipped_unavailable", message="gone"),
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
        note("models")
        return ("alpha", "beta", "gamma:1b")


PROVIDERS = [Scripted]


def pytest_openclaw_providers():
    return PROVIDERS
'''


@dataclass(frozen=True)
class Session(RunFiles):
    """A finished session: pytest's result, the requests that reached scripted providers, and the run's files."""

    result: pytest.RunResult
    folder: Path
    asked: list[str]
    has_run: bool
    run_id: str | None = None

    @property
    def status(self):
        return int(self.result.ret)

    @property
    def text(self):
        return self.result.stdout.str() + self.result.stderr.str()

    @property
    def words(self):
        return " ".join(self.text.split())

    @property
    def run_dir(self):
        names = [self.run_id] if self.run_id else run_names(self.folder)
        (name,) = names
        return self.folder / "runs" / name

    def outcomes(self, **expected):
        self.result.assert_outcomes(**expected)

    def is_refused(self, message):
        """Check that a usage error ended the session, before any request and without a run."""
        assert self.status == pytest.ExitCode.USAGE_ERROR
        assert message in self.words
        assert "Traceback" not in self.text
        assert (self.asked, self.has_run) == ([], False)


def run_names(folder):
    runs = folder / "runs"
    return {path.name for path in runs.iterdir() if path.is_dir()} if runs.is_dir() else set()


@dataclass(frozen=True)
class Project:
    pytester: pytest.Pytester
    mode: tuple[str, ...] = ()

    @property
    def folder(self):
        return self.pytester.path

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def suite(self, prompts, name="prompts_a.toml"):
        if isinstance(prompts, dict):
            prompts = [
                {"id": key, "prompt": text, "validator": rule} for key, (text, rule) in prompts.items()
            ]
        if not isinstance(prompts, str):
            prompts, name = json.dumps(prompts), name.replace(".toml", ".json")
        return self.write(f"benchmarks/{name}", prompts)

    def ini(self, *lines):
        self.pytester.makeini("\n".join(["[pytest]", *lines]))

    def extend_conftest(self, source):
        self.write("conftest.py", (self.folder / "conftest.py").read_text("utf-8") + source)

    def change_conftest(self, old, new):
        text = (self.folder / "conftest.py").read_text("utf-8")
        assert old in text
        self.write("conftest.py", text.replace(old, new))

    def run(self, *args, models="scripted/m", target="benchmarks", apart=False):
        """Run pytest on `target`, faster in this process; `apart`, it has its own terminal and Ctrl-C."""
        chosen = [f"--openclaw-models={models}"] if models else []
        named = [target] if target else []
        words = [*named, *chosen, *self.mode, *args]
        asked, before = self.folder / "asked.txt", run_names(self.folder)
        asked.unlink(missing_ok=True)
        if apart:
            result = self.pytester.runpytest_subprocess(*words, timeout=600)
        else:
            result = self.pytester.runpytest_inprocess(*words)
        run = re.search(r"--openclaw-(?:run-id|resume)=(?!last\b)(\S+)", " ".join(map(str, args)))
        return Session(
            result,
            self.folder,
            asked.read_text("utf-8").splitlines() if asked.exists() else [],
            has_run=run_names(self.folder) > before,
            run_id=run and run[1],
        )

    def stored(self, run_id):
        return StoredRun(self.folder / "runs" / run_id)

    def command(self, *words, cwd=None):
        return subprocess.run(
            [sys.executable, "-m", "pytest_openclaw", *words],
            cwd=cwd or self.folder,
            capture_output=True,
            encoding="utf-8",
            timeout=600,
        )


WORKERS = ("-n", "2")
MODES = [pytest.param((), id="plain"), pytest.param(WORKERS, id="workers", marks=pytest.mark.workers)]


def pytest_collection_modifyitems(items):
    """Leave a session under workers, which costs ten times as much, to the night unless it is marked."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        mode = callspec.params.get("project") if callspec else None
        if mode == WORKERS and not item.get_closest_marker("under_workers"):
            item.add_marker("nightly")


@pytest.fixture
def _emptied(pytester, monkeypatch):
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
def project(request, pytester, _emptied):
    return Project(pytester, request.param)


@pytest.fixture
def plain_project(pytester, _emptied):
    """A project whose sessions run plain, for behavior that does not depend on workers."""
    return Project(pytester)
