"""The MCP server that offers a request's tools, as a separate process, over its pipes."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from pytest_openclaw.providers.mcp_tools import NOT_PLAYED, dump_offer, what_broke
from tests.providers.servers import apis

READ = replace(apis.READ, description="Reads a file. 日本 😀")


def request(method, number=1, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def serve(offer, lines=b""):
    command = [sys.executable, "-P", "-m", "pytest_openclaw.providers.mcp_tools", str(offer)]
    return subprocess.run(command, input=lines, capture_output=True, timeout=600)


@pytest.fixture
def talk(tmp_path):
    def talked(*lines, tools=(READ,), world=None):
        offer = tmp_path / "offer.json"
        offer.write_text(dump_offer(tools, world), "utf-8")
        sent = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        done = serve(offer, b"\n".join(sent) + b"\n")
        assert (done.returncode, done.stderr) == (0, b"")
        assert what_broke(offer) == ""
        return [json.loads(line) for line in done.stdout.splitlines()]

    return talked


def test_a_client_finds_the_tools(talk):
    """After the handshake the tools are listed unchanged; a notification gets no answer."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    began, listed, pinged = talk(
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
    assert pinged == {"jsonrpc": "2.0", "id": 3, "result": {}}


def test_without_a_world_a_call_is_refused(talk):
    """A single question's call is its answer: nothing is executed, and the client receives the reason."""
    (answered,) = talk(request("tools/call", name="read", arguments={"path": "/etc/passwd"}))

    assert answered["result"] == {"content": [{"type": "text", "text": NOT_PLAYED}], "isError": True}


def test_another_method_is_refused_and_the_next_line_is_read(talk):
    """It gets an error with the protocol's number; the server continues."""
    refused, pinged = talk(request("resources/list"), request("ping", 99))

    assert (refused["id"], refused["error"]["code"]) == (1, -32601)
    assert (pinged["id"], pinged["result"]) == (99, {})
