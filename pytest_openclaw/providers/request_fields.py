"""Fields of requests: those that are sent only if they were chosen, and further ones of the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.util.json_types import JsonObject


def chosen(**fields: Any) -> JsonObject:
    """Return the fields that have a value; the server decides about the others."""
    return {name: value for name, value in fields.items() if value is not None}


def with_fields(body: JsonObject, fields: Mapping[str, Any]) -> JsonObject:
    """Return the body with further fields; objects are merged key by key, and null removes a field."""
    merged = dict(body)
    for name, value in fields.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(merged.get(name), dict):
            merged[name] = with_fields(merged[name], value)
        else:
            merged[name] = value
    return merged
