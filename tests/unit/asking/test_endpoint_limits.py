"""EndpointLimits: the number of concurrent requests, and targets that are down."""

from __future__ import annotations

import asyncio

import pytest

from pytest_openclaw.asking.endpoint_limits import EndpointLimits
from pytest_openclaw.types import faults
from pytest_openclaw.types.targets import Target

A, B = Target(provider="p", model="a"), Target(provider="p", model="b")
REFUSED = faults.unreachable("p", "u", "refused")
NO_KEY = faults.auth_missing("p", "set a key")


@pytest.mark.parametrize("limit", [1, 3])
def test_an_endpoint_counts_who_is_under_way(limit: int) -> None:
    """No more requests than the limit hold a slot, and an error releases it."""

    async def run() -> list[int]:
        endpoints, seen = EndpointLimits(), [0]

        async def one(n: int) -> None:
            async with endpoints.slot("l", limit):
                seen.append(endpoints.in_flight("l"))
                await asyncio.sleep(0)
                if n % 2:
                    raise ValueError

        await asyncio.gather(*(one(n) for n in range(9)), return_exceptions=True)
        return [max(seen), endpoints.in_flight("l"), endpoints.in_flight("other")]

    assert asyncio.run(run()) == [limit, 0, 0]


def test_a_cancelled_wait_takes_no_slot() -> None:
    """A cancelled wait leaves the endpoint unchanged."""

    async def run() -> int:
        endpoints = EndpointLimits()
        async with endpoints.slot("l", 1):
            waiting = asyncio.create_task(endpoints.slot("l", 1).__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting})
        async with endpoints.slot("l", 1):
            return endpoints.in_flight("l")

    assert asyncio.run(run()) == 1


def test_the_first_fault_of_an_endpoint_stays() -> None:
    """Later cells report the first fault."""
    endpoints = EndpointLimits()
    endpoints.mark("l", A, REFUSED)
    endpoints.mark("l", A, faults.not_installed("p", "gone"))

    assert endpoints.down("l", B) is REFUSED
    assert endpoints.down("elsewhere", A) is None


def test_a_target_goes_down_alone() -> None:
    """Missing credentials of one target say nothing about another."""
    endpoints = EndpointLimits()
    endpoints.mark("l", A, NO_KEY)

    assert (endpoints.down("l", A), endpoints.down("l", B)) == (NO_KEY, None)


def test_a_cells_own_fault_marks_no_target() -> None:
    """A timeout is reported in its own row alone."""
    endpoints = EndpointLimits()
    endpoints.mark("l", A, faults.timed_out("p", 1.0))

    assert endpoints.down("l", A) is None
