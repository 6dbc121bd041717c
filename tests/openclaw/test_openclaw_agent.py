"""The provider around OpenClaw: its input, its end, its leftovers; OpenClaw itself is a fake."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_openclaw.providers.ollama import OllamaOpenAI
from pytest_openclaw.providers.openclaw_agent import OpenClawAgent
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool
from pytest_openclaw.values.worlds import Answer, Command, World, WorldState
from tests.openclaw.model_server import ScriptedModel
from tests.providers.fake_claude import dies
from tests.providers.servers.misbehaving import unused_port

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is called by a POSIX command line"),
    pytest.mark.usefixtures("scratch"),
]

FAKE = Path(__file__).with_name("fake_openclaw.py")
KEY = "sk-not-to-be-seen"


@pytest.fixture
def seen(tmp_path):
    """The file in which the fake writes its input."""
    return tmp_path / "seen.json"


def _provider(seen: Path, url: str, mode: str = "answer", **environ: str) -> OpenClawAgent:
    command = shlex.join([sys.executable, str(FAKE), mode, str(seen)])
    own = {"OPENCLAW_AGENT_COMMAND": command, "OPENCLAW_AGENT_BASE_URL": url, "OPENCLAW_AGENT_API_KEY": KEY}
    return OpenClawAgent(ProviderSetup(name="openclaw_agent", environ=own | environ))


async def _ask(provider: OpenClawAgent, **request):
    try:
        return await provider.ask(
            Request(**{"model": "local/tiny", "prompt": "Say hi.", "timeout_s": 60.0} | request)
        )
    finally:
        await provider.aclose()


def _fault(provider: OpenClawAgent, **request):
    with pytest.raises(CallFailed) as failed:
        asyncio.run(_ask(provider, **request))
    return failed.value.fault


def test_an_answer_is_found_between_other_lines(seen):
    """Text, tokens and times are from the model's API; OpenClaw's own start is reported separately."""
    with ScriptedModel("Hello there.") as model:
        reply = asyncio.run(_ask(_provider(seen, model.url)))

    assert (reply.text, reply.effective_model) == ("Hello there.", "tiny")
    assert (reply.input_tokens, reply.output_tokens) == (11, 3)
    assert reply.timing is not None
    assert reply.timing.ttft_ms is not None
    assert reply.timing.e2e_ms < 30_000


def test_the_key_goes_to_the_server_alone(seen):
    """OpenClaw gets neither the key nor any other environment variable; the server gets the key."""
    with ScriptedModel("Hi.") as model:
        provider = _provider(seen, model.url, AWS_SECRET="hunter2", HOME="/home/me")
        asyncio.run(_ask(provider, prompt="A quiet question, ünïcode\ntoo."))

        assert model.keys == [f"Bearer {KEY}"]
    received = json.loads(seen.read_text("utf-8"))
    assert received["prompt"] == "A quiet question, ünïcode\ntoo."
    assert "quiet" not in " ".join(received["arguments"]), "the list of processes does not show it"
    assert KEY not in json.dumps(received)
    assert "hunter2" not in json.dumps(received)
    assert received["mode"] == "0o600"
    scratch = str(Path(received["cwd"]).parent)
    for name in ("HOME", "TMPDIR", "OPENCLAW_STATE_DIR", "SHELL"):
        assert received["environ"][name].startswith(scratch)
    assert received["environ"]["OPENCLAW_NO_AUTO_UPDATE"] == received["environ"]["DO_NOT_TRACK"] == "1"


def test_without_tools_none_are_allowed(seen):
    """If a prompt offers no tools, all of OpenClaw's are denied."""
    with ScriptedModel("Hi.") as model:
        asyncio.run(_ask(_provider(seen, model.url)))

    tools = json.loads(seen.read_text("utf-8"))["config"]["tools"]
    assert tools["deny"] == ["*"]
    assert tools["fs"] == {"workspaceOnly": True}
    assert tools["elevated"] == {"enabled": False}


def test_optional_tools_are_left_out(seen):
    """A world that needs only files and commands of OpenClaw's default surface is played with those."""
    world = World(optional_tools=("exec", "sessions_yield", "tool_call", "tool_describe", "tool_search"))
    with ScriptedModel("Hi.") as model:
        asyncio.run(_ask(_provider(seen, model.url), tools=read_tools("direct"), world=world))

    tools = json.loads(seen.read_text("utf-8"))["config"]["tools"]
    assert tools["allow"] == ["apply_patch", "edit", "exec", "ls", "process", "read", "write"]


def test_the_shell_of_a_world_plays_and_runs_nothing(seen, tmp_path):
    """A command that OpenClaw gives to its shell is played on the world's files, which the result has."""
    trace = tmp_path / "trace"
    world = World(files={"a.txt": "one\n"}, commands=(Command(pattern=r"make.*", output="made"),))
    with ScriptedModel("See /workspace/b.txt.") as model:
        provider = _provider(seen, model.url, "runs")
        prompt = f"cp /workspace/a.txt b.txt; pwd; make /workspace/b.txt; touch {trace}"
        reply = asyncio.run(_ask(provider, prompt=prompt, tools=(Tool(name="exec"),), world=world))

    received = json.loads(seen.read_text("utf-8"))
    assert received["prompt"] == prompt.replace("/workspace", received["cwd"])
    assert received["printed"].startswith(f"{received['cwd']}\nmade\n")
    assert reply.world is not None
    assert replace(reply.world, parts=()) == WorldState(
        files={"a.txt": "one\n", "b.txt": "one\n"}, ran=(prompt,), changed=("b.txt",)
    )
    assert reply.world.parts[0][:3] == ("make /workspace/b.txt", "cp /workspace/a.txt b.txt", "pwd")
    assert not trace.exists()


def test_a_shell_that_breaks_is_not_the_models_fault(seen):
    """A pattern of the suite that cannot be decided is an error of the suite, whatever the model does."""
    world = World(commands=(Command(pattern="(?:x|xx)+y"),))
    with ScriptedModel("Done.") as model:
        provider = _provider(seen, model.url, "runs")
        fault = _fault(provider, prompt="x" * 3000, tools=(Tool(name="exec"),), world=world)

    assert fault.failure_type == "harness_error"
    assert fault.message.startswith('openclaw_agent: the shell of the world: the pattern "(?:x|xx)+y" cannot')


def test_without_a_world_there_is_no_shell(seen, tmp_path):
    """In a single question no call is carried out; a command would be refused."""
    trace = tmp_path / "trace"
    with ScriptedModel("Hi.") as model:
        asyncio.run(_ask(_provider(seen, model.url, "runs"), prompt=f"touch {trace}; echo hi"))

    assert json.loads(seen.read_text("utf-8"))["printed"] == ""
    assert not trace.exists()


@pytest.mark.parametrize(
    ("turn", "failure_type", "status", "retryable"),
    [
        pytest.param(401, "http_401", "auth_error", False, id="401"),
        pytest.param(429, "http_429", "rate_limited", True, id="429"),
        pytest.param(500, "http_500", "error", True, id="500"),
    ],
)
def test_what_the_server_says_is_the_fault(seen, turn, failure_type, status, retryable):
    """An error of the model's server is reported at once, as with any provider; OpenClaw does not retry."""
    with ScriptedModel(turn) as model:
        fault = _fault(_provider(seen, model.url))

        assert len(model.asked) == 1
    assert (fault.failure_type, fault.status, fault.retryable) == (failure_type, status, retryable)
    assert fault.message.startswith("openclaw_agent: ")


def test_no_server_at_the_address(seen):
    """A refused connection marks this target unavailable, and not the targets of other servers."""
    with unused_port() as port:
        fault = _fault(_provider(seen, f"http://127.0.0.1:{port}/v1"))

    assert (fault.failure_type, fault.status, fault.scope) == (
        "connect_error",
        "skipped_unavailable",
        "target",
    )


@pytest.mark.parametrize(
    ("mode", "failure_type", "words"),
    [
        pytest.param(
            "silent", "cli_error", "exit status 3 without its JSON: Something went wrong", id="no-json"
        ),
        pytest.param(
            "terminated",
            "harness_error",
            "ended with exit status 143 (SIGTERM) without its JSON.",
            id="sigterm",
        ),
        pytest.param(
            "fails",
            "cli_error",
            "OpenClaw ended with an error: Config invalid: no such key",
            id="its-own-error",
        ),
    ],
)
def test_errors_of_openclaw_are_reported_in_its_words(seen, mode, failure_type, words):
    """An end without an answer is a cli_error, except one caused by a signal from outside."""
    fault = _fault(_provider(seen, "http://127.0.0.1:9/v1", mode))

    assert fault.failure_type == failure_type
    assert words in fault.message


def test_what_breaks_on_the_way_is_our_own_fault(seen, monkeypatch):
    """An exception in our code ends the call, and is not an answer of the model."""

    def breaks(*args, **kwargs):
        raise RuntimeError("broken")

    monkeypatch.setattr(OllamaOpenAI, "call", breaks)
    with ScriptedModel("Hi.") as model, pytest.raises(RuntimeError, match="broken"):
        asyncio.run(_ask(_provider(seen, model.url)))


def test_a_timeout_ends_all_of_it(seen):
    """After the time limit, OpenClaw and its child processes are gone."""
    fault = _fault(_provider(seen, "http://127.0.0.1:9/v1", "hangs"), timeout_s=6.0)

    assert fault.failure_type == "timeout"
    assert dies(json.loads(seen.read_text("utf-8"))["child"])


def test_messages_of_the_user_are_turns_of_a_session(seen):
    """Each is one start with the same session, with what `agent exec` would add in the config."""
    with ScriptedModel("Hello, Ada.", "Ada.", "Bye.") as model:
        reply = asyncio.run(_ask(_provider(seen, model.url), prompt="I am Ada.", turns=("Who am I?", "Bye.")))

        last = model.asked[-1]["messages"]
    assert [message["content"] for message in last] == [
        "I am Ada.",
        "Hello, Ada.",
        "Who am I?",
        "Ada.",
        "Bye.",
    ]
    assert [(turn.user, turn.text) for turn in reply.turns] == [
        (None, "Hello, Ada."),
        ("Who am I?", "Ada."),
        ("Bye.", "Bye."),
    ]
    assert (reply.text, reply.ended_by, reply.raw) == ("Bye.", "answer", "Hello, Ada.\n\nAda.\n\nBye.")
    assert (reply.input_tokens, reply.output_tokens) == (33, 9)
    assert reply.timing is not None
    start = json.loads(seen.read_text("utf-8"))
    config = start["config"]
    assert (config["tools"]["profile"], config["tools"]["codeMode"]) == ("coding", {"enabled": False})
    assert config["agents"]["defaults"]["skipBootstrap"] is True
    assert "Bye." not in " ".join(start["arguments"])
    assert start["mode"] == "0o600"


def test_a_fault_in_a_session_keeps_what_was_said(seen):
    """The turns before it are part of it, and no further message is sent."""
    with ScriptedModel("Hello.") as model:
        fault = _fault(_provider(seen, model.url), turns=("fail", "Bye."))

        assert len(model.asked) == 1
    assert fault.failure_type == "http_503"
    assert ([turn.text for turn in fault.turns], fault.raw) == (["Hello."], "Hello.")
    assert len(fault.usage) == 1


FILES = (Tool(name="read"), Tool(name="write"))


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        pytest.param({"system": "Be brief."}, "writes its system prompt itself", id="system"),
        pytest.param(
            {"messages": (Turn(user="x"), Turn(text="y"))}, "begins without any", id="earlier-turns"
        ),
        pytest.param(
            {"tools": (*FILES, Tool(name="message")), "world": World()},
            "its world offers message",
            id="messages",
        ),
        pytest.param(
            {"tools": FILES, "world": World(answers=(Answer(tool="read", result="x"),))},
            "by a script",
            id="answers",
        ),
        pytest.param(
            {"tools": (Tool(name="memory_get"),), "world": World(memory={"notes/a.md": "A"})},
            "has the note notes/a.md",
            id="a-note-elsewhere",
        ),
        pytest.param({"model": "tiny"}, "no OpenClaw provider in 'tiny'", id="no-provider"),
    ],
)
def test_what_cannot_be_played_is_not_asked(seen, request_, words):
    """No program is started, and the cell is reported as unavailable, with the reason."""
    fault = _fault(_provider(seen, "http://127.0.0.1:9/v1"), **request_)

    assert (fault.status, fault.sent, seen.exists()) == ("skipped_unavailable", False, False)
    assert words in fault.message


def test_where_no_program_can_be_started_no_command_is_offered(seen, scratch, monkeypatch):
    """On a noexec file system a world with commands is reported as unavailable, with a hint."""
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "shell")  # as on a noexec mount
    fault = _fault(_provider(seen, "http://127.0.0.1:9/v1"), tools=(Tool(name="exec"),), world=World())

    assert (fault.status, fault.sent, seen.exists()) == ("skipped_unavailable", False, False)
    assert fault.message == (
        "openclaw_agent: not asked: its world offers commands, and no program can be started in"
        f" {scratch.resolve()}. Set TMPDIR to a folder that is not mounted noexec."
    )


def test_without_openclaw_it_says_how_to_get_it(seen):
    """A missing command gives one sentence with the hint."""
    fault = _fault(_provider(seen, "http://127.0.0.1:9/v1", OPENCLAW_AGENT_COMMAND="no-such-openclaw"))

    assert (fault.failure_type, fault.scope) == ("not_installed", "endpoint")
    assert "npm install -g openclaw" in fault.message


def test_the_fingerprint_names_release_and_server(seen):
    """A run's inventory names the OpenClaw release and the server."""
    with ScriptedModel("Hi.") as model:
        received = asyncio.run(_provider(seen, model.url).fingerprint("local/tiny"))

        assert received == {
            "cli_version": "OpenClaw 2026.9.6 (fake)",
            "api": "openai-completions",
            "base_url": model.url,
        }
