"""The order in which cells are sent, and the clients that get their replies."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw import Reply, Request
from pytest_openclaw.asking import asker as asker_module
from pytest_openclaw.asking.asker import ahead_of
from pytest_openclaw.asking.messages import JobResult, NotSent, RepeatDecision, StopAhead, Taken
from tests.unit.asking.asking import Receiver, Room, settle
from tests.unit.asking.fake_providers import Fake, cell, says

CELLS = [cell(f"P{n}") for n in range(20)]


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's asker to its end."""
    asyncio.run(work)


class Gate(Fake):
    """Answers no request until it is opened."""

    def __init__(self) -> None:
        super().__init__(self._wait)
        self.is_open = asyncio.Event()
        self._allowed = asyncio.Semaphore(0)

    def answer_one(self) -> None:
        """Answer the request that has waited longest."""
        self._allowed.release()

    async def _wait(self, request: Request) -> Reply:
        ways = [asyncio.ensure_future(way) for way in (self.is_open.wait(), self._allowed.acquire())]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        return Reply(text="hi")

    @property
    def prompts(self) -> list[str]:
        return [request.prompt for request in self.asked]


def taken(room: Room, client: Receiver, token: str) -> None:
    """Let a test end."""
    room.asker.receive(client, Taken(tokens=[token]))


def test_cells_are_sent_in_their_order_by_any_client(tmp_path: Path) -> None:
    """Two clients run cells of one plan; each gets the replies for its own."""

    async def work() -> None:
        provider = Fake(says("hi"))
        room = Room(provider, tmp_path)
        one, other = room.join(), room.join()
        room.plan(one, CELLS)
        room.claim(one, "P0", "P2")
        room.claim(other, "P1", "P3")
        await settle()

        # One more than for a single client, whose current test does not count.
        assert [request.prompt for request in provider.asked] == [f"P{n}" for n in range(ahead_of(1) + 1)]
        assert (one.replies, other.replies) == (["P0", "P2"], ["P1", "P3"])
        await room.asker.close()

    run(work())


def test_a_wanted_cell_does_not_go_before_the_plan(tmp_path: Path) -> None:
    """A busy endpoint continues in the order of the plan, so a local server keeps its model."""

    async def work() -> None:
        provider = Gate()
        room = Room(provider, tmp_path)
        one, other = room.join(), room.join()
        room.plan(one, CELLS)
        room.want(one, "P0")
        room.want(other, "P15")
        await settle()
        assert provider.prompts == ["P0"]

        for n in range(9):
            provider.answer_one()
            await settle()
            taken(room, one, f"P{n}")
            await settle()
            assert provider.prompts == [f"P{k}" for k in range(n + 2)]
        await room.asker.close()

    run(work())


def test_a_wanted_cell_goes_where_the_plan_cannot_go_on(tmp_path: Path) -> None:
    """If all replies that are kept ahead wait for other tests, the cell that a test waits for is sent."""

    async def work() -> None:
        provider = Fake(says("hi"))
        room = Room(provider, tmp_path)
        client = room.join()
        room.plan(client, CELLS)
        await settle()
        assert len(provider.asked) == ahead_of(1)

        for n in (15, 12, 19):
            room.want(client, f"P{n}")
            await settle()

        assert client.replies == ["P15", "P12", "P19"]
        assert len(provider.asked) == ahead_of(1) + 3
        await room.asker.close()

    run(work())


def test_a_reply_is_its_cells(tmp_path: Path) -> None:
    """A reply that a client received and did not use goes to the next client of the cell, without a call."""

    async def work() -> None:
        provider = Fake(says("hi"))
        room = Room(provider, tmp_path)
        dies, lives = room.join(), room.join()
        room.plan(dies, CELLS[:3])
        room.claim(dies, "P0", "P1")
        await settle()
        assert dies.replies == ["P0", "P1"]
        taken(room, dies, "P0")

        room.asker.leave(dies)
        replaced = room.join()
        room.claim(replaced, "P1")
        room.want(lives, "P2")
        await settle()

        assert (replaced.replies, lives.replies) == (["P1"], ["P2"])
        assert [request.prompt for request in provider.asked] == ["P0", "P1", "P2"]
        received = next(message for message in replaced.received if isinstance(message, JobResult))
        assert received.n_out == 2
        await room.asker.close()

    run(work())


@pytest.mark.parametrize("ends_first", [False, True], ids=["at-once", "one-after-the-other"])
def test_a_cell_that_two_run_is_sent_for_each(tmp_path: Path, ends_first: bool) -> None:
    """Each call is a separate request, as when one test is run again."""

    async def work() -> None:
        provider = Fake(says("hi"))
        room = Room(provider, tmp_path)
        one, other = room.join(), room.join()
        room.plan(one, CELLS[:1])
        room.want(one, "P0")
        await settle()
        if ends_first:
            taken(room, one, "P0")
        room.want(other, "P0")
        await settle()
        room.want(other, "P0", is_again=True)
        await settle()

        assert (one.replies, other.replies) == (["P0"], ["P0", "P0"])
        assert len(provider.asked) == 3
        await room.asker.close()

    run(work())


def test_nothing_is_sent_while_no_client_is_there(tmp_path: Path) -> None:
    """A crashed worker costs no calls until another one comes."""

    async def work() -> None:
        provider = Gate()
        room = Room(provider, tmp_path)
        client = room.join()
        room.plan(client, CELLS)
        await settle()
        n_sent = room.asker.n_out
        room.asker.leave(client)
        provider.is_open.set()
        await settle()
        assert len(provider.asked) == n_sent

        client = room.join()
        for n in range(n_sent):
            taken(room, client, f"P{n}")
        await settle()
        assert len(provider.asked) == 2 * n_sent
        await room.asker.close()

    run(work())


def test_what_no_test_has_taken_is_left(tmp_path: Path) -> None:
    """At the end it has the replies in the order of the plan, delivered or not, and counts lost calls."""

    async def work() -> None:
        provider = Gate()
        room = Room(provider, tmp_path, limit=2)
        client = room.join()
        room.plan(client, CELLS, is_claimed=True)
        provider.is_open.set()
        await settle()
        provider.is_open.clear()
        for n in range(2):
            taken(room, client, f"P{n}")
        await settle()
        room.asker.receive(client, StopAhead())
        taken(room, client, "P3")
        room.asker.leave(client)

        left = await room.asker.close()

        assert [result.token for result in left.results] == ["P2", "P4", "P5"]
        assert left.n_out == 5

    run(work())


REPEATS = [replace(cell(f"P{n}"), repeat=repeat, n_repeats=2) for repeat in (1, 2) for n in range(2)]


@pytest.mark.parametrize(
    ("message", "is_sent"),
    [
        pytest.param(RepeatDecision(target="fake/m", repeat=1, ends=None), True, id="goes-on"),
        pytest.param(RepeatDecision(target="fake/m", repeat=1, ends="it is settled"), False, id="ends"),
        pytest.param(StopAhead(), True, id="the-session-stops"),
    ],
)
def test_a_repeat_waits_for_the_decision_of_another_process(
    tmp_path: Path, message: Any, is_sent: bool
) -> None:
    """Also if a test waits for it; if its repeats have ended, that is the answer."""

    async def work() -> None:
        provider = Fake(says("hi"))
        room = Room(provider, tmp_path, until_conclusive=True)
        client = room.join()
        room.plan(client, REPEATS, awaits_decisions=True)
        room.want(client, "P0 r2")
        await settle()
        assert len(provider.asked) == 2
        assert client.replies == []

        room.asker.receive(client, message)
        await settle()

        answers = [m for m in client.received if isinstance(m, JobResult | NotSent)]
        assert [type(answer) for answer in answers] == [JobResult if is_sent else NotSent]
        await room.asker.close()

    run(work())


def test_no_decision_is_awaited_that_cannot_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If every client waits for a decision, as after a crash, the first of them gets its reply."""
    monkeypatch.setattr(asker_module, "DECISION_S", 0.0)

    async def work() -> None:
        room = Room(Fake(says("hi")), tmp_path, until_conclusive=True)
        one, other = room.join(), room.join()
        room.plan(one, REPEATS, awaits_decisions=True)
        room.want(one, "P0 r2")
        await asyncio.sleep(0.01)
        assert one.replies == []

        room.want(other, "P1 r2")
        await asyncio.sleep(0.05)
        await settle()

        assert (one.replies, other.replies) == (["P0 r2"], ["P1 r2"])
        await room.asker.close()

    run(work())


def test_the_next_asker_knows_what_the_last_one_did(tmp_path: Path) -> None:
    """After a death, requests in flight are lost, used replies are done, and a client keeps its replies."""

    async def dies() -> None:
        provider = Gate()
        room = Room(provider, tmp_path, limit=2)
        client = room.join()
        room.plan(client, CELLS[:5], is_claimed=True)
        provider.is_open.set()
        await settle()
        provider.is_open.clear()
        taken(room, client, "P0")

    async def work() -> None:
        provider = Fake(says("hi"))
        room = Room(provider, tmp_path, limit=2)
        client = room.join(held=["P1"])
        room.plan(client, CELLS, is_claimed=True)
        await settle()

        lost = {m.token: str(m.error) for m in client.received if isinstance(m, JobResult) and m.error}
        assert lost == dict.fromkeys(("P2", "P3", "P4"), "the asker was killed")
        assert [request.prompt for request in provider.asked] == ["P5", "P6"]
        await room.asker.close()

    run(dies())
    run(work())


def test_what_has_ended_before_the_plan_is_not_sent(tmp_path: Path) -> None:
    """A client says to the asker after a dead one first which tests have ended meanwhile."""

    async def work() -> None:
        provider = Fake(says("hi"))
        room = Room(provider, tmp_path)
        client = room.join()
        taken(room, client, "P0")
        room.plan(client, CELLS[:2], is_claimed=True)
        await settle()

        assert [request.prompt for request in provider.asked] == ["P1"]

    run(work())


def test_an_asker_that_ends_in_order_has_lost_nothing(tmp_path: Path) -> None:
    """Its unanswered requests are repeated by the next one, if a worker connects late."""

    async def ends() -> None:
        room = Room(Gate(), tmp_path)
        client = room.join()
        room.plan(client, CELLS)
        await settle()
        await room.asker.close()

    async def work() -> None:
        provider = Fake(says("hi"))
        room = Room(provider, tmp_path)
        client = room.join()
        room.plan(client, CELLS, is_claimed=True)
        await settle()
        assert provider.asked[0].prompt == "P0"
        assert client.replies[0] == "P0"
        await room.asker.close()

    run(ends())
    run(work())
