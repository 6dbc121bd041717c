"""A small MCP server over stdin and stdout: it offers the tools of a file, and answers their calls.

    python -m pytest_openclaw.providers.mcp_tools FILE

The Claude CLI accepts tools only from such servers. The protocol is JSON-RPC 2.0, one message per line. No
call is ever executed: calls are answered from the scripted world in the file, or refused without a world.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from pytest_openclaw import __version__
from pytest_openclaw.providers.wire import function_of
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import valid_value
from pytest_openclaw.util.typed import converted
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from pytest_openclaw.values.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_openclaw.util.files import JsonObject

NAME = "openclaw"
NOT_PLAYED = "Nothing is executed here: one question was asked, and the call is its answer."

_NO_METHOD = -32601


def dump_offer(tools: Sequence[Tool], world: World | None) -> str:
    """Return the content of the server's input file."""
    offer = {"tools": valid_value([*map(asdict, tools)]), "world": world and to_builtins(world)}
    return json.dumps(offer)


def load_offer(text: str) -> tuple[tuple[Tool, ...], World | None]:
    """Return the tools and the world of such a file."""
    data = json.loads(text)
    return converted(data["tools"], tuple[Tool, ...]), converted(data["world"], World | None)


def write_error(offer: Path, error: Exception) -> None:
    """Keep our own error for the provider; the program that started this server tells only its model."""
    text = str(error) if isinstance(error, OpenClawError) else f"{type(error).__name__}: {error}"
    offer.with_suffix(".broken").write_text(" ".join(text.split()), "utf-8")


def what_broke(offer: Path) -> str:
    """Return the error that `write_error` kept, as one line; empty without an error."""
    file = offer.with_suffix(".broken")
    return file.read_text("utf-8") if file.exists() else ""


def answer(line: bytes, tools: Sequence[Tool], play: Callable[[ToolCall], str] | None) -> JsonObject | None:
    """Return the answer to a line of the client; None for a notification, which needs no answer.

    `play` answers a call; None refuses it.
    """
    message = json.loads(line)
    if "id" not in message:
        return None
    params = message.get("params", {})
    result: JsonObject = {}
    match message["method"]:
        case "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": NAME, "version": __version__},
            }
        case "ping":
            pass
        case "tools/list":
            result = {"tools": [function_of(tool, "inputSchema") for tool in tools]}
        case "tools/call":
            arguments = json.dumps(params.get("arguments") or {}, ensure_ascii=False)
            call = ToolCall(name=params["name"], arguments=arguments)
            text = play(call) if play else NOT_PLAYED
            # OpenClaw returns its errors as ordinary text, so they are not marked as errors.
            result = {"content": [{"type": "text", "text": text}], "isError": play is None}
        case method:
            error = {"code": _NO_METHOD, "message": f"there is no method {method}"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def main(offer: Path) -> None:
    """Serve the tools of a file over this process's pipes, until the input ends."""
    tools, world = load_offer(offer.read_text("utf-8"))
    play = None
    if world is not None:
        from pytest_openclaw.worlds.playing import Playing

        importlib.import_module("jsonschema")  # now, because later it would delay the first result
        play = Playing(world, tools).answer
    for line in sys.stdin.buffer:
        if line.strip() and (answered := answer(line, tools, play)):
            sys.stdout.buffer.write(json.dumps(answered).encode() + b"\n")
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
