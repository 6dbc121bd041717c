"""Flattens the schema of a tool with alternatives at its root, as OpenClaw 2026.9.6 sends it to a model.

Many APIs refuse `anyOf` and `oneOf` there. The properties of all alternatives remain, and those are required
that each one requires. Which of them belong together, the model learns from the errors of the tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
