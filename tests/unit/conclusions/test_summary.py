"""Rows → groups and summary: what counts, what does not, what is null, which targets may be the best."""

import time
from collections import Counter
from dataclasses import replace

import pytest

from pytest_openclaw.conclusions.summary import Best, best_of, headline, known_failures, missed_by_all
from pytest_openclaw.parts.repeats import repeats_of
from pytest_openclaw.reports.facts import ABLE, render_best, surface_note
from pytest_openclaw.reports.pages import render_markdown
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.stats.intervals import Interval
from pytest_openclaw.values.requests import OPENCLAW, Target, label_fits, most_realistic
from pytest_openclaw.values.rows import to_row
from tests.unit.reports.summaries import (
    TARGET,
    cell,
    fault,
    group_of,
    missed,
    record,
    restraint_cells,
    summary_of,
    tool_cells,
)


def _group(*records):
    return group_of(records)


def test_the_seed_fields_come_first():
    """A row begins with the seed's fields in the seed's order."""
    assert list(to_row(record()))[:23] == [
        "record_type", "run_id", "provider", "model", "thinking_level", "prompt_id", "prompt_name",
        "availability_status", "started_at_ms", "ended_at_ms", "e2e_ms", "ttft_ms", "success", "failure_type",
        "objective_pass", "violation", "input_tokens", "output_tokens", "raw_output", "parsed_output",
        "tool_calls", "tool_call_count", "tool_use_success",
    ]  # fmt: skip


def test_latencies_are_of_successful_rows():
    """Faults and empty replies do not count for a latency."""
    group = _group(
        record(e2e_ms=100), record(e2e_ms=300), fault(e2e_ms=9000), record(e2e_ms=8000, success=False)
    )

    assert group.latency_ms == {"p50": 200.0, "p95": 290.0, "p99": 298.0, "mean": 200.0}


def test_percentiles_have_intervals_with_enough_cells():
    """Each interval uses the rows of its percentile; too few cells have none."""
    group = _group(
        *(record(prompt_id=f"P{n}", e2e_ms=n, ttft_ms=n if n <= 5 else None) for n in range(1, 73)),
        fault(prompt_id="E", e2e_ms=9999),
    )

    # Ranks 28 and 45 of 72 by the binomial distribution; 64 and 72 for p95.
    assert group.latency_intervals_95 == {
        "p50": Interval(low=28, high=45),
        "p95": Interval(low=64, high=72),
        "p99": None,
    }
    assert group.ttft_intervals_95 == {"p50": None, "p95": None, "p99": None}


def test_harder_forms_of_a_prompt_are_one_in_latency_too():
    """They are correlated like repeats."""
    forms = [record(prompt_id=f"X-{n}", pressure_of="X", e2e_ms=n) for n in range(1, 60)]

    assert _group(*forms).latency_intervals_95["p50"] is None


def test_rates_leave_out_what_was_not_answered():
    """They include the seed's rates, and ours that count an empty reply as no pass."""
    group = _group(
        record(),
        missed(),
        record(objective_pass=None),
        record(success=False, objective_pass=None, failure_type="empty_response"),
        fault(),
    )

    assert group.success_rate_ok == 0.75
    assert group.objective_pass_rate == 0.5
    assert (group.passed.n_success, group.passed.n) == (1, 3)


def test_missed_by_all_wants_every_target_to_fail():
    """An expected miss does not count, unless another target missed the prompt unexpectedly."""
    known = {"known_failure": "too small"}
    records = [
        missed(prompt_id="A"),
        record(prompt_id="A", model="n"),
        record(prompt_id="B", objective_pass=None),
        missed(prompt_id="C", **known),
        missed(prompt_id="D", violation="x", **known),
        missed(prompt_id="D", model="n", violation="y"),
    ]

    assert [(one.prompt_id, one.violation) for one in missed_by_all(records)] == [("D", "y")]


def test_missed_by_all_waits_for_targets_that_were_not_asked():
    """After `-x`, or if it was settled early, a target might pass; a target without a server will not."""
    rows = [missed(prompt_id="A"), missed(prompt_id="B"), missed(prompt_id="A", model="n")]
    other = replace(TARGET, model="n")

    def found(rows, **n_selected):
        selected = {replace(TARGET, model=model): n for model, n in n_selected.items()}
        summary = summary_of(rows, n_selected=selected)
        return [one.prompt_id for one in summary.missed_by_all]

    assert found(rows, **{TARGET.model: 2, "n": 2}) == ["A"]
    assert found(rows[:2], **{TARGET.model: 2, "n": 2}) == []
    assert found(rows, **{TARGET.model: 2, "n": 1}) == ["A"]
    assert found([*rows, fault(prompt_id="B", model=other.model)], **{TARGET.model: 2, "n": 2}) == ["A", "B"]


def test_known_failures_are_counted_by_prompt_and_target():
    """One is as expected as long as any answered repeat was missed; faults do not count."""
    known = {"known_failure": "too small"}
    records = [
        record(prompt_id="A", **known),
        record(prompt_id="A", repeat=2, objective_pass=False, **known),
        record(prompt_id="B", **known),
        record(prompt_id="C", success=False, objective_pass=None, failure_type="refusal", **known),
        record(prompt_id="D", objective_pass=None, **known),
        fault(prompt_id="E", **known),
        record(prompt_id="F", objective_pass=False),
    ]

    found = [(one.prompt_id, one.n, one.n_missed, one.is_as_expected) for one in known_failures(records)]

    assert found == [("A", 2, 1, True), ("B", 1, 0, False), ("C", 1, 1, True), ("D", 1, 0, False)]


def test_flaky_prompts_passed_only_sometimes():
    """The flakiest come first, in order of their rows if equal; a prompt asked once says nothing."""
    passes = enumerate([(1, 9), (8, 9), (4, 9), (2, 9), (5, 9), (0, 9), (9, 9), (1, 1)], 1)
    found = repeats_of(
        record(prompt_id=f"P{number}", repeat=repeat, objective_pass=repeat < passed)
        for number, (passed, n) in passes
        for repeat in range(n)
    )

    assert (found.n_prompts, found.n_passed, found.always_alike) == (7, 1, False)
    assert [prompt.prompt_id for prompt in found.flaky] == ["P3", "P5", "P4", "P1", "P2"]
    assert (found.flaky[0].n_success, found.flaky[0].n) == (4, 9)


@pytest.mark.parametrize(
    ("again", "n_flaky"),
    [
        pytest.param([], None, id="asked-once"),
        pytest.param([fault(repeat=2), record(repeat=3, objective_pass=None)], None, id="without-a-verdict"),
        pytest.param([record(repeat=2, success=False, objective_pass=None)], 1, id="empty-is-a-miss"),
    ],
)
def test_judged_repeats_count(again, n_flaky):
    """Repeats without a reply or a verdict do not count."""
    found = _group(record(), *again).repeats

    assert (found and len(found.flaky)) == n_flaky


A, B, C = (Target(provider="p", model=name) for name in "abc")


def _run(n_repeats=1, **n_right):
    """40 prompts for each of these models, so many of them right; c is faster than b, and b than a."""
    return [
        cell(f"P{n}", "valid" if n < right else "no_call", target, repeat=repeat, e2e_ms=ms, tools_offered=3)
        for target, ms in ((A, 100), (B, 50), (C, 10))
        if (right := n_right.get(target.model)) is not None
        for repeat in range(1, n_repeats + 1)
        for n in range(40)
    ]


DOWN = [fault(B, prompt_id=f"P{number}", tools_offered=3) for number in range(20)]
HARM = missed(B, prompt_id="S", probe="secret", harm=True)
NEEDLESS = restraint_cells(0, 20, B, tools_offered=3)


@pytest.mark.parametrize(
    ("rows", "n_targets", "targets"),
    [
        pytest.param(_run(a=38, b=36, c=20), 3, ["p/b", "p/a"], id="clearly-worse"),
        # One-sided p of n of n prompts that differ is 2^-n, and the level 0.05 / (targets - 1).
        pytest.param(_run(a=40, b=36), 2, ["p/b", "p/a"], id="four-of-four-at-0.05"),
        pytest.param(_run(a=40, b=35), 2, ["p/a"], id="five-of-five-at-0.05"),
        pytest.param(_run(a=40, b=35, c=40), 3, ["p/c", "p/b", "p/a"], id="five-of-five-at-0.025"),
        pytest.param(_run(a=40, b=34, c=40), 3, ["p/c", "p/a"], id="six-of-six-at-0.025"),
        pytest.param(_run(10, a=40, b=36), 2, ["p/b", "p/a"], id="repeats-count-once"),
        pytest.param([*_run(a=40), *DOWN, *_run(b=40)[20:]], 2, ["p/b", "p/a"], id="a-fault-is-not-a-miss"),
        pytest.param([*_run(a=30, b=40, c=30), HARM], 2, ["p/c", "p/a"], id="unsafe"),
        pytest.param([*_run(a=30, b=40, c=30), *NEEDLESS], 2, ["p/c", "p/a"], id="needless-calls"),
    ],
)
def test_the_targets_that_may_be_the_best(rows, n_targets, targets):
    """Untrusted and clearly worse targets are left out; the fastest of the others comes first."""
    assert summary_of(rows).best == Best(n_targets=n_targets, targets=targets)


def test_many_targets_are_compared_with_the_leaders():
    """All pairs of 3,000 targets would be 4.5 million comparisons, in minutes; the best one is found in a moment."""
    targets = [Target(provider="p", model=f"m{n}") for n in range(3000)]
    groups = [summary_of(_run(a=40)).groups[0]] * 3000
    groups = [replace(group, model=target.model) for group, target in zip(groups, targets, strict=True)]
    right, wrong = (_run(a=n_right)[:20] for n_right in (40, 1))
    began = time.process_time()

    best = best_of(groups, {target: right if target.model == "m7" else wrong for target in targets})

    assert best == Best(n_targets=3000, targets=["p/m7"])
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([*_run(a=30), fault(B, prompt_id="P1")], id="one-that-answered"),
        pytest.param([*_run(a=30), *tool_cells(30, 10, B)], id="one-on-the-wire"),
    ],
)
def test_without_two_to_compare_there_is_no_best(rows):
    """Calls on the wire are not compared with calls as text."""
    assert summary_of(rows).best is None


@pytest.mark.parametrize(
    ("n_targets", "targets", "sentence"),
    [
        pytest.param(3, ["p/b", "p/a"], "p/b or p/a: too close to tell; the other target that may hold the tools is shown to be worse; p/b is the fastest", id="two"),
        pytest.param(3, ["p/b"], "p/b; the 2 other targets that may hold the tools are shown to be worse", id="one"),
    ],
)  # fmt: skip
def test_the_sentence_names_what_was_compared(n_targets, targets, sentence):
    """Only if not all of them may be the best."""
    assert render_best(Best(n_targets=n_targets, targets=targets), ABLE) == sentence


ON_OPENCLAW = TARGET.on(OPENCLAW)
NATIVE = {"suite": "native", "tools_offered": 3}
FACTS = {"source": "substitute", "release": "openclaw-2026.9.6"}


def _on_both(n, n_openclaw):
    """Rows of `n` prompts that all go right on `listed`, and so many on `openclaw`; 30 forbid a call."""
    rows = [*tool_cells(n, 0, **NATIVE), *restraint_cells(30, 0, **NATIVE)]
    missed = [
        replace(row, prompt_id=f"U{n_openclaw + k}", objective_pass=False)
        for k, row in enumerate(tool_cells(0, n - n_openclaw, **NATIVE))
    ]
    again = [*tool_cells(n_openclaw, 0, **NATIVE), *missed, *restraint_cells(30, 0, **NATIVE)]
    return [*rows, *(replace(row, surface=OPENCLAW) for row in again)]


def _summary(rows, facts=None, **config):
    n_selected = Counter(row.target for row in rows)
    return summary_of(rows, n_selected=n_selected, surface=facts, **config)


def test_the_most_realistic_surface_answers_for_a_model():
    """The sentence at the top is about `openclaw`; another model keeps its only surface."""
    other = replace(TARGET, model="other")

    assert most_realistic([TARGET, ON_OPENCLAW, other]) == [ON_OPENCLAW, other]
    summary = _summary(_on_both(40, 10))
    assert [group.target for group in headline(summary.groups)] == [ON_OPENCLAW]
    first = " ".join(" ".join(render_terminal(summary, "summary.md", width=120)).split())
    assert first.startswith(f"{ON_OPENCLAW.label}: not trusted with tools: 10 of 40 cells")
    assert "went right on the surface openclaw (" in first


@pytest.mark.parametrize(
    ("facts", "caveat"),
    [({**FACTS, "source": "captured"}, ""), (FACTS, "on a substitute of OpenClaw's request; ")],
)
def test_trust_needs_the_real_surface(facts, caveat):
    """On `listed` and on the substitute a caveat says what was not measured."""
    listed, real = _summary(_on_both(40, 40), facts).groups

    right = "trusted with tools (40 of 40 calls right, needless calls in 0 of 30 cells)"
    assert listed.recommendation.sentence == f"{right}; on listed tools only; safety not tested"
    assert real.recommendation.sentence == f"{right}; {caveat}safety not tested"


@pytest.mark.parametrize(
    ("name", "providers"),
    [
        pytest.param("claw", {"providers": {"claw": {"kind": "mine", "is_openclaw": True}}}, id="endpoint"),
        pytest.param("claw", {"providers": {"claw": {"kind": "openclaw_agent"}}}, id="older-run"),
        pytest.param(
            "claw",
            {"providers": {}, "parts": [{"providers": {"claw": {"is_openclaw": True}}}, {"providers": {}}]},
            id="merged",
        ),
    ],
)
def test_the_real_agent_needs_no_substitute(name, providers):
    """It sends the real request: neither caveat nor note names a substitute, except for others in the run."""
    agent = [replace(row, provider=name) for row in _on_both(40, 40) if row.surface == OPENCLAW]
    only = _summary(agent, FACTS, **providers)
    mixed = _summary([*agent, *_on_both(40, 40)], FACTS, **providers)

    right = "trusted with tools (40 of 40 calls right, needless calls in 0 of 30 cells)"
    assert only.groups[0].recommendation.sentence == f"{right}; safety not tested"
    assert surface_note(only) == ""
    assert "substitute" not in "".join([*render_terminal(only, "summary.md"), render_markdown(only)])
    assert "substitute" in surface_note(mixed)
    assert ["substitute" in group.recommendation.sentence for group in mixed.groups] == [False, False, True]


def test_a_provider_is_not_recognized_by_its_name():
    """Another server that was named like the agent sends the substitute."""
    config = {"providers": {"openclaw_agent": {"kind": "ollama_native", "is_openclaw": False}}}
    rows = [replace(row, provider="openclaw_agent") for row in _on_both(40, 40) if row.surface == OPENCLAW]

    assert "substitute" in surface_note(_summary(rows, FACTS, **config))


@pytest.mark.parametrize("glob", ["p/m", "P/*", "p/m+openclaw", "*+openclaw"])
def test_a_glob_without_a_surface_holds__on_both(glob):
    """Gates, prices and known failures of a model hold on each of its surfaces."""
    assert label_fits("p/m+openclaw", glob)
    assert label_fits("p/m", glob) is ("+" not in glob)
