"""Which models may follow one that does not answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_openclaw.reports.role_text import render_chain
from pytest_openclaw.stats.candidates import Candidate
from pytest_openclaw.stats.chains import Chain, largest_request, why_not_at
from pytest_openclaw.stats.groups import Snapshots, summarize_group
from pytest_openclaw.stats.routing import plan_routes
from pytest_openclaw.types.targets import OPENCLAW
from tests.unit.reports.summaries import cell, record
from tests.unit.stats.routes import NATIVE, candidate, rows_of, settled, target


def chain(*rivals: Candidate, tokens: int | None = None) -> Chain:
    """The chain of a routing."""
    found = plan_routes(rivals, tokens).chain
    assert found is not None
    return found


def long(name: str, tokens: int = 12_000, **more: object) -> Candidate:
    """A trusted candidate whose requests had so many tokens."""
    return settled(name, 1, tokens=tokens, **more)  # type: ignore[arg-type]


def with_window(one: Candidate, context_tokens: int) -> Candidate:
    """The candidate on a server that reports its context."""
    snapshots = Snapshots(context_tokens=context_tokens)
    return replace(one, group=summarize_group(one.group.target, one.rows, snapshots, n_targets=1))


def test_the_fastest_come_first() -> None:
    """After the model for subagents, all that are trusted at the size follow by their speed."""
    found = chain(long("slow", e2e_ms=900), long("first", e2e_ms=10), long("next", e2e_ms=50))

    assert [one.ref for one in found.fallbacks] == ["ollama/next", "ollama/slow"]
    assert [*render_chain(found)] == [
        "fallbacks of subagents: ollama/next, ollama/slow; trusted in requests of OpenClaw's size, too"
    ]


def test_without_two_trusted_models_there_is_no_chain() -> None:
    """Nothing is said of fallbacks then."""
    assert plan_routes([long("one"), settled("some", 2)]).chain is None


def test_short_requests_prove_nothing_of_long_ones() -> None:
    """Neither for a fallback nor for the model before it; the reason is printed."""
    fallback = chain(long("first", e2e_ms=10), settled("short", 1))
    first = chain(settled("first", 1, e2e_ms=10), long("second"))

    assert (fallback.fallbacks, first.fallbacks) == ([], ())
    assert [*render_chain(fallback)] == [
        "fallbacks of subagents: none; no 2 models are trusted in requests of OpenClaw's size",
        "  not ollama_native/short: 0 of 0 prompts right in requests of 10,000 tokens or more, at least 3 and 80 % "
        "needed",
    ]


@pytest.mark.parametrize(
    ("tokens", "window", "reason"),
    [
        pytest.param(None, None, "", id="no-window-is-reported"),
        pytest.param(None, 16_384, "", id="large-enough"),
        pytest.param(
            None, 16_383, "its server has 16,383 tokens of context, 16,384 are needed", id="too-small"
        ),
        pytest.param(12_000, 16_096, "", id="request-and-reply"),
        pytest.param(
            12_000, 16_000, "its server has 16,000 tokens of context, 16,096 are needed", id="no-room-for-a-reply"
        ),
        pytest.param(
            12_001, None, "0 of 0 prompts right in requests of 12,001 tokens or more, at least 3 and 80 % needed",
            id="more-than-was-ever-asked",
        ),
    ],
)  # fmt: skip
def test_the_window_counts_where_it_is_reported(tokens: int | None, window: int | None, reason: str) -> None:
    """Elsewhere the requests that were answered right are the evidence."""
    one = long("m") if window is None else with_window(long("m"), window)

    assert why_not_at(one, tokens) == reason


def test_cells_on_openclaws_surface_are_of_its_size() -> None:
    """Whatever a tokenizer makes of them; a size that was asked for is compared with the tokens."""
    one = target("m")
    rows = rows_of(1, replace(one, surface=OPENCLAW), surface=OPENCLAW, input_tokens=9000)
    found = candidate("m", rows, replace(one, surface=OPENCLAW))

    assert why_not_at(found, None) == ""
    assert why_not_at(found, 9001).startswith("0 of 0 prompts right in requests of 9,001 tokens or more")


def test_misses_in_long_requests_count() -> None:
    """A model that is trusted in short requests may fail in long ones."""
    one = target("m")
    longer = [
        cell(f"L{n}", "valid" if n < 7 else "no_call", one, input_tokens=20_000, pressure_of="X", **NATIVE)
        for n in range(10)
    ]
    longer = [replace(row, pressure_of=row.prompt_id) for row in longer]
    found = candidate("m", [*rows_of(1, one, input_tokens=2000), *longer], one)

    assert why_not_at(found, 20_000) == (
        "7 of 10 prompts right in requests of 20,000 tokens or more, at least 3 and 80 % needed"
    )


def test_a_fallback_has_the_thinking_level_of_the_first() -> None:
    """The config has one level for all of them."""
    found = chain(long("first", e2e_ms=10), long("other", level="low"))

    assert found.fallbacks == []
    assert [reason for _, reason in found.left_out] == [
        "it was measured at another thinking level, and the config has one for all"
    ]


def test_another_level_of_the_first_is_no_fallback() -> None:
    """It is the same model."""
    assert chain(long("m"), long("m", level="low")).fallbacks == []


def test_the_largest_request_of_a_cell() -> None:
    """Of several turns each has its own size; the row's sum is that of none."""
    one, turns = record(input_tokens=500), ({"input_tokens": 300}, {"input_tokens": 400})

    assert largest_request(one) == 500
    assert largest_request(replace(one, input_tokens=700, turns=turns)) == 400
    assert largest_request(replace(one, input_tokens=700, turns=({}, {}))) == 0
    assert largest_request(replace(one, input_tokens=None)) == 0
