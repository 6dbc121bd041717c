"""The MCP server that offers a request's tools to the Claude CLI."""

import asyncio
import json
from dataclasses import replace

from pytest_openclaw.providers.claude_code_cli import NOT_PLAYED, ToolServer
from tests.providers.servers import apis

READ = replace(apis.READ, description="Reads a file. 日本 😀")


def request(method, number=1, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def talk(*messages):
    server = ToolServer((READ,), None)
    answers = [asyncio.run(server.answer("/mcp", message)) for message in messages]
    assert server.broken == ""
    return [(answer.status, json.loads(answer.body or "null")) for answer in answers]


def test_a_client_finds_the_tools():
    """After the handshake the tools are listed unchanged; a notification gets no answer."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    (_, began), notified, (_, listed), (_, pinged) = talk(
        request("initialize", 0, **hello),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request("tools/list", "two"),
        request("ping", 3),
    )

    assert (began["id"], began["result"]["protocolVersion"]) == (0, "2025-06-18")
    assert began["result"]["capabilities"] == {"tools": {}}
    assert began["result"]["serverInfo"]["name"] == "openclaw"
    assert listed == {
        "jsonrpc": "2.0",
        "id": "two",
        "result": {
            "tools": [{"name": "read", "description": READ.description, "inputSchema": READ.parameters}]
        },
    }
    assert notified == (202, None)
    assert pinged == {"jsonrpc": "2.0", "id": 3, "result": {}}


def test_without_a_world_a_call_is_refused():
    """A single question's call is its answer: nothing is executed, and the client receives the reason."""
    ((_, answered),) = talk(request("tools/call", name="read", arguments={"path": "/etc/passwd"}))

    assert answered["result"] == {"content": [{"type": "text", "text": NOT_PLAYED}], "isError": True}


def test_another_method_is_refused():
    """It gets an error with the protocol's number; the server continues, and has no stream of its own messages."""
    (_, refused), (_, pinged), (stream, _) = talk(request("resources/list"), request("ping", 99), None)

    assert (refused["id"], refused["error"]["code"]) == (1, -32601)
    assert (pinged["id"], pinged["result"], stream) == (99, {}, 405)
