"""Checks a budget before the session, and reports costs after it."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.providers.prices import Prices, has_list, install_list
from pytest_openclaw.reports.numbers import render_usd
from pytest_openclaw.suites import is_wildcard
from pytest_openclaw.util.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_openclaw.stats.summary import Budget, Summary
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.settings import Settings


_BESIDE = "warm-up requests, and the most that requests without counts can have cost"
_DIGITS = 9


def check_budget(settings: Settings, providers: Mapping[str, Provider]) -> None:
    """Reject a budget that cannot be enforced: a target's price must be known before its first call.

    Raises:
        pytest.UsageError: a target has no price; the message names it and has a hint.

    """
    budget_usd = settings.budget_usd
    if budget_usd is None:
        return
    prices = Prices(providers, settings)
    unknown = [
        target for target in settings.targets if not is_wildcard(target) and not prices.is_known(target)
    ]
    if not unknown:
        return
    if any(map(prices.needs_list, unknown)) and not has_list():
        hint = f"Install the list of prices ({install_list()}), or give"
    else:
        hint = "Name a model as the list of prices names it, or give"
    labels = ", ".join(target.label for target in unknown)
    raise pytest.UsageError(
        f"--openclaw-budget-usd={budget_usd:g}: what {labels} costs is "
        f"not known, so the budget could not be kept. {hint} its price in the ini file, in USD per million "
        f"tokens: openclaw_prices = {unknown[0].label} = INPUT OUTPUT"
    )


def _beside_cells(budget: Budget, summary: Summary) -> float:
    """Return what was charged to the budget and is in no row."""
    cells_usd = fsum(group.cost_usd or 0.0 for group in summary.groups)
    return max(0.0, round(budget.spent_usd - cells_usd, _DIGITS))


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
        alone = " by this session alone" if is_resumed else ""
        spent = f"{render_usd(budget.spent_usd)} of {render_usd(budget.budget_usd)} spent{alone}"
        # The cost of a resumed run is that of all its sessions.
        if not is_resumed and (beside := _beside_cells(budget, summary)):
            spent += f", {render_usd(beside)} of it beside the cost of the cells: {_BESIDE}"
        n = budget.n_not_asked
        yield "budget", f"{spent}; {counted(n, 'cell')} not asked" if n else spent
