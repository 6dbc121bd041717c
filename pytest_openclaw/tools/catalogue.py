"""The tools that a release of OpenClaw offers to a model, and its surfaces: which of them it sends at once.

Names, parameters, types and limits are the release's; descriptions are our own words. Releases change
them about weekly, so each is a file of its own under `catalogues/`, named after the release.

Ours are shorter. The tools of a surface as JSON in a request, in bytes, beside the release's own:

| surface     | tools | ours   | 2026.9.6 |
|-------------|------:|-------:|---------:|
| direct      |    11 |  8,007 |    9,177 |
| coding      |    39 | 49,280 |   75,283 |
| full        |    54 | 71,270 |  104,824 |

`tool-search` is sent as `direct` is: eight tools, and three through which `Catalogue.deferred` are reached.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.files import parse_json
from pytest_openclaw.types.tool_calls import Tool

if TYPE_CHECKING:
    from pathlib import Path

LATEST = "openclaw-2026.9.6"
CALL = "tool_call"
"""The tool through which those are reached that are not sent."""


_CAPTURED = {"catalogue", "sha256", "tools"}
"""Keys of a prompt's `tools` once they are taken from a captured catalogue, see `suites/offered.py`."""


@dataclass(frozen=True, kw_only=True)
class Bridge(Tool):
    """`tool_call` of a captured catalogue, which knows what it reaches: another machine's reaches others."""

    reaches: tuple[Tool, ...] = ()

    @classmethod
    def of(cls, tool: Tool, reaches: tuple[Tool, ...]) -> Bridge:
        """Return a `tool_call` that reaches these tools."""
        return cls(name=tool.name, description=tool.description, parameters=tool.parameters, reaches=reaches)


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
        file: where a captured one is; None for one that ships.
        sha256: identifies a captured one.
        requests: of each surface the API, the other fields of the request, and the system prompt.
        sizes: of each surface, in the release's own words.
    """

    name: str
    tools: Mapping[str, Tool]
    surfaces: Mapping[str, tuple[str, ...]]
    deferred: tuple[str, ...] = ()
    variants: Mapping[str, Mapping[str, Tool]] = field(default_factory=dict)
    file: Path | None = None
    sha256: str = ""
    requests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """What a message calls it: the file of a captured one, else its name."""
        return str(self.file) if self.file else self.name

    def tool(self, name: str) -> Tool:
        """Return a tool with all that it takes on any surface.

        Raises:
            KeyError: there is no such tool.
        """
        return self._reaching(self.tools[name])

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
        return tuple(self._reaching(tools[name]) for name in names)

    def _reaching(self, tool: Tool) -> Tool:
        if self.file is None or tool.name != CALL:
            return tool
        return Bridge.of(tool, self.deferred_tools())


@cache
def load_catalogue(name: str = LATEST) -> Catalogue:
    """Return a release's catalogue, which ships with the package."""
    path = resources.files("pytest_openclaw.tools").joinpath("catalogues", f"{name}.json")
    return _catalogue(json.loads(path.read_text("utf-8")))


def release_of(file: Path | None) -> str:
    """Return the release, such as `2026.9.6`, of a captured catalogue, or of the shipped one.

    Raises:
        ValueError: see `read_catalogue`.
    """
    name = read_catalogue(file).name if file else LATEST
    return name.removeprefix("openclaw-")


def read_catalogue(path: Path) -> Catalogue:
    """Return the catalogue in a file that `capture-tools` has written.

    Raises:
        ValueError: it cannot be read, or is none; the text goes behind the file's name.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a stored run may name any path
            raise ValueError("is no file; `capture-tools` writes one")
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror or error})") from None
    try:
        found = catalogue_in(parse_json(data))
        for surface in found.surfaces:
            found.surface(surface)
        found.deferred_tools()
    except ValueError:
        raise ValueError("is no JSON; `capture-tools` writes such a file") from None
    except (KeyError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"is no catalogue ({why}); `capture-tools` writes one") from None
    return replace(found, file=path)


def catalogue_in(data: Mapping[str, Any]) -> Catalogue:
    """Return a captured catalogue that is in no file yet."""
    return replace(_catalogue(data), sha256=fingerprint(data))


def fingerprint(data: Mapping[str, Any]) -> str:
    """Return a hash of the tools and of the surfaces, which identifies a catalogue."""
    hashed = {key: data[key] for key in ("surfaces", "deferred", "tools", "variants")}
    return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()


def said_tools(tools: Any) -> Any:
    """Return what the suite says of tools, whichever catalogue they are taken from."""
    return tools["tools"] if isinstance(tools, Mapping) and tools.keys() == _CAPTURED else tools


def _catalogue(data: Mapping[str, Any]) -> Catalogue:
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
        requests=data.get("requests", {}),
        sizes=data["about"]["sizes"],
    )


def _tool(entry: Mapping[str, Any]) -> Tool:
    return Tool(name=entry["name"], description=entry["description"], parameters=entry["parameters"])
