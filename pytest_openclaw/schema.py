"""Values ↔ published JSON: the row format, its version, and the schemas that ship with the package."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any, cast

from pytest_openclaw.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.records import JsonObject

# Row format history, newest first:
# 2: `tools_offered` to `cut`, and the outcomes of native tool use.
# 1: the seed's fields, then ours from `suite` to `host`.
ROW_VERSION = 2

_SEED_FIELDS = 22
_FIELDS = tuple(field.name for field in fields(Record) if field.name != "extra")
_TUPLES = ("tool_calls", "tool_call_details", "turns", "tool_notes")
_KEYS = frozenset((*_FIELDS, "record_type", "schema_version"))


def to_row(record: Record) -> JsonObject:
    """Return the record as a row: the seed's fields in its order, then ours, then unknown ones."""
    row: JsonObject = {"record_type": "result"}
    for position, name in enumerate(_FIELDS):
        if position == _SEED_FIELDS:
            row["schema_version"] = ROW_VERSION
        value = getattr(record, name)
        row[name] = list(value) if isinstance(value, tuple) else value
    return {**row, **record.extra}


def from_row(row: Mapping[str, Any]) -> Record:
    """Return the row as a record; unknown keys pass through in `extra`.

    Raises:
        ValueError: the row is not a result, or is of a newer format than this version reads.
    """
    if row.get("record_type") != "result":
        raise ValueError(f"not a result: record_type is {row.get('record_type')!r}")
    version = row.get("schema_version", ROW_VERSION)
    if not isinstance(version, int) or version > ROW_VERSION:
        raise ValueError(f"row format {version} is newer than {ROW_VERSION}; upgrade pytest-openclaw")
    values: dict[str, Any] = {
        name: tuple(row[name]) if name in _TUPLES and row[name] is not None else row[name]
        for name in _FIELDS
        if name in row
    }
    return Record(**values, extra={key: row[key] for key in row.keys() - _KEYS})


def check_types(record: Record) -> None:
    """Refuse a record that was read from a file and holds what no run writes.

    Only the types: quick enough for a million rows, and what is computed from them cannot go wrong then.

    Raises:
        ValueError: names the field and its value.
    """
    for name, fits in _type_checks().items():
        value = getattr(record, name)
        if not fits(value):
            raise ValueError(f"{name} is {value!r}")
    if not all(isinstance(name, str) for name in record.tool_calls):
        raise ValueError(f"tool_calls is {record.tool_calls!r}")
    for call in record.tool_call_details:
        if not (isinstance(call, dict) and {type(call.get(key)) for key in ("name", "arguments")} == {str}):
            raise ValueError(f"tool_call_details holds {call!r}")
    for turn in record.turns or ():
        if not _is_turn(turn):
            raise ValueError(f"turns holds {turn!r}")


def _is_turn(turn: Any) -> bool:
    """Whether a turn holds what it takes to judge it again."""
    if not (isinstance(turn, dict) and isinstance(turn.get("text"), str)):
        return False
    calls, reasoning = turn.get("calls"), turn.get("reasoning")
    if not (isinstance(calls, list) and isinstance(reasoning, str | None)):
        return False
    return all(
        isinstance(call, dict)
        and {type(call.get(key)) for key in ("name", "arguments")} == {str}
        and isinstance(call.get("result"), str | None)
        for call in calls
    )


_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (tuple,),
    "object": (dict,),
    "null": (type(None),),
}


@cache
def _type_checks() -> dict[str, Callable[[Any], bool]]:
    checks: dict[str, Callable[[Any], bool]] = {}
    properties = load_schema("row")["properties"]
    for name in _FIELDS:
        rule = properties[name]
        if "enum" in rule:
            checks[name] = rule["enum"].__contains__
        else:
            named = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
            types = tuple(one for word in named for one in _PYTHON_TYPES[word])
            checks[name] = partial(_is_of, types=types)
    return checks


def _is_of(value: Any, *, types: tuple[type, ...]) -> bool:
    return isinstance(value, types)


@cache
def load_schema(name: str) -> JsonObject:
    """Return a published JSON Schema: `row` or `summary`."""
    text = resources.files("pytest_openclaw").joinpath("schemas", f"{name}.schema.json").read_text("utf-8")
    return cast("JsonObject", json.loads(text))
