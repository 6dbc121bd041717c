"""The lines about money at a session's end."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from pytest_openclaw.providers.prices import has_list, install_list
from pytest_openclaw.reports.numbers import render_usd
from pytest_openclaw.util.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.providers.prices import Prices
    from pytest_openclaw.stats.summary import Summary

_CENT = 0.01


def how_to_price(labels: Sequence[str]) -> str:
    """Say how the prices of targets become known that only the list has."""
    return f"the extra `cost` has the list prices of {', '.join(labels)}"


def notes_on_cost(prices: Prices, summary: Summary, *, is_resumed: bool) -> Iterator[tuple[str, str]]:
    """Yield notes on the run's cost, each a label and a text."""
    unpriced = [
        group.target.label
        for group in summary.groups
        if group.n_ok and group.cost_usd is None and prices.needs_list(group.target)
    ]
    if unpriced and not has_list():
        yield "cost unknown", how_to_price(unpriced)
        yield "next", install_list()
    if (budget := summary.budget) is not None:
        spent = f"{render_usd(budget.spent_usd)} of {render_usd(budget.budget_usd)} spent"
        cells_usd = fsum(group.cost_usd or 0.0 for group in summary.groups)
        if is_resumed:  # the cost of the cells is that of all sessions
            spent += " by this session"
        elif budget.spent_usd - cells_usd >= _CENT:
            spent += ", with warm-ups and the most that requests without counts can have cost"
        n = budget.n_not_asked
        yield "budget", f"{spent}; {counted(n, 'cell')} not asked" if n else spent
