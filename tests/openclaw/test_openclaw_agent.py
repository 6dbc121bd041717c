"""The provider around OpenClaw: its input, its end, its leftovers; OpenClaw itself is a fake."""

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.values.replies import Fault, Turn
from pytest_openclaw.values.tool_calls import Tool
from pytest_openclaw.values.worlds import ScriptedAnswer, ScriptedCommand, World, WorldState
from tests.openclaw.asking import KEY, agent, ask, fake_command
from tests.openclaw.model_server import ScriptedModel
from tests.providers.fake_claude import dies
from tests.providers.servers.misbehaving import unused_port

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is called by a POSIX command line"),
    pytest.mark.usefixtures("scratch"),
]

NOWHERE = "http://127.0.0.1:9/v1"
EXEC, READ, MESSAGE, NOTES = ((Tool(name=name),) for name in ("exec", "read", "message", "memory_get"))
SCRIPTED = World(answers=(ScriptedAnswer(tool="read", result="x"),))
NOTE = World(memory={"notes/a.md": "A"})


@pytest.fixture
def seen(tmp_path):
    return tmp_path / "seen.json"


def _fake(seen, url, mode="answer", **environ):
    return agent(fake_command(seen, mode), url, **environ)


def _fault(provider, **request):
    fault = ask(provider, **request)
    assert isinstance(fault, Fault), fault
    return fault


def _received(seen):
    return json.loads(seen.read_text("utf-8"))


def test_an_answer_is_found_between_other_lines(seen):
    """Text, tokens and times are from the model's API; OpenClaw's own start is reported separately."""
    with ScriptedModel("Hello there.") as model:
        reply = ask(_fake(seen, model.url))

    assert (reply.text, reply.effective_model) == ("Hello there.", "tiny")
    assert (reply.input_tokens, reply.output_tokens) == (11, 3)
    assert reply.timing.ttft_ms is not None
    assert reply.timing.e2e_ms < 30_000


def test_only_the_server_gets_the_key(seen):
    """OpenClaw gets neither the key nor any other environment variable."""
    with ScriptedModel("Hi.") as model:
        provider = _fake(seen, model.url, AWS_SECRET="hunter2", HOME="/home/me")
        ask(provider, prompt="A quiet question, ünïcode\ntoo.")

    assert model.keys == [f"Bearer {KEY}"]
    received = _received(seen)
    assert received["prompt"] == "A quiet question, ünïcode\ntoo."
    assert "quiet" not in " ".join(received["arguments"]), "the list of processes does not show it"
    assert not any(secret in json.dumps(received) for secret in (KEY, "hunter2"))
    assert received["mode"] == "0o600"
    scratch = str(Path(received["cwd"]).parent)
    for name in ("HOME", "TMPDIR", "OPENCLAW_STATE_DIR", "SHELL"):
        assert received["environ"][name].startswith(scratch)
    assert received["environ"]["OPENCLAW_NO_AUTO_UPDATE"] == received["environ"]["DO_NOT_TRACK"] == "1"


def test_without_tools_none_are_allowed(seen):
    """If a prompt offers no tools, all of OpenClaw's are denied."""
    with ScriptedModel("Hi.") as model:
        ask(_fake(seen, model.url))

    tools = _received(seen)["config"]["tools"]
    assert (tools["deny"], tools["fs"], tools["elevated"]) == (
        ["*"],
        {"workspaceOnly": True},
        {"enabled": False},
    )


def test_optional_tools_are_left_out(seen):
    """A world that needs only files and commands of OpenClaw's default surface is played with those."""
    world = World(optional_tools=("exec", "sessions_yield", "tool_call", "tool_describe", "tool_search"))
    with ScriptedModel("Hi.") as model:
        ask(_fake(seen, model.url), tools=read_tools("direct"), world=world)

    allowed = _received(seen)["config"]["tools"]["allow"]
    assert allowed == ["apply_patch", "edit", "exec", "ls", "process", "read", "write"]


def test_the_shell_of_a_world_plays_and_runs_nothing(seen, tmp_path):
    """A command that OpenClaw gives to its shell is played on the world's files, which the result has."""
    trace = tmp_path / "trace"
    world = World(files={"a.txt": "one\n"}, commands=(ScriptedCommand(pattern=r"make.*", output="made"),))
    prompt = f"cp /workspace/a.txt b.txt; pwd; make /workspace/b.txt; touch {trace}"
    with ScriptedModel("See /workspace/b.txt.") as model:
        reply = ask(_fake(seen, model.url, "runs"), prompt=prompt, tools=EXEC, world=world)

    received = _received(seen)
    assert received["prompt"] == prompt.replace("/workspace", received["cwd"])
    assert received["printed"].startswith(f"{received['cwd']}\nmade\n")
    assert replace(reply.world, parts=()) == WorldState(
        files={"a.txt": "one\n", "b.txt": "one\n"}, ran=(prompt,), changed=("b.txt",), start=world.files
    )
    assert {"make /workspace/b.txt", "cp /workspace/a.txt b.txt", "pwd"} <= {
        *map(" ".join, reply.world.parts[0])
    }
    assert not trace.exists()


def test_a_shell_that_breaks_is_not_the_models_fault(seen):
    """A pattern of the suite that cannot be decided is an error of the suite, whatever the model does."""
    world = World(commands=(ScriptedCommand(pattern="(?:x|xx)+y"),))
    with ScriptedModel("Done.") as model:
        fault = _fault(_fake(seen, model.url, "runs"), prompt="x" * 3000, tools=EXEC, world=world)

    assert fault.failure_type == "harness_error"
    assert fault.message.startswith('openclaw_agent: the shell of the world: the pattern "(?:x|xx)+y" cannot')


def test_without_a_world_there_is_no_shell(seen, tmp_path):
    """In a single question no call is executed; a command would be refused."""
    trace = tmp_path / "trace"
    with ScriptedModel("Hi.") as model:
        ask(_fake(seen, model.url, "runs"), prompt=f"touch {trace}; echo hi")

    assert _received(seen)["printed"] == ""
    assert not trace.exists()


def test_an_error_of_the_server_is_the_fault(seen):
    """It is reported at once, as with any provider; OpenClaw does not retry."""
    with ScriptedModel(429) as model:
        fault = _fault(_fake(seen, model.url))

    assert len(model.asked) == 1
    assert (fault.failure_type, fault.status, fault.retryable) == ("http_429", "rate_limited", True)
    assert fault.message.startswith("openclaw_agent: ")


def test_no_server_at_the_address(seen):
    """A refused connection marks this target unavailable, and not the targets of other servers."""
    with unused_port() as port:
        fault = _fault(_fake(seen, f"http://127.0.0.1:{port}/v1"))

    expected = ("connect_error", "skipped_unavailable", "target")
    assert (fault.failure_type, fault.status, fault.scope) == expected


@pytest.mark.parametrize(
    ("mode", "failure_type", "words"),
    [
        pytest.param("silent", "cli_error", "exit status 3 without its JSON: Something went", id="no-json"),
        pytest.param("terminated", "harness_error", "status 143 (SIGTERM) without its JSON.", id="sigterm"),
        pytest.param(
            "fails", "cli_error", "ended with an error: Config invalid: no such", id="its-own-error"
        ),
    ],
)
def test_errors_of_openclaw_are_reported_in_its_words(seen, mode, failure_type, words):
    """An end without an answer is a cli_error, except one caused by a signal from outside."""
    fault = _fault(_fake(seen, NOWHERE, mode))

    assert fault.failure_type == failure_type
    assert words in fault.message


def test_an_exception_in_our_code_ends_the_call(seen, monkeypatch):
    """It is not an answer of the model."""

    def breaks(*args, **kwargs):
        raise RuntimeError("broken")

    monkeypatch.setattr(OllamaOpenAI, "call", breaks)
    with ScriptedModel("Hi.") as model, pytest.raises(RuntimeError, match="broken"):
        ask(_fake(seen, model.url))


def test_a_timeout_ends_all_of_it(seen):
    """After the time limit, OpenClaw and its child processes are gone."""
    fault = _fault(_fake(seen, NOWHERE, "hangs"), timeout_s=6.0)

    assert fault.failure_type == "timeout"
    assert dies(_received(seen)["child"])


def test_messages_of_the_user_are_turns_of_a_session(seen):
    """Each is one start with the same session, with what `agent exec` would add in the config."""
    with ScriptedModel("Hello, Ada.", "Ada.", "Bye.") as model:
        reply = ask(_fake(seen, model.url), prompt="I am Ada.", turns=("Who am I?", "Bye."))

    said = ["I am Ada.", "Hello, Ada.", "Who am I?", "Ada.", "Bye."]
    assert [message["content"] for message in model.asked[-1]["messages"]] == said
    assert [turn.user for turn in reply.turns] == [None, "Who am I?", "Bye."]
    assert [turn.text for turn in reply.turns] == ["Hello, Ada.", "Ada.", "Bye."]
    assert (reply.text, reply.ended_by, reply.raw) == ("Bye.", "answer", "Hello, Ada.\n\nAda.\n\nBye.")
    assert (reply.input_tokens, reply.output_tokens) == (33, 9)
    assert reply.timing is not None
    start = _received(seen)
    config = start["config"]
    assert (config["tools"]["profile"], config["tools"]["codeMode"]) == ("coding", {"enabled": False})
    assert config["agents"]["defaults"]["skipBootstrap"] is True
    assert "Bye." not in " ".join(start["arguments"])
    assert start["mode"] == "0o600"


def test_a_message_begins_a_new_session(seen):
    """After `/new` the model receives nothing from before."""
    with ScriptedModel("Hello, Ada.", "I do not know.") as model:
        reply = ask(_fake(seen, model.url), prompt="I am Ada.", turns=("/new Who am I?",))

    assert [message["content"] for message in model.asked[-1]["messages"]] == ["Who am I?"]
    assert [turn.user for turn in reply.turns] == [None, "/new Who am I?"]


def test_a_fault_in_a_session_keeps_its_turns(seen):
    """The turns before it are part of it, and no further message is sent."""
    with ScriptedModel("Hello.") as model:
        fault = _fault(_fake(seen, model.url), turns=("fail", "Bye."))

    assert (len(model.asked), len(fault.usage), fault.failure_type) == (1, 1, "cli_error")
    assert ([turn.text for turn in fault.turns], fault.raw) == (["Hello."], "Hello.")


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        pytest.param({"system": "Be brief."}, "writes its system prompt itself", id="system"),
        pytest.param(
            {"messages": (Turn(user="x"), Turn(text="y"))}, "begins without any", id="earlier-turns"
        ),
        pytest.param({"tools": MESSAGE, "world": World()}, "its world offers message", id="messages"),
        pytest.param({"tools": READ, "world": SCRIPTED}, "scripts the answers", id="answers"),
        pytest.param({"tools": NOTES, "world": NOTE}, "has the note notes/a.md", id="a-note-elsewhere"),
        pytest.param({"model": "tiny"}, "no OpenClaw provider in 'tiny'", id="no-provider"),
    ],
)
def test_a_prompt_that_cannot_be_played_is_not_asked(seen, request_, words):
    """No program is started, and the cell is reported as unavailable, with the reason."""
    fault = _fault(_fake(seen, NOWHERE), **request_)

    assert (fault.status, fault.sent, seen.exists()) == ("skipped_unavailable", False, False)
    assert words in fault.message


def test_where_no_program_can_be_started_no_command_is_offered(seen, scratch, monkeypatch):
    """On a noexec file system a world with commands is reported as unavailable, with a hint."""
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "shell")  # as on a noexec mount
    fault = _fault(_fake(seen, NOWHERE), tools=EXEC, world=World())

    assert (fault.status, fault.sent, seen.exists()) == ("skipped_unavailable", False, False)
    assert fault.message == (
        "openclaw_agent: not asked: its world offers commands, and no program can be started in"
        f" {scratch.resolve()}. Set TMPDIR to a folder that is not mounted noexec."
    )


def test_a_missing_command_has_a_hint(seen):
    """One sentence says how to install OpenClaw."""
    fault = _fault(agent("no-such-openclaw", NOWHERE))

    assert (fault.failure_type, fault.scope) == ("not_installed", "endpoint")
    assert "npm install -g openclaw" in fault.message


def test_the_fingerprint_names_release_and_server(seen):
    """A run's inventory names the OpenClaw release and the server."""
    found = asyncio.run(_fake(seen, NOWHERE).fingerprint("local/tiny"))

    assert found == {
        "cli_version": "OpenClaw 2026.9.6 (fake)",
        "api": "openai-completions",
        "base_url": NOWHERE,
    }
