"""What a session says of money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.prices import EXTRA, Prices, has_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.state import State
    from pytest_openclaw.stats.summary import Summary


def notes_on_cost(state: State, summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield, as a label and a text, what the user may want to know of the run's cost."""
    prices = Prices(state.providers, state.settings)
    unpriced = [
        group.target.label
        for group in summary.groups
        if group.n_ok and group.cost_usd is None and prices.needs_list(group.target)
    ]
    if unpriced and not has_list():
        yield "cost unknown", f"{EXTRA} tells what {', '.join(unpriced)} costs"
