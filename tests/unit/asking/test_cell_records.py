"""A cell's result and judgment → its row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from pytest_openclaw.judging.combine import ToolInvocation
from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.text import Exact, Noop
from pytest_openclaw.runs.rows import record_of
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.values import faults
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.replies import CallResult, Fault, Reply, Timing, Turn, Verdict
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import to_row
from pytest_openclaw.values.run_files import load_schema
from pytest_openclaw.values.tool_calls import Dispatched, ToolCall

TIMING = Timing(started_at_ms=1000, ended_at_ms=1122, e2e_ms=121.6, ttft_ms=20.4, ttfo_ms=30.5)
NO_SECRETS = Redactor()
SECRET = "sk-1234567890abcdef"
FILTERED = faults.refused_by_server(
    "p", "m", faults.WireError(status=400, code="content_filter", message="no")
)


def _row(
    result: Reply | Fault, validator: Any = None, redactor: Redactor = NO_SECRETS, **changes: Any
) -> dict[str, Any]:
    prompt = Prompt(suite="s.toml", id="P1", name="one", prompt="x", validator=validator or Noop())
    cell = Cell(prompt=prompt, target=Target(provider="p", model="m", thinking_level="low"))
    ending = CallResult(result=result, timing=TIMING, **changes)
    row = to_row(
        record_of("r", cell, ending, judge(prompt, result) if isinstance(result, Reply) else None, redactor)
    )
    jsonschema.validate(row, load_schema("row"))
    return row


def test_an_answer_fills_its_row() -> None:
    """Times are rounded to milliseconds, counts and words are the server's, thinking stays in `raw_output`."""
    reply = Reply(
        text="<think>hm</think>yes",
        input_tokens=3,
        output_tokens=5,
        reasoning_tokens=2,
        cached_tokens=0,
        finish_reason="stop",
        effective_model="m-2",
        tool_calls=(ToolCall(name="Read", arguments='{"a": 1}', id="c1"),),
    )

    row = _row(
        reply, Exact(value="yes"), attempts=2, retry_wait_ms=10.4, queue_ms=0.6, cold_start=True, in_flight=1
    )

    expected = {
        "run_id": "r", "provider": "p", "model": "m", "thinking_level": "low", "prompt_id": "P1", "suite": "s.toml",
        "availability_status": "ok", "success": True, "failure_type": None, "objective_pass": True, "violation": None,
        "started_at_ms": 1000, "ended_at_ms": 1122, "e2e_ms": 122, "ttft_ms": 20, "ttfo_ms": 30,
        "input_tokens": 3, "output_tokens": 5, "reasoning_tokens": 2, "cached_tokens": 0,
        "raw_output": "<think>hm</think>yes", "finish_reason": "stop", "effective_model": "m-2",
        "tool_calls": ["Read"], "tool_call_count": 1, "attempts": 2, "retry_wait_ms": 10, "queue_ms": 1,
        "tool_call_details": [{"id": "c1", "name": "Read", "arguments": '{"a": 1}'}],
        "cold_start": True, "in_flight": 1, "truncated": False, "fault_message": None, "cost_usd": None,
    }  # fmt: skip
    assert {key: row[key] for key in expected} == expected


def test_each_call_of_an_exchange_has_what_became_of_it() -> None:
    """A turn's calls say why OpenClaw would not have executed them, as the judge does for the same call."""
    sound, broken = ToolCall(name="ls", arguments="{}", id="1"), ToolCall(name="sl", arguments="{}", id="2")
    reply = Reply(
        text="done",
        tool_calls=(broken, sound),
        turns=(
            Turn(calls=(broken,), results=("Tool sl not found",)),
            Turn(calls=(sound,), results=("a.txt",)),
        ),
    )
    prompt = Prompt(suite="s.toml", id="P1", name="one", prompt="x", validator=Noop())
    cell = Cell(prompt=prompt, target=Target(provider="p", model="m"))
    judged = judge(prompt, reply)
    dispatched = (Dispatched(call=broken, problem="unknown_tool"), Dispatched(call=sound, tool="ls"))
    judged = replace(judged, reply=replace(judged.reply, dispatched=dispatched))

    row = to_row(record_of("r", cell, CallResult(result=reply, timing=TIMING), judged, NO_SECRETS))

    jsonschema.validate(row, load_schema("row"))
    assert [[call["problem"] for call in turn["calls"]] for turn in row["turns"]] == [
        ["unknown_tool"],
        [None],
    ]


@pytest.mark.parametrize(
    ("reply", "speed"),
    [
        pytest.param(Reply(text="a", output_tokens=11, tokens_per_s=77.5), 77.5, id="the-servers-own"),
        pytest.param(Reply(text="a", output_tokens=11), 98.8, id="by-our-clock"),  # 10 in 121.6 - 20.4 ms
        pytest.param(Reply(text="a", output_tokens=1), None, id="one-token"),
        pytest.param(Reply(text="a"), None, id="not-counted"),
    ],
)
def test_speed_is_the_servers_own_or_measured_after_the_first_token(
    reply: Reply, speed: float | None
) -> None:
    """A server's own measurement takes precedence; the time before the first token is not generation."""
    assert _row(reply)["tokens_per_s"] == speed


@pytest.mark.parametrize(
    "result",
    [Reply(), Reply(text="no", finish_reason="content_filter"), Reply(refusal="no"), FILTERED],
    ids=["empty", "filtered", "refused", "filtered-by-status"],
)
def test_no_answer_ends_a_tool_cell_in_no_call(result: Reply | Fault) -> None:
    """Whatever the reason for a missing answer, its tool cell counts as one without a call."""
    row = _row(result, ToolInvocation(expected_tools=("read",)))

    assert (row["availability_status"], row["success"], row["tool_outcome"]) == ("ok", False, "no_call")
    assert row["tool_use_success"] is False


def test_secrets_are_taken_out_of_every_field() -> None:
    """Whatever a server or a model sends back, the key is in no text of the row."""
    said = f"key {SECRET}"
    reply = Reply(
        text=said,
        finish_reason=said,
        effective_model=said,
        tool_calls=(ToolCall(name=said, arguments=said, id=said),),
    )
    redactor = Redactor.of([SECRET])

    rows = [
        _row(reply, Exact(value="yes"), redactor),
        _row(faults.stream_broken("p", said, said), None, redactor),
    ]

    assert SECRET not in str(rows)
    assert rows[0]["raw_output"] == "key [secret]"


def test_half_surrogate_pairs_of_a_plugins_validator_are_replaced() -> None:
    """A violation or a parsed value that quotes broken text makes a row that can be written and sent."""

    class Quoting:
        type = "quoting"

        def check(self, reply: Reply) -> Verdict:
            return Verdict(passed=False, violation="\ud83d\ude00 \ud800", parsed={"\ud800": ["\udc00"]})

    row = _row(Reply(text="x"), Quoting())

    assert (row["violation"], row["parsed_output"]) == ("😀 \ufffd", {"\ufffd": ["\ufffd"]})


def test_a_fault_keeps_the_turns_before_it() -> None:
    """Each has its time, its tokens and the results of its calls; the row has no tool outcome."""
    call = ToolCall(name="frobnicate", arguments="{}")
    turn = Turn(text="Hm.", calls=(call,), results=("Tool not found",), timing=TIMING, input_tokens=7)

    row = _row(replace(faults.timed_out("p", 5.0), turns=(turn,)))

    (kept,) = row["turns"]
    assert (kept["text"], kept["e2e_ms"], kept["input_tokens"]) == ("Hm.", 122, 7)
    assert (kept["calls"][0]["problem"], row["tool_outcome"]) == ("unknown_tool", None)
