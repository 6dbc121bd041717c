"""The asker: what it sends, when, and what each test gets."""

import asyncio
import threading
from dataclasses import replace

import pytest

from pytest_openclaw.asking.asker import PlannedCell
from pytest_openclaw.util.errors import AskerFailed, CellNotSent, OpenClawError
from pytest_openclaw.values.replies import Reply
from tests.e2e.processes import wait_until
from tests.unit.asking.asking import Fake, Warm, cell, open_room, raises, says, token_of, waits

BOUND_S = 60.0


def prompts(provider):
    return [request.prompt for request in provider.asked]


def settled(room):
    done = threading.Event()
    room.asker._call(done.set)
    assert done.wait(BOUND_S)


def cells(n, **more):
    return [cell(f"P{number}", **more) for number in range(1, n + 1)]


class Gate:
    """Holds all answers until it is opened."""

    def __init__(self):
        self.is_open = False

    async def answer(self, request):
        while not self.is_open:
            await asyncio.sleep(0.002)
        return Reply(text=request.prompt)


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_requests_are_in_flight_than_the_limit(limit):
    """Each cell gets its own reply, whatever the order in which tests ask."""
    provider, planned = Fake(waits(0.002)), cells(12)
    with open_room(provider, limit=limit) as room:
        room.plan(*planned)
        for one in reversed(planned):
            room.ask(one)
            room.asker.done(token_of(one))

    assert provider.most == limit
    assert sorted(prompts(provider)) == sorted(one.prompt.id for one in planned)


def test_cells_are_sent_ahead_to_a_bound_and_in_the_order_of_the_plan():
    """With one request at once 4 are sent before a test asks, then one for each that is taken."""
    provider, planned = Fake(says("hi")), cells(9)
    with open_room(provider) as room:
        room.plan(*planned)
        assert wait_until(lambda: len(provider.asked) == 4)
        settled(room)
        first = prompts(provider)
        room.ask(planned[0])
        assert wait_until(lambda: len(provider.asked) == 5)

    assert first == ["P1", "P2", "P3", "P4"]


def test_a_cell_that_a_test_waits_for_goes_first():
    """It comes before all that were not sent yet."""
    gate = Gate()
    provider, planned = Fake(gate.answer), cells(9)
    with open_room(provider) as room:
        room.plan(*planned)
        assert wait_until(lambda: len(provider.asked) == 1)
        future = room.asker.submit(token_of(planned[8]))
        settled(room)
        gate.is_open = True
        assert future.result(BOUND_S).result.text == "P9"

    assert prompts(provider).index("P9") <= 4


def test_a_reply_is_kept_until_its_test_has_ended():
    """A worker in place of a dead one gets it without a second call."""
    provider, one = Fake(says("hi")), cell()
    with open_room(provider) as room:
        room.plan(one)
        assert room.ask(one) is room.ask(one)

    assert len(provider.asked) == 1


def test_replies_that_no_test_has_taken_are_left_over():
    """At the end complete replies are returned in the order of the plan, and the others are counted."""
    gate = Gate()

    async def answer(request):
        return await (gate.answer(request) if request.prompt == "P3" else says("hi")(request))

    provider, planned = Fake(answer), cells(9)
    with open_room(provider) as room:
        room.plan(*planned)
        assert wait_until(lambda: len(provider.asked) == 3)
        room.ask(planned[0])
        room.asker.done(token_of(planned[0]))
        settled(room)
        left = room.asker.close()

    assert [one.prompt.id for one, _ in left] == ["P2"]
    assert (provider.now, provider.closed) == (0, True)


def test_after_a_stop_nothing_is_sent():
    """Tests that wait for a cell that was not sent are told so."""
    gate = Gate()
    provider, planned = Fake(gate.answer), cells(9)
    with open_room(provider) as room:
        room.plan(*planned)
        assert wait_until(lambda: len(provider.asked) == 1)
        waiting = room.asker.submit(token_of(planned[5]))
        room.asker.stop()
        with pytest.raises(AskerFailed, match="the session is stopping"):
            waiting.result(BOUND_S)
        gate.is_open = True
        assert room.ask(planned[0]).result.text == "P1"

    assert len(provider.asked) <= 4
    with pytest.raises(AskerFailed, match="the session has ended"):
        room.asker.ask("P1 r1")


def staged(n):
    repeats = [replace(cell(), repeat=number, n_repeats=n) for number in range(1, n + 1)]
    return [PlannedCell(token=token_of(one), cell=one, stage=one.repeat) for one in repeats]


def test_a_stage_waits_for_its_decision():
    """It is sent when its target continues, and left out when that is settled."""
    provider, planned = Fake(says("hi")), staged(3)
    first, second, third = (one.cell for one in planned)
    with open_room(provider) as room:
        room.asker.set_runners(2)
        room.asker.plan(planned)
        room.ask(first)
        settled(room)
        assert len(provider.asked) == 1
        room.asker.decide("fake/m", 1, None)
        room.ask(second)
        room.asker.decide("fake/m", 2, "it is settled")
        with pytest.raises(CellNotSent, match="it is settled"):
            room.ask(third)

    assert len(provider.asked) == 2


def test_a_stage_does_not_wait_for_a_cell_that_no_process_runs():
    """It is sent when all processes that run tests wait; a process fewer counts too."""
    provider, planned = Fake(says("hi")), staged(2)
    with open_room(provider) as room:
        room.asker.set_runners(2)
        room.asker.plan(planned)
        future = room.asker.submit(planned[1].token)
        settled(room)
        assert not future.done()
        room.asker.set_runners(1)
        assert future.result(BOUND_S) is not None


def test_a_target_is_made_ready_once_before_its_first_cell():
    """A warm-up of one token and a snapshot are facts about it."""
    provider, planned = Warm(says("hi")), cells(3)
    with open_room(provider, limit=3) as room:
        room.plan(*planned)
        for one in planned:
            room.ask(one)
        facts = {key for _, found in room.asker.facts for key in found}

    assert [request.max_output_tokens for request in provider.asked].count(1) == 1
    assert provider.asked[0].max_output_tokens == 1
    assert facts == {"resources_before", "warm_up", "server"}


class Local(Exception):
    """An exception that only this module knows."""


@pytest.mark.parametrize(
    ("error", "type_", "words"),
    [
        (Local("broken"), Local, "broken"),
        (asyncio.CancelledError(), OpenClawError, "cancelled the request"),
        (SystemExit(3), OpenClawError, r"the provider called sys\.exit\(3\)"),
    ],
    ids=["own-exception", "cancelled", "exit"],
)
def test_an_exception_of_a_provider_reaches_its_test(error, type_, words):
    """Other cells are asked as before."""
    broken, fine = cells(2)
    with open_room(Fake(raises(error))) as room:
        future = room.asker.submit(token_of(broken), broken)
        with pytest.raises(type_, match=words):
            future.result(BOUND_S)
        assert room.ask(fine).result.text == "at last"
