"""Values out of foreign JSON, which may be of any type: what is not as expected counts as not said."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject


def text_in(value: Any) -> str:
    """Return a string, and nothing for anything else."""
    return value if isinstance(value, str) else ""


def count_in(value: Any) -> int | None:
    """Return a whole number from 0 up; true and 1.0 are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def positive_in(value: Any) -> float | None:
    """Return a finite number above 0."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < inf else None


def object_in(value: Any) -> JsonObject:
    """Return an object, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def objects_in(value: Any) -> list[JsonObject]:
    """Return the objects of an array, and none for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
