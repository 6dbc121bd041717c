"""How long a turn of OpenClaw waits, and what a solved task costs."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.stats.groups import Group, Snapshots, summarize_group
from pytest_openclaw.stats.weight import context_in, per_solved, prompt_speed, turn_of
from tests.unit.reports.summaries import TARGET, missed, record, restraint_cells, tool_cells


def test_speed_of_reading() -> None:
    """All tokens by all time: a long prompt counts for more, and what was cached not at all."""
    rows = [
        record(input_tokens=1000, prompt_tokens_per_s=100.0),
        record(input_tokens=1010, cached_tokens=1000, prompt_tokens_per_s=10.0),
        record(input_tokens=5000),
    ]

    assert prompt_speed(rows) == round(1010 / 11, 1)
    assert prompt_speed(rows[2:]) is None
    assert prompt_speed([]) is None


@pytest.mark.parametrize(
    ("speed", "cold_ms", "bearable"),
    [
        pytest.param(1000.0, 10_000, "yes", id="at-the-limit"),
        pytest.param(999.0, 10_010, "slow", id="above"),
        pytest.param(10_000 / 300, 300_000, "slow", id="just-not-aborted"),
    ],
)
def test_what_is_bearable(speed: float, cold_ms: int, bearable: str) -> None:
    """Ten seconds are; after 300 OpenClaw aborts the request."""
    turn = turn_of([], speed, None)

    assert turn is not None
    assert (turn.cold_ms, turn.bearable, turn.fits) == (cold_ms, bearable, None)


@pytest.mark.parametrize(("context", "fits"), [(16_384, True), (16_383, False)])
def test_the_context_that_it_needs(context: int, fits: bool) -> None:
    """It is what OpenClaw's onboarding requires; the speed need not be known."""
    turn = turn_of([], None, context)

    assert turn is not None
    assert (turn.fits, turn.cold_ms, turn.bearable) == (fits, None, None)
    assert turn_of([], None, None) is None


def test_the_context_of_a_server() -> None:
    """The smallest of a merged run's parts; a server that does not report it has none."""
    here = {"p/m": {"server": {"context_length": 8192}}}
    there = {"parts": [{"targets": {"p/m": {"server": {"context_length": 4096}}}}]}

    assert context_in({"targets": here}, "p/m") == 8192
    assert context_in({"targets": here, **there}, "p/m") == 4096
    assert context_in({"targets": {"p/m": {"warm_up": {}, "server": None}}}, "p/m") is None


def test_a_solved_task() -> None:
    """Missed tasks are paid for by the solved ones; an exchange has several turns."""
    counts = {"input_tokens": 90, "output_tokens": 10, "e2e_ms": 2000, "cost_usd": 0.5}
    rows = [record(**counts), record(turns=({}, {}, {}), **counts), missed(**counts)]

    found = per_solved(rows)

    assert found is not None
    assert (found.n_tasks, found.n_solved) == (3, 2)
    assert (found.tokens, found.turns, found.seconds, found.cost_usd) == (150, 2.5, 3.0, 0.75)
    unknown = per_solved([*rows, missed()])
    assert unknown is not None
    assert (unknown.tokens, unknown.cost_usd) == (None, None)
    assert per_solved(rows[2:]) is None


def group(speed: float | None, context: int | None = None, **changes: Any) -> Group:
    """A target that is trusted with tools, but for its speed and context."""
    given = {"tools_offered": 2, "tool_demand": "call", "input_tokens": 100, "prompt_tokens_per_s": speed}
    rows = [*tool_cells(30, 0, **{**given, **changes}), *restraint_cells(30, 0, tools_offered=2)]
    return summarize_group(TARGET, rows, Snapshots(context_tokens=context), n_targets=1)


@pytest.mark.parametrize(
    ("speed", "context", "code", "words"),
    [
        pytest.param(244.0, None, "turn_slow", "an OpenClaw turn of 10,000 tokens waits about 41 s for its first token unless they are cached, longer than the 10 s that are bearable", id="slow"),
        pytest.param(25.0, None, "turn_aborted", "waits about 400 s for its first token unless they are cached, and OpenClaw aborts it after 300 s", id="aborted"),
        pytest.param(5000.0, 8192, "context_too_small", "OpenClaw needs 16,384 tokens of context, the server has 8,192", id="context"),
    ],
)  # fmt: skip
def test_the_recommendation_says_it(speed: float, context: int | None, code: str, words: str) -> None:
    """A turn that takes too long, or that does not fit, is part of the sentence."""
    found = group(speed, context).recommendation

    assert words in found.sentence
    assert code in {caveat.code for caveat in found.caveats}


def test_a_bearable_turn_is_a_reason() -> None:
    """It is no caveat; without the server's timing nothing is said."""
    found, unknown = group(5000.0, 32_768).recommendation, group(None).recommendation

    assert "an OpenClaw turn of 10,000 tokens waits about 2.0 s for its first token" in {
        reason.text for reason in found.reasons
    }
    assert "OpenClaw turn" not in found.sentence + unknown.sentence
    assert "turn" not in {reason.code for reason in unknown.reasons}


def test_the_release_is_named() -> None:
    """The recommendation has it as a value and as a reason; without it nothing is said."""
    rows = tool_cells(3, 0, tools_offered=2)

    named, unnamed = (
        summarize_group(TARGET, rows, Snapshots(release=release), n_targets=1).recommendation
        for release in ("2026.9.6", None)
    )

    assert (named.release, unnamed.release) == ("2026.9.6", None)
    assert named.reasons[-1].text == "by the tools and rules of OpenClaw 2026.9.6"
    assert [reason.code for reason in unnamed.reasons] == [reason.code for reason in named.reasons[:-1]]
    assert named.sentence == unnamed.sentence


def on_openclaw(ttft_ms: int, cached: int | None, **changes: Any) -> Any:
    """A cell with a prompt of OpenClaw's size."""
    given = {"surface": "openclaw", "input_tokens": 9000, "cached_tokens": cached, "ttft_ms": ttft_ms}
    return record(**{**given, **changes})


@pytest.mark.parametrize(
    ("rows", "cold_ms", "cached_ms", "bearable"),
    [
        pytest.param([on_openclaw(40_000, 0), on_openclaw(900, 8900), on_openclaw(1100, 8900)], 40_000, 1000, "yes", id="cached"),
        pytest.param([on_openclaw(40_000, 0), on_openclaw(41_000, 0)], 40_000, None, "slow", id="no-cache"),
        pytest.param([on_openclaw(900, 8900)], None, 900, "yes", id="filled-before"),
        pytest.param([on_openclaw(900, 8900, prompt_tokens_per_s=9.0)], None, 900, "yes", id="the-rest-says-nothing-of-the-whole"),
        pytest.param([on_openclaw(301_000, 0), on_openclaw(900, 8900)], 301_000, 900, "aborted", id="aborted"),
        pytest.param([on_openclaw(5000, 0, input_tokens=20_000, turns=({"input_tokens": 9000}, {}))], 5000, None, "yes", id="exchange"),
    ],
)  # fmt: skip
def test_a_turn_is_measured(
    rows: list[Any], cold_ms: int | None, cached_ms: int | None, bearable: str
) -> None:
    """The first cell on this surface is cold; later ones come from the cache, as in a session of OpenClaw."""
    turn = turn_of([record(ttft_ms=1), *rows], prompt_speed(rows), None)

    assert turn is not None
    assert (turn.is_measured, turn.prompt_tokens) == (True, 9000)
    assert (turn.cold_ms, turn.cached_ms, turn.bearable) == (cold_ms, cached_ms, bearable)
