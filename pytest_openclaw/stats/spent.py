"""A session's budget and its spending."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.types.faults import BUDGET_SPENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_openclaw.types.records import Record


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Budget and spending of one session.

    Attributes:
        spent_usd: may exceed the budget by what was in flight when it was reached.
        n_not_asked: cells that were not asked, or not to their end, because the budget was spent.
    """

    budget_usd: float
    spent_usd: float
    n_not_asked: int


def budget_of(records: Iterable[Record], budget_usd: float, spent_usd: float) -> Budget:
    """Return the spending of a session from its rows and its budget."""
    return Budget(
        budget_usd=budget_usd,
        spent_usd=spent_usd,
        n_not_asked=sum(record.failure_type == BUDGET_SPENT for record in records),
    )
