"""What the processes of a run on one machine share: slots of endpoints, and who is not asked any more."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pytest_openclaw.asking.endpoint_limits import EndpointLimits
from pytest_openclaw.asking.shared_limits import Neighbours
from pytest_openclaw.asking.shares import Part
from pytest_openclaw.types import faults
from pytest_openclaw.types.targets import Target

A, B = Target(provider="p", model="a"), Target(provider="p", model="b")
REFUSED = faults.unreachable("p", "u", "refused")
NO_KEY = faults.auth_missing("p", "set a key")
PATIENCE_S = 120

Open = Callable[..., EndpointLimits]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Makes the endpoints of one process more; all of them meet in one folder."""
    return lambda share_slots=False: EndpointLimits(Neighbours(tmp_path, share_slots=share_slots))


@pytest.mark.parametrize("limit", [1, 3])
def test_slots_in_common(opened: Open, limit: int) -> None:
    """However many processes there are, no more than the limit hold a slot of an endpoint."""
    now, most = 0, 0

    async def one(endpoints: EndpointLimits) -> None:
        nonlocal now, most
        async with endpoints.slot(Part("l", limit)):
            now += 1
            most = max(now, most)
            await asyncio.sleep(0.01)
            now -= 1

    async def all_of_them() -> None:
        processes = [opened(share_slots=True) for _ in range(3)]
        await asyncio.gather(*(one(endpoints) for endpoints in processes for _ in range(4)))

    asyncio.run(all_of_them())

    assert most == limit


def test_slots_of_two_endpoints(opened: Open) -> None:
    """EndpointLimits hold each other up as little as parts do that are each one process's own."""

    async def both(first: EndpointLimits, second: EndpointLimits, endpoint: str) -> None:
        async with first.slot(Part("l", 1)), second.slot(Part(endpoint, 1)):
            pass

    asyncio.run(asyncio.wait_for(both(opened(share_slots=True), opened(share_slots=True), "m"), PATIENCE_S))
    asyncio.run(asyncio.wait_for(both(opened(), opened(), "l"), PATIENCE_S))


def test_a_slot_is_given_back_after_an_error_and_by_who_gives_up(opened: Open) -> None:
    """Neither an error in the slot nor a cancelled wait for one costs the others a slot."""

    async def run() -> int:
        first, second = opened(share_slots=True), opened(share_slots=True)
        part = Part("l", 1)

        async def break_in_the_slot() -> None:
            async with first.slot(part):
                waiting = asyncio.create_task(second.slot(part).__aenter__())
                await asyncio.sleep(0.05)
                assert not waiting.done()
                waiting.cancel()
                await asyncio.wait({waiting})
                raise ValueError("broke")

        with pytest.raises(ValueError, match="broke"):
            await break_in_the_slot()
        async with AsyncExitStack() as stack:
            await asyncio.wait_for(stack.enter_async_context(second.slot(part)), PATIENCE_S)
            return second.in_flight("l") + first.in_flight("l")

    assert asyncio.run(run()) == 1


HOLDER = """
import asyncio, sys
from pathlib import Path
from pytest_openclaw.asking.endpoint_limits import EndpointLimits
from pytest_openclaw.asking.shared_limits import Neighbours
from pytest_openclaw.asking.shares import Part

async def hold():
    async with EndpointLimits(Neighbours(Path(sys.argv[1]), share_slots=True)).slot(Part("l", 1)):
        print("held", flush=True)
        await asyncio.sleep(600)

asyncio.run(hold())
"""


def test_a_killed_process_holds_no_slot(opened: Open, tmp_path: Path) -> None:
    """Its slot is free for the others, without anybody's doing."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        async def run() -> None:
            entering = asyncio.create_task(opened(share_slots=True).slot(Part("l", 1)).__aenter__())
            await asyncio.sleep(0.1)
            assert not entering.done()
            holder.kill()
            await asyncio.wait_for(entering, PATIENCE_S)

        asyncio.run(run())
    finally:
        holder.kill()
        holder.communicate()


def test_a_mark_reaches_every_process(opened: Open) -> None:
    """What one has found out of an endpoint or a target, the others are told in its words."""
    one, other = opened(), opened()
    assert other.down("l", A) is None

    one.mark("l", A, NO_KEY)
    one.mark("m", B, REFUSED)

    assert other.down("l", B) is None
    for endpoint, target, fault in [("l", A, NO_KEY), ("m", A, REFUSED)]:
        told = other.down(endpoint, target)
        assert told is not None
        assert faults.not_asked(told) == faults.not_asked(fault)


def test_a_cells_own_fault_is_told_nobody(opened: Open, tmp_path: Path) -> None:
    """A timeout leaves no trace in the folder."""
    opened().mark("l", A, faults.timed_out("p", 1.0))

    assert list(tmp_path.iterdir()) == []


def test_a_mark_that_cannot_be_written_stays(tmp_path: Path) -> None:
    """Without room in the folder, the process that has found out does not ask any more all the same."""
    endpoints = EndpointLimits(Neighbours(tmp_path / "gone", share_slots=False))

    endpoints.mark("l", A, NO_KEY)

    assert endpoints.down("l", A) is NO_KEY
