"""The progress of a run: cells done, cells awaited, time left, cost.

Only values; `live_line.py` shows them on a terminal.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.reports.money import render_usd
from pytest_openclaw.reports.numbers import one_line, render_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

LONGEST_NAME = 32
FEWEST_FOR_A_RATE = 3
SMOOTHING = 0.2
"""The weight of the newest estimate of the end, so that one slow or quick cell does not move it much."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A cell is sent again later.

    Attributes:
        why: the fault of its last attempt, as a sentence.
        seconds: until then, from now.
    """

    why: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Awaited:
    """The cell of an endpoint that has been awaited longest.

    Attributes:
        wait: why its request is delayed; None if it is in flight.
    """

    nodeid: str
    seconds: float
    wait: Wait | None = None


class Progress:
    """Counts finished cells by endpoint; endpoints work in parallel.

    Args:
        n_selected: cells by target label.
        endpoints: the endpoint of each of these targets.
        now: seconds of a monotonic clock.
    """

    def __init__(
        self, n_selected: Mapping[str, int], endpoints: Mapping[str, str], now: Callable[[], float]
    ) -> None:
        self._endpoints = endpoints
        self._now = now
        self._n_left: Counter[str] = Counter()
        for target, n in n_selected.items():
            self._n_left[endpoints[target]] += n
        self._done: Counter[str] = Counter()
        self._n_kept = 0
        self._usd: float | None = None
        self._awaited: dict[str, float] = {}
        self._began = now()
        self._received = dict.fromkeys(self._n_left, self._began)
        self._end: float | None = None

    def started(self, nodeid: str) -> None:
        """Note that an item is awaited from now on."""
        self._awaited[nodeid] = self._now()

    def ended(self, nodeid: str) -> None:
        """Note that an item is no longer awaited."""
        self._awaited.pop(nodeid, None)

    def count(self, target: str, usd: float | None) -> None:
        """Count a cell that has a row."""
        endpoint = self._endpoints[target]
        self._n_left[endpoint] -= 1
        self._done[endpoint] += 1
        self._received[endpoint] = self._now()
        if usd is not None:
            self._usd = (self._usd or 0.0) + usd
        self._estimate()

    def _estimate(self) -> None:
        """Move the estimated end; endpoints work in parallel, so the slowest one decides it."""
        now = self._now()
        n_left = {endpoint: n for endpoint, n in self._n_left.items() if n}
        # Without a finished cell of an endpoint there is no estimate.
        if not n_left or not all(self._done[endpoint] for endpoint in n_left):
            return
        end = now + max(n * (now - self._began) / self._done[endpoint] for endpoint, n in n_left.items())
        self._end = end if self._end is None else self._end + SMOOTHING * (end - self._end)

    def count_kept(self, target: str) -> None:
        """Count a cell whose row is from an earlier session."""
        self._n_left[self._endpoints[target]] -= 1
        self._n_kept += 1

    def leave_out(self, target: str) -> None:
        """Remove a cell from the count."""
        self._n_left[self._endpoints[target]] -= 1

    def line(self, width: int, asked: Mapping[str, str] | None, why: Callable[[str], Wait | None]) -> str:
        """Return the state of the run as one line.

        Args:
            width: columns that it may take.
            asked: endpoint → its longest pending cell, where this process knows it; None shows the running
                items, one per xdist worker.
            why: returns the wait of an item, if it has one.
        """
        done = sum(self._done.values()) + self._n_kept
        parts = [f"openclaw {done}/{done + sum(self._n_left.values())}", *self._pace()]
        if self._usd:
            parts.append(render_usd(self._usd))
        awaited = ", ".join(_render_awaited(one) for one in self._longest(asked, why))
        return one_line(f"{', '.join(parts)}; {awaited}" if awaited else ", ".join(parts), width)

    def _pace(self) -> Iterable[str]:
        n, seconds = sum(self._done.values()), self._now() - self._began
        if n < FEWEST_FOR_A_RATE or seconds <= 0:
            return
        per_s = n / seconds
        yield f"{per_s:.1f}/s" if per_s >= 1 else f"{per_s * 60:.1f}/min"
        # Nothing is known while the cells take longer than estimated.
        if self._end is not None and any(self._n_left.values()) and (left_s := self._end - self._now()) > 0:
            yield f"{render_duration(left_s)} left"

    def _longest(
        self, asked: Mapping[str, str] | None, why: Callable[[str], Wait | None]
    ) -> Iterable[Awaited]:
        now = self._now()
        if asked is None:
            found = [(nodeid, now - since) for nodeid, since in dict(self._awaited).items()]
        else:
            found = [
                (nodeid, now - self._received.get(endpoint, self._began))
                for endpoint, nodeid in asked.items()
            ]
        for nodeid, seconds in sorted(found, key=lambda one: -one[1]):
            yield Awaited(nodeid=nodeid, seconds=seconds, wait=why(nodeid))


def _render_awaited(awaited: Awaited) -> str:
    name = one_line(awaited.nodeid.rpartition("::")[2], LONGEST_NAME)
    if awaited.wait is None:
        return f"{name} {render_duration(awaited.seconds)}"
    why = one_line(awaited.wait.why.rstrip("."), 2 * LONGEST_NAME)
    return f"{name} again in {render_duration(awaited.wait.seconds)}: {why}"
