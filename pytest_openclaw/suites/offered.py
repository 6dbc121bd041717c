"""Resolves a prompt's `tools` to the tools that a model is offered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.suites.wording import kind_of, shown
from pytest_openclaw.tools.catalogue import Bridge, load_catalogue, read_catalogue, said_tools
from pytest_openclaw.tools.root_unions import flattened
from pytest_openclaw.types.tool_calls import Tool

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.tools.catalogue import Catalogue

_OWN_KEYS = ("name", "description", "parameters")


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


def read_tools(value: Any) -> tuple[Tool, ...]:
    """Return the tools of a surface, or those of a list of catalogue names and own tools.

    Raises:
        ValueError: a name is unknown, is repeated, or an own tool has no usable schema, or a captured
            catalogue has changed; the message has a hint.
    """
    catalogue, value = catalogue_of(value) or load_catalogue(), said_tools(value)
    if isinstance(value, str):
        if value not in catalogue.surfaces:
            known = ", ".join(sorted(catalogue.surfaces))
            raise ValueError(
                f"names the surface {shown(value)}, which {catalogue.source} has not. Surfaces: {known}."
            )
        return _usable(catalogue, catalogue.surface(value))
    if not isinstance(value, list):
        raise ValueError(f'is {kind_of(value)}. Write a surface such as "direct", or a list of tools.')
    tools = tuple(_tool(entry, catalogue) for entry in value)
    names = [tool.name for tool in tools]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"offers {shown(twice)} twice. Keep one of them.")
    return _usable(catalogue, tools)


def _usable(catalogue: Catalogue, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Return the tools; a schema of another release by which no call can be judged is reported now."""
    if catalogue.file is not None:
        reached = (one for tool in tools if isinstance(tool, Bridge) for one in tool.reaches)
        for tool in (*tools, *reached):
            if flaw := _flaw_of(json.dumps(tool.parameters)):
                raise ValueError(f"are those of {catalogue.source}, whose {tool.name} {flaw}")
    return tools


@cache
def _flaw_of(schema: str) -> str:
    from pytest_openclaw.core.json_schema import BoundedSchema

    try:
        BoundedSchema(json.loads(schema))
    except ValueError as error:
        return str(error)
    return ""


@cache
def _captured(file: str, sha256: str) -> Catalogue:
    try:
        found = read_catalogue(Path(file))
    except ValueError as error:
        raise ValueError(f"are those of {file}, which {error}.") from None
    if found.sha256 != sha256:
        raise ValueError(f"are those of {file}, which has changed since.")
    return found


def _tool(entry: Any, catalogue: Catalogue) -> Tool:
    if isinstance(entry, str):
        return _named(entry, catalogue)
    if not isinstance(entry, Mapping):
        raise ValueError(f'holds {shown(entry)}, which is {kind_of(entry)}. Write a name such as "read".')
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ValueError("holds a tool without a name. Give it one.")
    if unknown := [key for key in entry if key not in _OWN_KEYS]:
        raise ValueError(f"tool {name} has {shown(unknown[0])}. Its keys are {', '.join(_OWN_KEYS)}.")
    description = entry.get("description", "")
    if not isinstance(description, str):
        raise ValueError(f"tool {name}: description is {kind_of(description)}, not a string. Write a text.")
    parameters = entry.get("parameters", {"type": "object", "properties": {}})
    _check_schema(name, parameters)
    return Tool(name=name, description=description, parameters=flattened(parameters))


def _named(name: str, catalogue: Catalogue) -> Tool:
    if name in catalogue.tools:
        return catalogue.tool(name)
    near = get_close_matches(name, list(catalogue.tools), n=1)
    hint = f"Did you mean {shown(near[0])}?" if near else "Describe it: name, description, parameters."
    raise ValueError(f"names {shown(name)}, which {catalogue.source} has not. {hint}")


def _check_schema(name: str, parameters: Any) -> None:
    from pytest_openclaw.core.json_schema import BoundedSchema

    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        raise ValueError(f'tool {name}: parameters is no schema of an object. Write {{type = "object", …}}.')
    try:
        BoundedSchema(parameters)
    except ValueError as error:
        raise ValueError(f"tool {name}: parameters {error}") from error
