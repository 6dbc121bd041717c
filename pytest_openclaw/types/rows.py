"""Values ↔ published JSON: the row format, its version, and the schemas that ship with the package."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.schema_check import compile_schema, shown
from pytest_openclaw.types.documents import load_schema, refuse_misfit
from pytest_openclaw.types.records import Record
from pytest_openclaw.types.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.core.schema_check import Check

ROW_VERSION = 1

_SEED_FIELDS = 22
_FIELDS = tuple(field.name for field in fields(Record) if field.name != "extra")
_values_of = attrgetter(*_FIELDS)
_TUPLES = (
    "tool_calls",
    "tool_call_details",
    "turns",
    "images",
    "tool_notes",
    "harm_tools",
    "tools_tested",
    "reruns",
)
_ORDER = ("record_type", *_FIELDS[:_SEED_FIELDS], "schema_version", *_FIELDS[_SEED_FIELDS:])
_KEYS = frozenset(_ORDER)


def to_row(record: Record) -> JsonObject:
    """Return the record as a row: the seed's fields in its order, then ours, then unknown ones."""
    values = _values_of(record)
    row = dict(
        zip(_ORDER, ("result", *values[:_SEED_FIELDS], ROW_VERSION, *values[_SEED_FIELDS:]), strict=True)
    )
    for name in _TUPLES:
        if row[name] is not None:
            row[name] = list(row[name])
    row.update(record.extra)
    return row


def from_row(row: Mapping[str, Any]) -> Record:
    """Return the row as a record; unknown keys pass through in `extra`.

    Raises:
        ValueError: the row is not a result, has another format than this version reads, or lacks a field.
    """
    _check_format(row)
    if missing := next((name for name in _FIELDS if name not in row), None):
        raise ValueError(f"{missing} is missing")
    # The names of the fields themselves: Python finds an argument by identity, other equal texts by search.
    values = {name: row[name] for name in _FIELDS}
    for name in _TUPLES:
        if (value := values.get(name)) is not None:
            values[name] = _listed(name, value)
    unknown = () if row.keys() <= _KEYS else [key for key in row if key not in _KEYS]
    return Record(**values, extra={key: row[key] for key in unknown})


def call_of(entry: Mapping[str, Any]) -> ToolCall:
    """Return a call of a row, from `tool_call_details` or from a turn."""
    return ToolCall(
        name=entry["name"],
        arguments=entry["arguments"],
        id=entry.get("id"),
        unoffered=entry.get("unoffered", False),
    )


def check_row(row: JsonObject) -> None:
    """Reject a malformed row from a file.

    Raises:
        ValueError: it is malformed; the message names the field and its value.
    """
    _check_format(row)
    refuse_misfit(_row_check()(row))


def _check_format(row: Mapping[str, Any]) -> None:
    if row.get("record_type") != "result":
        kind = shown(row["record_type"]) if "record_type" in row else "missing"
        raise ValueError(f"not a result: record_type is {kind}")
    if (version := row.get("schema_version")) != ROW_VERSION:
        raise ValueError(f"schema_version is {shown(version)}; this version reads {ROW_VERSION}")


@cache
def _row_check() -> Check:
    return compile_schema(load_schema("row"))


def _listed(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} is {shown(value)}, not a list")
    return tuple(value)
