"""Rows as Parquet, with typed columns, a batch of rows in memory at a time; needs the extra `parquet`."""

from __future__ import annotations

import json
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.types.documents import load_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BATCH_ROWS = 10_000
"""Rows of a group in the file."""
_NAMES = {"string": "string", "integer": "int64", "number": "double", "boolean": "bool"}
_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def write_parquet(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], file: IO[bytes]) -> None:
    """Write rows with the types of `column_types`; what a row lacks is null.

    Raises:
        OpenClawError: the extra is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise OpenClawError(
            'Parquet needs the package pyarrow: in a clone, pip install ".[parquet]"; '
            "elsewhere, pip install pyarrow"
        ) from None
    types = column_types(columns)
    of_name = {name: pa.type_for_alias(name) for name in _NAMES.values()}
    of_name |= {"list": pa.list_(pa.string()), "json": pa.string()}
    schema = pa.schema([(name, of_name[kind]) for name, kind in types.items()])
    waiting = iter(rows)
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := [_typed(row, types) for row in islice(waiting, BATCH_ROWS)]:
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))


def column_types(columns: Sequence[str]) -> dict[str, str]:
    """Return the type of each column: the field's, `list` for texts, `json` for text that holds any value.

    Columns of plugins (`x_…`) are `json`, because each row may have another type there.
    """
    properties = load_schema("row")["properties"]
    return {name: _type_of(properties.get(name, {})) for name in columns}


def _type_of(rule: Mapping[str, Any]) -> str:
    values = rule.get("enum", [rule["const"]] if "const" in rule else [])
    named = rule.get("type", [_KINDS[type(value)] for value in values])
    kinds = {named} if isinstance(named, str) else {*named}
    kind = next(iter(kinds - {"null"})) if len(kinds - {"null"}) == 1 else "object"
    if kind == "array":
        return "list" if rule.get("items", {}).get("type") == "string" else "json"
    return _NAMES.get(kind, "json")


def _typed(row: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: _as_json(row.get(name)) if kind == "json" else row.get(name) for name, kind in types.items()
    }


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
