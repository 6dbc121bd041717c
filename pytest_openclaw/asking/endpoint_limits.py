"""What may not be overloaded, and what is known to be down."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.replies import Fault
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target


class EndpointLimits:
    """How many requests are under way on each endpoint, and which are not sent any more."""

    def __init__(self) -> None:
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._in_flight: dict[str, int] = {}
        self._down: dict[str, Fault] = {}

    @asynccontextmanager
    async def slot(self, endpoint: str, limit: int) -> AsyncIterator[None]:
        """Hold one of the endpoint's `limit` slots; the first to come is the first to get one."""
        if endpoint not in self._slots:
            self._slots[endpoint] = asyncio.Semaphore(limit)
        async with self._slots[endpoint]:
            self._in_flight[endpoint] = self._in_flight.get(endpoint, 0) + 1
            try:
                yield
            finally:
                self._in_flight[endpoint] -= 1

    def in_flight(self, endpoint: str) -> int:
        """Return the requests that are under way on the endpoint."""
        return self._in_flight.get(endpoint, 0)

    def mark(self, endpoint: str, target: Target, fault: Fault) -> None:
        """Remember a fault that affects more than its own cell."""
        if fault.scope != "cell":
            self._down.setdefault(
                _endpoint(endpoint) if fault.scope == "endpoint" else _target(target), fault
            )

    def down(self, endpoint: str, target: Target) -> Fault | None:
        """Return the fault because of which this target is not asked any more, if there is one."""
        return self._down.get(_endpoint(endpoint)) or self._down.get(_target(target))


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
