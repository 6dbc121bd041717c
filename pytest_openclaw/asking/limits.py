"""What bounds the requests of a run: the limit of each endpoint, outages, retries, the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.replies import Fault
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0


class DownMarks:
    """The endpoints and targets that are not asked any more, each with its first fault."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}

    def add(self, endpoint: str, target: Target, fault: Fault) -> None:
        """Remember a fault that affects more than its own cell."""
        if fault.scope != "cell":
            self._faults.setdefault(
                _endpoint(endpoint) if fault.scope == "endpoint" else _target(target), fault
            )

    def fault(self, endpoint: str, target: Target) -> Fault | None:
        """Return the fault because of which this target is not asked any more, if there is one."""
        return self._faults.get(_endpoint(endpoint)) or self._faults.get(_target(target))


def endpoint_limits(providers: Mapping[str, Provider], settings: Settings) -> dict[str, int]:
    """Return the limit of each endpoint: where several providers share one, the smallest of theirs."""
    limits: dict[str, int] = {}
    for name, provider in providers.items():
        limit = settings.concurrency.limit(name, is_local=provider.is_local)
        limits[provider.endpoint] = min(limit, limits.get(provider.endpoint, limit))
    return limits


def _endpoint(name: str) -> str:
    return f"endpoint {name}"


def _target(target: Target) -> str:
    return f"target {target.label}"


def wait_before_retry(
    fault: Fault,
    *,
    attempt: int,
    retries: int,
    elapsed_s: float,
    timeout_s: float,
    random: Callable[[], float],
) -> float | None:
    """Return the seconds to wait before the next attempt, or None if there shall be none.

    Exponential back-off with full jitter (Brooker, "Exponential Backoff And Jitter", AWS Architecture
    Blog, 2015): a random time up to 1, 2, 4 … s, at most 60 s. A server's `Retry-After` goes first. No
    attempt begins later than `timeout_s` after the first, so a cell takes twice that at most; a server that
    asks for more is not asked again.

    Args:
        fault: how the attempt ended.
        attempt: attempts made so far, 1 or more.
        retries: attempts allowed after the first.
        elapsed_s: seconds since the first attempt of this cell began.
        timeout_s: the cell's time for one attempt.
        random: draws from 0 to 1.
    """
    if not fault.retryable or attempt > retries:
        return None
    if fault.retry_after_s is not None:
        wait_s = max(0.0, fault.retry_after_s)
    else:
        wait_s = random() * min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 10))
    return wait_s if elapsed_s + wait_s <= timeout_s else None


class Budget:
    """The money that a run has spent. The cost of a reply counts when the reply arrives.

    Attributes:
        spent_usd: so far; without a budget nothing is counted.

    Args:
        budget_usd: no request is sent after this much is spent; None sets no limit.
    """

    def __init__(self, budget_usd: float | None) -> None:
        self.budget_usd = budget_usd
        self.spent_usd = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether the budget is spent."""
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    def pay(self, usd: float) -> None:
        """Add the cost of an attempt."""
        if self.budget_usd is not None:
            self.spent_usd += usd
