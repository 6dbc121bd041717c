"""What may not be overloaded, and what is known to be down."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.replies import Fault
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target


class EndpointLimits:
    """How many requests are under way on each endpoint, and which are not sent any more."""

    def __init__(self) -> None:
        self._slots: dict[str, _Slots] = {}
        self._down: dict[str, Fault] = {}

    def slot(self, endpoint: str, limit: int) -> _Slots:
        """Return the endpoint's `limit` slots: `async with` holds one; the first to come gets one first."""
        slots = self._slots.get(endpoint)
        if slots is None:
            slots = self._slots[endpoint] = _Slots(limit)
        return slots

    def in_flight(self, endpoint: str) -> int:
        """Return the requests that are under way on the endpoint."""
        slots = self._slots.get(endpoint)
        return slots.n_held if slots else 0

    def mark(self, endpoint: str, target: Target, fault: Fault) -> None:
        """Remember a fault that affects more than its own cell."""
        if fault.scope != "cell":
            self._down.setdefault(
                _endpoint(endpoint) if fault.scope == "endpoint" else _target(target), fault
            )

    def down(self, endpoint: str, target: Target) -> Fault | None:
        """Return the fault because of which this target is not asked any more, if there is one."""
        return self._down.get(_endpoint(endpoint)) or self._down.get(_target(target))


class _Slots:
    """The slots of an endpoint, of which `n_held` are held."""

    def __init__(self, limit: int) -> None:
        self.n_held = 0
        self._free = asyncio.Semaphore(limit)

    async def __aenter__(self) -> None:
        await self._free.acquire()
        self.n_held += 1

    async def __aexit__(self, *_: object) -> None:
        self.n_held -= 1
        self._free.release()


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
