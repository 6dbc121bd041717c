"""Collects one request per surface into a catalogue in the format of the shipped ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.tools.captured.wire_requests import Sent
    from pytest_openclaw.types.tool_calls import Tool

CONFIGURED = "configured"
"""The surface of the user's own config."""
DIRECT = "direct"
DEFERRED = "deferred"
# Largest first: its parameters define a tool; a surface with fewer has a variant.
_FULLEST = ("full", "coding", DIRECT, CONFIGURED)


def gather(sent: Mapping[str, Sent], *, release: str, taken: str) -> JsonObject:
    """Return a catalogue.

    Args:
        sent: by surface.
        release: such as `openclaw-2026.9.6`.
        taken: the day.
    """
    ranked = sorted(sent, key=lambda name: _FULLEST.index(name) if name in _FULLEST else len(_FULLEST))
    tools: dict[str, Tool] = {}
    for surface in ranked:
        for tool in sent[surface].tools:
            tools.setdefault(tool.name, tool)
    surfaces = {name: [tool.name for tool in request.tools] for name, request in sent.items()}
    if DIRECT in surfaces:
        surfaces["tool-search"] = surfaces[DIRECT]
    deferred = _deferred(sent)
    known = [name for name in deferred if name in tools]
    return {
        "release": release,
        "about": {
            "taken": f"{taken}, by capture-tools from what the installed program sent to loopback",
            "captured": True,
            "not_described": [name for name in deferred if name not in tools],
            "sizes": sizes_of(sent),
        },
        "surfaces": surfaces,
        "deferred": known,
        "tools": [asdict(tools[name]) for name in sorted(tools)],
        "variants": [*_variants(sent, tools, known)],
        "requests": {
            name: {
                "api": request.api,
                "fields": request.fields,
                "deferred": list(request.deferred),
                "system": request.system,
                "question": dict(request.question),
            }
            for name, request in sent.items()
        },
    }


def sizes_of(sent: Mapping[str, Sent]) -> JsonObject:
    """Return the number of tools of each surface, and the sizes of tools and system prompt."""
    return {
        name: {
            "tools": len(request.tools),
            "bytes": request.bytes_of_tools,
            "bytes_of_the_release": request.bytes_of_tools,
            "bytes_of_the_system_prompt": len(request.system.encode()),
        }
        for name, request in sent.items()
    }


def _deferred(sent: Mapping[str, Sent]) -> tuple[str, ...]:
    """Return the tools behind the bridge: of this machine's config if it has one, else the default."""
    for surface in (CONFIGURED, DIRECT):
        if surface in sent and sent[surface].deferred:
            return sent[surface].deferred
    return ()


def _variants(
    sent: Mapping[str, Sent], tools: Mapping[str, Tool], deferred: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield the tools that differ between surfaces, once for each form."""
    found: list[tuple[Tool, list[str]]] = []
    places = {name: {tool.name: tool for tool in request.tools} for name, request in sent.items()}
    if "coding" in places:  # the default profile, whose tools are those behind the bridge
        places[DEFERRED] = {name: tool for name, tool in places["coding"].items() if name in deferred}
    for place, there in places.items():
        for name, tool in there.items():
            if tool == tools[name]:
                continue
            same = next((names for one, names in found if one == tool), None)
            if same is None:
                found.append((tool, [place]))
            else:
                same.append(place)
    for tool, names in found:
        yield {"name": tool.name, "surfaces": names, **asdict(tool)}
