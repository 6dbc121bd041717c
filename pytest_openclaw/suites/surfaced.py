"""Turns a prompt that lists its tools into what OpenClaw asks: the one place for a prompt and a surface."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from pytest_openclaw.tools.bridge import BRIDGE
from pytest_openclaw.tools.catalogue import CALL, Bridge, said_tools
from pytest_openclaw.types.surface import LOOKUP_TURNS

if TYPE_CHECKING:
    from pytest_openclaw.types.prompts import Prompt
    from pytest_openclaw.types.surface import Surface
    from pytest_openclaw.types.tool_calls import Tool

_INSTRUCTIONS = re.compile(r"(^## \S*AGENTS\.md\n)\[MISSING\][^\n]*", re.MULTILINE)


def why_not_on_openclaw(prompt: Prompt) -> str:
    """Return why a prompt is asked on `listed` alone; empty if it can be asked on `openclaw`."""
    if prompt.tools is None:
        return "lists no tools"
    return "varies the tools that it lists" if prompt.pressure_of else ""


def on_surface(prompt: Prompt, surface: Surface) -> Prompt:
    """Return the prompt as OpenClaw asks it.

    It is offered the surface's tools. Of those that it lists itself, one with the name of a sent tool takes
    its place if it is the suite's own; every other one is behind the bridge, and in the directory. Its system
    text is the text of AGENTS.md.
    """
    assert prompt.tools is not None, "a prompt without tools is asked on `listed` alone"
    own = _own(prompt)
    sent = {tool.name: own.get(tool.name, tool) for tool in surface.tools}
    behind = {tool.name: own.get(tool.name, tool) for tool in surface.deferred}
    added = [tool for tool in prompt.tools if tool.name not in {*sent, *behind, *BRIDGE}]
    if CALL not in sent:  # the surface has no bridge: all tools are sent
        sent |= {tool.name: tool for tool in added}
        added = []
    behind |= {tool.name: tool for tool in added}
    if CALL in sent:
        sent[CALL] = Bridge.of(sent[CALL], tuple(behind.values()))
    world = prompt.world and replace(prompt.world, steps=prompt.world.steps + LOOKUP_TURNS)
    return replace(
        prompt,
        system=_system(surface.system, tuple((tool.name, tool.description) for tool in added), prompt.system),
        tools=tuple(sent.values()),
        world=world,
        surface=surface,
        listed=prompt,
    )


def as_listed(prompt: Prompt) -> Prompt:
    """Return the prompt as its suite has it, under its present id."""
    return prompt if prompt.listed is None else replace(prompt.listed, id=prompt.id)


def _own(prompt: Prompt) -> dict[str, Tool]:
    """Return the tools that the suite describes itself."""
    listed = said_tools(prompt.tools_spec)
    entries = listed if isinstance(listed, list) else []
    names = {str(entry.get("name")) for entry in entries if isinstance(entry, dict)}
    return {tool.name: tool for tool in prompt.tools or () if tool.name in names}


@cache  # one text for all prompts that add nothing, because each request has it
def _system(system: str, added: tuple[tuple[str, str], ...], instructions: str | None) -> str:
    from pytest_openclaw.tools.surface_sources import with_directory  # for 3 ms, where a run has a surface

    system = with_directory(system, dict(added))
    if not instructions:
        return system
    filled, n = _INSTRUCTIONS.subn(lambda found: found[1] + instructions, system, count=1)
    return filled if n else f"{system}\n## AGENTS.md\n{instructions}"
