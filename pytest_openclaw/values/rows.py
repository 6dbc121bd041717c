"""The published JSON schemas, and the check of a run folder's files.

A cell's outcome as a value; `rows.py` converts it to JSON.

Values ↔ published JSON: the row format, its version, and the schemas that ship with the package.

The payload of a cell's test report: its row, or why it has none.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from functools import cache, lru_cache
from importlib import resources
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import load_object
from pytest_openclaw.util.schema_check import compile_schema, shown
from pytest_openclaw.values.requests import LISTED, CellKey, Target
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.util.schema_check import Check
    from pytest_openclaw.values.prompts import ModelRole, Probe
    from pytest_openclaw.values.replies import AvailabilityStatus, EndedBy
    from pytest_openclaw.values.requests import SurfaceName, ThinkingLevel
    from pytest_openclaw.values.tool_calls import ToolDemand, ToolOutcome


def check_document(name: str, document: JsonObject) -> None:
    """Reject a malformed file, such as `config`.

    Raises:
        ValueError: it is malformed; the message names the key and its value.

    """
    refuse_misfit(_check_of(name)(document))


def refuse_misfit(misfit: str | None) -> None:
    """Raise the error that a check has found.

    Raises:
        ValueError: there is an error.

    """
    if misfit:
        raise ValueError(misfit.removeprefix("."))


@cache
def _check_of(name: str) -> Check:
    return compile_schema(load_schema(name))


@cache
def load_schema(name: str) -> JsonObject:
    """Return a published JSON Schema: `row`, `summary`, `config` or `inventory`."""
    text = (
        resources.files("pytest_openclaw.values")
        .joinpath("schemas", f"{name}.schema.json")
        .read_text("utf-8")
    )
    return cast("JsonObject", json.loads(text))


def check_object(path: Path, schema: str, value: JsonObject) -> None:
    """Reject the content of a file that violates a published schema.

    Raises:
        OpenClawError: it does; the message names file, key and value.

    """
    try:
        check_document(schema, value)
    except ValueError as error:
        raise OpenClawError(f"{path} is not as a run writes it: {error}") from None


def load_document(path: Path, schema: str) -> JsonObject:
    """Return the JSON object in a file of a run folder.

    Args:
        path: the file.
        schema: the name of a published one.

    Raises:
        OpenClawError: it cannot be read, is not a JSON object, or violates the schema.

    """
    value = load_object(path)
    check_object(path, schema, value)
    return value


_RERUN_FIELDS = (
    "availability_status", "failure_type", "objective_pass", "violation", "e2e_ms", "cost_usd",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A cell's outcome: one row of `results.jsonl`, field by field.

    The first block is the seed's, in its order; the second is ours. `schemas/row.schema.json`
    publishes both.

    Attributes:
        truncated: whether something was cut to fit the row's limit.
        cut: missing bytes by field, and under `answer` those that were not judged; None if nothing was cut.
        tools_tested: of a native tool cell that went right the demanded tools of OpenClaw that it called, of
            another one all that were demanded.
        leaked_valid: whether calls that were written as text would have been right; None without any.
        prompt_tokens_per_s: the server's own timing of what it read and had in no cache; None if it has none.
        surface: the kind of request.
        images: `path` and `sha256` of the pictures that were sent with the prompt; None without any.
        reruns: how later tries of the cell ended, which another plugin made, such as pytest-rerunfailures;
            the row is the first try's.
        harm: of a probe whose reply was judged, whether the model did what it must not; true if it did so
            before a fault; None for all others.

    """

    run_id: str
    provider: str
    model: str
    thinking_level: ThinkingLevel | None
    prompt_id: str
    prompt_name: str
    availability_status: AvailabilityStatus
    started_at_ms: int
    ended_at_ms: int
    e2e_ms: int
    ttft_ms: int | None = None
    success: bool = False
    failure_type: str | None = None
    objective_pass: bool | None = None
    violation: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    raw_output: str = ""
    parsed_output: JsonObject | None = None
    tool_calls: tuple[str, ...] = ()
    tool_call_count: int = 0
    tool_use_success: bool = False

    suite: str
    category: str | None = None
    repeat: int = 1
    attempts: int = 0
    retry_wait_ms: int = 0
    queue_ms: int | None = None
    cold_start: bool | None = None
    in_flight: int | None = None
    ttfo_ms: int | None = None
    finish_reason: str | None = None
    reported: bool = True
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    tokens_per_s: float | None = None
    effective_model: str | None = None
    cost_usd: float | None = None
    truncated: bool = False
    tool_call_details: tuple[Mapping[str, Any], ...] = ()
    tool_outcome: ToolOutcome | None = None
    fault_message: str | None = None
    host: str | None = None
    tools_offered: int | None = None
    turns: tuple[Mapping[str, Any], ...] | None = None
    ended_by: EndedBy | None = None
    probe: Probe | None = None
    padding_tokens: int | None = None
    pressure_of: str | None = None
    tool_notes: tuple[str, ...] = ()
    tool_demand: ToolDemand | None = None
    known_failure: str | None = None
    start_up_ms: int | None = None
    cut: Mapping[str, int] | None = None
    harm: bool | None = None
    harm_tools: tuple[str, ...] = ()
    twin_of: str | None = None
    tools_tested: tuple[str, ...] = ()
    variant_of: str | None = None
    prompt_tokens_per_s: float | None = None
    surface: SurfaceName = LISTED
    images: tuple[Mapping[str, str], ...] | None = None
    role: ModelRole | None = None
    reruns: tuple[Mapping[str, Any], ...] = ()
    leaked_valid: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def as_rerun(self) -> JsonObject:
        """Return it as an entry of another row's `reruns`."""
        return {name: getattr(self, name) for name in _RERUN_FIELDS}

    @property
    def target(self) -> Target:
        """The target that this row belongs to."""
        return _target(self.provider, self.model, self.thinking_level, self.surface)

    @property
    def key(self) -> CellKey:
        """The cell that this row belongs to."""
        return CellKey(self.suite, self.prompt_id, self.target, self.repeat)


@lru_cache(maxsize=1000)
def _target(provider: str, model: str, level: ThinkingLevel | None, surface: SurfaceName) -> Target:
    return Target(provider=provider, model=model, thinking_level=level, surface=surface)


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


PAYLOAD = "openclaw"
"""The attribute of a report with its payload; from an xdist worker it is a text."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A cell that was skipped before it was sent: by a mark, or as a repeat that is not needed.

    Attributes:
        target: the target's label.
        is_fixed: the prompt sets its own number of repeats.

    """

    target: str
    repeat: int
    is_fixed: bool = False


@dataclass(frozen=True, kw_only=True)
class KeptVerdict:
    """A cell whose row an earlier session of the run has written.

    Attributes:
        target: the target's label.
        passed: the verdict of that row.

    """

    target: str
    passed: bool


Payload = Record | LeftOut | KeptVerdict


def payload_to_text(payload: Payload) -> str:
    """Return the payload as xdist carries it; one text is faster than a nested dict."""
    match payload:
        case Record():
            return json.dumps({"row": to_row(payload)})
        case LeftOut():
            return json.dumps({"left_out": asdict(payload)})
        case KeptVerdict():
            return json.dumps({"kept": asdict(payload)})


def payload_from_text(text: str) -> Payload:
    """Return the payload of which `payload_to_text` made this text."""
    plain = json.loads(text)
    if "row" in plain:
        return from_row(plain["row"])
    if "left_out" in plain:
        return LeftOut(**plain["left_out"])
    return KeptVerdict(**plain["kept"])
