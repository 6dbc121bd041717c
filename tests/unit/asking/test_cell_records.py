"""A cell's result and judgment → its row; what is too long is cut."""

import json
from dataclasses import replace

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.asking.sending import MAX_CALLS, bounded_fault, bounded_reply
from pytest_openclaw.judging.combine import ToolInvocation
from pytest_openclaw.judging.judge import Facts, conclude, judge
from pytest_openclaw.judging.text import Exact, Noop
from pytest_openclaw.runs.rows import MAX_ROW_BYTES, clipped, record_of
from pytest_openclaw.runs.summaries import Plugins
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.text import MAX_ANSWER_BYTES, MAX_CALLS_BYTES, MAX_NAME_BYTES, MAX_TEXT_BYTES
from pytest_openclaw.values import faults
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.replies import CallResult, Fault, Reply, Timing, Turn, Usage, Verdict
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record, from_row, to_row
from pytest_openclaw.values.run_files import load_schema
from pytest_openclaw.values.tool_calls import Dispatched, ToolCall
from tests.searching import examples

TIMING = Timing(started_at_ms=1000, ended_at_ms=1122, e2e_ms=121.6, ttft_ms=20.4, ttfo_ms=30.5)
NO_SECRETS = Redactor()
SECRET = "sk-1234567890abcdef"
FILTERED = faults.refused_by_server(
    "p", "m", faults.WireError(status=400, code="content_filter", message="no")
)


def _cell(validator=None):
    prompt = Prompt(suite="s.toml", id="P1", name="one", prompt="x", validator=validator or Noop())
    return Cell(prompt=prompt, target=Target(provider="p", model="m", thinking_level="low"))


def _row(result, validator=None, redactor=NO_SECRETS, **changes):
    cell = _cell(validator)
    ending = CallResult(result=result, timing=TIMING, **changes)
    judged = judge(cell.prompt, result) if isinstance(result, Reply) else None
    row = to_row(record_of("r", cell, ending, judged, redactor))
    jsonschema.validate(row, load_schema("row"))
    return row


def test_an_answer_fills_its_row():
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


def test_each_call_of_an_exchange_has_its_problem():
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
    judged = judge(_cell().prompt, reply)
    dispatched = (Dispatched(call=broken, problem="unknown_tool"), Dispatched(call=sound, tool="ls"))
    judged = replace(judged, reply=replace(judged.reply, dispatched=dispatched))

    row = to_row(record_of("r", _cell(), CallResult(result=reply, timing=TIMING), judged, NO_SECRETS))

    jsonschema.validate(row, load_schema("row"))
    problems = [[call["problem"] for call in turn["calls"]] for turn in row["turns"]]
    assert problems == [["unknown_tool"], [None]]


@pytest.mark.parametrize(
    ("changes", "counts", "speed"),
    [
        pytest.param({}, {"output_tokens": 11, "tokens_per_s": 77.5}, 77.5, id="the-servers-own"),
        pytest.param({}, {"output_tokens": 11}, 98.8, id="by-our-clock"),  # 10 in 121.6 - 20.4 ms
        pytest.param({}, {"output_tokens": 1}, None, id="one-token"),
        pytest.param({}, {}, None, id="not-counted"),
        # Our clock cannot measure them.
        pytest.param({"at_once": True}, {"output_tokens": 11}, None, id="in-one-piece"),
        pytest.param({"ttft_ms": 71.7}, {"output_tokens": 11}, None, id="in-less-than-50-ms"),
        pytest.param({"ttft_ms": 71.5}, {"output_tokens": 11}, 199.6, id="in-50-ms"),
        pytest.param({"at_once": True}, {"output_tokens": 11, "tokens_per_s": 5.5}, 5.5, id="a-server-can"),
    ],
)
def test_the_speed(changes, counts, speed):
    """A server's own measurement takes precedence; the time before the first token is not generation."""
    reply = Reply(text="a", **counts)
    ending = CallResult(result=reply, timing=replace(TIMING, **changes))

    row = record_of("r", _cell(), ending, judge(_cell().prompt, reply), NO_SECRETS)

    assert row.tokens_per_s == speed


def test_a_filtered_request_ends_a_tool_cell_in_no_call():
    """It counts like an answer without a call."""
    row = _row(FILTERED, ToolInvocation(expected_tools=("read",)))

    assert (row["availability_status"], row["success"], row["tool_outcome"]) == ("ok", False, "no_call")
    assert row["tool_use_success"] is False


def test_secrets_are_taken_out_of_every_field():
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


def test_half_surrogate_pairs_of_a_plugins_validator_are_replaced():
    """A violation or a parsed value that quotes broken text makes a row that can be written and sent."""

    class Quoting:
        type = "quoting"

        def check(self, reply):
            return Verdict(passed=False, violation="\ud83d\ude00 \ud800", parsed={"\ud800": ["\udc00"]})

    row = _row(Reply(text="x"), Quoting())

    assert (row["violation"], row["parsed_output"]) == ("😀 \ufffd", {"\ufffd": ["\ufffd"]})


def test_a_fault_keeps_the_turns_before_it():
    """Each has its time, its tokens and the results of its calls; the row has no tool outcome."""
    call = ToolCall(name="frobnicate", arguments="{}")
    turn = Turn(text="Hm.", calls=(call,), results=("Tool not found",), timing=TIMING, input_tokens=7)

    row = _row(replace(faults.timed_out("p", 5.0), turns=(turn,)))

    (kept,) = row["turns"]
    assert (kept["text"], kept["e2e_ms"], kept["input_tokens"]) == ("Hm.", 122, 7)
    assert (kept["calls"][0]["problem"], row["tool_outcome"]) == ("unknown_tool", None)


MEGABYTE = 1 << 20


def record(**changes):
    base = Record(
        run_id="r", provider="p", model="m", thinking_level=None, prompt_id="P1", prompt_name="one", suite="s",
        availability_status="ok", started_at_ms=1, ended_at_ms=2, e2e_ms=1,
    )  # fmt: skip
    return replace(base, **changes)


def detail(**changes):
    return {"id": None, "name": "read", "arguments": "{}", **changes}


def turn(**changes):
    fields = {"e2e_ms": 5, "ttft_ms": None, "input_tokens": 3, "output_tokens": 2, "finish_reason": "stop"}
    return {"text": "", "reasoning": "", "calls": [], **fields, **changes}


@pytest.mark.parametrize(
    ("text", "kept", "cut"),
    [
        pytest.param("a" * MAX_ANSWER_BYTES, "a" * MAX_ANSWER_BYTES, False, id="as-long-as-may-be"),
        pytest.param("a" * (MAX_ANSWER_BYTES + 5), "a" * MAX_ANSWER_BYTES, True, id="too-long"),
        pytest.param("é" * MAX_ANSWER_BYTES, "é" * (MAX_ANSWER_BYTES // 2), True, id="bytes-count"),
        pytest.param(f"<think>{'a' * MEGABYTE}</think>yes", "yes", False, id="thinking-goes-first"),
        pytest.param(f"<think>{'a' * MEGABYTE}", f"<think>{'a' * (MAX_ANSWER_BYTES - 7)}", True, id="thinking-that-never-ends"),
        pytest.param("a" * 20 * MEGABYTE, "a" * MAX_ANSWER_BYTES, True, id="20-mb"),
    ],
)  # fmt: skip
def test_an_answer_is_judged_up_to_its_bound(text, kept, cut):
    """Thinking does not count, and a text that is not judged to its end is noted."""
    reply = bounded_reply(Reply(text=text, raw="x"))

    assert (reply.text, reply.cut) == (kept, {"answer"} if cut else set())


def _calls(*arguments, name="read"):
    return tuple(ToolCall(name=name, arguments=text) for text in arguments)


@pytest.mark.parametrize(
    ("calls", "kept", "cut"),
    [
        pytest.param(_calls("x" * (MAX_CALLS_BYTES - 4)), _calls("x" * (MAX_CALLS_BYTES - 4)), False, id="as-long-as-may-be"),
        pytest.param(_calls("x" * 20 * MEGABYTE, "{}"), _calls("x" * MAX_CALLS_BYTES), True, id="20-mb"),
        pytest.param(_calls(*["{}"] * 1000), _calls(*["{}"] * MAX_CALLS), True, id="many"),
        pytest.param(_calls("{}", name="x" * MEGABYTE), _calls("{}", name="x" * MAX_NAME_BYTES), True, id="name"),
        pytest.param((ToolCall(name="a", id="x" * 2000),), (ToolCall(name="a", id="x" * MAX_NAME_BYTES),), True, id="id"),
    ],
)  # fmt: skip
def test_the_calls_of_a_turn_share_a_bound(calls, kept, cut):
    """The first ones are kept; in an exchange that a provider plays, the calls remain those of its turns."""
    single = bounded_reply(Reply(tool_calls=calls))
    played = bounded_reply(Reply(tool_calls=calls, turns=(Turn(calls=calls, results=("r",) * len(calls)),)))

    names = {"tool_call_details"} if cut else set()
    assert (single.tool_calls, single.cut) == (kept, names)
    assert (played.tool_calls, played.turns[0].calls, played.cut) == (kept, kept, names)
    assert len(played.turns[0].results) == len(kept)


def test_every_text_of_a_reply_is_bounded():
    """A field that a server may write at any length becomes short, and stays valid for its row."""
    long = "é" * MEGABYTE
    reply = Reply(
        text=long, raw=long, reasoning=long, refusal=long, finish_reason=long, effective_model=long,
        tool_calls=_calls(long), usage=(Usage(model=long),),
        turns=(Turn(text=long, reasoning=long, calls=_calls(long), results=(long,), finish_reason=long),),
    )  # fmt: skip

    fault = Fault(failure_type="timeout", status="error", message=long, raw=long)

    assert len(repr(bounded_reply(reply))) < 2 * MEGABYTE
    assert len(repr(bounded_fault(fault))) < MEGABYTE


def test_every_text_is_valid():
    """Halves of a character are joined; a lone half becomes U+FFFD."""
    text = "\ud83e\udd9e\ud83e"
    call = ToolCall(name=text, arguments=text, id=text)
    turn = Turn(text=text, reasoning=text, calls=(call,), results=(text,), finish_reason=text)
    words = dict.fromkeys(("text", "reasoning", "refusal", "finish_reason", "effective_model"), text)
    fault = Fault(failure_type="timeout", status="error", message=text, raw=text, turns=(turn,))

    single = bounded_reply(Reply(tool_calls=(call,), **words))
    shown = repr([single, bounded_reply(Reply(turns=(turn,))), bounded_fault(fault)])

    assert "\\ud" not in shown
    assert (single.raw, single.tool_calls[0].id) == ("🦞\ufffd", "🦞\ufffd")


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        pytest.param({"raw_output": "é" * MAX_TEXT_BYTES}, "é" * (MAX_TEXT_BYTES // 2), id="raw_output"),
        pytest.param({"violation": "a" * MEGABYTE}, "a" * 16384, id="violation"),
        pytest.param({"fault_message": "a" * MEGABYTE}, "a" * 16384, id="fault_message"),
        pytest.param({"finish_reason": "a" * 2000}, "a" * 1024, id="finish_reason"),
        pytest.param({"parsed_output": {"a": "b" * MEGABYTE}}, None, id="parsed_output"),
        pytest.param({"tool_calls": ("a" * 1020,) * 2048}, ("a" * 1020,) * 1021, id="tool_calls"),
        pytest.param(
            {"tool_call_details": (detail(arguments="a" * MEGABYTE), detail())},
            (detail(arguments="a" * MAX_TEXT_BYTES), detail()), id="tool_call_details",
        ),
        pytest.param(
            {"turns": (turn(calls=[{**detail(), "result": "\n" * MEGABYTE, "problem": None}], text="b"),)},
            (turn(calls=[{**detail(), "result": "\n" * MAX_TEXT_BYTES, "problem": None}], text="b"),),
            id="turns",
        ),
    ],
)  # fmt: skip
def test_a_shortened_field_is_noted(changes, kept):
    """A text is cut to its limit, a list is shortened, a long object removed; the field is noted."""
    row = clipped(record(**changes))
    ((name, _),) = changes.items()

    assert (getattr(row, name), row.truncated, row.cut) == (kept, True, (name,))


@pytest.mark.parametrize(
    ("n", "is_added"), [(1000, True), (MAX_TEXT_BYTES, False)], ids=["short", "too-long"]
)
def test_the_keys_of_a_plugin_fit_or_are_left_out(n, is_added):
    """A row just below the limit does not grow beyond it, and the plugin is named."""
    row = {"turns": ["x" * (MAX_ROW_BYTES - 2000)]}
    plugins = Plugins(row_hooks=[("lab", lambda _: {"x_lab": "y" * n})])

    added = plugins.added_keys(row)

    assert added == ({"x_lab": "y" * n} if is_added else {})
    too_long = "lab: pytest_openclaw_record: ValueError: the added keys make the row longer than 1024 KiB"
    assert [text.partition(" (")[0] for text in plugins.complaints] == ([] if is_added else [too_long])


_UNITS = st.sampled_from(["a", "é", "😀", "\0", "\u2028", "\ud800", '"', "\\", "\n", "</script>"])
_LENGTHS = st.sampled_from([0, 1, 1000, 70_000])
_TEXTS = st.builds(lambda unit, length: unit * length, _UNITS, _LENGTHS)
_COUNTS = st.sampled_from([0, 1, 30])
_CALLS = st.builds(
    lambda name, arguments, id_, count: (ToolCall(name=name, arguments=arguments, id=id_),) * count,
    *(_TEXTS, _TEXTS, st.none() | _TEXTS),
    st.sampled_from([0, 1, 20]),
)
_TURNS = st.builds(
    lambda text, calls, result, reason, count: (
        (Turn(text=text, reasoning=text, calls=calls, results=(result,) * len(calls), finish_reason=reason),)
        * count
    ),
    *(_TEXTS, _CALLS, _TEXTS, st.none() | _TEXTS),
    st.sampled_from([0, 1, 10]),
)
_REPLIES = st.builds(
    lambda **values: bounded_reply(Reply(**values)),
    **dict.fromkeys(("text", "raw", "reasoning"), _TEXTS),
    **dict.fromkeys(("refusal", "finish_reason", "effective_model"), st.none() | _TEXTS),
    tool_calls=_CALLS,
    turns=_TURNS,
)
_FAULTS = st.builds(
    lambda message, raw, turns: bounded_fault(
        replace(faults.timed_out("p", 1.0), message=message, raw=raw, turns=turns)
    ),
    *(_TEXTS, _TEXTS, _TURNS),
)
_VERDICTS = st.builds(
    lambda violation, text, count: Verdict(passed=False, violation=violation, parsed={"a": [text] * count}),
    *(_TEXTS, _TEXTS, _COUNTS),
)


def _judged(reply, verdict):
    made = tuple(Dispatched(call=call, notes=(call.name,)) for call in reply.tool_calls)
    names = tuple(dict.fromkeys(f"{call.name}{n}" for n, call in enumerate(reply.tool_calls)))
    answer = replace(reply, dispatched=made, tool_names=names)
    return conclude(Facts(prompt=_cell().prompt, answer=answer), verdict)


@examples(2)
@given(result=_REPLIES | _FAULTS, verdict=_VERDICTS)
def test_no_row_is_longer_than_a_mebibyte(result, verdict):
    """For any reply the row satisfies its schema, is read back unchanged, and names its shortened fields."""
    judged = _judged(result, verdict) if isinstance(result, Reply) else None

    ending = CallResult(result=result, timing=TIMING)
    made = record_of("r", _cell(), ending, judged, Redactor.of(["aaaaaaaaaaaa"]))

    row, line = to_row(made), line_of(to_row(made))
    assert len(line) <= MAX_ROW_BYTES
    jsonschema.validate(row, load_schema("row"))
    assert to_row(from_row(json.loads(line))) == row
    assert made.truncated == (made.cut is not None)
    assert clipped(made) == made
