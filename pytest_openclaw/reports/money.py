"""What calls cost, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import DASH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.stats.groups import Group


def render_usd(usd: float | None) -> str:
    """Return `12.40 USD`, or three significant digits: `0.00123 USD`."""
    if usd is None:
        return DASH
    if usd == 0 or usd >= 1:
        return f"{usd:.2f} USD"
    # Never as 1e-05.
    figures = f"{usd:.12f}".rstrip("0")
    zeros = len(figures) - len(figures[2:].lstrip("0")) - 2
    return f"{usd:.{max(2, zeros + 3)}f}".rstrip("0").ljust(4, "0") + " USD"


def render_cost(groups: Sequence[Group]) -> str | None:
    """Return the cost of a run; None without a charge. The table has it by target."""
    charged = [group for group in groups if group.cost_usd]
    if not charged:
        return None
    total = render_usd(sum(group.cost_usd or 0.0 for group in charged))
    return f"{total}, {charged[0].target.label}" if len(charged) == 1 else f"{total}, {len(charged)} targets"
