"""Which faults deserve another attempt, and after how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.types.replies import Fault

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0


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
