"""What a run has spent, and whether that is its budget.

Every reply's cost counts when the reply arrives, not when its test takes it, so that what was sent ahead
counts too.
"""

from __future__ import annotations


class SpentBudget:
    """A run's spending; records nothing without a budget.

    The asker counts what its own calls cost. A test process and a controller know what they have received.

    Attributes:
        here_usd: spent by this machine.
        elsewhere_usd: spent by the rest of the run, as far as it is known here.

    Args:
        budget_usd: at which nothing more is sent; None is no limit.
    """

    def __init__(self, budget_usd: float | None) -> None:
        self.budget_usd = budget_usd
        self.here_usd = 0.0
        self.elsewhere_usd = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether the budget is spent."""
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    @property
    def spent_usd(self) -> float:
        """What the run has spent everywhere."""
        return self.here_usd + self.elsewhere_usd

    def pay(self, usd: float) -> None:
        """Count what an attempt has cost."""
        if self.budget_usd is not None:
            self.here_usd += usd

    def count_here(self, usd: float) -> None:
        """Take what this machine has spent so far; an older message changes nothing."""
        self.here_usd = max(usd, self.here_usd)

    def count_elsewhere(self, usd: float) -> None:
        """Take what the rest of the run has spent so far; an older message changes nothing."""
        self.elsewhere_usd = max(usd, self.elsewhere_usd)
