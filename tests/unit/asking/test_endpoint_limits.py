"""Lanes: how many at once, and who is not asked any more."""

from __future__ import annotations

import asyncio

import pytest

from pytest_openclaw.asking.endpoint_limits import Lanes
from pytest_openclaw.asking.shares import Part
from pytest_openclaw.types import faults
from pytest_openclaw.types.targets import Target

A, B = Target(provider="p", model="a"), Target(provider="p", model="b")
REFUSED = faults.unreachable("p", "u", "refused")
NO_KEY = faults.auth_missing("p", "set a key")


@pytest.mark.parametrize("limit", [1, 3])
def test_a_lane_counts_who_is_under_way(limit: int) -> None:
    """No more than the limit hold a slot, and an error gives it back."""

    async def run() -> list[int]:
        lanes, seen = Lanes(), [0]

        async def one(n: int) -> None:
            async with lanes.slot(Part("l", limit)):
                seen.append(lanes.in_flight("l"))
                await asyncio.sleep(0)
                if n % 2:
                    raise ValueError

        await asyncio.gather(*(one(n) for n in range(9)), return_exceptions=True)
        return [max(seen), lanes.in_flight("l"), lanes.in_flight("other")]

    assert asyncio.run(run()) == [limit, 0, 0]


def test_a_cancelled_wait_takes_no_slot() -> None:
    """Who gives up waiting leaves the lane as it was."""

    async def run() -> int:
        lanes = Lanes()
        async with lanes.slot(Part("l", 1)):
            waiting = asyncio.create_task(lanes.slot(Part("l", 1)).__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting})
        async with lanes.slot(Part("l", 1)):
            return lanes.in_flight("l")

    assert asyncio.run(run()) == 1


def test_the_first_fault_of_a_lane_stays() -> None:
    """What was found first is what the others are told."""
    lanes = Lanes()
    lanes.mark("l", A, REFUSED)
    lanes.mark("l", A, faults.not_installed("p", "gone"))

    assert lanes.down("l", B) is REFUSED
    assert lanes.down("elsewhere", A) is None


def test_a_target_goes_down_alone() -> None:
    """Missing credentials of one target say nothing about another."""
    lanes = Lanes()
    lanes.mark("l", A, NO_KEY)

    assert (lanes.down("l", A), lanes.down("l", B)) == (NO_KEY, None)


def test_a_cells_own_fault_marks_nobody() -> None:
    """A timeout is told by its own row alone."""
    lanes = Lanes()
    lanes.mark("l", A, faults.timed_out("p", 1.0))

    assert lanes.down("l", A) is None
