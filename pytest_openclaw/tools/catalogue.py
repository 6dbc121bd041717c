"""The tools that a release of OpenClaw offers to a model, and its surfaces: which of them it sends at once.

Names, parameters, types and limits are the release's; descriptions are our own words. Releases change
them about weekly, so each is a file of its own under `catalogues/`, named after the release.

Ours are shorter. The tools of a surface as JSON in a request, in bytes, beside the release's own:

| surface     | tools | ours   | 2026.9.6 |
|-------------|------:|-------:|---------:|
| minimal     |     2 |    873 |      855 |
| direct      |    11 |  8,007 |    9,177 |
| messaging   |    18 | 25,911 |   34,866 |
| coding      |    39 | 49,280 |   75,283 |
| full        |    54 | 71,270 |  104,824 |

`tool-search` is sent as `direct` is: eight tools, and three through which `Catalogue.deferred` are reached.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from pytest_openclaw.toolcalls import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

LATEST = "openclaw-2026.9.6"


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """One release.

    Attributes:
        name: such as `openclaw-2026.9.6`.
        tools: by name, each with all that it takes on any surface.
        surfaces: name of a surface → names of its tools, in the order in which they are sent.
        deferred: tools that are not sent but listed in the system prompt of `tool-search`; the model
            reaches them by `tool_search`, `tool_describe` and `tool_call`.
        variants: surface, or `deferred` → the tools that take less there than elsewhere, by name.
    """

    name: str
    tools: Mapping[str, Tool]
    surfaces: Mapping[str, tuple[str, ...]]
    deferred: tuple[str, ...] = ()
    variants: Mapping[str, Mapping[str, Tool]] = field(default_factory=dict)

    def surface(self, name: str) -> tuple[Tool, ...]:
        """Return the tools of a surface as they are there.

        Raises:
            KeyError: there is no such surface.
        """
        return self._as_in(name, self.surfaces[name])

    def deferred_tools(self) -> tuple[Tool, ...]:
        """Return the tools that are reached through `tool_call`, as they are there."""
        return self._as_in("deferred", self.deferred)

    def _as_in(self, place: str, names: tuple[str, ...]) -> tuple[Tool, ...]:
        tools = {**self.tools, **self.variants.get(place, {})}
        return tuple(tools[name] for name in names)


@cache
def load_catalogue(name: str = LATEST) -> Catalogue:
    """Return a release's catalogue, which ships with the package."""
    path = resources.files("pytest_openclaw").joinpath("catalogues", f"{name}.json")
    data = json.loads(path.read_text("utf-8"))
    variants: dict[str, dict[str, Tool]] = {}
    for entry in data["variants"]:
        for place in entry["surfaces"]:
            variants.setdefault(place, {})[entry["name"]] = _tool(entry)
    return Catalogue(
        name=data["release"],
        tools={entry["name"]: _tool(entry) for entry in data["tools"]},
        surfaces={surface: tuple(names) for surface, names in data["surfaces"].items()},
        deferred=tuple(data["deferred"]),
        variants=variants,
    )


def _tool(entry: Mapping[str, Any]) -> Tool:
    return Tool(name=entry["name"], description=entry["description"], parameters=entry["parameters"])
