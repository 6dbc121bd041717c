"""Where a target fails with more tools and more text."""

from __future__ import annotations

import pytest

from pytest_openclaw.stats.pressure import Load, pressure_levels, strain_of
from pytest_openclaw.values.rows import Record
from tests.unit.reports.summaries import fault, pressed, record, tool_cells

EASY = pressed("1t", 8, 0, tools=1)
USUAL = pressed("11t", 8, 0, tools=11)


def test_levels_count_their_own_cells() -> None:
    """Answered cells count, overflowed ones are counted separately, other faults and rows are ignored."""
    rows = [
        *pressed("16k", 1, 2, padding=16_000, overflown=3),
        *pressed("11t", 2, 0),
        fault(prompt_id="X9-11t", pressure_of="X9", tools_offered=11),
        *tool_cells(5, 0, tools_offered=11),
    ]

    levels = pressure_levels(rows)

    assert [
        (one.tools_offered, one.padding_tokens, one.n_success, one.n, one.n_overflow) for one in levels
    ] == [(11, 0, 2, 2, 0), (11, 16_000, 1, 3, 3)]


@pytest.mark.parametrize(
    ("rows", "holds_to", "breaks_at"),
    [
        pytest.param([*EASY, *USUAL, *pressed("54t", 8, 0, tools=54)], (54, None), (None, None), id="holds"),
        pytest.param([*EASY, *USUAL, *pressed("54t", 3, 5, tools=54)], (11, None), (54, None), id="half"),
        pytest.param([*EASY, *USUAL, *pressed("54t", 0, 0, tools=54, overflown=8)], (11, None), (54, None), id="overflow"),
        pytest.param([*pressed("1t", 5, 3, tools=1), *pressed("11t", 3, 5)], (1, None), (11, None), id="under-the-floor"),
        pytest.param([*EASY, *pressed("11t", 4, 4)], (11, None), (None, None), id="on-the-floor"),
        pytest.param([*pressed("1t", 3, 5, tools=1), *pressed("11t", 2, 6)], (None, None), (None, None), id="never-right"),
        pytest.param([*USUAL, *pressed("2k", 8, 0, padding=2000), *pressed("16k", 0, 0, padding=16_000, overflown=8)], (11, 2000), (None, 16_000), id="text"),
        pytest.param([*pressed("2k", 8, 0, padding=2000), *pressed("16k", 3, 5, padding=16_000)], (None, 2000), (None, 16_000), id="text-alone"),
        pytest.param([*EASY, *pressed("54t", 0, 8, tools=54), *pressed("2k", 5, 3, tools=1, padding=2000)], (1, 2000), (54, None), id="text-is-held-against-the-same-tools"),
        pytest.param([*pressed("1t", 0, 0, tools=1, overflown=8)], (None, None), (1, None), id="overflow-at-once"),
    ],
)  # fmt: skip
def test_where_it_breaks(
    rows: list[Record], holds_to: tuple[int | None, int | None], breaks_at: tuple[int | None, int | None]
) -> None:
    """The first level that keeps less than half, falls under Tier 2's floor, or does not fit at all."""
    strain = strain_of(pressure_levels(rows))

    assert strain is not None
    assert strain.holds_to == Load(tools_offered=holds_to[0], padding_tokens=holds_to[1])
    assert strain.breaks_at == Load(tools_offered=breaks_at[0], padding_tokens=breaks_at[1])


def test_cells_without_a_reply_break_nothing() -> None:
    """A server that was away for a level says nothing about the model."""
    away = [fault(prompt_id=f"X{n}-54t", pressure_of=f"X{n}", tools_offered=54) for n in range(8)]

    strain = strain_of(pressure_levels([*EASY, *away]))

    assert strain is not None
    assert (strain.holds_to.tools_offered, strain.breaks_at.tools_offered) == (1, None)


def test_a_prompt_without_a_rule_about_tools_counts_by_its_verdict() -> None:
    """Text before a plain question can break it too."""
    rows = [
        record(prompt_id="Q-2k", pressure_of="Q", padding_tokens=2000, objective_pass=passed)
        for passed in (True, False)
    ]

    (level,) = pressure_levels(rows)

    assert (level.n_success, level.n) == (1, 2)
