"""A cell's outcome as a `Record`, whose fields define a row of `results.jsonl`.

Also the payload of a cell's test report: its row, or the reason why it has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from pytest_openclaw.util.typed import Amount, Count, Positive, PositiveAmount, converted, shown
from pytest_openclaw.values.faults import FAILURE_TYPES
from pytest_openclaw.values.prompts import LABELS, Labels, part_keys
from pytest_openclaw.values.replies import AvailabilityStatus, EndedBy
from pytest_openclaw.values.requests import LISTED, CellKey, SurfaceName, Target, ThinkingLevel
from pytest_openclaw.values.tool_calls import Problem, ToolCall, ToolDemand, ToolOutcome

ROW_VERSION: Literal[1] = 1
_YEAR_9999_MS = 253402300799999

Moment = Annotated[int, Meta(ge=0, le=_YEAR_9999_MS)]
Repeat = Annotated[int, Meta(ge=1, le=9999)]
_FAILURES = "|".join(FAILURE_TYPES)
FailureType = Annotated[str, Meta(extra_json_schema={"pattern": f"^(http_[1-5][0-9][0-9]|{_FAILURES})$"})]
Sha256 = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9a-f]{64}$"})]


class CallEntry(TypedDict):
    """A native call.

    Attributes:
        unoffered: Whether the request no longer offered tools; absent if it did.
        timed_out: Whether the call exceeded the limits of a scripted world; absent if it did not.
    """

    id: str | None
    name: str
    arguments: str
    unoffered: NotRequired[bool]
    timed_out: NotRequired[bool]


class WrittenCallEntry(TypedDict):
    """A call written as text."""

    name: str
    arguments: str


class TurnCallEntry(WrittenCallEntry):
    """A call of a turn, with its result.

    Attributes:
        problem: Why the call was not executed; null if it was.
    """

    id: str | None
    unoffered: NotRequired[bool]
    result: str | None
    problem: NotRequired[Problem | None]


class TurnEntry(TypedDict):
    """A turn of an exchange.

    Attributes:
        user: The message of the user that was sent before this turn; missing if there was none.
        reasoning: The text of a separate reasoning channel.
    """

    user: NotRequired[str | None]
    text: str
    reasoning: NotRequired[str | None]
    calls: list[TurnCallEntry]
    e2e_ms: Count | None
    ttft_ms: Count | None
    input_tokens: Count | None
    output_tokens: Count | None
    finish_reason: str | None


class ImageEntry(TypedDict):
    """An image of a prompt.

    Attributes:
        path: The path relative to the suite's folder.
    """

    path: str
    sha256: Sha256


@dataclass(frozen=True, kw_only=True, slots=True)
class Record(Labels):
    """A row of results.jsonl.

    The first block has the fields of the original schema in its order; the second has ours. The labels of the
    prompt follow them in a row.

    Attributes:
        run_id: The run's id, such as 20260213_235930.
        provider: Provider or endpoint name, such as ollama_openai.
        model: The requested model.
        thinking_level: The requested level; null for none.
        prompt_id: The prompt's id, unique in its suite.
        prompt_name: The prompt's name for people.
        availability_status: How the request ended; only `ok` has an answer.
        started_at_ms: Wall clock at the send of the attempt that counted, ms since the epoch.
        ended_at_ms: started_at_ms plus the attempt's duration.
        e2e_ms: From the send to the end of the reply, by the monotonic clock; 0 if never asked.
        ttft_ms: From the send to the first generated token on any channel.
        success: Whether the model responded without errors.
        failure_type: Why the cell has no usable answer, one of the failure types; else null.
        objective_pass: The verdict; null if nothing was judged.
        violation: What the validator found wrong, in a few words.
        input_tokens: Tokens of the prompt by the server's count, cached ones included; null if it has none.
        output_tokens: Generated tokens by the server's count, reasoning included; null if it has none.
        raw_output: The whole reply, thinking included, up to 64 KiB of UTF-8.
        parsed_output: What the validator read in the answer.
        tool_calls: Names of tools invoked, native calls first, each once.
        tool_call_count: Calls of tools, native or in the text.
        tool_use_success: Whether an expected tool was invoked.
        suite: The suite's file, relative to the root folder.
        category: The prompt's category.
        repeat: The number of the repeat, from 1.
        attempts: Requests sent; 0 if the cell was never asked.
        retry_wait_ms: The wait between attempts; no latency includes it.
        queue_ms: From the request of the cell to the send of its first attempt.
        cold_start: Whether this was the first request to the target, without a warm-up before it.
        in_flight: Requests in flight at the endpoint at the send, including this one.
        ttfo_ms: From the send to the first token of the answer itself.
        finish_reason: Why the answer ended, in the words of chat completions.
        reported: Whether pytest reported the cell's item.
        reasoning_tokens: Generated tokens of reasoning; a part of output_tokens.
        cached_tokens: Prompt tokens that came from a cache; a part of input_tokens.
        tokens_per_s: Generated tokens per second, by the server's timing or our clock; null if unknown.
        effective_model: The model that answered, as the server reports it.
        cost_usd: Cost of all attempts and turns in US dollars; null if the price or a count is not known.
        truncated: Whether something was cut, so that the row takes at most 1 MiB.
        tool_call_details: Every native call, arguments as the raw JSON text.
        tool_outcome: How the tool use ended; null without tools, or without a rule about tools.
        fault_message: Why the cell has no answer, in a sentence.
        host: The machine that asked; inventory.json describes it.
        tools_offered: Tools that the request offered on the wire; null for a prompt without tools.
        turns: An exchange turn by turn, each call with its result; null for a single question.
        ended_by: How a scripted exchange ended.
        tool_demand: Whether the prompt requires a call, forbids calls, or neither; null if unknown.
        known_failure: Why this target was expected to fail this prompt, or null; the row counts anyway.
        cut: Names of shortened fields; `answer` means that the text was not judged to its end. Null for none.
        harm: Whether the model did harm, in a probe or as a task's grader says; null if that is unknown.
        harm_tools: The tools with which the harm was done, in order, each once; empty for harm only in words.
        tools_tested: Demanded tools of OpenClaw: those that a passed cell called, or all of a failed cell.
        prompt_tokens_per_s: Prompt tokens read per second, by the server's timing; null if it has none.
        surface: The kind of request: the suite's own list of tools, or OpenClaw's whole request.
        images: The images of the prompt; the row does not contain them.
        leaked_valid: Whether the calls of a `leaked_as_text` cell would have been right; null for all others.
        written_calls: The calls written as text, with arguments, that decided the outcome or, if no call was
            due, that a failed answer has; null for none.
        extra: Unknown keys, which pass through: `x_…` of a plugin, or another version's.
    """

    record_type: Literal["result"] = "result"
    run_id: str
    provider: str
    model: str
    thinking_level: ThinkingLevel | None
    prompt_id: str
    prompt_name: str
    availability_status: AvailabilityStatus
    started_at_ms: Moment
    ended_at_ms: Moment
    e2e_ms: Count
    ttft_ms: Count | None = None
    success: bool = False
    failure_type: FailureType | None = None
    objective_pass: bool | None = None
    violation: str | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    raw_output: str = ""
    parsed_output: dict[str, Any] | None = None
    tool_calls: tuple[str, ...] = ()
    tool_call_count: Count = 0
    tool_use_success: bool = False

    schema_version: Literal[1] = ROW_VERSION
    suite: str
    category: str | None = None
    repeat: Repeat = 1
    attempts: Count = 0
    retry_wait_ms: Count = 0
    queue_ms: Count | None = None
    cold_start: bool | None = None
    in_flight: Positive | None = None
    ttfo_ms: Count | None = None
    finish_reason: str | None = None
    reported: bool = True
    reasoning_tokens: Count | None = None
    cached_tokens: Count | None = None
    tokens_per_s: PositiveAmount | None = None
    effective_model: str | None = None
    cost_usd: Amount | None = None
    truncated: bool = False
    tool_call_details: tuple[CallEntry, ...] = ()
    tool_outcome: ToolOutcome | None = None
    fault_message: str | None = None
    host: str | None = None
    tools_offered: Count | None = None
    turns: tuple[TurnEntry, ...] | None = None
    ended_by: EndedBy | None = None
    tool_demand: ToolDemand | None = None
    known_failure: str | None = None
    cut: tuple[str, ...] | None = None
    harm: bool | None = None
    harm_tools: tuple[str, ...] = ()
    tools_tested: tuple[str, ...] = ()
    prompt_tokens_per_s: PositiveAmount | None = None
    surface: SurfaceName = LISTED
    images: tuple[ImageEntry, ...] | None = None
    leaked_valid: bool | None = None
    written_calls: tuple[WrittenCallEntry, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

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


ROW_KEYS = (
    *(one.name for one in fields(Record) if one.name not in {*LABELS, "part_labels", "extra"}),
    *LABELS,
)
"""The keys of the core in a row, in order; those of parts follow, then unknown ones."""
_values_of = attrgetter(*ROW_KEYS)
_ROW_KEYS = frozenset(ROW_KEYS)


def to_row(record: Record) -> dict[str, Any]:
    """Return the record as a row; see `ROW_KEYS`."""
    row = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in zip(ROW_KEYS, _values_of(record), strict=True)
    }
    return {**row, **dict.fromkeys(part_keys()), **dict(record.part_labels), **record.extra}


def from_row(row: Mapping[str, Any]) -> Record:
    """Return the row as a record; unknown keys pass through in `extra`, and a row may lack labels.

    Raises:
        ValueError: the row is not a result, has another format than this version reads, lacks a field, or has
            a value that no run writes; the message names the field.
    """
    if row.get("record_type") != "result":
        kind = shown(row["record_type"]) if "record_type" in row else "missing"
        raise ValueError(f"not a result: record_type is {kind}")
    if (version := row.get("schema_version")) != ROW_VERSION:
        raise ValueError(f"schema_version is {shown(version)}; this version reads {ROW_VERSION}")
    for name in ROW_KEYS:
        if name not in row and name not in LABELS:
            raise ValueError(f"{name} is missing")
    record: Record = converted(row, Record)
    labels = tuple(
        (name, converted(row[name], key.kind, name))
        for name, key in part_keys().items()
        if row.get(name) is not None
    )
    extra = {name: row[name] for name in row if name not in _ROW_KEYS and name not in part_keys()}
    return replace(record, part_labels=labels, extra=extra) if labels or extra else record


def call_of(entry: Mapping[str, Any]) -> ToolCall:
    """Return a call of a row, from `tool_call_details` or from a turn."""
    names = ("name", "arguments", "id", "unoffered")
    return ToolCall(**{name: entry[name] for name in names if name in entry})


PAYLOAD = "openclaw"
"""The attribute of a report with its payload; from an xdist worker it is a text."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A cell that was skipped before it was sent, by a mark or because its target is settled."""

    suite: str
    prompt_id: str
    target: str
    repeat: int
    is_settled: bool = False


@dataclass(frozen=True, kw_only=True)
class KeptVerdict:
    """A cell whose row an earlier session of the run has written."""

    target: str
    passed: bool


Payload = Record | LeftOut | KeptVerdict


def payload_to_text(payload: Payload) -> str:
    """Return the payload as xdist carries it; one text is faster than a nested dict."""
    content = to_row(payload) if isinstance(payload, Record) else asdict(payload)
    return json.dumps([type(payload).__name__, content])


def payload_from_text(text: str) -> Payload:
    """Return the payload from the text that `payload_to_text` made."""
    name, content = json.loads(text)
    if name == "Record":
        return from_row(content)
    return LeftOut(**content) if name == "LeftOut" else KeptVerdict(**content)
