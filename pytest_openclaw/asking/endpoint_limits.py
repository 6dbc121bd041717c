"""What may not be overloaded, and what is known to be down."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pytest_openclaw.asking.shared_limits import Neighbours
    from pytest_openclaw.asking.shares import Part
    from pytest_openclaw.types.replies import Fault
    from pytest_openclaw.types.targets import Target


class EndpointLimits:
    """The endpoints of one process: how many requests are under way on each, and who is not asked any more.

    Args:
        neighbours: the other processes of the run on this machine, if there are any.
    """

    def __init__(self, neighbours: Neighbours | None = None) -> None:
        self._neighbours = neighbours
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._in_flight: dict[str, int] = {}
        self._down: dict[str, Fault] = {}

    @asynccontextmanager
    async def slot(self, part: Part) -> AsyncIterator[None]:
        """Hold one of the slots of this part of an endpoint; who came first is served first."""
        endpoint = part.endpoint
        if endpoint not in self._slots:
            self._slots[endpoint] = asyncio.Semaphore(part.limit)
        in_common = self._neighbours.slot(endpoint, part.limit) if self._neighbours else nullcontext()
        async with self._slots[endpoint], in_common:
            self._in_flight[endpoint] = self._in_flight.get(endpoint, 0) + 1
            try:
                yield
            finally:
                self._in_flight[endpoint] -= 1

    def in_flight(self, endpoint: str) -> int:
        """Return the requests that this process has under way on the endpoint."""
        return self._in_flight.get(endpoint, 0)

    def mark(self, endpoint: str, target: Target, fault: Fault) -> None:
        """Remember a fault that reaches further than its own cell."""
        if fault.reach == "cell":
            return
        who = _endpoint(endpoint) if fault.reach == "endpoint" else _target(target)
        if who not in self._down:
            self._down[who] = fault
            if self._neighbours:
                self._neighbours.tell(who, fault)

    def down(self, endpoint: str, target: Target) -> Fault | None:
        """Return the fault because of which this target is not asked any more, if there is one."""
        for who in (_endpoint(endpoint), _target(target)):
            if who not in self._down and self._neighbours and (fault := self._neighbours.told(who)):
                self._down[who] = fault
            if who in self._down:
                return self._down[who]
        return None


def _endpoint(name: str) -> str:
    return f"endpoint {name}"


def _target(target: Target) -> str:
    return f"target {target.label}"
