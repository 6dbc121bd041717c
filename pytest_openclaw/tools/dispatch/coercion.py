"""Converts arguments before their check as OpenClaw 2026.9.6 does: simple types become the required ones.

`"5"` becomes 5 if a number is required, 5 a text if a text is, null the empty value of its type, and a
JSON text its array or object. A value that cannot be converted is unchanged, and fails the check.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from pytest_openclaw.tools.dispatch.arguments import read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Fits = Callable[[Mapping[str, Any], Any], bool]

MAX_JSON_CHARS = 65_536
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LARGEST_SAFE = 2**53 - 1


def coerce(value: Any, schema: Mapping[str, Any], fits: Fits) -> Any:
    """Return the value with the type of the schema, if it can be converted.

    Args:
        value: JSON; it is not modified.
        schema: the required type.
        fits: whether a value satisfies a schema; decides between alternatives.
    """
    for part in _list(schema, "allOf"):
        value = coerce(value, part, fits)
    for keyword in ("anyOf", "oneOf"):
        if parts := _list(schema, keyword):
            value = _as_one_of(value, parts, fits)
    kinds = _kinds(schema)
    if not (len(kinds) > 1 and any(_is(value, kind) for kind in kinds)):
        value = _first_conversion(value, kinds)
    if "object" in kinds and isinstance(value, dict):
        return _members(value, schema, fits)
    if "array" in kinds and isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [coerce(item, schema["items"], fits) for item in value]
    return value


def _list(schema: Mapping[str, Any], keyword: str) -> Sequence[Mapping[str, Any]]:
    parts = schema.get(keyword)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else ()


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _members(value: dict[str, Any], schema: Mapping[str, Any], fits: Fits) -> dict[str, Any]:
    known = schema.get("properties", {})
    others = schema.get("additionalProperties")
    wanted = {name: known.get(name, others) for name in value}
    return {
        name: coerce(inner, wanted[name], fits) if isinstance(wanted[name], dict) else inner
        for name, inner in value.items()
    }


def _as_one_of(value: Any, parts: Sequence[Mapping[str, Any]], fits: Fits) -> Any:
    if value is None and any("null" in _kinds(part) and fits(part, None) for part in parts):
        return None
    for part in parts:
        if value is not None and _kinds(part) == ["null"]:
            continue
        converted = coerce(value, part, fits)
        if fits(part, converted):
            return converted
    return value


def _first_conversion(value: Any, kinds: Sequence[str]) -> Any:
    for kind in kinds:
        if kind == "null" and value is not None and len(kinds) > 1:
            continue
        converted = _CONVERSIONS[kind](value) if kind in _CONVERSIONS else value
        if converted is not value:
            return converted
    return value


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (kind == "number" or float(value).is_integer())
    types = {"boolean": bool, "string": str, "null": type(None), "array": list, "object": dict}
    return kind in types and isinstance(value, types[kind])


def _to_number(value: Any) -> Any:
    if value is None:
        return 0
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        number = float(value)
        if math.isfinite(number):
            return int(number) if number.is_integer() else number
    return value


def _to_integer(value: Any) -> Any:
    number = _to_number(value)
    if isinstance(value, str) and not (isinstance(number, int) and abs(number) <= _LARGEST_SAFE):
        return value
    return number


def _to_boolean(value: Any) -> Any:
    if value is None or value == "false":
        return False
    if value == "true":
        return True
    if isinstance(value, int | float) and not isinstance(value, bool) and value in (0, 1):
        return bool(value)
    return value


def _to_text(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value) if isinstance(value, bool | int | float) else value


def _to_null(value: Any) -> Any:
    return None if value == "" or value is False or _is_zero(value) else value


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and value == 0


def _read_as(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, str) or not 0 < len(value.strip()) <= len(value) <= MAX_JSON_CHARS:
            return value
        held = read_json(value)
        return held if isinstance(held, kind) else value

    return read


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "number": _to_number,
    "integer": _to_integer,
    "boolean": _to_boolean,
    "string": _to_text,
    "array": _read_as(list),
    "object": _read_as(dict),
    "null": _to_null,
}
