"""Tools through the real CLI, against a Messages API on loopback; never with a real key.

The CLI is the one that `tests/real_parts.py` installs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time

import psutil
import pytest

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from pytest_openclaw.values.worlds import Command, World
from pytest_openclaw.worlds.playing import Playing, answered_calls, final_state
from tests.conftest import require_claude
from tests.providers.fake_claude import DUMMY_KEY, ask, dies, provider_of
from tests.providers.servers.messages import MessagesServer, Text, ToolUse

pytestmark = [pytest.mark.claude, pytest.mark.usefixtures("scratch")]

CATALOGUE = load_catalogue().tools
READ, EXEC, WRITE = CATALOGUE["read"], CATALOGUE["exec"], CATALOGUE["write"]
LIGHT = Tool(name="home.light", description="Turns a light on or off.")


both_ways = pytest.mark.parametrize(
    "environ", [pytest.param("key", marks=pytest.mark.nightly), "login"], indirect=True
)


@pytest.fixture
def environ(request, tmp_path):
    """An emptied environment with a key, or with the login of a HOME that has its own server."""
    home = tmp_path / "home"
    home.mkdir()
    leak = {"mcpServers": {"leak": {"command": "touch", "args": [str(home / "SERVER-RAN")]}}}
    (home / ".claude.json").write_text(json.dumps(leak), encoding="utf-8")
    way_in = "ANTHROPIC_AUTH_TOKEN" if getattr(request, "param", "key") == "login" else "ANTHROPIC_API_KEY"
    yield {
        "OPENCLAW_CLAUDE_COMMAND": require_claude(),
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        way_in: DUMMY_KEY,
    }
    assert not (home / "SERVER-RAN").exists()


@both_ways
def test_one_question_with_a_call(environ):
    """The model is offered the tools unchanged, and its call is the answer: nothing is executed."""
    turns = [[Text("Let me look."), ToolUse("mcp__openclaw__read", '{"path": "notes.md"}')]]
    with MessagesServer(turns=turns) as server:
        reply = ask(environ | {"ANTHROPIC_BASE_URL": server.url}, tools=(READ, LIGHT))

    (body,) = server.requests
    offered = {tool["name"]: (tool["description"], tool["input_schema"]) for tool in body["tools"]}
    assert offered == {
        "mcp__openclaw__read": (READ.description, READ.parameters),
        "mcp__openclaw__home_light": (LIGHT.description, LIGHT.parameters),
    }
    assert "tool_choice" not in body
    assert reply.tool_calls == (ToolCall(name="read", id="toolu_1", arguments='{"path": "notes.md"}'),)
    assert (reply.text, reply.finish_reason, reply.output_tokens) == ("Let me look.", "tool_use", 3)
    assert 0 < reply.timing.ttft_ms <= reply.timing.e2e_ms
    assert (reply.turns, reply.ended_by) == ((), None)


@pytest.mark.nightly
def test_a_server_that_does_not_start_is_no_answer(environ, monkeypatch):
    """Without our server the model has no tools; the CLI accepts that, but we do not."""
    monkeypatch.setattr(
        "pytest_openclaw.providers.claude.command_line._SERVER", ("-c", "raise SystemExit(3)")
    )
    with MessagesServer() as server:
        fault = ask(environ | {"ANTHROPIC_BASE_URL": server.url}, tools=(READ,))

    assert (fault.failure_type, fault.status) == ("cli_error", "error")
    assert fault.message == (
        "claude_code_cli: the CLI does not offer 1 of the 1 tools: read (its server did not start)."
    )


def servers_of_tools():
    """Our servers among the processes that this one and its children have started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie, or gone meanwhile
            if "pytest_openclaw.providers.mcp_tools" in process.cmdline():
                found.append(process)
    return found


@both_ways
def test_our_server_gets_no_secret_and_ends_with_the_call(environ):
    """The process that offers the tools has no key in its environment, and ends with the call."""
    environ |= {"OPENAI_API_KEY": "other-key-0123456789"}

    async def look():
        asking = asyncio.create_task(provider_of(own).ask(Request(model="m", prompt="hi", tools=(READ,))))
        until = time.monotonic() + 120
        while not server.requests and time.monotonic() < until:
            await asyncio.sleep(0.05)
        found = [(process.pid, process.environ()) for process in servers_of_tools()]
        server.released.set()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return found

    with MessagesServer("silent") as server:
        own = environ | {"ANTHROPIC_BASE_URL": server.url}
        ((pid, passed),) = asyncio.run(look())

    assert not any("0123456789" in value for value in passed.values())
    assert passed["PATH"] == os.environ["PATH"]
    assert dies(pid)


# --- scripted exchanges ---------------------------------------------------------------------------

TOOLS = (READ, WRITE, EXEC)
WORLD = World(
    files={"notes.md": "buy milk", "long.md": "a line of text\n" * 20_000},
    commands=(Command(pattern="date", output="Monday"),),
    steps=4,
)


def use(tool, number=1, **arguments):
    """A call of one of our tools, as the CLI names it."""
    return ToolUse(f"mcp__openclaw__{tool}", json.dumps(arguments), f"toolu_{number}")


def own_answers(*calls):
    """The world's results for these calls, in their order."""
    playing = Playing(WORLD, TOOLS)
    return [playing.answer(ToolCall(name=name, arguments=json.dumps(given))) for name, given in calls]


def results_in(body):
    """The results in the last message of a request, by call."""
    blocks = [block for block in body["messages"][-1]["content"] if block["type"] == "tool_result"]
    return {block["tool_use_id"]: block["content"] for block in blocks}


def play(environ, *turns, world=WORLD, **request):
    """Let the model play these turns; return the result, and the requests."""
    with MessagesServer(turns=turns) as server:
        outcome = ask(environ | {"ANTHROPIC_BASE_URL": server.url}, tools=TOOLS, world=world, **request)
    return outcome, server.requests


@both_ways
def test_an_exchange_of_two_turns(environ):
    """The second request has the result that our world gave, and its answer is the reply's text."""
    reply, requests = play(environ, [Text("Look."), use("read", path="notes.md")], [Text("Milk.")])

    _, second = requests
    assert results_in(second) == {"toolu_1": [{"type": "text", "text": "buy milk"}]}
    assert [(turn.text, turn.results) for turn in reply.turns] == [("Look.", ("buy milk",)), ("Milk.", ())]
    assert (reply.text, reply.ended_by, reply.finish_reason) == ("Milk.", "answer", "end_turn")
    assert reply.tool_calls == (ToolCall(name="read", id="toolu_1", arguments='{"path": "notes.md"}'),)
    assert (reply.input_tokens, reply.output_tokens, reply.effective_model) == (36, 6, "m1")
    first, last = (turn.timing for turn in reply.turns)
    assert reply.timing.ttft_ms == first.ttft_ms > last.ttft_ms
    assert reply.timing.e2e_ms >= first.e2e_ms + last.e2e_ms


@pytest.mark.nightly
def test_several_calls_of_a_turn_change_the_world_in_their_order(environ, tmp_path):
    """Calls are carried out one after the other, only in the world; no file of the machine is changed."""
    calls = [
        ("write", {"path": "a.md", "content": "one"}),
        ("read", {"path": "a.md"}),
        ("exec", {"command": "date"}),
        ("exec", {"command": f"touch {tmp_path}/ran"}),
        ("exec", {}),
        ("read", {"path": "/etc/passwd"}),
        ("read", {"path": "long.md"}),
    ]
    turn = [use(name, number, **given) for number, (name, given) in enumerate(calls, 1)]
    reply, requests = play(environ, turn, [use("write", 9, path="a.md", content="two")], [Text("Done.")])

    texts = [content[0]["text"] for content in results_in(requests[1]).values()]
    assert texts == own_answers(*calls) == list(reply.turns[0].results)
    assert (texts[1], texts[2]) == ("one", "Monday")
    assert len(texts[-1]) > 10_000
    assert final_state(WORLD, TOOLS, answered_calls(reply).values()).files["a.md"] == "two"
    assert not (tmp_path / "ran").exists()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mode", "text", "finish_reason"),
    [
        pytest.param("length", "Hello from stub", "length", id="cut"),
        pytest.param("empty", "", "end_turn", id="empty"),
    ],
)
def test_what_the_cli_asks_by_itself_is_no_turn(environ, mode, text, finish_reason):
    """An answer that is cut or empty is the answer, though the CLI requests more."""
    reply, _ = play(environ, [use("read", path="notes.md")], mode)

    assert (reply.text, reply.finish_reason, len(reply.turns), reply.ended_by) == (
        text,
        finish_reason,
        2,
        "answer",
    )


@pytest.mark.nightly
def test_several_messages_of_the_user(environ):
    """The CLI sends the whole conversation with each, and the world continues."""
    write = '{"path": "a.txt", "content": "one"}'
    turns = [
        [ToolUse("mcp__openclaw__write", write)],
        [Text("Done.")],
        [ToolUse("mcp__openclaw__read", '{"path": "a.txt"}', "toolu_2")],
        [Text("one")],
    ]
    with MessagesServer(turns=turns) as server:
        reply = ask(
            environ | {"ANTHROPIC_BASE_URL": server.url},
            tools=(READ, WRITE),
            world=World(),
            turns=("What does it say?",),
        )

    assert [turn.user for turn in reply.turns] == [None, None, "What does it say?", None]
    assert (reply.turns[2].results, reply.text, reply.ended_by) == (("one",), "one", "answer")
    roles = [message["role"] for message in server.requests[-1]["messages"]]
    assert roles == ["user", "assistant"] * 3 + ["user"]
