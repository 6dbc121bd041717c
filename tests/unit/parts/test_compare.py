"""Two runs, compared cell by cell where their conditions allow it."""

import itertools
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_openclaw.parts.baseline import (
    compare_runs,
    details_of,
    named_targets,
    parse_across,
    read_baseline,
)
from pytest_openclaw.parts.baseline.comparison import Obstacle, adjusted_together
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.stats import intervals
from pytest_openclaw.stats.intervals import sign_flip
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.requests import Target
from tests.unit.parts.compared import cells, compare, only
from tests.unit.reports.summaries import TARGET, cell, missed, record, tool_cells
from tests.unit.runs.stored_runs import SUITE, A, B, definition, row, store

OTHER = Target(provider="ollama_openai", model="other")


@pytest.mark.parametrize(
    ("base", "candidate", "word", "counts"),
    [
        pytest.param("++++++", "------", "worse", (6, 6, 0, 0, 6), id="six-worse"),
        pytest.param("------++", "++++++++", "better", (8, 2, 8, 6, 0), id="six-better"),
        pytest.param("++oo", "+-oo", "no difference seen", (2, 2, 1, 0, 1), id="without-validator-no-verdict"),
        pytest.param("oo", "oo", "not compared", (0, 0, 0, 0, 0), id="nothing-judged"),
        pytest.param("++++++", "ssssss", "worse", (6, 6, 0, 0, 6), id="silence-is-a-miss"),
    ],
)  # fmt: skip
def test_a_target_is_better_or_worse_or_neither(base, candidate, word, counts):
    """The verdict comes from the exact test; it depends on the prompts that differ."""
    verdicts = only(cells(base), cells(candidate)).verdicts

    fields = ("n_cells", "n_base", "n_candidate", "n_better", "n_worse")
    assert (verdicts.word, *(getattr(verdicts, name) for name in fields)) == (word, *counts)


def test_targets_share_the_level():
    """Six worse prompts are conclusive in a single target, and not in one of two compared targets."""
    base, candidate = cells("++++++"), cells("------")
    others = cells("++++++", OTHER)

    compared = compare([*base, *others], [*candidate, *others], [(TARGET, TARGET), (OTHER, OTHER)])

    assert [one.verdicts.word for one in compared.targets] == ["no difference seen"] * 2
    assert compared.targets[0].verdicts.p == 4 / 2**6


def test_a_loss_that_is_seen_has_an_interval_of_losses():
    """Six prompts that all pass less often of four times are six: p 0.03, where Student's t reaches above 0."""
    base = [row for repeat in (1, 2, 3, 4) for row in cells("++++++", repeat=repeat)]
    marks = ("+---++", "+---++", "----++", "------")
    candidate = [row for repeat, each in enumerate(marks, 1) for row in cells(each, repeat=repeat)]

    verdicts = only(base, candidate).verdicts

    assert (verdicts.n_prompts, verdicts.n_cells, verdicts.p) == (6, 24, 2 / 2**6)
    assert verdicts.word == "worse"
    assert verdicts.interval_95.high == 0


@settings(deadline=None)
@given(st.lists(st.sampled_from(["++", "+-", "-+", "--"]), max_size=30))
def test_interval_and_word_never_contradict(prompts):
    """Without a significant difference the interval contains zero, otherwise not; swapped runs mirror all."""
    base, candidate = (cells("".join(prompt[side] for prompt in prompts)) for side in (0, 1))
    forth, back = only(base, candidate).verdicts, only(candidate, base).verdicts

    if forth.word != "not compared":
        assert (forth.interval_95.high <= 0) or forth.word != "worse"
        assert (forth.interval_95.low <= 0 <= forth.interval_95.high) or forth.word != "no difference seen"
    mirrored = {"better": "worse", "worse": "better"}
    assert back.word == mirrored.get(forth.word, forth.word)
    assert back.p == forth.p
    if forth.interval_95 and back.interval_95:
        assert back.interval_95.low == pytest.approx(-forth.interval_95.high)


@pytest.mark.parametrize(
    ("base", "candidate", "words", "n_open"),
    [
        pytest.param("+++++++", "-------", ("worse", "worse"), 0, id="all-answered"),
        pytest.param("++++++", "-----?", ("no difference seen", "worse"), 1, id="one-would-decide"),
        pytest.param("+++++o", "-----?", ("no difference seen",) * 2, 0, id="no-verdict-to-reach"),
    ],
)
def test_cells_without_an_answer_may_have_failed(base, candidate, words, n_open):
    """The verdict is computed without them, and as if they had all failed."""
    verdicts = only(cells(base), cells(candidate)).verdicts

    assert (verdicts.word, verdicts.if_failed, verdicts.n_open) == (*words, n_open)


@pytest.mark.parametrize(
    ("unfinished", "n_open"), [((), 0), ([TARGET], 4)], ids=["not-selected", "not-asked"]
)
def test_cells_that_were_not_asked_are_open(unfinished, n_open):
    """A cell that only the baseline has was not selected, unless the candidate was not asked to the end."""
    one = only(cells("++++++"), cells("++"), unfinished=frozenset(unfinished))

    assert one.verdicts.n_open == n_open


@pytest.mark.parametrize(
    ("base", "candidate", "obstacles", "reason"),
    [
        pytest.param("++", "+", {}, ("only_in_baseline", "", 1), id="gone"),
        pytest.param("+", "++", {}, ("only_in_candidate", "", 1), id="new"),
        pytest.param("+?", "++", {}, ("not_answered_in_baseline", "", 1), id="baseline-silent"),
        pytest.param("++", "+?", {}, ("not_answered_in_candidate", "", 1), id="candidate-silent"),
        pytest.param("++", "++", {("s", "P2"): Obstacle("prompt_changed", "system")}, ("prompt_changed", "system", 1), id="prompt"),
        pytest.param("++", "++", {TARGET: Obstacle("served_differently", "digest")}, ("served_differently", "digest", 2), id="serving"),
        pytest.param("++", "+?", {("s", "P2"): Obstacle("validator_changed")}, ("validator_changed", "", 1), id="changed-goes-before-silent"),
    ],
)  # fmt: skip
def test_cells_that_cannot_be_compared_are_set_aside(base, candidate, obstacles, reason):
    """Each has its reason; the others are compared."""
    compared = compare(cells(base), cells(candidate), obstacles=obstacles)

    (apart,) = compared.set_aside
    assert (apart.reason, apart.detail, apart.n_cells) == reason
    assert apart.target == TARGET.label
    assert compared.targets[0].verdicts.n_cells == 2 - apart.n_cells


@pytest.mark.parametrize(("used", "n"), [(True, 1), (False, 2)])
def test_another_model_that_answers_is_another_serving(used, n):
    """The server's name of the answering model counts, cell by cell, if both runs have it."""
    base = [*cells("+", effective_model="m-1"), *cells("+", repeat=2)]
    candidate = [*cells("+", effective_model="m-2"), *cells("+", repeat=2, effective_model="m-2")]

    compared = compare(base, candidate, same_model=used)

    assert compared.targets[0].verdicts.n_cells == n
    reasons = [("served_differently", "answered by m-1 -> m-2")] if used else []
    assert [(one.reason, one.detail) for one in compared.set_aside] == reasons


def test_cells_are_listed_under_the_target_that_has_them():
    """If two models are compared, cells only in the baseline belong to the baseline's model."""
    third = Target(provider="lab", model="third")
    base = [*cells("+++"), *cells("++", third)]
    compared = compare(base, [*cells("+", OTHER), *cells("+", OTHER, repeat=2)], [(TARGET, OTHER)])

    assert [(one.target, one.reason, one.n_cells) for one in compared.set_aside] == [
        (TARGET.label, "only_in_baseline", 2),
        (OTHER.label, "only_in_candidate", 1),
        (third.label, "only_in_baseline", 2),
    ]


def _timed(values, **changes):
    return [record(prompt_id=f"P{n}", e2e_ms=value, **changes) for n, value in enumerate(values)]


@pytest.mark.parametrize(
    ("factor", "word"), [(1.01, "no difference seen"), (1.06, "slower"), (0.9, "faster")]
)
def test_a_time_needs_a_change_of_five_percent(factor, word):
    """The same server is as much faster or slower at another time; tokens and money have no such limit."""
    base = [record(prompt_id=f"P{n}", e2e_ms=1000, output_tokens=100) for n in range(12)]
    now = [replace(row, e2e_ms=round(1000 * factor), output_tokens=101) for row in base]

    ratios = only(base, now).ratios

    assert (ratios["latency"].word, ratios["output_tokens"].word) == (word, "more")


def test_a_ratio_is_the_median_over_prompts():
    """Candidate / baseline, prompt by prompt; the interval comes from order statistics."""
    base = _timed([100, 200, 300, 400, 500, 600, 700], ttft_ms=50)
    candidate = _timed([150, 320, 420, 800, 500, 1200, 1400], ttft_ms=25)

    found = only(base, candidate).ratios

    latency = found["latency"]
    assert (latency.ratio, latency.word) == (pytest.approx(1.6), "slower")
    assert (latency.interval_95.low, latency.interval_95.high) == pytest.approx((1.0, 2.0))
    assert latency.p == scipy_stats.binomtest(6, 6).pvalue
    assert (found["ttft"].ratio, found["ttft"].word) == (0.5, "faster")
    assert (found["output_tokens"].ratio, found["output_tokens"].word) == (1.0, "no difference seen")
    assert "cost" not in found


def test_a_prompts_repeats_are_one_ratio():
    """A prompt's ratio is that of its geometric means; with fewer than six prompts there is no interval."""
    base = [*_timed([100, 100]), *_timed([100, 100], repeat=2)]
    candidate = [*_timed([200, 100]), *_timed([800, 100], repeat=2)]

    latency = only(base, candidate).ratios["latency"]

    assert (latency.n_prompts, latency.ratio, latency.interval_95) == (2, pytest.approx(2.0), None)


def test_only_cells_that_succeeded_on_both_sides_have_a_ratio():
    """An empty reply is quick, and says nothing about speed; a free one has no price to compare."""
    base = _timed([100, 100], cost_usd=0.0)
    candidate = [base[0], record(prompt_id="P1", e2e_ms=1, success=False, objective_pass=None)]

    found = only(base, candidate).ratios

    assert found["latency"].n_prompts == 1
    assert "cost" not in found


def test_outcomes_of_tool_use_that_changed_are_counted():
    """Nine prompts that ended well have bad arguments now."""
    base = [*tool_cells(39, 1), cell("X", "valid")]
    candidate = [*base[9:], *(cell(f"U{n}", "bad_arguments") for n in range(9))]

    found = only(base, candidate)

    changes = [(one.outcome, one.n_base, one.n_candidate) for one in found.outcomes]
    assert changes == [("valid", 40, 31), ("bad_arguments", 0, 9)]
    assert ("tool use", "valid 40 -> 31, bad_arguments 0 -> 9") in [*details_of(found)]


def test_other_conditions_are_noted():
    """A ratio depends on the machine too, if that was another one."""
    base, candidate = _timed([100], host="a", in_flight=1), _timed([100], host="b", in_flight=8)

    assert only(base, candidate).notes == ("host: a -> b", "requests in flight: 1 -> 8")
    assert only(base, base).notes == ()


def test_the_range_is_the_published_formula():
    """Bonett & Price with Student's t over whole prompts, k + 1 degrees of freedom, by NumPy and SciPy."""
    base = [*cells("+" * 20 + "-" * 10), *cells("+" * 25 + "-" * 5, repeat=2)]
    candidate = [*cells("+" * 12 + "-" * 18), *cells("-" * 4 + "+" * 26, repeat=2)]
    passed = [np.array([one.objective_pass for one in rows]).reshape(2, 30) for rows in (base, candidate)]
    differences = (passed[1].astype(int) - passed[0].astype(int)).sum(axis=0)
    totals, sizes = np.append(differences, (2, -2)), np.full(32, 2)

    middle = totals.sum() / sizes.sum()
    half = scipy_stats.t.ppf(0.975, 31) * np.sqrt(((totals - middle * sizes) ** 2).sum()) / sizes.sum()
    found = only(base, candidate).verdicts.interval_95

    assert (found.low, found.high) == pytest.approx((middle - half, middle + half), abs=1e-5)


@settings(deadline=None)
@given(totals=st.lists(st.integers(-5, 5), max_size=9))
def test_every_choice_of_signs_is_counted(totals):
    """The p of a randomisation test is the share of sign choices that lead at least as far."""
    choices = itertools.product((-1, 1), repeat=len(totals))
    sums = [abs(sum(sign * total for sign, total in zip(signs, totals, strict=True))) for signs in choices]

    found = sign_flip(totals)

    assert found.p == pytest.approx(sum(one >= abs(sum(totals)) for one in sums) / len(sums), abs=1e-12)
    assert found.sign == (sum(totals) > 0) - (sum(totals) < 0)


@settings(deadline=None)
@given(n_better=st.integers(0, 60), n_worse=st.integers(0, 60), n_same=st.integers(0, 5))
def test_with_one_cell_a_prompt_it_is_mcnemars(n_better, n_worse, n_same):
    """Exact McNemar is the binomial test of the prompts that differ."""
    found = sign_flip([1] * n_better + [-1] * n_worse + [0] * n_same)

    expected = scipy_stats.binomtest(n_better, n_better + n_worse).pvalue if n_better + n_worse else 1.0
    assert found.p == pytest.approx(expected, abs=1e-12)


def test_of_very_many_prompts_it_is_normal(monkeypatch):
    """If the exact count would take long, the normal distribution hardly differs."""
    totals = [1, -2, 3, -1] * 60 + [-2] * 55
    exact = sign_flip(totals)

    monkeypatch.setattr(intervals, "MOST_EXACT", 0)

    assert sign_flip(totals) == (-1, pytest.approx(exact.p, rel=0.02))
    assert sign_flip([1] * 1100 + [-1] * 1000).p == pytest.approx(
        scipy_stats.binomtest(1100, 2100).pvalue, rel=0.02
    )


WORSE, BETTER = [-1] * 7, [1] * 6


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([[-1] * 8, WORSE, [-1] * 6], [6 / 2**8, 4 / 2**7, 2 / 2**6], id="holm"),
        pytest.param([WORSE, BETTER], [4 / 2**7, 4 / 2**6], id="each-direction-separately"),
        pytest.param([[0], [-1, 1, 1]], [1.0, 1.0], id="never-above-one"),
        pytest.param([[], BETTER, []], [1.0, 2 / 2**6, 1.0], id="nothing-to-test-is-no-test"),
    ],
)
def test_more_targets_ask_for_more(totals, expected):
    """Holm's correction: the smallest p counts for as many targets as there are, the next for one less."""
    assert [one.p for one in adjusted_together(totals)] == pytest.approx(expected)


ROWS = [row(A, f"P{n}", raw_output="x" * 100) for n in (1, 2)]
LAB = {"kind": "ollama_openai", "base_url": "http://127.0.0.1:1/v1"}


def _server(**server):
    return {"serving": {A.label: {"server": server}}}


def _prompts(**second):
    return {"prompts": [definition("P1"), definition("P2", **second)]}


@pytest.fixture
def pair(tmp_path):
    def stored(base, candidate):
        runs = {"before": {"records": ROWS, **base}, "after": {"records": ROWS, **candidate}}
        return [load_run(store(tmp_path / name, **given)) for name, given in runs.items()]

    return stored


@pytest.mark.parametrize(
    ("base", "candidate", "reason", "detail", "n", "across"),
    [
        pytest.param(_prompts(), _prompts(prompt="Do it."), "prompt_changed", "prompt", 1, "prompt", id="prompt"),
        pytest.param(_prompts(), _prompts(validator={"type": "exact", "value": "x"}), "validator_changed", "validator", 1, "validator", id="validator"),
        pytest.param({}, {"stream": False}, "asked_differently", "stream true -> false", 2, "settings", id="setting"),
        pytest.param({}, {"providers": {"lab": {**LAB, "num_ctx": 9}}}, None, "", 0, "", id="setting-of-one-version"),
        pytest.param({"providers": {"lab": {**LAB, "num_ctx": 8}}}, {"providers": {"lab": {**LAB, "num_ctx": 9}}}, "asked_differently", "num_ctx 8 -> 9", 2, "settings", id="setting-of-a-provider"),
        pytest.param(_server(server_version="0.5.1", digest="a"), _server(server_version="0.6.0", digest="b"), "served_differently", "digest a -> b; server version 0.5.1 -> 0.6.0", 2, "serving", id="serving"),
        pytest.param({}, {"records": [replace(one, surface="openclaw") for one in ROWS]}, "on_another_surface", "surface listed -> openclaw", 2, "surface", id="surface"),
    ],
)  # fmt: skip
def test_cells_that_differ_are_set_aside_unless_looked_across(
    pair, base, candidate, reason, detail, n, across
):
    """Each difference has its reason and its detail, and each can be ignored by an option."""
    runs = pair(base, candidate)

    found = [(one.reason, one.detail, one.n_cells) for one in compare_runs(*runs).set_aside]
    assert found == ([(reason, detail, n)] if reason else [])
    assert compare_runs(*runs, across={across}).set_aside == ()


@pytest.mark.parametrize(
    ("base", "candidate"),
    [
        pytest.param({}, {"retries": 9, "concurrency": {"everywhere": 4}, "verdict": "gate"}, id="pace-and-verdict"),
        pytest.param({}, {"repeat": 5, "baseline": "x", "across": ["serving"]}, id="repeats-and-baselines"),
        pytest.param({}, {"providers": {"lab": {**LAB, "base_url": "http://10.0.0.1/v1"}}}, id="address"),
        pytest.param(_prompts(), _prompts(tags=["new"], name="other", category="c", repeat=3), id="names-of-a-prompt"),
        pytest.param(_server(digest="a"), _server(server_version="1"), id="reported-by-one"),
    ],
)  # fmt: skip
def test_differences_without_an_effect_are_compared(pair, base, candidate):
    """These are settings such as speed, number and place of requests, or a prompt's name."""
    assert compare_runs(*pair(base, candidate)).set_aside == ()


def test_hosts_and_parts_serve_too(pair):
    """A server counts wherever it is recorded: on another machine, in a merged part, when resumed."""
    one, other = {"server": {"digest": "a"}}, {"server_when_resumed": {"digest": "c"}}
    parts = [{"run_id": "p", "targets": {A.label: {**one, **other}}}]
    merged = {"hosts": {"h": {"targets": {A.label: one}}}, "parts": parts}

    (apart,) = compare_runs(*pair(_server(digest="a"), {"inventory": merged})).set_aside

    assert apart.detail == "digest a -> a or c"


def test_possible_reasons_of_a_difference_are_noted(pair):
    """Another version, missing rows, and timeouts, which decide which slow cells are answered."""
    old, new = ({"packages": {"pytest-openclaw": version}} for version in ("1", "2"))
    prompts = [definition("P1", timeout_s=9.0), definition("P2")]
    changes = {"records": ROWS[:1], "n_selected": {A: 2}, "timeout_s": 60.0, "prompts": prompts}

    result = compare_runs(*pair({"inventory": old, **_prompts()}, {"inventory": new, **changes}))

    assert result.notes == (
        "after is not finished: 1 of its cells have no row",
        "timeout_s 300.0 -> 60.0",
        "judged by pytest-openclaw 1 -> 2; `rescore` judges both by one version",
    )
    assert (result.targets[0].verdicts.n_cells, result.targets[0].verdicts.n_open) == (1, 1)


@pytest.mark.parametrize(
    ("base", "candidate", "expected"),
    [
        pytest.param([A, B], [A, B], [(A.label, A.label), (B.label, B.label)], id="common"),
        pytest.param([A], [A, B], [(A.label, A.label)], id="one-common"),
        pytest.param([A], [B], [(A.label, B.label)], id="two-models"),
        pytest.param([A, B], [row(A, "P1").target], [(A.label, A.label)], id="one-gone"),
    ],
)
def test_which_targets_are_compared(pair, base, candidate, expected):
    """Targets of both runs are compared; or the only one of each, if they have none in common."""
    rows = [[row(target, "P1") for target in targets] for targets in (base, candidate)]

    targets = compare_runs(*pair({"records": rows[0]}, {"records": rows[1]})).targets

    assert [(one.base_target, one.target) for one in targets] == expected


def test_two_models_are_not_served_alike(pair):
    """If two models are compared, their servers and answering names do not exclude them."""
    before = {"records": [row(A, "P1", effective_model="a")], **_server(digest="a")}
    missed_by_b = missed(B, prompt_id="P1", suite=SUITE, effective_model="b")
    after = {"records": [missed_by_b], "serving": {B.label: {"server": {"digest": "b"}}}}

    result = compare_runs(*pair(before, after))

    assert result.set_aside == ()
    assert result.targets[0].verdicts.n_worse == 1


def test_targets_can_be_named(tmp_path):
    """A target of one run is compared with a target of the other, by their labels."""
    run = load_run(store(tmp_path / "r", [row(A, "P1"), row(B, "P1")]))

    assert named_targets(run, run, [f"{A.label}={B.label}", B.label]) == [(A, B), (B, B)]
    with pytest.raises(OpenClawError, match=r"--target: r has no target lab/x; it has lab/a, lab/b@low"):
        named_targets(run, run, ["lab/x"])


def test_the_value_of_across_is_checked():
    """It is a list of known words."""
    assert parse_across(" serving, prompt ,") == {"serving", "prompt"}
    with pytest.raises(OpenClawError, match="unknown difference 'server'; choose from prompt, "):
        parse_across("server")


def test_a_baseline_is_found_by_path_id_or_as_the_last(tmp_path):
    """The last one is the newest run that is neither this one nor still running."""
    runs = tmp_path / "runs"
    for age, name in enumerate(["living", "resumed", "third", "fourth"]):
        os.utime(store(runs / name, ROWS) / "results.jsonl", (1000 - age, 1000 - age))

    with RunDirectory(runs / "living"):
        assert read_baseline("last", runs, besides=runs / "resumed").run_id == "third"
        with pytest.raises(OpenClawError, match="a run is writing there now"):
            read_baseline("living", runs)
    assert read_baseline("fourth", runs).run_id == "fourth"
    assert read_baseline(str(runs / "fourth"), tmp_path).run_id == "fourth"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("last", "there is no other run in", id="no-other"),
        pytest.param("lost", "there is no run lost, neither here nor in", id="unknown"),
        pytest.param("own", "own is the run that continues", id="itself"),
    ],
)
def test_a_wrong_baseline_is_refused(tmp_path, name, message):
    """The message names the error."""
    store(tmp_path / "own", ROWS)

    with pytest.raises(OpenClawError, match=message):
        read_baseline(name, tmp_path, besides=tmp_path / "own")
