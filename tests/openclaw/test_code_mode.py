"""Code mode through the provider around OpenClaw: judged by what the code called; OpenClaw is a fake."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.providers.openclaw_agent import OpenClawAgent
from pytest_openclaw.suites.surfaced import on_surface
from pytest_openclaw.tools.catalogue import load_catalogue
from pytest_openclaw.tools.surface_sources import substitute_surface
from pytest_openclaw.types.faults import CallFailed
from pytest_openclaw.types.prompts import Prompt
from pytest_openclaw.types.protocols import ProviderSetup
from pytest_openclaw.types.replies import Fault, Reply, Turn
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.surface import LOOKUP_TURNS
from pytest_openclaw.types.targets import OPENCLAW_CODE
from pytest_openclaw.types.tool_calls import ToolCall
from pytest_openclaw.types.worlds import World
from pytest_openclaw.validators import BUILTIN, build_registry, build_validator
from tests.conftest import NO_OTHER_PLUGINS
from tests.openclaw.model_server import ScriptedModel

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is called by a POSIX command line"),
    pytest.mark.usefixtures("scratch"),
]

FAKE = Path(__file__).with_name("fake_openclaw.py")
REGISTRY = build_registry(("pytest-openclaw", validator) for validator in BUILTIN)
READS = {"type": "tool_call", "calls": [{"name": "read", "arguments": {"path": "notes.txt"}}]}
NO_CALL = {"type": "tool_call", "calls": []}
READ = 'return await read({"path": "notes.txt"})'


def code(text: str) -> list[tuple[str, str]]:
    """A turn that runs code."""
    return [("exec", json.dumps({"code": text}))]


def prompt(spec: Any = READS, world: World | None = None, **changes: Any) -> Prompt:
    """A prompt that lists three tools, in code mode."""
    tools = tuple(load_catalogue().tools[name] for name in ("exec", "read", "write"))
    usual: dict[str, Any] = {"suite": "s", "id": "P", "name": "n", "prompt": "Read notes.txt."}
    listed = Prompt(
        **{**usual, "tools": tools, "world": world, "validator": build_validator(spec, REGISTRY), **changes}
    )
    return on_surface(listed, substitute_surface(), OPENCLAW_CODE)


def ask(tmp_path: Path, asked: Prompt, *turns: Any, mode: str = "answer", **changes: Any) -> Reply | Fault:
    """Ask a model that plays these turns."""
    command = shlex.join([sys.executable, str(FAKE), mode, str(tmp_path / "seen.json")])
    assert asked.listed is not None
    request = Request(
        model="local/tiny",
        prompt=asked.prompt,
        timeout_s=60.0,
        tools=asked.tools or (),
        listed_tools=asked.listed.tools or (),
        lookup_turns=0 if asked.world else LOOKUP_TURNS,
        world=asked.world,
        surface=OPENCLAW_CODE,
        **changes,
    )
    with ScriptedModel(*turns) as model:
        environ = {"OPENCLAW_AGENT_COMMAND": command, "OPENCLAW_AGENT_BASE_URL": model.url}
        provider = OpenClawAgent(ProviderSetup(name="openclaw_agent", environ=environ))

        async def one() -> Reply:
            try:
                return await provider.ask(request)
            finally:
                await provider.aclose()

        try:
            return asyncio.run(one())
        except CallFailed as failed:
            return failed.fault


def answered(tmp_path: Path, asked: Prompt, *turns: Any) -> Reply:
    """The reply of a model that plays these turns."""
    reply = ask(tmp_path, asked, *turns)
    assert isinstance(reply, Reply), reply
    return reply


def test_code_mode_is_on_with_the_plugin_that_records_calls(tmp_path: Path) -> None:
    """OpenClaw runs a turn of a session, in the executor that keeps code from the machine."""
    answered(tmp_path, prompt(), "No.")

    seen = json.loads((tmp_path / "seen.json").read_text("utf-8"))
    assert seen["arguments"][:2] == ["agent", "--local"]
    assert seen["config"]["tools"]["codeMode"] == {"enabled": True, "executor": "quickjs"}
    assert "allow" not in seen["config"]["tools"]
    (entry,) = seen["config"]["plugins"]["entries"].values()
    assert entry["config"]["calls"]["hold"] is True


@pytest.mark.parametrize(
    ("turns", "outcome", "ended_by", "n_asked"),
    [
        pytest.param([code(READ), "Done."], "valid", "call", 1, id="right-code"),
        pytest.param(
            [code("return 1 + 1"), code("throw new Error()"), code(READ), "Done."],
            "valid", "call", 3, id="right-after-code-that-throws",
        ),
        pytest.param(
            [code('await write({"path": "notes.txt", "content": ""})'), "Done."],
            "wrong_tool", "call", 1, id="code-that-calls-another-tool",
        ),
        pytest.param(
            [code('await read({"pth": "notes.txt"})'), "Done."], "bad_arguments", "call", 1, id="wrong-arguments"
        ),
        pytest.param([code("throw new Error()"), "Sorry."], "no_call", "answer", 2, id="code-that-throws"),
        pytest.param([code("throw new Error()")], "no_call", "loop", 5, id="code-that-only-throws"),
        pytest.param(
            [code("await yield_control()"), [("wait", '{"runId": "cm_1"}')], code(READ), "Done."],
            "valid", "call", 3, id="code-that-waits",
        ),
        pytest.param(
            [[("read", '{"path": "notes.txt"}')], "Done."], "unknown_tool", "call", 1, id="a-tool-that-is-not-sent"
        ),
        pytest.param([[("exec", '{"command": "cat notes.txt"}')], "Done."], "bad_arguments", "call", 1, id="a-shell"),
        pytest.param([READ, "Done."], "leaked_as_text", "answer", 1, id="code-as-text"),
    ],
)  # fmt: skip
def test_a_question_is_judged_by_the_calls_of_the_code(
    tmp_path: Path, turns: list[Any], outcome: str, ended_by: str, n_asked: int
) -> None:
    """A question ends at the first call; code without calls and `wait` are no calls, whatever they return."""
    asked = prompt()

    reply = answered(tmp_path, asked, *turns)

    assert (judge(asked, reply).tool_outcome, reply.ended_by, len(reply.turns)) == (
        outcome,
        ended_by,
        n_asked,
    )


def test_the_row_has_the_code_and_what_it_called(tmp_path: Path) -> None:
    """The calls of a turn are the code on the wire and, marked, the calls that it made."""
    reply = answered(tmp_path, prompt(), code(READ), "Done.")

    assert [(call.name, call.in_code) for call in reply.turns[0].calls] == [("exec", False), ("read", True)]
    assert reply.turns[0].results == ()
    assert reply.tool_calls[1].arguments == '{"path": "notes.txt"}'
    assert judge(prompt(), reply).reply.tool_names == ("read",)


def test_code_that_calls_nothing_is_no_needless_call(tmp_path: Path) -> None:
    """What code computes by itself is like thinking; a call of it is needless."""
    asked = prompt(NO_CALL)

    computed = answered(tmp_path, asked, code("return 6 * 7"), "42.")
    called = answered(tmp_path, asked, code(READ), "42.")

    assert judge(asked, computed).tool_outcome == "restrained"
    assert judge(asked, called).tool_outcome == "called_needlessly"


def test_code_works_in_a_world(tmp_path: Path) -> None:
    """The calls are carried out, the world changes, and each call has its own result."""
    spec = {"type": "world", "calls": [{"name": "read"}], "files": {"b.txt": "B"}}
    asked = prompt(spec, World(files={"notes.txt": "The code is 4711.\n"}))
    both = 'await read({"path": "notes.txt"}); await write({"path": "b.txt", "content": "B"})'

    reply = answered(tmp_path, asked, code(both), code('await read({"path": "none"})'), "Done.")

    assert reply.world is not None
    assert reply.world.changed == ("b.txt",)
    assert [call.name for call in reply.turns[0].calls] == ["exec", "read", "write"]
    assert reply.turns[0].results[1:] == ("The code is 4711.\n", "Written.")
    assert "FileNotFoundError" in reply.turns[1].results[1]
    assert (reply.ended_by, judge(asked, reply).tool_outcome) == ("answer", "valid")
    config = json.loads((tmp_path / "seen.json").read_text("utf-8"))["config"]
    assert "read" in config["tools"]["allow"]
    assert "tool_call" not in config["tools"]["allow"]


def test_what_openclaw_adds_to_a_command_is_not_the_models(tmp_path: Path) -> None:
    """OpenClaw limits how long a command of code may run; the recorded call is the one that was written."""
    plain = answered(tmp_path, prompt(), code('await exec({"command": "ls"})'), "Done.")
    own = answered(tmp_path, prompt(), code('await exec({"command": "ls", "yieldMs": 5})'), "Done.")

    assert json.loads(plain.tool_calls[1].arguments) == {"command": "ls"}
    assert json.loads(own.tool_calls[1].arguments) == {"command": "ls", "yieldMs": 1000}


def test_without_the_plugin_nothing_is_asked(tmp_path: Path) -> None:
    """An OpenClaw that does not load it would execute calls that are not recorded."""
    fault = ask(tmp_path, prompt(), code(READ), "Done.", mode="deaf")

    assert isinstance(fault, Fault)
    assert "does not load the plugin that records the calls of code" in fault.message


def test_earlier_calls_cannot_be_played_in_code_mode(tmp_path: Path) -> None:
    """They were made directly, and code mode offers no tool but its own two."""
    past = (
        Turn(user="Read it."),
        Turn(calls=(ToolCall(name="read", arguments='{"path": "notes.txt"}'),), results=("x",)),
    )
    fault = ask(tmp_path, prompt(world=World(files={"notes.txt": "x"})), "Hi.", messages=past)

    assert isinstance(fault, Fault)
    assert "code mode offers only exec and wait" in fault.message


def test_a_session_in_code_mode_is_recorded_and_judged_again(tmp_path: Path) -> None:
    """Its surface is in ids and rows, the failure shows the code, and rescoring finds the same verdicts."""
    (tmp_path / "prompts_code.toml").write_text(
        '[[prompts]]\nid = "R"\nprompt = "Read it."\ntools = ["read", "write"]\n'
        'validator = { type = "tool_call", calls = [{ name = "read" }] }\n',
        encoding="utf-8",
    )
    command = shlex.join([sys.executable, str(FAKE), "answer", str(tmp_path / "seen.json")])
    with ScriptedModel(code('await write({"path": "a.txt", "content": "A"})'), "Done.") as model:
        environ = {"OPENCLAW_AGENT_COMMAND": command, "OPENCLAW_AGENT_BASE_URL": model.url}
        options = ("--openclaw-surface=openclaw-code", "--openclaw-surface-from=substitute")
        target = "--openclaw-models=openclaw_agent/local/tiny"
        done = _python(tmp_path, environ, "pytest", "-v", "prompts_code.toml", target, *options)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "R[openclaw_agent/local/tiny+openclaw-code]" in done.stdout
    assert 'exec {"code": "await write(' in done.stdout, done.stdout
    (results,) = tmp_path.glob("runs/*/results.jsonl")
    row = json.loads(results.read_text("utf-8"))
    assert (row["surface"], row["tool_outcome"], row["tool_calls"]) == (
        "openclaw-code",
        "wrong_tool",
        ["write"],
    )
    assert [call.get("in_code", False) for call in row["tool_call_details"]] == [False, True]
    assert row["tools_offered"] == 3
    again = _python(tmp_path, {}, "pytest_openclaw", "rescore", "last", "--into", "again/r")
    assert again.returncode == 0, again.stdout + again.stderr
    (rescored,) = tmp_path.glob("again/**/results.jsonl")
    kept = {key: value for key, value in row.items() if key != "run_id"}
    assert kept.items() <= json.loads(rescored.read_text("utf-8")).items()


def _python(folder: Path, environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments, *(("-p", "no:cacheprovider") if arguments[0] == "pytest" else ())],
        cwd=folder, env=os.environ | {"PYTEST_ADDOPTS": NO_OTHER_PLUGINS} | environ,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
