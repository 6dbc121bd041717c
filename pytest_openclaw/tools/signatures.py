"""A tool's parameters in the short form of OpenClaw's bridge: `{ url: string; count?: number /* >= 1 */ }`.

The form and its bounds are those of OpenClaw 2026.9.6: omissions are `...`, and long types are `unknown`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
