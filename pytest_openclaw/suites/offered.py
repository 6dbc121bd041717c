"""Resolves a prompt's `tools` to the tools that a model is offered.

Turns a prompt that lists its tools into what OpenClaw asks: the one place for a prompt and a surface.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from pytest_openclaw.openclaw.bridge import BRIDGE
from pytest_openclaw.openclaw.catalog import (
    CALL,
    Bridge,
    flattened,
    load_catalogue,
    read_catalogue,
    said_tools,
)
from pytest_openclaw.suites.wording import Key, closest, read_key, shown
from pytest_openclaw.util.typed import Filled
from pytest_openclaw.values.tool_calls import LOOKUP_TURNS, Tool

if TYPE_CHECKING:
    from pytest_openclaw.openclaw.catalog import Catalogue
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.prompts import Prompt
    from pytest_openclaw.values.tool_calls import Surface


def of_catalogue(catalogue: Catalogue, tools: Any) -> JsonObject:
    """Return the `tools` of a prompt that uses a captured catalogue, for `config.json`.

    They consist of the file, its hash, and the value in the suite.
    """
    return {"catalogue": catalogue.source, "sha256": catalogue.sha256, "tools": tools}


def catalogue_of(tools: Any) -> Catalogue | None:
    """Return the captured catalogue from which a prompt's tools are taken; None if from none.

    Raises:
        ValueError: it was removed or has changed.
    """
    if said_tools(tools) is tools:
        return None
    return _captured(str(tools["catalogue"]), str(tools["sha256"]))


class ToolSpec(Struct, forbid_unknown_fields=True):
    """A tool of the suite's own; see `Tool`."""

    name: Filled
    description: str = ""
    parameters: dict[str, Any] = {}

    def __post_init__(self) -> None:
        self.parameters = self.parameters or {"type": "object", "properties": {}}
        if self.parameters.get("type") != "object":
            raise ValueError(
                'has parameters that are not the schema of an object. Write { type = "object", … }.'
            )
        from pytest_openclaw.util.json_schema import BoundedSchema

        try:
            BoundedSchema(self.parameters)
        except ValueError as error:
            raise ValueError(f"has parameters with a schema that {error}") from None


def _tools_of(value: str | list[str | ToolSpec], catalogue: Catalogue | None = None) -> tuple[Tool, ...]:
    """Return the tools of a surface, or of a list of catalogue names and own tools."""
    catalogue = catalogue or load_catalogue()
    if isinstance(value, str):
        if value not in catalogue.surfaces:
            known = ", ".join(sorted(catalogue.surfaces))
            raise ValueError(f"names the surface {shown(value)}, not one of {catalogue.source}: {known}.")
        tools = catalogue.surface(value)
    else:
        tools = tuple(
            _named(entry, catalogue)
            if isinstance(entry, str)
            else Tool(name=entry.name, description=entry.description, parameters=flattened(entry.parameters))
            for entry in value
        )
    names = [tool.name for tool in tools]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"offers {shown(twice)} twice. Keep one of them.")
    return tools


def _named(name: str, catalogue: Catalogue) -> Tool:
    if name in catalogue.tools:
        return catalogue.tool(name)
    hint = closest(name, catalogue.tools) or " Describe it: name, description, parameters."
    raise ValueError(f"names {shown(name)}, which {catalogue.source} does not have.{hint}")


_LIST = Key(str | list[str | ToolSpec], '"direct" or tools = ["read", { name = "get_weather" }]', _tools_of)


def read_tools(value: Any) -> tuple[Tool, ...]:
    """Return the tools of a prompt: of a surface, or of a list of catalogue names and own tools.

    Raises:
        ValueError: a name is unknown, is repeated, or an own tool has no usable schema, or a captured
            catalogue has changed; the message names the key and has a hint.
    """
    try:
        catalogue = catalogue_of(value)
    except ValueError as error:
        raise ValueError(f"tools {error}") from None
    build = partial(_tools_of, catalogue=catalogue)
    tools: tuple[Tool, ...] = read_key("tools", said_tools(value), _LIST._replace(build=build))
    return tools


@cache
def _captured(file: str, sha256: str) -> Catalogue:
    try:
        found = read_catalogue(Path(file))
    except ValueError as error:
        raise ValueError(f"are those of {file}, which {error}.") from None
    if found.sha256 != sha256:
        raise ValueError(f"are those of {file}, which has changed since.")
    return found


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
    world = prompt.world and structs.replace(prompt.world, steps=prompt.world.steps + LOOKUP_TURNS)
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
    from pytest_openclaw.openclaw.surfaces import with_directory

    system = with_directory(system, dict(added))
    if not instructions:
        return system
    filled, n = _INSTRUCTIONS.subn(lambda found: found[1] + instructions, system, count=1)
    return filled if n else f"{system}\n## AGENTS.md\n{instructions}"
