"""A small MCP server over stdin and stdout: it offers the tools of a file, and answers their calls.

    python -m pytest_openclaw.providers.mcp_tools FILE

The Claude CLI accepts tools only from such servers. It is JSON-RPC 2.0, one message per line. Nothing is ever
executed: calls are answered from the scripted world in the file, and refused if there is none.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from pytest_openclaw import __version__
from pytest_openclaw.providers.bodies import function_of
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import valid_value
from pytest_openclaw.util.typed import converted
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from pytest_openclaw.values.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME = "openclaw"
#: supported versions of the protocol, newest first
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NOT_PLAYED = "Nothing is executed here: one question was asked, and the call is its answer."

_NO_METHOD, _INVALID_PARAMS = -32601, -32602


class _Refused(Exception):
    """A request for a tool or method that is not offered."""


def dump_offer(tools: Sequence[Tool], world: World | None) -> str:
    """Return the content of the server's input file."""
    offer = {"tools": valid_value([*map(asdict, tools)]), "world": world and to_builtins(world)}
    return json.dumps(offer)


def load_offer(text: str) -> tuple[tuple[Tool, ...], World | None]:
    """Return the tools and the world of such a file."""
    data = json.loads(text)
    return converted(data["tools"], tuple[Tool, ...]), converted(data["world"], World | None)


def write_error(offer: Path, error: Exception) -> None:
    """Keep an error of ours for the provider; the program that started us would only pass it to its model."""
    text = str(error) if isinstance(error, OpenClawError) else f"{type(error).__name__}: {error}"
    offer.with_suffix(".broken").write_text(" ".join(text.split()), "utf-8")


def what_broke(offer: Path) -> str:
    """Return the error that `write_error` kept, as one line; empty if there is none."""
    file = offer.with_suffix(".broken")
    return file.read_text("utf-8") if file.exists() else ""


class Server:
    """Answers messages, without pipes or files; `play` answers a call of an offered tool, None refuses it."""

    def __init__(self, tools: Sequence[Tool], play: Callable[[ToolCall], str] | None) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._play = play

    def answer(self, line: bytes) -> Mapping[str, Any] | None:
        """Return the answer to a line of the client; None for a notification, which needs none."""
        message = json.loads(line)
        if "id" not in message:
            return None
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            return answer | {"result": self._result(message["method"], message.get("params", {}))}
        except _Refused as refused:
            code = _INVALID_PARAMS if message["method"] == "tools/call" else _NO_METHOD
            return answer | {"error": {"code": code, "message": str(refused)}}

    def _result(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        match method:
            case "initialize":
                asked = params.get("protocolVersion")
                return {
                    "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": NAME, "version": __version__},
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [function_of(tool, "inputSchema") for tool in self._tools.values()]}
            case "tools/call":
                return self._called(params["name"], params.get("arguments") or {})
        raise _Refused(f"there is no method {method}")

    def _called(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if name not in self._tools:
            raise _Refused(f"Unknown tool: {name}")
        if self._play is None:
            return {"content": [{"type": "text", "text": NOT_PLAYED}], "isError": True}
        # OpenClaw returns its errors as ordinary text, so none is marked as an error.
        text = self._play(ToolCall(name=name, arguments=json.dumps(arguments, ensure_ascii=False)))
        return {"content": [{"type": "text", "text": text}], "isError": False}


def main(offer: Path) -> None:
    """Serve the tools of a file over this process's pipes, until the input ends."""
    tools, world = load_offer(offer.read_text("utf-8"))
    play = None
    if world is not None:
        from pytest_openclaw.worlds.playing import Playing

        importlib.import_module("jsonschema")  # now, because later it would delay the first result
        play = Playing(world, tools).answer
    server = Server(tools, play)
    for line in sys.stdin.buffer:
        if line.strip() and (answer := server.answer(line)):
            sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    file = Path(sys.argv[1])
    try:
        main(file)
    except BrokenPipeError:
        sys.exit(0)  # the reader has closed the pipe
    except Exception as error:
        write_error(file, error)
        raise
