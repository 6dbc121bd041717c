"""Replies in rows are judged again, by the rules of today."""

import json
import re
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw import __version__
from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import BUILTIN, build_validator
from pytest_openclaw.parts.rescoring import rescore_record, rescore_run, suite_files, todays_rules
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.rows import record_of
from pytest_openclaw.runs.summaries import write_run
from pytest_openclaw.suites.cells import definition as definition_of
from pytest_openclaw.suites.load import parse_suite
from pytest_openclaw.util.errors import OpenClawError, SuiteError
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.replies import CallResult, Reply, Timing, Turn, Verdict
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import from_row, to_row
from pytest_openclaw.values.tool_calls import ToolCall
from tests.searching import examples
from tests.unit.runs.stored_runs import SUITE, A, definition, row, store

TARGET = Target(provider="lab", model="m")
TIMING = Timing(started_at_ms=1000, ended_at_ms=1100, e2e_ms=99.6, ttft_ms=20.4, ttfo_ms=30.1)


@dataclass(frozen=True)
class Broken:
    type: ClassVar[str] = "broken"
    how: str = "raise"

    def check(self, reply):
        if self.how == "fail":
            pytest.fail("no rule")
        raise ZeroDivisionError("no rule")


@dataclass(frozen=True)
class Exchanged:
    type: ClassVar[str] = "exchanged"

    def check(self, reply):
        turns = [asdict(one) for one in reply.turns]
        parsed = {"turns": turns, "text": reply.text, "raw": reply.raw, "ended": reply.ended_by}
        return Verdict(passed=True, parsed=parsed)


REGISTRY = {validator.type: validator for validator in (*BUILTIN, Exchanged, Broken)}


def _write(root, *prompts):
    path = root / SUITE
    path.parent.mkdir()
    path.write_text(json.dumps(prompts))
    return path


def _prompt(spec):
    validator = build_validator(spec, REGISTRY)
    return Prompt(suite="s", id="P1", name="one", prompt="Do.", validator=validator, validator_spec=spec)


def _measured(prompt, reply):
    reply = replace(reply, raw=reply.raw or reply.text, timing=TIMING)
    result = CallResult(result=reply, timing=TIMING)
    cell = Cell(prompt=prompt, target=TARGET)
    record = record_of("r", cell, result, judge(prompt, reply), Redactor())
    return from_row(json.loads(json.dumps(to_row(record))))


YES, NO = ({"type": "exact", "value": value} for value in ("yes", "no"))
FREE = {"type": "tool_invocation", "expected_tools": ["free"]}
RESTRAINT = {"type": "not", "validator": {"type": "tool_invocation", "expected_tools": []}}
FAULT = {"availability_status": "error", "failure_type": "timeout", "success": False}


_PIECES = st.sampled_from(
    ["<think>", "</think>", "<think>\n", "\n</think>\n\n", "\n", " ", "yes", "`free -h`", "no.", "`", "é"]
)
_TEXTS = st.lists(_PIECES, max_size=7).map("".join)


_CALLS = st.builds(
    partial(ToolCall, name="read", arguments="{}"), id=st.sampled_from([None, "c"]), unoffered=st.booleans()
)
_TURNS = st.lists(
    st.builds(
        Turn,
        text=_TEXTS,
        reasoning=_TEXTS,
        calls=st.lists(_CALLS, max_size=2).map(tuple),
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
def test_an_exchange_is_judged_the_same_again(turns, more, ended):
    """Its turns have all of it: nothing is ambiguous, and nothing is lost if `raw_output` was cut."""
    turns = [replace(one, results=one.results[: len(one.calls)], text=one.text + more) for one in turns]
    # As the built-in providers write a separate reasoning channel.
    thoughts = [f"<think>\n{one.reasoning}\n</think>\n\n" if one.reasoning else "" for one in turns]
    raws = [thought + one.text for thought, one in zip(thoughts, turns, strict=True)]
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

    again = rescore_record(record, prompt)
    assert again
    assert json.dumps(to_row(again)) == json.dumps(to_row(record))


YES_BEHIND_THOUGHT = Reply(text="<think>x</think>yes")
RUN, CALL = Reply(text="run `free -h` now"), Reply(tool_calls=(ToolCall(name="free", arguments="{}"),))
KEPT = ("raw_output", "started_at_ms", "e2e_ms", "ttft_ms", "output_tokens", "run_id", "tool_call_details")


@pytest.mark.parametrize(
    ("then", "now", "reply", "after"),
    [
        pytest.param(YES, NO, Reply(text="yes"), (False, None), id="passed-to-failed"),
        pytest.param(NO, YES, YES_BEHIND_THOUGHT, (True, None), id="failed-to-passed"),
        pytest.param(YES, {"type": "noop"}, Reply(text="no"), (None, None), id="to-not-judged"),
        pytest.param(YES, FREE, RUN, (True, "valid"), id="to-a-tool-prompt"),
        pytest.param(YES, FREE, CALL, (True, "valid"), id="native-call"),
        pytest.param(FREE, RESTRAINT, RUN, (False, "called_needlessly"), id="restraint"),
    ],
)
def test_the_new_rule_decides(then, now, reply, after):
    """Verdict and tool use follow the current rule; measurements stay."""
    old = _measured(_prompt(then), reply)

    new = rescore_record(old, _prompt(now))

    assert (new.objective_pass, new.tool_outcome) == after
    assert [getattr(new, name) for name in KEPT] == [getattr(old, name) for name in KEPT]


IN_RESULT = {"text": "", "calls": [{"name": "read", "arguments": "{}", "result": "[secret]"}]}


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(row(A, "P1", truncated=True, cut=("raw_output",)), id="cut-text"),
        pytest.param(row(A, "P1", truncated=True, cut=("tool_call_details",)), id="cut-calls"),
        pytest.param(row(A, "P1", truncated=True, cut=("answer",), turns=({"text": ""},)), id="not-judged"),
        pytest.param(row(A, "P1", truncated=True, cut=("turns",), turns=({"text": ""},)), id="cut-turns"),
        pytest.param(row(A, "P1", raw_output="the key is [secret]."), id="secret"),
        pytest.param(row(A, "P1", turns=(IN_RESULT,)), id="secret-in-a-result"),
        pytest.param(row(A, "P1", **FAULT, raw_output="yes"), id="fault"),
        pytest.param(_measured(_prompt(YES), Reply(text="yes", refusal="I will not.")), id="refusal"),
        pytest.param(_measured(_prompt(YES), Reply(text="yes", finish_reason="content_filter")), id="filter"),
    ],
)
def test_a_row_that_lacks_its_reply_keeps_its_verdict(record):
    """Faults, refusals, and replies that are cut or redacted are not judged."""
    assert rescore_record(record, _prompt(FREE)) is None


@pytest.mark.parametrize("text", [" \n", "<think>yes</think>"])
def test_an_empty_answer_counts_for_tools(text):
    """It gets no verdict, and as a tool cell it is one without a call."""
    old = _measured(_prompt(YES), Reply(text=text))

    assert rescore_record(old, _prompt(FREE)) == replace(old, tool_outcome="no_call", tool_demand="call")


@pytest.mark.parametrize("how", ["raise", "fail"])
def test_a_validator_that_breaks_ends_the_rescore(how):
    """The message names the prompt and the error."""
    old = _measured(_prompt(YES), Reply(text="yes"))

    with pytest.raises(OpenClawError, match=r"s: prompt P1: its validator raised .*: no rule"):
        rescore_record(old, _prompt({"type": "broken", "how": how}))


def _rescored(path):
    part = load_run(path)
    return rescore_run(part, todays_rules(part, path.parent, REGISTRY))


def test_a_run_is_judged_by_its_current_suites(tmp_path):
    """Changed rows are rewritten, the others stay byte for byte, in their order."""
    rows = [
        row(A, f"P{number}", raw_output=text, parsed_output={"text": text}, tool_demand="none")
        for number, text in ((1, "yes"), (2, "yes"), (3, "no"))
    ]
    prompts = [definition(f"P{number}", validator=YES, tags=["t"]) for number in (1, 2, 3)]
    run = store(tmp_path / "one", rows, prompts=prompts)
    today = [(1, YES), (2, NO), (3, YES)]
    _write(tmp_path, *({"id": f"P{n}", "prompt": f"Do P{n}.", "validator": rule} for n, rule in today))

    rescored = _rescored(run)

    flips = [(change.record.prompt_id, change.before, change.after) for change in rescored.changes]
    assert flips == [("P2", "passed", "failed"), ("P3", "passed", "failed")]
    assert rescored.new.rows[0].line == (run / "results.jsonl").read_bytes().splitlines()[0]
    assert [found.record.prompt_id for found in rescored.new.rows] == ["P1", "P2", "P3"]
    assert [prompt["validator"]["value"] for prompt in rescored.new.config["prompts"]] == ["yes", "no", "yes"]
    assert rescored.new.config["prompts"][0]["tags"] == ["t"]
    assert rescored.new.config["rescored"] == {"run_id": "one", "pytest_openclaw": __version__}


def test_figures_are_in_the_order_of_the_config(tmp_path):
    """Workers may end the cells in any order; rows keep it, and the summary does not show it."""
    kept = {"objective_pass": False, "truncated": True, "cut": ("answer",)}
    rows = [row(A, prompt_id, **kept) for prompt_id in ("P3", "P1", "P2")]
    run = store(tmp_path / "one", rows, prompts=[definition(f"P{number}") for number in (2, 3, 1)])

    written, summary = write_run(_rescored(run).new, tmp_path / "new", exactly=True, now_ms=1)

    assert (written / "results.jsonl").read_bytes() == (run / "results.jsonl").read_bytes()
    assert [missed.prompt_id for missed in summary.missed_by_all] == ["P2", "P3", "P1"]


def test_rows_that_cannot_be_judged_are_counted(tmp_path):
    """Rows keep their verdict without a whole reply, and without a rule of today."""
    rows = [
        row(A, "P1", raw_output="yes", truncated=True, cut=("answer",), objective_pass=True),
        row(A, "R1", raw_output="yes"),
        row(A, "P9", raw_output="yes"),
        row(A, "P2", **FAULT),
    ]
    python = definition("R1", validator={"type": "python"})
    run = store(tmp_path / "one", rows, prompts=[definition("P1", validator=NO), definition("P2"), python])
    _write(tmp_path, {"id": "P1", "prompt": "Do P1.", "validator": YES})

    rescored = _rescored(run)

    assert (rescored.n_kept, rescored.changes) == (4, [])


THEN = {"type": "exact", "value": "then"}
NOW = {"type": "exact", "value": "now"}


@pytest.fixture
def part(tmp_path):
    prompts = [
        definition("P1", validator=THEN, extra={"note": 1}),
        definition("P2", validator=THEN, system="Be brief."),
        definition("R1", suite="benchmarks/test_x.py", validator={"type": "python"}),
    ]
    return load_run(store(tmp_path / "runs" / "one", [row(A, "P1")], prompts=prompts))


def _values(part, root):
    rules = todays_rules(part, root, REGISTRY)
    return {prompt_id: prompt.validator_spec["value"] for (_, prompt_id), prompt in rules.items()}


P1 = {"id": "P1", "prompt": "Do P1.", "validator": NOW}
P2 = {"id": "P2", "prompt": "Do P2.", "system": "Be brief.", "validator": NOW}


def test_rules_come_from_the_suite_files(part, tmp_path):
    """Prompts with the same question get their current validators."""
    path = _write(tmp_path, P1, {**P2, "max_output_tokens": 5, "name": "new"})

    assert _values(part, tmp_path) == {"P1": "now", "P2": "now"}
    assert suite_files(part, tmp_path) == [path]


@pytest.mark.parametrize(
    ("run", "suite", "counts"),
    [
        pytest.param("runs/one", SUITE, True, id="of-the-project"),
        pytest.param("one", SUITE, True, id="runs-in-the-root-folder"),
        pytest.param("../one", SUITE, True, id="runs-next-to-the-project"),
        pytest.param("one", "one/prompts_x.json", False, id="in-the-run"),
        pytest.param("runs/one", "runs/two/prompts_x.json", False, id="in-another-run"),
        pytest.param("runs/one", "link/prompts_x.json", False, id="in-a-run-through-a-link"),
        pytest.param("runs/one", "../prompts_x.json", False, id="above-the-root"),
    ],
)
def test_only_files_of_the_project_are_suites(tmp_path, run, suite, counts):
    """A run from elsewhere cannot name a folder whose `conftest.py` pytest then loads."""
    root = tmp_path / "project"
    path = store(root / run, [row(A, "P1", suite=suite)], prompts=[definition("P1", suite=suite)])
    for folder in (root / "benchmarks", root / "runs/two", root / "one", tmp_path):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "prompts_x.json").write_text("[]")
    (root / "link").symlink_to(root / "runs/two")

    assert suite_files(load_run(path), root) == ([root / suite] if counts else [])


@pytest.mark.parametrize(
    "today",
    [[P1], [P1, {**P2, "prompt": "Do P3."}], [P1, {**P2, "system": None}]],
    ids=["prompt-gone", "reworded", "system-gone"],
)
def test_another_question_has_no_rule(part, tmp_path, today):
    """A reply is not judged by the rule of another question."""
    _write(tmp_path, *today)

    assert _values(part, tmp_path) == {"P1": "now"}


@pytest.mark.parametrize(
    ("changes", "is_judged"),
    [({}, True), ({"world": {"files": {"a": "two"}}}, False), ({"tools": ["read", "ls"]}, False)],
    ids=["the-same", "another-world", "other-tools"],
)
def test_calls_are_judged_in_their_own_world(tmp_path, changes, is_judged):
    """An exchange of another world keeps its verdict."""
    asked = {"id": "W1", "prompt": "Go.", "tools": ["read"], "world": {"files": {"a": "one"}}}
    text = json.dumps([{**asked, "validator": THEN}])
    (prompt,) = parse_suite(text, format="json", name=SUITE, registry=REGISTRY).prompts
    run = store(tmp_path / "runs" / "one", [row(A, "W1")], prompts=[definition_of(prompt)])
    _write(tmp_path, {**asked, "validator": NOW, **changes})

    assert bool(todays_rules(load_run(run), tmp_path, REGISTRY)) is is_judged


def test_a_suite_that_is_gone_is_not_needed(part, tmp_path):
    """Its rows keep their verdict."""
    assert _values(part, tmp_path) == {}
    assert suite_files(part, tmp_path) == []


def test_a_suite_that_is_wrong_is_refused(part, tmp_path):
    """An error in a suite is reported as pytest reports it, and nothing is judged by half a suite."""
    _write(tmp_path, P1, {**P2, "validator": {"type": "exakt"}})

    with pytest.raises(SuiteError, match=re.escape(f"{SUITE}: prompt P2: there is no validator type")):
        todays_rules(part, tmp_path, REGISTRY)
