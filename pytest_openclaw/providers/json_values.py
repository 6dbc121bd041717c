"""Reads values of foreign JSON, which may have any type; a value of another type counts as missing."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from pytest_openclaw.util.schema_check import LARGEST

if TYPE_CHECKING:
    from pytest_openclaw.util.json_types import JsonObject


def text_in(value: Any) -> str:
    """Return a string, empty for another type."""
    return value if isinstance(value, str) else ""


def count_in(value: Any) -> int | None:
    """Return a whole number from 0 to 2**53, the most in a row; None for another value, also true and 1.0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None


def positive_in(value: Any) -> float | None:
    """Return a finite number above 0; None for another value."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < inf else None


def object_in(value: Any) -> JsonObject:
    """Return an object, empty for another type."""
    return value if isinstance(value, dict) else {}


def objects_in(value: Any) -> list[JsonObject]:
    """Return the objects of an array, none for another type."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
