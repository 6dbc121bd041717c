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

A tool's parameters in the short form of OpenClaw's bridge: `{ url: string; count?: number /* >= 1 */ }`.

The form and its bounds are those of OpenClaw 2026.9.6: omissions are `...`, and long types are `unknown`.

Flattens the schema of a tool with alternatives at its root, as OpenClaw 2026.9.6 sends it to a model.

Many APIs refuse `anyOf` and `oneOf` there. The properties of all alternatives remain, and those are required
that each one requires. Which of them belong together, the model learns from the errors of the tool.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.util.files import parse_json
from pytest_openclaw.values.tool_calls import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
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


MOST_CHARS = 300
MOST_PROPERTIES = 16
LONGEST_NAME = 128
DEEPEST = 4
MOST_KINDS, MOST_LITERALS, LONGEST_LITERALS = 5, 8, 96
UNKNOWN = "unknown"
_BOUNDS = {"minimum": ">=", "maximum": "<=", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}
_BESIDE_A_UNION = frozenset({
    "const", "enum", "type", "properties", "required", "additionalProperties", "items"
})  # fmt: skip
_NOT_SAID = frozenset({
    "$ref", "$dynamicRef", "$recursiveRef", "allOf", "patternProperties", "unevaluatedProperties",
    "dependentSchemas", "dependencies", "if", "then", "else", "prefixItems", "unevaluatedItems",
})  # fmt: skip
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


class _Hint(NamedTuple):
    """A type; `is_whole` if nothing was omitted, so that it can be an alternative of a union."""

    text: str
    is_whole: bool = True


_UNKNOWN = _Hint(UNKNOWN, is_whole=False)
_SOMETHING = _Hint("{ ... }", is_whole=False)


def signature(schema: Mapping[str, Any]) -> str:
    """Return a JSON Schema as a type of at most 300 characters."""
    hint = _object(schema, 0) if schema.get("type") == "object" else _type(schema, 0)
    return hint.text if len(hint.text) <= MOST_CHARS else UNKNOWN


def _type(schema: Any, depth: int) -> _Hint:
    if not isinstance(schema, dict) or depth >= DEEPEST:
        return _UNKNOWN
    if not schema:
        return _Hint(UNKNOWN)
    if schema.get("nullable") is True and "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema = {**schema, "nullable": False, "type": [*dict.fromkeys([*kinds, "null"])]}
    hint = _said(schema, depth)
    return hint if _NOT_SAID.isdisjoint(schema) else hint._replace(is_whole=False)


def _said(schema: Mapping[str, Any], depth: int) -> _Hint:
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _union(schema, schema[key], depth)
    if "const" in schema and (found := _literals([schema["const"]], longest=None)):
        return found
    if found := _literals(schema.get("enum"), longest=LONGEST_LITERALS):
        return found
    kind = schema.get("type")
    if isinstance(kind, list):
        return _either([{**schema, "type": one} for one in kind], depth)
    if kind in ("integer", "number"):
        return _number(schema)
    if kind == "array":
        inner = _type(schema.get("items"), depth + 1)
        return inner._replace(text=f"Array<{inner.text}>")
    if kind == "object":
        return _object(schema, depth + 1)
    return _Hint(kind) if kind in ("string", "boolean", "null") else _UNKNOWN


def _union(schema: Mapping[str, Any], parts: Any, depth: int) -> _Hint:
    is_plain = _BESIDE_A_UNION.isdisjoint(schema) and not {"anyOf", "oneOf"} <= schema.keys()
    if not is_plain or not isinstance(parts, list) or not 0 < len(parts) <= MOST_LITERALS:
        return _UNKNOWN
    if all(isinstance(part, dict) and "const" in part and _NOT_SAID.isdisjoint(part) for part in parts):
        found = _literals([part["const"] for part in parts], longest=LONGEST_LITERALS)
        if found:
            return found
    return _either(parts, depth)


def _either(parts: Sequence[Any], depth: int) -> _Hint:
    """Return alternatives, unless one of them cannot be written in full."""
    if not 0 < len(parts) <= MOST_KINDS:
        return _UNKNOWN
    hints = [_type(part, depth + 1) for part in parts]
    if not all(hint.is_whole for hint in hints):
        return _UNKNOWN
    return _Hint(" | ".join(dict.fromkeys(hint.text for hint in hints)))


def _literals(values: Any, *, longest: int | None) -> _Hint | None:
    """Return plain values as alternatives; None if they are too many, too long or not plain."""
    if not isinstance(values, list) or not 0 < len(values) <= MOST_LITERALS:
        return None
    if any(isinstance(value, dict | list) for value in values):
        return None
    text = " | ".join(dict.fromkeys(json.dumps(value, ensure_ascii=False) for value in values))
    return _Hint(text) if longest is None or len(text) <= longest else None


def _number(schema: Mapping[str, Any]) -> _Hint:
    notes = ["integer"] if schema["type"] == "integer" else []
    notes += [f"{sign} {schema[key]}" for key, sign in _BOUNDS.items() if key in schema]
    return _Hint(f"number /* {', '.join(notes)} */" if notes else "number")


def _object(schema: Mapping[str, Any], depth: int) -> _Hint:
    """Return an object's properties, required ones first, as many as fit."""
    known, required = schema.get("properties"), _names(schema.get("required"))
    if not isinstance(known, dict):
        is_empty = schema.get("additionalProperties") is False and not required
        return _Hint("{}") if is_empty else _SOMETHING
    first = _sorted(name for name in required if name in known)[:MOST_PROPERTIES]
    others = _sorted(name for name in known if name not in required)
    shown = [*first, *others[: MOST_PROPERTIES - len(first)]]
    lacks = len(shown) < len({*known, *required})
    has_more = lacks or schema.get("additionalProperties") is True
    has_more = has_more or isinstance(schema.get("additionalProperties"), dict)
    is_whole = not lacks and schema.get("additionalProperties") is False
    body = ""
    for name in shown:
        hint = _type(known[name], depth)
        label = name if _IDENTIFIER.fullmatch(name) else json.dumps(name, ensure_ascii=False)
        part = f"{label}{'' if name in required else '?'}: {hint.text}"
        is_whole = is_whole and hint.is_whole
        longer = f"{body}; {part}" if body else part
        if len(longer) + 4 > MOST_CHARS:
            has_more, is_whole = True, False
            break
        body = longer
    if not body:
        return _SOMETHING if shown or has_more else _Hint("{}", is_whole=is_whole)
    return _Hint(f"{{ {body}{'; ...' if has_more else ''} }}", is_whole=is_whole)


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _sorted(names: Iterable[str]) -> list[str]:
    """Return the names that are not too long, in the order of JavaScript's `localeCompare`."""
    short = (name for name in dict.fromkeys(names) if len(name) <= LONGEST_NAME)
    return sorted(short, key=lambda name: (name.casefold().replace("_", " "), name.swapcase()))


_KEPT = ("title", "description", "$defs")
_JSON_TYPES = {str: "string", bool: "boolean", int: "number", float: "number"}


def flattened(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without alternatives at its root; one that has none is returned as it is."""
    way = next((key for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)), None)
    if way is None:
        return schema
    branches = [branch for one in schema[way] if "properties" in (branch := _resolved(one, schema))]
    properties = dict(schema.get("properties", {}))
    for branch in branches:
        for name, rule in branch["properties"].items():
            properties[name] = _merged(properties[name], rule) if name in properties else rule
    required = schema.get("required") or _required_by_all(branches)
    return {
        "type": "object",
        **{key: schema[key] for key in _KEPT if key in schema},
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": schema.get("additionalProperties", True),
    }


def _resolved(branch: Any, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(branch, Mapping):
        return {}
    place, _, name = str(branch.get("$ref", "")).rpartition("/")
    found = schema.get("$defs", {}).get(name, {}) if place == "#/$defs" else branch
    return found if isinstance(found, Mapping) else {}


def _required_by_all(branches: list[Mapping[str, Any]]) -> list[str]:
    lists = [branch.get("required", []) for branch in branches]
    return [name for name in lists[0] if all(name in one for one in lists)] if lists else []


def _merged(one: Any, other: Any) -> Any:
    """Return a rule for both; of values that are listed all, of other rules the first."""
    values: list[Any] = []
    for value in (*_values(one), *_values(other)):
        if value not in values:
            values.append(value)
    if not values:
        return one
    words = {
        key: rule[key] for rule in (other, one) for key in ("title", "description", "default") if key in rule
    }
    types = {_JSON_TYPES.get(type(value)) for value in values}
    kind = types.pop() if len(types) == 1 else None
    return {**words, **({"type": kind} if kind else {}), "enum": values}


def _values(rule: Any) -> list[Any]:
    if not isinstance(rule, Mapping):
        return []
    if isinstance(rule.get("enum"), list):
        return list(rule["enum"])
    if "const" in rule:
        return [rule["const"]]
    union: list[Any] = next((rule[key] for key in ("anyOf", "oneOf") if isinstance(rule.get(key), list)), [])
    return [value for one in union for value in _values(one)]
