"""Replies in rows are judged again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw import __version__
from pytest_openclaw.features.rescoring import (
    Rescored,
    rescore_record,
    rescore_run,
    todays_rules,
)
from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import BUILTIN, build_registry, build_validator
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.rows import record_of
from pytest_openclaw.runs.summaries import write_run
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.replies import CallResult, Reply, Timing, Turn, Verdict
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record, from_row, to_row
from pytest_openclaw.values.tool_calls import ToolCall
from tests.searching import examples
from tests.unit.runs.stored_runs import A, definition, row, store

ROOT = Path(__file__).parents[3]
TARGET = Target(provider="lab", model="m")
TIMING = Timing(started_at_ms=1000, ended_at_ms=1100, e2e_ms=99.6, ttft_ms=20.4, ttfo_ms=30.1)


@dataclass(frozen=True)
class Broken:
    """A plugin with an error of its own."""

    type: ClassVar[str] = "broken"
    how: str = "raise"

    def check(self, reply: Reply) -> Verdict:
        if self.how == "fail":
            pytest.fail("no rule")
        raise ZeroDivisionError("no rule")


@dataclass(frozen=True)
class Exchanged:
    """A plugin that reads all parts of a scripted exchange."""

    type: ClassVar[str] = "exchanged"

    def check(self, reply: Reply) -> Verdict:
        turns = [
            [
                one.text,
                one.reasoning,
                [asdict(call) for call in one.calls],
                one.results,
                one.finish_reason,
                one.input_tokens,
            ]
            for one in reply.turns
        ]
        parsed = {"turns": turns, "text": reply.text, "raw": reply.raw, "ended": reply.ended_by}
        return Verdict(passed=True, parsed=parsed)


REGISTRY = build_registry(("tests", validator) for validator in (*BUILTIN, Exchanged, Broken))


def _prompt(spec: dict[str, Any], **changes: Any) -> Prompt:
    base = Prompt(
        suite="s",
        id="P1",
        name="one",
        prompt="Do.",
        validator=build_validator(spec, REGISTRY),
        validator_spec=spec,
    )
    return replace(base, **changes)


def _measured(prompt: Prompt, reply: Reply, secrets: tuple[str, ...] = ()) -> Record:
    """The row of a live run, as it is read from its file."""
    reply = replace(reply, raw=reply.raw or reply.text, timing=TIMING)
    ending = CallResult(result=reply, timing=TIMING)
    cell = Cell(prompt=prompt, target=TARGET)
    record = record_of("r", cell, ending, judge(prompt, reply), Redactor.of(secrets))
    return from_row(json.loads(json.dumps(to_row(record))))


def turn(**changes: Any) -> dict[str, Any]:
    """A turn of a scripted exchange, as a row has it."""
    base: dict[str, Any] = {
        "text": "",
        "reasoning": "",
        "calls": [],
        "e2e_ms": 5,
        "ttft_ms": 1,
        "input_tokens": 3,
        "output_tokens": 2,
        "finish_reason": "stop",
    }
    return {**base, **changes}


def _channelled(reasoning: str, text: str, **more: Any) -> Reply:
    """A reply with a separate reasoning channel, as the built-in providers write it."""
    raw = f"<think>\n{reasoning}\n</think>\n\n{text}" if reasoning else text
    return Reply(text=text, reasoning=reasoning, raw=raw, **more)


def _same(one: Record | None, other: Record) -> bool:
    return one is not None and json.dumps(to_row(one)) == json.dumps(to_row(other))


YES = {"type": "exact", "value": "yes"}
FREE = {"type": "tool_invocation", "expected_tools": ["free"]}
RESTRAINT = {"type": "not", "validator": {"type": "tool_invocation", "expected_tools": []}}
FAULT: dict[str, Any] = {"availability_status": "error", "failure_type": "timeout", "success": False}


# --- laws ---------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    ["<think>", "</think>", "<think>\n", "\n</think>\n\n", "\n", " ", "yes", "`free -h`", "no.", "`", "é"]
)
_TEXTS = st.lists(_PIECES, max_size=7).map("".join)


_TURNS = st.lists(
    st.builds(
        Turn,
        text=_TEXTS,
        reasoning=_TEXTS,
        calls=st.lists(
            st.builds(
                ToolCall,
                name=st.just("read"),
                arguments=st.just("{}"),
                id=st.none() | st.just("c"),
                unoffered=st.booleans(),
            ),
            max_size=2,
        ).map(tuple),
        results=st.just(("one", "two")),
        finish_reason=st.none() | st.just("stop"),
        input_tokens=st.none() | st.just(3),
    ),
    min_size=1,
    max_size=3,
)


@given(
    turns=_TURNS,
    more=st.sampled_from(["", "x" * 40_000]),
    ended=st.sampled_from(["answer", "malformed_call"]),
)
@examples(8)
def test_an_exchange_is_judged_the_same_again(turns: list[Turn], more: str, ended: Any) -> None:
    """Its turns have all of it: nothing is ambiguous, and nothing is lost if `raw_output` was cut."""
    turns = [replace(one, results=one.results[: len(one.calls)]) for one in turns]
    turns = [replace(one, text=one.text + more) for one in turns]
    raws = [_channelled(one.reasoning, one.text).raw for one in turns]
    reply = Reply(
        text=turns[-1].text,
        reasoning=turns[-1].reasoning,
        raw="\n\n".join(raw for raw in raws if raw),
        tool_calls=tuple(call for one in turns for call in one.calls),
        turns=tuple(turns),
        ended_by=ended,
    )
    prompt = _prompt({"type": "exchanged"})

    record = _measured(prompt, reply)

    assert _same(rescore_record(record, prompt), record)


# --- single rows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("then", "now", "reply", "after"),
    [
        pytest.param(YES, {**YES, "value": "no"}, Reply(text="yes"), (False, None), id="passed-to-failed"),
        pytest.param(
            {**YES, "value": "no"}, YES, Reply(text="<think>x</think>yes"), (True, None), id="to-passed"
        ),
        pytest.param(YES, {"type": "noop"}, Reply(text="no"), (None, None), id="to-not-judged"),
        pytest.param(YES, FREE, Reply(text="run `free -h` now"), (True, "valid"), id="to-a-tool-prompt"),
        pytest.param(
            YES,
            FREE,
            Reply(tool_calls=(ToolCall(name="free", arguments="{}"),)),
            (True, "valid"),
            id="native-call",
        ),
        pytest.param(
            FREE, RESTRAINT, Reply(text="run `free -h` now"), (False, "called_needlessly"), id="restraint"
        ),
    ],
)
def test_the_new_rule_decides(
    then: Any, now: Any, reply: Reply, after: tuple[bool | None, str | None]
) -> None:
    """Verdict and tool use follow the current rule; measurements stay."""
    old = _measured(_prompt(then), reply)

    new = rescore_record(old, _prompt(now))

    assert isinstance(new, Record)
    assert (new.objective_pass, new.tool_outcome) == after
    kept = (
        "raw_output",
        "started_at_ms",
        "e2e_ms",
        "ttft_ms",
        "output_tokens",
        "run_id",
        "tool_call_details",
    )
    assert [getattr(new, name) for name in kept] == [getattr(old, name) for name in kept]


IN_RESULT = turn(calls=({"id": None, "name": "read", "arguments": "{}", "result": "[secret]"},))


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(row(A, "P1", truncated=True, cut=("raw_output",)), id="cut-text"),
        pytest.param(row(A, "P1", truncated=True, cut=("tool_call_details",)), id="cut-calls"),
        pytest.param(row(A, "P1", truncated=True, cut=("answer",), turns=(turn(),)), id="not-judged"),
        pytest.param(row(A, "P1", truncated=True, cut=("turns",), turns=(turn(),)), id="cut-turns"),
        pytest.param(row(A, "P1", raw_output="the key is [secret]."), id="secret"),
        pytest.param(row(A, "P1", turns=(IN_RESULT,)), id="secret-in-a-result"),
        pytest.param(row(A, "P1", **FAULT, raw_output="yes"), id="fault"),
        pytest.param(_measured(_prompt(YES), Reply(text="yes", refusal="I will not.")), id="refusal"),
        pytest.param(_measured(_prompt(YES), Reply(text="yes", finish_reason="content_filter")), id="filter"),
    ],
)
def test_a_row_that_lacks_its_reply_keeps_its_verdict(record: Record) -> None:
    """Faults, refusals, and replies that are cut or redacted are not judged."""
    assert rescore_record(record, _prompt(FREE)) is None


@pytest.mark.parametrize("text", [" \n", "<think>yes</think>"])
def test_an_empty_answer_counts_for_tools(text: str) -> None:
    """It gets no verdict, and as a tool cell it is one without a call."""
    old = _measured(_prompt(YES), Reply(text=text))

    assert rescore_record(old, _prompt(FREE)) == replace(old, tool_outcome="no_call", tool_demand="call")


@pytest.mark.parametrize("how", ["raise", "fail"])
def test_a_validator_that_breaks_ends_the_rescore(how: str) -> None:
    """The message names the prompt and the error."""
    old = _measured(_prompt(YES), Reply(text="yes"))

    with pytest.raises(OpenClawError, match=r"s: prompt P1: its validator raised .*: no rule"):
        rescore_record(old, _prompt({"type": "broken", "how": how}))


# --- whole runs ---------------------------------------------------------------------------------


def _suite(folder: Path, name: str, prompts: list[dict[str, Any]]) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(prompts))


def _rescored(path: Path) -> Rescored:
    part = load_run(path)
    return rescore_run(part, todays_rules(part, path.parent, REGISTRY))


def test_a_run_is_judged_by_its_current_suites(tmp_path: Path) -> None:
    """Changed rows are rewritten, the others stay byte for byte, in their order."""
    rows = [
        row(A, f"P{number}", raw_output=text, parsed_output={"text": text}, tool_demand="none")
        for number, text in ((1, "yes"), (2, "yes"), (3, "no"))
    ]
    prompts = [definition(f"P{number}", validator=YES, tags=["t"]) for number in (1, 2, 3)]
    run = store(tmp_path / "one", rows, prompts=prompts)
    today = [{"id": f"P{number}", "prompt": f"Do P{number}.", "validator": YES} for number in (1, 2, 3)]
    today[1]["validator"] = {**YES, "value": "no"}
    _suite(tmp_path, "benchmarks/prompts_x.json", today)

    rescored = _rescored(run)

    flips = [(change.record.prompt_id, change.before, change.after) for change in rescored.changes]
    assert flips == [("P2", "passed", "failed"), ("P3", "passed", "failed")]
    assert rescored.new.rows[0].line == (run / "results.jsonl").read_bytes().splitlines()[0]
    assert [found.record.prompt_id for found in rescored.new.rows] == ["P1", "P2", "P3"]
    assert [prompt["validator"]["value"] for prompt in rescored.new.config["prompts"]] == ["yes", "no", "yes"]
    assert rescored.new.config["prompts"][0]["tags"] == ["t"]
    assert rescored.new.config["rescored"] == {"run_id": "one", "pytest_openclaw": __version__}


def test_figures_are_in_the_order_of_the_config(tmp_path: Path) -> None:
    """Workers may end the cells in any order; rows keep it, and the summary does not show it."""
    missed = {"objective_pass": False, "violation": "no"}
    rows = [row(A, prompt_id, **missed, truncated=True, cut=("answer",)) for prompt_id in ("P3", "P1", "P2")]
    run = store(tmp_path / "one", rows, prompts=[definition(f"P{number}") for number in (2, 3, 1)])

    written, summary = write_run(_rescored(run).new, tmp_path / "new", exactly=True, now_ms=1)

    assert (written / "results.jsonl").read_bytes() == (run / "results.jsonl").read_bytes()
    assert [missed.prompt_id for missed in summary.missed_by_all] == ["P2", "P3", "P1"]


def test_what_cannot_be_judged_is_counted(tmp_path: Path) -> None:
    """Rows keep their verdict without a whole reply, and without a rule of today."""
    rows = [
        row(A, "P1", raw_output="yes", truncated=True, cut=("answer",), objective_pass=True),
        row(A, "R1", raw_output="yes"),
        row(A, "P9", raw_output="yes"),
        row(A, "P2", **FAULT),
    ]
    prompts = [
        definition("P1", validator={**YES, "value": "no"}),
        definition("P2"),
        definition("R1", validator={"type": "python"}),
    ]
    run = store(tmp_path / "one", rows, prompts=prompts)
    _suite(tmp_path, "benchmarks/prompts_x.json", [{"id": "P1", "prompt": "Do P1.", "validator": YES}])

    rescored = _rescored(run)

    assert (rescored.n_kept, rescored.changes) == (4, [])
