"""The time of day without jumps: setting the system's clock during a run changes no row."""

from __future__ import annotations

import time

_ZERO_S = time.time() - time.perf_counter()
"""The zero of `time.perf_counter`, by the system's clock when this module was loaded."""


def epoch_ms(moment_s: float | None = None) -> int:
    """Return ms since the epoch by the clock of this run.

    Args:
        moment_s: a value of `time.perf_counter`; by default now.
    """
    return int((_ZERO_S + (time.perf_counter() if moment_s is None else moment_s)) * 1000)
