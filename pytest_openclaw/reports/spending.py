"""The lines about unknown costs at a session's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.providers.prices import has_list, install_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.providers.prices import Prices
    from pytest_openclaw.stats.summary import Summary


def how_to_price(labels: Sequence[str]) -> str:
    """Say how the prices of targets become known that only the list has."""
    return f"the extra `cost` has the list prices of {', '.join(labels)}"


def notes_on_cost(prices: Prices, summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield how to get the prices that are missing, each note a label and a text."""
    unpriced = [
        group.target.label
        for group in summary.groups
        if group.n_ok and group.cost_usd is None and prices.needs_list(group.target)
    ]
    if unpriced and not has_list():
        yield "cost unknown", how_to_price(unpriced)
        yield "next", install_list()
