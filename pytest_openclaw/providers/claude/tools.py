"""Passes the tools of a request to the Claude CLI through our MCP server."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.core.private import write_private
from pytest_openclaw.providers.mcp_tools import NAME, dump_offer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_openclaw.types.requests import Request
    from pytest_openclaw.types.tool_calls import Tool

#: the CLI's prefix of our tools' names
PREFIX = f"mcp__{NAME}__"
#: the file that our server reads, and the one that names it to the CLI
OFFER, _CONFIG = "offer.json", "mcp.json"
_SERVER = ("-P", "-m", "pytest_openclaw.providers.mcp_tools")
# Variables that Python needs to start.
_NEEDED = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")
# Larger results would be cut, or saved to a local file whose path the model receives.
_MOST_RESULT_TOKENS = 10_000_000


def wire_names(tools: Iterable[Tool]) -> dict[str, str]:
    """Return the names by which the CLI offers the tools → their own."""
    return {PREFIX + re.sub(r"[^a-zA-Z0-9_-]", "_", tool.name): tool.name for tool in tools}


def plain_name(name: str, offered: Mapping[str, str]) -> str:
    """Return the own name of a tool that a model called; one that is not offered loses its prefix."""
    return offered.get(name) or name.removeprefix(PREFIX)


def lay_out_tools(
    folder: Path, request: Request, *, environ: Mapping[str, str], inherited: Iterable[str]
) -> None:
    """Write the files that the CLI and our server read.

    Args:
        folder: of this call alone.
        request: has tools.
        environ: the server gets only the variables that Python needs to start.
        inherited: names of the CLI's environment, including keys, which it would pass on to servers; all
            are emptied.
    """
    offer = folder / OFFER
    write_private(offer, dump_offer(request.tools, request.world).encode())
    needed = {name: environ[name] for name in _NEEDED if name in environ}
    import_path = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    server = {
        "type": "stdio",
        "command": sys.executable,
        "args": [*_SERVER, str(offer)],
        "env": {**dict.fromkeys(inherited, ""), **needed, "PYTHONPATH": import_path},
        # All tools in the first request, as in OpenClaw.
        "alwaysLoad": True,
    }
    write_private(folder / _CONFIG, json.dumps({"mcpServers": {NAME: server}}).encode())


def tool_arguments(request: Request, folder: Path) -> tuple[str, ...]:
    """Return the CLI's arguments about tools and turns; its own tools stay off in any case."""
    turns = request.world.steps if request.world else 1
    allowed = ("--allowedTools", f"mcp__{NAME}") if request.world else ()
    config = ("--mcp-config", str(folder / _CONFIG)) if request.tools else ()
    return (*config, *allowed, "--max-turns", str(turns))


def tool_environment(request: Request) -> dict[str, str]:
    """Return the environment that makes the CLI wait for our server and pass on complete results."""
    if not request.tools:
        return {}
    milliseconds = str(max(1, round(request.timeout_s * 1000)))
    return {
        "MCP_CONNECTION_NONBLOCKING": "0",
        "MCP_TIMEOUT": milliseconds,
        "MCP_CONNECT_TIMEOUT_MS": milliseconds,
        "MCP_TOOL_TIMEOUT": milliseconds,
        "MAX_MCP_OUTPUT_TOKENS": str(_MOST_RESULT_TOKENS),
        "ENABLE_TOOL_SEARCH": "false",
    }


def why_not_askable(request: Request) -> str:
    """Return why the CLI cannot handle this request; empty if it can."""
    if len(wire_names(request.tools)) < len(request.tools):
        return "the Claude CLI takes letters, digits, _ and - in names, and so two tools have the same one."
    return ""
