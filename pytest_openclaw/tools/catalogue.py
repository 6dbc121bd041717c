"""The tools that a release of OpenClaw offers to a model, and its surfaces: which of them it sends at once.

Names, parameters and types are the release's; descriptions are our own words. Releases change them about
weekly, so each is a file of its own under `catalogues/`, named after the release.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from pytest_openclaw.toolcalls import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

LATEST = "openclaw-2026.9.6"


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """One release.

    Attributes:
        name: such as `openclaw-2026.9.6`.
        tools: by name.
        surfaces: name of a surface → names of its tools, in the order in which they are sent.
    """

    name: str
    tools: Mapping[str, Tool]
    surfaces: Mapping[str, tuple[str, ...]]

    def surface(self, name: str) -> tuple[Tool, ...]:
        """Return the tools of a surface.

        Raises:
            KeyError: there is no such surface.
        """
        return tuple(self.tools[tool] for tool in self.surfaces[name])


@cache
def load_catalogue(name: str = LATEST) -> Catalogue:
    """Return a release's catalogue, which ships with the package."""
    path = resources.files("pytest_openclaw").joinpath("catalogues", f"{name}.json")
    data = json.loads(path.read_text("utf-8"))
    tools = {
        entry["name"]: Tool(
            name=entry["name"], description=entry["description"], parameters=entry["parameters"]
        )
        for entry in data["tools"]
    }
    surfaces = {surface: tuple(names) for surface, names in data["surfaces"].items()}
    return Catalogue(name=data["release"], tools=tools, surfaces=surfaces)
