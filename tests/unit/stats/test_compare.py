"""Two runs, compared cell by cell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_openclaw.reports.comparison import details_of
from pytest_openclaw.stats.comparison import ComparedRuns, Obstacle, Obstacles
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from tests.unit.reports.summaries import TARGET, cell, record, tool_cells
from tests.unit.stats.compared import cells, compare, only

OTHER = Target(provider="ollama_openai", model="other")


# --- verdicts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "candidate", "word", "counts"),
    [
        pytest.param("++++++", "------", "worse", (6, 6, 0, 0, 6), id="six-worse"),
        pytest.param("------++", "++++++++", "better", (8, 2, 8, 6, 0), id="six-better"),
        pytest.param("++oo", "+-oo", "no difference seen", (2, 2, 1, 0, 1), id="without-validator-no-verdict"),
        pytest.param("oo", "oo", "not compared", (0, 0, 0, 0, 0), id="nothing-judged"),
    ],
)  # fmt: skip
def test_a_target_is_better_or_worse_or_neither(
    base: str, candidate: str, word: str, counts: tuple[int, ...]
) -> None:
    """The verdict comes from the exact test; it depends on the prompts that differ."""
    verdicts = only(cells(base), cells(candidate)).verdicts

    assert verdicts.word == word
    assert (
        verdicts.n_cells,
        verdicts.n_base,
        verdicts.n_candidate,
        verdicts.n_better,
        verdicts.n_worse,
    ) == counts


def test_silence_is_a_miss() -> None:
    """An empty or refused reply has not passed, as in the rate of a run."""
    silent = cells("++++++", success=False, objective_pass=None, failure_type="empty_response")

    assert only(cells("++++++"), silent).verdicts.word == "worse"


def test_repeats_of_a_prompt_prove_no_more_than_a_prompt() -> None:
    """Five prompts that fail five times each are five prompts; sixty cells of them prove nothing."""
    base = [row for repeat in range(1, 6) for row in cells("+++++", repeat=repeat)]
    candidate = [row for repeat in range(1, 6) for row in cells("-----", repeat=repeat)]

    verdicts = only(base, candidate).verdicts

    assert (verdicts.n_prompts, verdicts.n_cells, verdicts.word) == (5, 25, "no difference seen")
    assert verdicts.p == 2 / 2**5


def test_targets_share_the_level() -> None:
    """Six worse prompts are conclusive in a single target, and not in one of two compared targets."""
    base, candidate = cells("++++++"), cells("------")
    others = cells("++++++", OTHER)

    compared = compare([*base, *others], [*candidate, *others], [(TARGET, TARGET), (OTHER, OTHER)])

    assert [one.verdicts.word for one in compared.targets] == ["no difference seen"] * 2
    assert compared.targets[0].verdicts.p == 4 / 2**6


def test_a_loss_that_is_seen_has_an_interval_of_losses() -> None:
    """Six prompts that all pass less often of four times: p 0.03, where Student's t reaches above 0."""
    base = [row for repeat in (1, 2, 3, 4) for row in cells("++++++", repeat=repeat)]
    marks = ("+---++", "+---++", "----++", "------")
    candidate = [row for repeat, each in enumerate(marks, 1) for row in cells(each, repeat=repeat)]

    verdicts = only(base, candidate).verdicts

    assert (verdicts.word, verdicts.p) == ("worse", 2 / 2**6)
    assert verdicts.interval_95 is not None
    assert verdicts.interval_95.high == 0


@settings(deadline=None)
@given(st.lists(st.sampled_from(["++", "+-", "-+", "--"]), max_size=30))
def test_interval_and_word_never_contradict(prompts: list[str]) -> None:
    """Without a significant difference the interval contains zero, otherwise not; swapped runs mirror all."""
    base, candidate = (cells("".join(prompt[side] for prompt in prompts)) for side in (0, 1))
    forth, back = only(base, candidate).verdicts, only(candidate, base).verdicts

    if forth.word == "no difference seen":
        assert forth.interval_95 is not None
        assert forth.interval_95.low <= 0 <= forth.interval_95.high
    if forth.word == "worse":
        assert forth.interval_95 is not None
        assert forth.interval_95.high <= 0
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
def test_cells_without_an_answer_may_have_failed(
    base: str, candidate: str, words: tuple[str, str], n_open: int
) -> None:
    """The verdict is computed without them, and as if they had all failed."""
    verdicts = only(cells(base), cells(candidate)).verdicts

    assert (verdicts.word, verdicts.if_failed, verdicts.n_open) == (*words, n_open)


@pytest.mark.parametrize(
    ("unfinished", "n_open"), [pytest.param(frozenset(), 0, id="not-selected"), pytest.param({TARGET}, 4, id="not-asked")]
)  # fmt: skip
def test_cells_that_were_not_asked_are_open(unfinished: Any, n_open: int) -> None:
    """A cell that only the baseline has was not selected, unless the candidate was not asked to the end."""
    one = only(cells("++++++"), cells("++"), unfinished=frozenset(unfinished))

    assert one.verdicts.n_open == n_open


# --- cells set aside --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "candidate", "obstacles", "reason"),
    [
        pytest.param("++", "+", Obstacles(), ("only_in_baseline", "", 1), id="gone"),
        pytest.param("+", "++", Obstacles(), ("only_in_candidate", "", 1), id="new"),
        pytest.param("+?", "++", Obstacles(), ("not_answered_in_baseline", "", 1), id="baseline-silent"),
        pytest.param("++", "+?", Obstacles(), ("not_answered_in_candidate", "", 1), id="candidate-silent"),
        pytest.param("++", "++", Obstacles(of_prompts={("s", "P2"): Obstacle("prompt_changed", "system")}), ("prompt_changed", "system", 1), id="prompt"),
        pytest.param("++", "++", Obstacles(of_targets={TARGET: Obstacle("served_differently", "digest")}), ("served_differently", "digest", 2), id="serving"),
        pytest.param("++", "+?", Obstacles(of_prompts={("s", "P2"): Obstacle("validator_changed")}), ("validator_changed", "", 1), id="changed-goes-before-silent"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_set_aside(
    base: str, candidate: str, obstacles: Obstacles, reason: tuple[str, str, int]
) -> None:
    """Each has its reason; the others are compared."""
    compared = compare(cells(base), cells(candidate), obstacles=obstacles)

    (apart,) = compared.set_aside
    assert (apart.reason, apart.detail, apart.n_cells) == reason
    assert apart.target == TARGET.label
    assert compared.targets[0].verdicts.n_cells == 2 - apart.n_cells


@pytest.mark.parametrize(("used", "n"), [(True, 1), (False, 2)])
def test_another_model_that_answers_is_another_serving(used: bool, n: int) -> None:
    """The server's name of the answering model counts, cell by cell, if both runs have it."""
    base = [*cells("+", effective_model="m-1"), *cells("+", repeat=2)]
    candidate = [*cells("+", effective_model="m-2"), *cells("+", repeat=2, effective_model="m-2")]

    compared = compare(base, candidate, obstacles=Obstacles(with_answering_model=used))

    assert compared.targets[0].verdicts.n_cells == n
    assert [(one.reason, one.detail) for one in compared.set_aside] == (
        [("served_differently", "answered by m-1 -> m-2")] if used else []
    )


def test_targets_of_one_run_are_listed() -> None:
    """A target that the other run does not have is compared with nothing."""
    compared = compare([*cells("+"), *cells("++", OTHER)], cells("+"))

    assert [(one.target, one.reason, one.n_cells) for one in compared.set_aside] == [
        (OTHER.label, "only_in_baseline", 2)
    ]


def test_cells_are_listed_under_the_target_that_has_them() -> None:
    """If two models are compared, cells only in the baseline belong to the baseline's model."""
    compared = compare(cells("+++"), [*cells("+", OTHER), *cells("+", OTHER, repeat=2)], [(TARGET, OTHER)])

    assert [(one.target, one.reason, one.n_cells) for one in compared.set_aside] == [
        (TARGET.label, "only_in_baseline", 2),
        (OTHER.label, "only_in_candidate", 1),
    ]


@pytest.mark.parametrize("n", [0, 3, 8])
def test_a_written_comparison_is_read_as_it_was(n: int) -> None:
    """This covers comparisons with and without intervals, with excluded cells and different conditions."""
    made = compare(
        [*cells("+" * n + "?"), *cells("+", OTHER)], cells("-" * n + "?", in_flight=3, host="b"), notes=["x"]
    )

    written = asdict(made)

    assert msgspec.convert(json.loads(json.dumps(written)), ComparedRuns) == made


# --- ratios -------------------------------------------------------------------------------------


def _timed(values: Sequence[int], **changes: Any) -> list[Record]:
    return [record(prompt_id=f"P{n}", e2e_ms=value, **changes) for n, value in enumerate(values)]


def test_a_ratio_is_the_median_over_prompts() -> None:
    """Candidate / baseline, prompt by prompt; the interval comes from order statistics."""
    base = _timed([100, 200, 300, 400, 500, 600, 700], ttft_ms=50)
    candidate = _timed([150, 320, 420, 800, 500, 1200, 1400], ttft_ms=25)

    found = only(base, candidate).ratios

    latency = found["latency"]
    assert (latency.ratio, latency.word) == (pytest.approx(1.6), "slower")
    assert latency.interval_95 is not None
    assert (latency.interval_95.low, latency.interval_95.high) == pytest.approx((1.0, 2.0))
    assert latency.p == scipy_stats.binomtest(6, 6).pvalue
    assert (found["ttft"].ratio, found["ttft"].word) == (0.5, "faster")
    assert (found["output_tokens"].ratio, found["output_tokens"].word) == (1.0, "no difference seen")
    assert "cost" not in found


def test_a_prompts_repeats_are_one_ratio() -> None:
    """A prompt's ratio is that of its geometric means; with fewer than six prompts there is no interval."""
    base = [*_timed([100, 100]), *_timed([100, 100], repeat=2)]
    candidate = [*_timed([200, 100]), *_timed([800, 100], repeat=2)]

    latency = only(base, candidate).ratios["latency"]

    assert (latency.n_prompts, latency.ratio, latency.interval_95) == (2, pytest.approx(2.0), None)


def test_only_what_succeeded_on_both_sides_has_a_ratio() -> None:
    """An empty reply is quick, and says nothing about speed; a free one has no price to compare."""
    base = _timed([100, 100], cost_usd=0.0)
    candidate = [base[0], record(prompt_id="P1", e2e_ms=1, success=False, objective_pass=None)]

    found = only(base, candidate).ratios

    assert found["latency"].n_prompts == 1
    assert "cost" not in found


@settings(deadline=None)
@given(st.integers(6, 400))
def test_the_interval_of_a_median(n: int) -> None:
    """The ranks are binomial: 19 times out of 20 or more often, and the narrowest that are."""
    interval = only(_timed([1000] * n), _timed([1000 + k for k in range(n)])).ratios["latency"].interval_95

    assert interval is not None
    low = round(interval.low * 1000) - 1000
    assert round(interval.high * 1000) - 1000 == n - 1 - low
    assert 2 * scipy_stats.binom.cdf(low, n, 0.5) <= 0.05 < 2 * scipy_stats.binom.cdf(low + 1, n, 0.5)


def test_outcomes_of_tool_use_that_changed_are_counted() -> None:
    """Nine prompts that ended well have bad arguments now."""
    base = [*tool_cells(39, 1), cell("X", "valid")]
    candidate = [
        *tool_cells(39, 1)[9:],
        *(cell(f"U{n}", "bad_arguments") for n in range(9)),
        cell("X", "valid"),
    ]

    found = only(base, candidate)

    assert {one.outcome: (one.n_base, one.n_candidate) for one in found.outcomes} == {
        "valid": (40, 31), "bad_arguments": (0, 9),
    }  # fmt: skip
    assert ("tool use", "valid 40 -> 31, bad_arguments 0 -> 9") in [*details_of(found)]


def test_other_conditions_are_noted() -> None:
    """A ratio depends on the machine too, if that was another one."""
    base, candidate = _timed([100], host="a", in_flight=1), _timed([100], host="b", in_flight=8)

    assert only(base, candidate).notes == ("host: a -> b", "requests in flight: 1 -> 8")
    assert only(base, base).notes == ()


def test_the_range_is_the_published_formula() -> None:
    """Bonett & Price with Student's t over whole prompts, k + 1 degrees of freedom, by NumPy and SciPy."""
    base = [*cells("+" * 20 + "-" * 10), *cells("+" * 25 + "-" * 5, repeat=2)]
    candidate = [*cells("+" * 12 + "-" * 18), *cells("-" * 4 + "+" * 26, repeat=2)]
    passed = [np.array([one.objective_pass for one in rows]).reshape(2, 30) for rows in (base, candidate)]
    differences = (passed[1].astype(int) - passed[0].astype(int)).sum(axis=0)
    totals, sizes = np.append(differences, (2, -2)), np.full(32, 2)

    middle = totals.sum() / sizes.sum()
    half = scipy_stats.t.ppf(0.975, 31) * np.sqrt(((totals - middle * sizes) ** 2).sum()) / sizes.sum()
    found = only(base, candidate).verdicts.interval_95

    assert found is not None
    assert (found.low, found.high) == (
        pytest.approx(middle - half, abs=1e-5),
        pytest.approx(middle + half, abs=1e-5),
    )
