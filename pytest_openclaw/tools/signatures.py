"""A tool's parameters in the short form of OpenClaw's bridge: `{ url: string; count?: number }`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEEPEST = 6
_LIMITS = {"minimum": ">=", "maximum": "<="}


def signature(schema: Mapping[str, Any], depth: int = 0) -> str:
    """Return a JSON Schema as a type."""
    if depth > _DEEPEST:
        return "unknown"
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(signature(part, depth + 1) for part in schema[key])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(signature({**schema, "type": one}, depth + 1) for one in kind)
    if kind == "object":
        return _object(schema, depth)
    if kind == "array":
        inner = signature(schema.get("items", {}), depth + 1)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind in ("integer", "number"):
        return _number(schema)
    return kind if isinstance(kind, str) else "unknown"


def _object(schema: Mapping[str, Any], depth: int) -> str:
    known = schema.get("properties", {})
    if not known:
        return "object" if depth else "{}"
    required = schema.get("required", ())
    # What must be given comes first.
    names = sorted(known, key=lambda name: name not in required)
    parts = [
        f"{name}{'' if name in required else '?'}: {signature(known[name], depth + 1)}" for name in names
    ]
    return f"{{ {'; '.join(parts)} }}"


def _number(schema: Mapping[str, Any]) -> str:
    notes = ["integer"] if schema["type"] == "integer" else []
    notes += [f"{sign} {schema[key]}" for key, sign in _LIMITS.items() if key in schema]
    return f"number /* {', '.join(notes)} */" if notes else "number"
