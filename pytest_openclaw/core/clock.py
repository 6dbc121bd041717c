"""The time of day without jumps: setting the system's clock during a run changes no row."""

from __future__ import annotations

import time


class _Anchor:
    """The zero of `time.perf_counter`; read once, equal in all processes of a run on a machine."""

    at_s = time.time() - time.perf_counter()


def epoch_ms(moment_s: float | None = None) -> int:
    """Return ms since the epoch by the clock of this run.

    Args:
        moment_s: a value of `time.perf_counter`; by default now.
    """
    return int((_Anchor.at_s + (time.perf_counter() if moment_s is None else moment_s)) * 1000)


def anchor_s() -> float:
    """Return the anchor with which another process of this machine has the same clock."""
    return _Anchor.at_s


def count_from(at_s: float) -> None:
    """Use the clock of another process of this machine, by its `anchor_s`."""
    _Anchor.at_s = at_s
