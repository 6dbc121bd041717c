"""The tools that a release of OpenClaw offers to a model, and its surfaces: the lists of tools that it sends.

Names, parameters, types and limits are the release's; descriptions are shorter and our own. Releases change
about weekly, so each has its own file in `catalogues/`.

The surfaces `direct` and `tool-search` have eight tools, and three that reach those in `Catalogue.deferred`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from pytest_openclaw.util.files import parse_json
from pytest_openclaw.values.tool_calls import SUBSTITUTE, Surface, Tool

LATEST = "openclaw-2026.9.6"
DIRECT = "direct"
"""The surface that a model gets by default."""
CALL = "tool_call"
"""The tool that calls deferred tools, which are not sent."""

_CAPTURED = {"catalogue", "sha256", "tools"}
"""Keys of a prompt's `tools` if they come from a captured catalogue; see `suites/offered.py`."""


@dataclass(frozen=True, kw_only=True)
class Bridge(Tool):
    """`tool_call` with the tools that it reaches, which captured catalogues of two machines may not share."""

    reaches: tuple[Tool, ...] = ()

    @classmethod
    def of(cls, tool: Tool, reaches: tuple[Tool, ...]) -> Bridge:
        """Return a `tool_call` that reaches these tools."""
        return cls(name=tool.name, description=tool.description, parameters=tool.parameters, reaches=reaches)


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The tools and surfaces of one release.

    Attributes:
        name: such as `openclaw-2026.9.6`.
        tools: by name, each with all parameters that it has on any surface.
        surfaces: name of a surface → names of its tools, in the order in which they are sent.
        deferred: tools that the system prompt only lists; they are reached through the bridge.
        variants: surface, or `deferred` → by name, the tools that have fewer parameters there.
        file: the file of a captured catalogue; None for a shipped one.
        sha256: identifies a captured catalogue; empty for a shipped one.
        requests: surface → its API, its system prompt, and the other fields of its request.
        sizes: surface → the number of its tools and their bytes, here and in the release.
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
        """The catalogue's name in messages: the file of a captured one, else `name`."""
        return str(self.file) if self.file else self.name

    def tool(self, name: str) -> Tool:
        """Return a tool with all parameters that it has on any surface."""
        return self._reaching(self.tools[name])

    def surface(self, name: str) -> tuple[Tool, ...]:
        """Return the tools of a surface, with its variants."""
        return self._as_in(name, self.surfaces[name])

    def deferred_tools(self) -> tuple[Tool, ...]:
        """Return the tools that are reached through `tool_call`, with their variants there."""
        return self._as_in("deferred", self.deferred)

    def _as_in(self, surface: str, names: tuple[str, ...]) -> tuple[Tool, ...]:
        tools = {**self.tools, **self.variants.get(surface, {})}
        return tuple(self._reaching(tools[name]) for name in names)

    def _reaching(self, tool: Tool) -> Tool:
        if self.file is None or tool.name != CALL:
            return tool
        return Bridge.of(tool, self.deferred_tools())


@cache
def load_catalogue(name: str = LATEST) -> Catalogue:
    """Return the catalogue of a release, as shipped with the package."""
    path = resources.files("pytest_openclaw.openclaw").joinpath("catalogues", f"{name}.json")
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
        ValueError: the file cannot be read, or is not a catalogue; the text continues the file's name.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror or error})") from None
    try:
        found = catalogue_in(parse_json(data))
        for surface in found.surfaces:
            found.surface(surface)
        found.deferred_tools()
    except ValueError:
        raise ValueError("is not JSON; `capture-tools` writes such a file") from None
    except (KeyError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"is not a catalogue ({why}); `capture-tools` writes one") from None
    return replace(found, file=path)


def catalogue_in(data: Mapping[str, Any]) -> Catalogue:
    """Return a captured catalogue that is not in a file yet."""
    return replace(_catalogue(data), sha256=fingerprint(data))


def fingerprint(data: Mapping[str, Any]) -> str:
    """Return a hash of tools and surfaces, which identifies a catalogue."""
    hashed = {key: data[key] for key in ("surfaces", "deferred", "tools", "variants")}
    return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()


def plugin_of(tool: str) -> str:
    """Return the plugin of OpenClaw that provides this tool."""
    return "memory-core" if tool.startswith("memory_") else "core"


def suite_tools(tools: Any) -> Any:
    """Return the value of `tools` that the suite contains, with or without a captured catalogue."""
    return tools["tools"] if isinstance(tools, Mapping) and tools.keys() == _CAPTURED else tools


def _catalogue(data: Mapping[str, Any]) -> Catalogue:
    variants: dict[str, dict[str, Tool]] = {}
    for entry in data["variants"]:
        for surface in entry["surfaces"]:
            variants.setdefault(surface, {})[entry["name"]] = _tool(entry)
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


MOST_CHARS = 300
MOST_PROPERTIES = 16
DEEPEST = 4
MOST_KINDS, MOST_LITERALS, LONGEST_LITERALS = 5, 8, 96
UNKNOWN = "unknown"
_BOUNDS = {"minimum": ">=", "maximum": "<=", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}


def signature(schema: Mapping[str, Any]) -> str:
    """Return a JSON Schema as OpenClaw's bridge writes it: `{ url: string; count?: number /* >= 1 */ }`.

    The text has at most 300 characters: omissions are `...`, and a longer type is `unknown`.
    """
    text = _object(schema, 0) if schema.get("type") == "object" else _type(schema, 0)
    return text if len(text) <= MOST_CHARS else UNKNOWN


def _type(schema: Any, depth: int) -> str:
    if not isinstance(schema, dict) or depth >= DEEPEST:
        return UNKNOWN
    if parts := schema.get("anyOf") or schema.get("oneOf"):
        return _union(parts, depth)
    values = [schema["const"]] if "const" in schema else schema.get("enum", [])
    text = " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    if 0 < len(values) <= MOST_LITERALS and len(text) <= LONGEST_LITERALS:
        return text
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union([{**schema, "type": one} for one in kind], depth)
    if kind in ("integer", "number"):
        notes = ["integer"] if kind == "integer" else []
        notes += [f"{sign} {schema[key]}" for key, sign in _BOUNDS.items() if key in schema]
        return f"number /* {', '.join(notes)} */" if notes else "number"
    if kind == "array":
        return f"Array<{_type(schema.get('items'), depth + 1)}>"
    if kind == "object":
        return _object(schema, depth + 1)
    return kind if kind in ("string", "boolean", "null") else UNKNOWN


def _union(parts: Sequence[Any], depth: int) -> str:
    """Return the alternatives; `unknown` if one of them cannot be written in full."""
    types = dict.fromkeys(_type(part, depth + 1) for part in parts[: MOST_KINDS + 1])
    is_whole = len(parts) <= MOST_KINDS and not any("..." in one or UNKNOWN in one for one in types)
    return " | ".join(types) if is_whole else UNKNOWN


def _object(schema: Mapping[str, Any], depth: int) -> str:
    """Return an object's properties, required ones first, as many as fit."""
    known, required = schema.get("properties"), schema.get("required", [])
    if not known:
        return "{ ... }" if known is None or schema.get("additionalProperties") else "{}"
    # In the order of JavaScript's `localeCompare`.
    names = sorted(
        known, key=lambda name: (name not in required, name.casefold().replace("_", " "), name.swapcase())
    )
    has_more = len(names) > MOST_PROPERTIES or schema.get("additionalProperties") not in (None, False)
    body = ""
    for name in names[:MOST_PROPERTIES]:
        part = f"{name}{'' if name in required else '?'}: {_type(known[name], depth)}"
        longer = f"{body}; {part}" if body else part
        if len(longer) + 4 > MOST_CHARS:
            has_more = True
            break
        body = longer
    if not body:
        return "{ ... }"
    return f"{{ {body}{'; ...' if has_more else ''} }}"


def flattened(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without alternatives at its root, as OpenClaw sends it; many APIs refuse them there.

    The result has the properties of all alternatives, and requires those that every alternative requires.
    The model learns from the tool's errors which properties belong together.
    """
    way = next((key for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)), None)
    if way is None:
        return schema
    parts = schema.get("$defs", {})
    branches = [
        parts.get(str(one.get("$ref", "")).removeprefix("#/$defs/"), one)
        for one in schema[way]
        if isinstance(one, Mapping)
    ]
    properties = dict(schema.get("properties", {}))
    for branch in branches:
        for name, rule in branch.get("properties", {}).items():
            properties[name] = _merged(properties[name], rule) if name in properties else rule
    lists = [branch.get("required", []) for branch in branches if "properties" in branch]
    common = [name for name in lists[0] if all(name in one for one in lists)] if lists else []
    required = schema.get("required") or common
    return {
        "type": "object",
        **{key: schema[key] for key in ("title", "description", "$defs") if key in schema},
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": schema.get("additionalProperties", True),
    }


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first rule, with the values of both rules if they list any."""
    lists = [rule.get("enum", [rule["const"]] if "const" in rule else []) for rule in (one, other)]
    values = [*lists[0], *(value for value in lists[1] if value not in lists[0])]
    if not values:
        return one
    kept = {key: value for key, value in {**other, **one}.items() if key not in ("const", "enum", "type")}
    is_text = all(isinstance(value, str) for value in values)
    return {**kept, **({"type": "string"} if is_text else {}), "enum": values}


# --- the surface openclaw -------------------------------------------------------------------------

# It is made from a capture of the installed OpenClaw, or is a substitute in our own words with the sections,
# order and size of a release's system prompt, and the tools of the shipped catalog.

# The same values in each run: a day far from a change of clocks, and plain names, paths and addresses.
_FILLED = {
    "Current date: <time>": "Current date: 2026-11-23",
    "<time>": "Mon 2026-11-23 09:00 UTC",
    "<zone>": "UTC",
    "<host>": "workstation",
    "<os>": "Linux 6.12.0 (x64)",
    "<id>": "5f0c7d1e-8a34-4c1b-9d52-3b7e6a90c4d8",
    "<workspace>": "/workspace",
    "<state>": "/home/user/.openclaw",
    "<scratch>": "/home/user",
    "<home>": "/home/user",
    "<openclaw>": "/usr/lib/node_modules/openclaw",
    "<user>": "user",
    "<address>": "user@example.com",
    "<port>": "18789",
}
_USUAL = frozenset(
    {"model", "tools", "tool_choice", "stream", "stream_options", "options", "think", "truncate", "shift"}
    | {"max_tokens", "max_completion_tokens", "max_output_tokens"}
)
"""Fields that the providers send themselves."""
LONGEST_LINE = 180
"""The maximum length of a tool's description in the list of deferred tools."""


def captured_surface(catalogue: Catalogue) -> Surface:
    """Return the default surface of a captured catalog.

    Raises:
        ValueError: the catalogue has no request of that surface; the text continues the file's name.
    """
    if DIRECT not in catalogue.requests:
        raise ValueError("has no request of OpenClaw's default surface; `capture-tools` writes one")
    request = catalogue.requests[DIRECT]
    question = request["question"]
    return Surface(
        source="captured",
        release=catalogue.name,
        system=fill(request["system"]),
        before=fill(question["before"]),
        after=fill(question["after"]),
        context=fill(question["context"]),
        tools=tuple(_tool(vars(tool)) for tool in catalogue.surface(DIRECT)),  # without what a bridge reaches
        deferred=catalogue.deferred_tools() if request.get("deferred") else (),
        api=request["api"],
        fields={name: value for name, value in request["fields"].items() if name not in _USUAL},
    )


@cache
def substitute_surface() -> Surface:
    """Return the substitute for the release whose catalog ships."""
    catalogue = load_catalogue()
    folder = resources.files("pytest_openclaw.openclaw").joinpath("catalogues")
    text = folder.joinpath("substitute.md").read_text("utf-8")
    system, question, context = (part.strip() for part in text.split("\n=====\n"))
    before, _, after = question.partition("<question>")
    deferred = catalogue.deferred_tools()
    return Surface(
        source=SUBSTITUTE,
        release=catalogue.name,
        system=fill(with_directory(system, {tool.name: tool.description for tool in deferred})),
        before=fill(before),
        after=fill(after),
        context=fill(context),
        tools=catalogue.surface(DIRECT),
        deferred=deferred,
    )


def fill(text: str) -> str:
    """Return a masked text with plain values for its placeholders; `<model>` stays."""
    for placeholder, value in _FILLED.items():
        text = text.replace(placeholder, value)
    return text


_DIRECTORY = re.compile(r"^### Deferred Tool Schemas\n[^\n]*\n(?P<entries>(?:- [^\n]*\n)*)", re.MULTILINE)


def with_directory(system: str, added: dict[str, str]) -> str:
    """Return a system prompt with these tools in its list of deferred tools; `added` is name → description.

    A system prompt without such a list is returned unchanged: its release sends all tools.
    """
    found = _DIRECTORY.search(system)
    if found is None or not added:
        return system
    lines = [f"- {name} ({plugin_of(name)}): {_short(description)}\n" for name, description in added.items()]
    entries = sorted([*found["entries"].splitlines(keepends=True), *lines])
    return system[: found.start("entries")] + "".join(entries) + system[found.end("entries") :]


def _short(description: str) -> str:
    line = " ".join(description.split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."
