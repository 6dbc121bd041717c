"""What may not be overloaded, and what is known to be down."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pytest_openclaw.records import Fault, Target
    from pytest_openclaw.run.parts import Part


@dataclass
class Lanes:
    """The lanes of one process: how many requests are under way on each, and who is not asked any more."""

    _slots: dict[str, asyncio.Semaphore] = field(default_factory=dict)
    _in_flight: dict[str, int] = field(default_factory=dict)
    _down: dict[str, Fault] = field(default_factory=dict)

    @asynccontextmanager
    async def slot(self, part: Part) -> AsyncIterator[None]:
        """Hold one of the slots of this part of a lane; who came first is served first."""
        lane = part.lane
        if lane not in self._slots:
            self._slots[lane] = asyncio.Semaphore(part.limit)
        async with self._slots[lane]:
            self._in_flight[lane] = self._in_flight.get(lane, 0) + 1
            try:
                yield
            finally:
                self._in_flight[lane] -= 1

    def in_flight(self, lane: str) -> int:
        """Return the requests under way on the lane."""
        return self._in_flight.get(lane, 0)

    def mark(self, lane: str, target: Target, fault: Fault) -> None:
        """Remember a fault that reaches further than its own cell."""
        if fault.reach == "lane":
            self._down.setdefault(f"lane {lane}", fault)
        elif fault.reach == "target":
            self._down.setdefault(f"target {target.label}", fault)

    def down(self, lane: str, target: Target) -> Fault | None:
        """Return the fault because of which this target is not asked any more, if there is one."""
        return self._down.get(f"lane {lane}") or self._down.get(f"target {target.label}")
