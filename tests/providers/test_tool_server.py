"""The MCP server that offers a request's tools to the Claude CLI."""

import asyncio
import json
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from pytest_openclaw.providers import loopback
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


@pytest.mark.parametrize(
    "message", [{}, {"method": []}, request("tools/call"), {"method": "initialize", "params": [1]}]
)
def test_a_malformed_request_is_no_error_of_ours(message):
    """The CLI decides what it sends."""
    ((status, answered),) = talk({**message, "id": 1})

    assert (status, answered["id"]) == (200, 1)


def test_another_method_is_refused():
    """It gets an error with the protocol's number; the server continues, and has no stream of its own messages."""
    (_, refused), (_, pinged), (stream, _) = talk(request("resources/list"), request("ping", 99), None)

    assert (refused["id"], refused["error"]["code"]) == (1, -32601)
    assert (pinged["id"], pinged["result"], stream) == (99, {}, 405)


@pytest.mark.parametrize(("knows_token", "status"), [(False, 401), (True, 413)])
def test_no_more_than_necessary_of_a_body_is_read(monkeypatch, knows_token, status):
    """The token is checked before the body, whose size is limited; this client waits for an answer to half of it."""
    monkeypatch.setattr(loopback, "MOST_BYTES", 1000)

    async def first_line():
        async with loopback.listening(ToolServer((READ,), None).answer) as (url, token):
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
            head = (
                f"POST /mcp HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {token if knows_token else 'x'}\r\n"
            )
            writer.write(f"{head}content-length: 4000\r\n\r\n".encode() + b" " * 2000)
            async with asyncio.timeout(20):
                line = await reader.readline()
            writer.transport.abort()
            await asyncio.sleep(0)
            return line

    assert f" {status} ".encode() in asyncio.run(first_line())
