"""The time of day, told without jumps."""

from __future__ import annotations

import time

# Read together once: setting the system's clock while a run goes on must not put a row before an earlier one.
_ANCHOR_S = time.time() - time.perf_counter()


def epoch_ms(moment_s: float | None = None) -> int:
    """Return ms since the epoch, as this process counts them.

    Args:
        moment_s: a reading of `time.perf_counter`; now, unless one is given.
    """
    return int((_ANCHOR_S + (time.perf_counter() if moment_s is None else moment_s)) * 1000)
