"""The time of day, without jumps: setting the system's clock while a run goes on moves no row."""

from __future__ import annotations

import time


class _Anchor:
    """What `time.perf_counter` counts from; read once, the same in all processes of a run on a machine."""

    at_s = time.time() - time.perf_counter()


def epoch_ms(moment_s: float | None = None) -> int:
    """Return ms since the epoch, as this run counts them.

    Args:
        moment_s: a reading of `time.perf_counter`; now, unless one is given.
    """
    return int((_Anchor.at_s + (time.perf_counter() if moment_s is None else moment_s)) * 1000)


def anchor_s() -> float:
    """Return what another process of this machine must know to count as this one does."""
    return _Anchor.at_s


def count_from(at_s: float) -> None:
    """Count as another process of this machine does, whose `anchor_s` this is."""
    _Anchor.at_s = at_s
