"""How long a turn of OpenClaw waits, and whether it fits."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.stats.groups import Group, summarize_group
from pytest_openclaw.stats.serving import context_in, turn_of
from pytest_openclaw.values.rows import Record
from tests.unit.reports.summaries import TARGET, record, restraint_cells, tool_cells


def read(speed: float | None, tokens: int = 1000, cached: int | None = None, **changes: Any) -> Record:
    """A row whose prompt was read at that speed."""
    return record(input_tokens=tokens, cached_tokens=cached, prompt_tokens_per_s=speed, **changes)


@pytest.mark.parametrize(
    ("rows", "wait_ms", "bearable"),
    [
        pytest.param([read(1000.0)], 10_000, "yes", id="at-the-limit"),
        pytest.param([read(999.0)], 10_010, "slow", id="above"),
        pytest.param([read(10_000 / 300)], 300_000, "slow", id="just-not-aborted"),
        pytest.param([read(33.0)], 303_030, "aborted", id="aborted"),
        pytest.param([read(1000.0, 3000), read(100.0, 1000)], 32_500, "slow", id="all-tokens-by-all-time"),
        pytest.param([read(1000.0), read(1.0, 1010, 1000)], 10_000, "yes", id="a-cached-prompt-says-nothing"),
    ],
)  # fmt: skip
def test_a_turn_waits_for_its_prompt(rows: list[Record], wait_ms: float, bearable: str) -> None:
    """10,000 tokens at the speed at which the server reads; after 300 s OpenClaw aborts the request."""
    turn = turn_of(rows, None)

    assert turn is not None
    assert (turn.wait_ms, turn.bearable, turn.fits) == (wait_ms, bearable, None)


def test_the_prompt_of_a_turn_is_measured_on_its_surface() -> None:
    """The row of an exchange has the sum of all its turns."""
    rows = [
        read(1000.0, 9000, surface="openclaw"),
        read(None, 20_000, surface="openclaw", ended_by="answer"),
    ]

    turn = turn_of(rows, None)

    assert turn is not None
    assert (turn.prompt_tokens, turn.wait_ms) == (9000, 9000)


@pytest.mark.parametrize(("context", "fits"), [(16_384, True), (16_383, False)])
def test_the_context_that_it_needs(context: int, fits: bool) -> None:
    """It is what OpenClaw's onboarding requires; the speed need not be known."""
    turn = turn_of([], context)

    assert turn is not None
    assert (turn.fits, turn.wait_ms, turn.bearable) == (fits, None, None)
    assert turn_of([], None) is None


def test_the_context_of_a_server() -> None:
    """The smallest of a merged run's parts; a server that does not report it has none."""
    here = {"p/m": {"server": {"context_length": 8192}}}
    there = {"parts": [{"targets": {"p/m": {"server": {"context_length": 4096}}}}]}

    assert context_in({"targets": here}, "p/m") == 8192
    assert context_in({"targets": here, **there}, "p/m") == 4096
    assert context_in({"targets": {"p/m": {"warm_up": {}, "server": None}}}, "p/m") is None


def group(speed: float | None, context: int | None = None, **changes: Any) -> Group:
    """A target that is trusted with tools, but for its speed and context."""
    given = {"tools_offered": 2, "tool_demand": "call", "input_tokens": 100, "prompt_tokens_per_s": speed}
    rows = [*tool_cells(30, 0, **{**given, **changes}), *restraint_cells(30, 0, tools_offered=2)]
    inventory = {"targets": {TARGET.label: {"server": {"context_length": context}}}}
    return summarize_group(TARGET, rows, inventory, n_targets=1)


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
    """It is not a caveat; without the server's timing there is no statement."""
    found, unknown = group(5000.0, 32_768).recommendation, group(None).recommendation

    assert "an OpenClaw turn of 10,000 tokens waits about 2.0 s for its first token" in {
        reason.text for reason in found.reasons
    }
    assert "OpenClaw turn" not in found.sentence + unknown.sentence
    assert "turn" not in {reason.code for reason in unknown.reasons}


def test_the_release_is_named() -> None:
    """The recommendation has it as a value and as a reason, or has neither."""
    rows = tool_cells(3, 0, tools_offered=2)

    named, unnamed = (
        summarize_group(TARGET, rows, {"openclaw_release": release}, n_targets=1).recommendation
        for release in ("2026.9.6", None)
    )

    assert (named.release, unnamed.release) == ("2026.9.6", None)
    assert named.reasons[-1].text == "by the tools and rules of OpenClaw 2026.9.6"
    assert [reason.code for reason in unnamed.reasons] == [reason.code for reason in named.reasons[:-1]]
    assert named.sentence == unnamed.sentence
