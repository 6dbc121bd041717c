"""A prompt's `tools` → the tools that a model is offered."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pytest_openclaw.suites.wording import kind_of, shown
from pytest_openclaw.toolcalls import Tool
from pytest_openclaw.tools.catalogue import LATEST, load_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable

_OWN_KEYS = ("name", "description", "parameters")


def read_tools(value: Any) -> tuple[Tool, ...]:
    """Return the tools of a surface, or those of a list of catalogue names and own tools.

    Raises:
        ValueError: a name is unknown, stands twice, or an own tool has no usable schema; says the mend.
    """
    catalogue = load_catalogue()
    if isinstance(value, str):
        if value not in catalogue.surfaces:
            known = ", ".join(sorted(catalogue.surfaces))
            raise ValueError(f"names the surface {shown(value)}, which {LATEST} has not. Surfaces: {known}.")
        return catalogue.surface(value)
    if not isinstance(value, list):
        raise ValueError(f'is {kind_of(value)}. Write a surface such as "direct", or a list of tools.')
    tools = tuple(_tool(entry) for entry in value)
    names = [tool.name for tool in tools]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"offers {shown(twice)} twice. Keep one of them.")
    return tools


def _tool(entry: Any) -> Tool:
    if isinstance(entry, str):
        return _of_catalogue(entry)
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
    return Tool(name=name, description=description, parameters=parameters)


def _of_catalogue(name: str) -> Tool:
    tools = load_catalogue().tools
    if name in tools:
        return tools[name]
    raise ValueError(f"names {shown(name)}, which {LATEST} has not.{_near(name, tools)}")


def _near(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {shown(close[0])}?" if close else " Describe it: name, description, parameters."


def _check_schema(name: str, parameters: Any) -> None:
    from pytest_openclaw.validators.json_schema import BoundedSchema

    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        raise ValueError(f'tool {name}: parameters is no schema of an object. Write {{type = "object", …}}.')
    try:
        BoundedSchema(parameters)
    except ValueError as error:
        raise ValueError(f"tool {name}: parameters {error}") from error
