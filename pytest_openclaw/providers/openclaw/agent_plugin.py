"""Our plugin of OpenClaw: it adds the suite's own tools.

OpenClaw describes the tools to the model as it describes those of any plugin. They are never carried out.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING

from pytest_openclaw.util.text import valid_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.tool_calls import Tool

_ID = "benchmark"
_ABOUT = {
    "id": _ID,
    "name": "Benchmark",
    "description": "Adds the tools of a prompt.",
}
_PACKAGE = {"name": _ID, "version": "1.0.0", "type": "module", "openclaw": {"extensions": ["./index.js"]}}
_CONFIG = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"tools": {"type": "array", "items": {"type": "object"}}},
}


def lay_out_plugin(folder: Path, tools: Sequence[Tool]) -> JsonObject:
    """Write the plugin; return the part of OpenClaw's config that loads it, empty without tools.

    Args:
        folder: of the plugin, which does not exist yet.
        tools: the suite's own.

    """
    if not tools:
        return {}
    folder.mkdir()
    own = resources.files("pytest_openclaw.providers.openclaw")
    script = own.joinpath("agent_plugin.js").read_text("utf-8")
    # OpenClaw offers only tools that the manifest names.
    manifest = {**_ABOUT, "contracts": {"tools": [tool.name for tool in tools]}, "configSchema": _CONFIG}
    folder.joinpath("index.js").write_text(script, "utf-8")
    folder.joinpath("openclaw.plugin.json").write_text(json.dumps(valid_value(manifest)), "utf-8")
    folder.joinpath("package.json").write_text(json.dumps(_PACKAGE), "utf-8")
    described = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools
    ]
    config: JsonObject = {"tools": valid_value(described)}
    return {"load": {"paths": [str(folder)]}, "entries": {_ID: {"enabled": True, "config": config}}}
