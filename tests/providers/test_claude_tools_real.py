"""Tools through the real CLI, against a Messages API on loopback; never with a real key.

The CLI is the one that `tests/e2e/install_claude.py` installs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
import time

import psutil
import pytest

from pytest_openclaw.records import Request
from pytest_openclaw.toolcalls import Tool, ToolCall
from pytest_openclaw.tools.catalogue import load_catalogue
from tests.conftest import require_claude
from tests.providers.fake_claude import DUMMY_KEY, ask, dies, provider_of
from tests.providers.servers.messages import MessagesServer, Text, ToolUse

pytestmark = pytest.mark.claude

CATALOGUE = load_catalogue().tools
READ, EXEC, WRITE = CATALOGUE["read"], CATALOGUE["exec"], CATALOGUE["write"]
LIGHT = Tool(name="home.light", description="Turns a light on or off.")


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """The folder in which scratch folders are made; each is removed when its call has ended."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture(params=["key", "login"])
def environ(request, tmp_path):
    """An emptied environment, once with a key and once with the login of a HOME that brings a server."""
    home = tmp_path / "home"
    home.mkdir()
    leak = {"mcpServers": {"leak": {"command": "touch", "args": [str(home / "SERVER-RAN")]}}}
    (home / ".claude.json").write_text(json.dumps(leak), encoding="utf-8")
    way_in = "ANTHROPIC_API_KEY" if request.param == "key" else "ANTHROPIC_AUTH_TOKEN"
    yield {
        "OPENCLAW_CLAUDE_COMMAND": require_claude(),
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        way_in: DUMMY_KEY,
    }
    assert not (home / "SERVER-RAN").exists()


def test_one_question_with_a_call(environ):
    """The model is offered the tools as they are, and its call is the answer: nothing is executed."""
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


def test_one_question_with_several_calls(environ):
    """Several calls of one answer are kept in their order, broken ones as they stood on the wire."""
    turns = [
        [
            ToolUse("mcp__openclaw__home_light", '{"on":  true}', "toolu_1"),
            ToolUse("mcp__openclaw__read", '{"path": ', "toolu_2"),
            ToolUse("mcp__openclaw__frobnicate", "{}", "toolu_3"),
            ToolUse("mcp__openclaw__exec", '{"command": "touch ran"}', "toolu_4"),
        ]
    ]
    with MessagesServer(turns=turns) as server:
        reply = ask(environ | {"ANTHROPIC_BASE_URL": server.url}, tools=(READ, EXEC, LIGHT))

    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("home.light", '{"on":  true}'),
        ("read", '{"path": '),
        ("frobnicate", "{}"),
        ("exec", '{"command": "touch ran"}'),
    ]
    assert len(server.requests) == 1


def test_a_model_need_not_call(environ):
    """Tools are offered, and a text is an answer too."""
    with MessagesServer(turns=[[Text("Paris.")]]) as server:
        reply = ask(environ | {"ANTHROPIC_BASE_URL": server.url}, tools=(READ,))

    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("Paris.", (), "end_turn")


def test_any_number_of_tools_is_offered(environ):
    """All tools of a catalogue and more reach the model at once; none is held back to be searched for."""
    tools = (*CATALOGUE.values(), *(Tool(name=f"own_{n}", description="x" * 900) for n in range(120)))
    with MessagesServer() as server:
        ask(environ | {"ANTHROPIC_BASE_URL": server.url, "ENABLE_TOOL_SEARCH": "true"}, tools=tools)

    (body,) = server.requests
    assert {tool["name"] for tool in body["tools"]} == {f"mcp__openclaw__{tool.name}" for tool in tools}


def test_a_server_that_starts_slowly_is_waited_for(environ, monkeypatch):
    """However long our server needs to start, the first request has the tools."""
    slow = ("-c", "import sys, time; time.sleep(4); from pytest_openclaw.providers import mcp_tools as m;"
                  " from pathlib import Path; m.main(Path(sys.argv[1]))")  # fmt: skip
    monkeypatch.setattr("pytest_openclaw.providers.claude_tools._SERVER", slow)
    with MessagesServer() as server:
        ask(environ | {"ANTHROPIC_BASE_URL": server.url}, tools=(READ,), timeout_s=60.0)

    assert [tool["name"] for tool in server.requests[0]["tools"]] == ["mcp__openclaw__read"]


def test_a_server_that_does_not_start_is_no_answer(environ, monkeypatch):
    """Without our server the model has no tools, which the CLI does not mind: but we do."""
    monkeypatch.setattr("pytest_openclaw.providers.claude_tools._SERVER", ("-c", "raise SystemExit(3)"))
    with MessagesServer() as server:
        fault = ask(environ | {"ANTHROPIC_BASE_URL": server.url}, tools=(READ,))

    assert (fault.failure_type, fault.status) == ("cli_error", "error")
    assert fault.message == (
        "claude_code_cli: the CLI does not offer 1 of the 1 tools: read (its server is failed)."
    )


def servers_of_tools():
    """Our servers among the processes that this one and its children have started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie, or gone meanwhile
            if "pytest_openclaw.providers.mcp_tools" in process.cmdline():
                found.append(process)
    return found


def test_our_server_gets_no_secret_and_ends_with_the_call(environ):
    """The process that offers the tools has no key in its environment, and is gone when the call is over."""
    environ |= {"OPENAI_API_KEY": "other-key-0123456789"}

    async def look():
        asking = asyncio.create_task(provider_of(own).ask(Request(model="m", prompt="hi", tools=(READ,))))
        until = time.monotonic() + 60
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
