"""Decides which cell is sent next, and keeps each reply until a test has taken it.

All processes of a machine that run tests use one asker. On each endpoint it sends cells in the order of the
plan and keeps no more than `ahead_of` of them sent or answered and not taken, so a reply is there when its
test begins and replies are not hoarded. A cell that a test waits for goes first only where
its endpoint has a free slot that the plan cannot fill: a test that comes out of order always gets its reply,
and a local server does not change its model for each request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from pytest_openclaw.asking.messages import (
    Alive,
    CellPlan,
    ClaimCells,
    Elsewhere,
    Goodbye,
    Hello,
    JobResult,
    Left,
    NotSent,
    PlannedCell,
    RepeatDecision,
    StopAhead,
    Taken,
    Want,
    Welcome,
)
from pytest_openclaw.asking.repeat_permits import RepeatPermits
from pytest_openclaw.core.errors import HostDied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.asking.fetching import Fetcher
    from pytest_openclaw.asking.journal import Journal
    from pytest_openclaw.asking.messages import FromAsker, FromClient, Waiting
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.targets import Target

CLOSING_S = 5.0
ALIVE_EVERY_S = 10.0
DECISION_S = 5.0
"""In which a decision is made and sent once the last row has come."""
_PASSES_TO_THE_NEXT_SEND = 3
"""Passes of the loop from a slot that is free to the next request in it, which goes out before an answer is
delivered. Measured at 8 in flight on 2 cores: 0.989 of the ideal window, and 0.976 the other way round."""


def ahead_of(limit: int) -> int:
    """Return how many cells of an endpoint may be sent or answered before their tests begin."""
    return 2 * limit + 2


class Client(Protocol):
    """A process that runs tests."""

    def deliver(self, message: FromAsker) -> None:
        """Take a message."""
        ...


@dataclass(slots=True, eq=False)
class _Sent:
    """A cell that was sent and that no test has taken.

    Attributes:
        receiver: the client that has the reply.
        notes: what it received with the reply.
    """

    cell: PlannedCell
    job_result: JobResult | None = None
    receiver: Client | None = None
    notes: JsonObject = field(default_factory=dict)


@dataclass(slots=True)
class _Line:
    """The cells of an endpoint, by token.

    Attributes:
        limit: requests in flight.
        to_send: in the order of the plan; those not in `queued` are passed over.
        wanted: a test waits for these, and they were not sent.
    """

    limit: int
    to_send: deque[str] = field(default_factory=deque)
    queued: set[str] = field(default_factory=set)
    wanted: dict[str, None] = field(default_factory=dict)
    out: dict[str, _Sent] = field(default_factory=dict)

    @property
    def has_room(self) -> bool:
        """Whether the endpoint could take one more request."""
        return sum(sent.job_result is None for sent in self.out.values()) < self.limit


class Asker:
    """The cells of one machine; all methods belong to one event loop.

    Attributes:
        has_plan: a client has given it the whole plan.
        awaits_client: another process may come in place of one that was lost.

    Args:
        fetcher: makes the calls.
        journal: what the askers before this one have done, and where this one says what it does.
        until_conclusive: repeats wait for the decision on those before them.
        died: how the asker before this one ended.
    """

    def __init__(
        self, fetcher: Fetcher, journal: Journal, *, until_conclusive: bool, died: str | None = None
    ) -> None:
        self._fetcher = fetcher
        fetcher.publish = self._publish
        self._journal = journal
        self._until_conclusive = until_conclusive
        self._died = HostDied(died or "the asker has ended")
        self._repeats = RepeatPermits()
        self._clients: list[Client] = []
        self._cells: dict[str, PlannedCell] = {}
        self._lines: dict[str, _Line] = {}
        self._endpoints: dict[str, str] = {}
        self._claims: dict[str, Client] = {}
        self._running: set[Client] = set()
        self._held: dict[str, Client] = {}
        self._taken: set[str] = set()
        self._notes: dict[Target, JsonObject] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._n_steps = 0
        self._awaits_decisions = False
        self._has_one_client = False
        self._is_stopping = False
        self._is_shut = False
        self._heart = asyncio.ensure_future(self._beat())
        self.has_plan = False
        self.awaits_client = False

    # --- clients ---

    def join(self, client: Client, hello: Hello) -> None:
        """Serve a client from now on."""
        self._clients.append(client)
        self._held.update(dict.fromkeys(hello.held, client))
        client.deliver(Welcome(has_plan=self.has_plan))
        self._feed_all()

    def leave(self, client: Client) -> None:
        """Forget a client; replies that its tests have not taken go to the next that runs their cells."""
        self._clients.remove(client)
        self._running.discard(client)
        self._claims = {token: other for token, other in self._claims.items() if other is not client}
        for line in self._lines.values():
            line.wanted = {token: None for token in line.wanted if token in self._claims}
            for sent in line.out.values():
                if sent.receiver is client:
                    sent.receiver = None
                    self._add_notes(sent.cell.target, sent.notes)

    def receive(self, client: Client, message: FromClient) -> None:
        """Do what a client asks for."""
        self._n_steps += 1
        match message:
            case Taken():
                self._take(message.tokens)
            case ClaimCells():
                self._running.add(client)
                for token in message.tokens:
                    self._claim(client, token)
                self._feed_all()
            case Want():
                self._want(client, message)
            case CellPlan():
                self._plan(client, message)
            case RepeatDecision():
                self._repeats.receive(message)
                self._feed_all()
            case Elsewhere():
                self._fetcher.budget.count_elsewhere(message.usd)
            case StopAhead():
                self._is_stopping = True
                self._awaits_decisions = False
                self._feed_all()
            case Hello() | Goodbye():
                raise AssertionError("the server answers these")

    def _plan(self, client: Client, plan: CellPlan) -> None:
        self._endpoints.update(plan.endpoints)
        for endpoint, limit in plan.limits.items():
            self._lines.setdefault(endpoint, _Line(limit))
        self._awaits_decisions = plan.awaits_decisions and not self._is_stopping
        new = [cell for cell in plan.cells if cell.token not in self._cells]
        if self._until_conclusive:
            self._repeats.plan(new)
        for cell in new:
            self._add(cell)
        self._has_one_client = plan.is_claimed
        if plan.is_claimed:
            self._claims.update(dict.fromkeys((cell.token for cell in plan.cells), client))
        for cell in new:
            if lost := self._line(cell).out.get(cell.token):
                self._deliver(lost)
        self.has_plan |= plan.is_last
        self._feed_all()

    def _add(self, cell: PlannedCell) -> None:
        past, line = self._journal.past, self._line(cell)
        self._cells[cell.token] = cell
        if cell.place in past.taken or cell.token in self._taken:
            self._taken.add(cell.token)
        elif cell.place in past.lost:
            lost = JobResult(token=cell.token, error=self._died)
            line.out[cell.token] = _Sent(cell, lost, receiver=self._held.get(cell.token))
        elif cell.is_ahead:
            self._queue(cell)

    def _claim(self, client: Client, token: str) -> None:
        self._claims[token] = client
        if (cell := self._cells.get(token)) is None:
            return
        line = self._line(cell)
        if sent := line.out.get(token):
            self._deliver(sent)
        elif token not in self._taken and token not in line.queued:
            self._queue(cell)

    def _want(self, client: Client, want: Want) -> None:
        token = want.token
        if want.cell is not None:
            self._cells.setdefault(token, want.cell)
        cell = self._cells[token]
        line = self._line(cell)
        self._claims[token] = client
        sent = line.out.get(token)
        if sent and not want.is_again and sent.receiver in (None, client):
            self._deliver(sent)
            return
        # Not sent yet; or a test is run again, or in two processes: each call is a request of its own.
        if self._repeats.permit(cell) == "wait" and not self._awaits_decisions:
            self._repeats.go_on(cell)
        line.wanted[token] = None
        self._feed(line)
        if token in line.wanted and self._is_held(token):
            self._check_later(cell)

    def _check_later(self, cell: PlannedCell) -> None:
        check = partial(self._go_on_alone, cell, self._n_steps)
        asyncio.get_running_loop().call_later(DECISION_S, check)

    def _go_on_alone(self, cell: PlannedCell, n_steps: int) -> None:
        """Send a repeat without a decision if none can come: all tests wait for one, since `n_steps`.

        So it is after a worker has crashed: what it left is run by tests that come later.
        """
        wanted = [token for line in self._lines.values() for token in line.wanted]
        held = {self._claims[token] for token in wanted if self._is_held(token)}
        if cell.token not in wanted or len(held) < len(self._clients):
            return
        if n_steps != self._n_steps or self.awaits_client:
            self._check_later(cell)
            return
        self._repeats.go_on(cell)
        self._feed_all()

    def _is_held(self, token: str) -> bool:
        return self._awaits_decisions and self._repeats.permit(self._cells[token]) == "wait"

    def _take(self, tokens: Sequence[str]) -> None:
        taken = [cell for token in tokens if (cell := self._forget(token))]
        if not self._is_shut:
            self._journal.taken(cell.place for cell in taken)
            self._feed_all()

    def _forget(self, token: str) -> PlannedCell | None:
        """Forget a cell whose test has ended, and return it."""
        cell = self._cells.get(token)
        if cell is None or not self._has_one_client:
            self._taken.add(token)
        self._claims.pop(token, None)
        if cell is None:
            return None
        line = self._line(cell)
        sent = line.out.pop(token, None)
        if sent and sent.job_result and sent.receiver is None:
            self._add_notes(cell.target, sent.notes)
        line.queued.discard(token)
        line.wanted.pop(token, None)
        if self._has_one_client:
            del self._cells[token]  # it sends the cell with its `Want` if the test is run again
        return cell

    # --- what is sent next ---

    def _feed_all(self) -> None:
        for line in self._lines.values():
            self._feed(line)

    def _feed(self, line: _Line) -> None:
        """Send what may be sent now; without a client, nothing."""
        self._answer_ended(line)
        while self._clients and not self._is_shut:
            token = self._next_planned(line) or self._next_wanted(line)
            if token is None:
                return
            self._send(line, self._cells[token])

    def _next_planned(self, line: _Line) -> str | None:
        # A reply that a test of another process has in hand leaves room for the next.
        most = ahead_of(line.limit) + max(0, len(self._running) - 1)
        while line.to_send and not self._is_stopping and len(line.out) < most:
            token = line.to_send[0]
            permit = self._repeats.permit(self._cells[token]) if token in line.queued else "leave_out"
            if permit == "wait":
                return None
            line.to_send.popleft()
            if permit == "ask":
                return token
            line.queued.discard(token)
        return None

    def _next_wanted(self, line: _Line) -> str | None:
        for token in line.wanted:
            if not self._is_held(token) and (token not in line.queued or line.has_room):
                return token
        return None

    def _answer_ended(self, line: _Line) -> None:
        """Answer the tests that wait for a repeat that is no longer sent."""
        for token in list(line.wanted):
            if (why := self._repeats.why_left_out(self._cells[token])) is not None:
                del line.wanted[token]
                line.queued.discard(token)
                self._claims[token].deliver(NotSent(token=token, why=why))

    def _queue(self, cell: PlannedCell) -> None:
        line = self._line(cell)
        line.to_send.append(cell.token)
        line.queued.add(cell.token)

    def _send(self, line: _Line, cell: PlannedCell) -> None:
        line.queued.discard(cell.token)
        line.wanted.pop(cell.token, None)
        line.out[cell.token] = sent = _Sent(cell)
        task = asyncio.ensure_future(self._fetch(line, sent))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _fetch(self, line: _Line, sent: _Sent) -> None:
        on_send = partial(self._journal.sent, sent.cell.place)
        sent.job_result = await self._fetcher.fetch(sent.cell, line.limit, on_send)
        self._add_notes(sent.cell.target, sent.job_result.notes)
        self._feed(line)
        # What is delivered wakes the process of the tests, which wants a core too.
        for _ in range(_PASSES_TO_THE_NEXT_SEND):
            await asyncio.sleep(0)
        if line.out.get(sent.cell.token) is sent:
            self._deliver(sent)

    # --- replies ---

    def _deliver(self, sent: _Sent) -> None:
        client = self._claims.get(sent.cell.token)
        if client and sent.receiver is None and sent.job_result:
            sent.receiver = client
            client.deliver(self._message(sent))

    def _message(self, sent: _Sent) -> JobResult:
        assert sent.job_result is not None, "the call has ended"
        sent.notes = self._notes.pop(sent.cell.target, {})
        spent_usd = self._fetcher.budget.here_usd
        return sent.job_result._replace(notes=sent.notes, n_out=self.n_out, spent_usd=spent_usd)

    def _add_notes(self, target: Target, notes: JsonObject | None) -> None:
        if notes:
            self._notes.setdefault(target, {}).update(notes)

    def _publish(self, waiting: Waiting) -> None:
        """Let the test that waits for a cell know why it takes longer."""
        if client := self._claims.get(waiting.token):
            client.deliver(waiting)

    @property
    def n_out(self) -> int:
        """Cells that were sent and that no test has taken."""
        return sum(len(line.out) for line in self._lines.values())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(ALIVE_EVERY_S)
            for client in self._clients:
                client.deliver(Alive())

    def _line(self, cell: PlannedCell) -> _Line:
        return self._lines[self._endpoints[cell.target.provider]]

    # --- the end ---

    def shut(self) -> None:
        """Send nothing more."""
        self._is_shut = True

    def end(self) -> None:
        """Send nothing more; an asker that begins from now on does not take this one for dead."""
        if not self._is_shut:
            self.shut()
            self._journal.end()

    async def close(self) -> Left:
        """Give up what is under way, close the providers, and return what no test has taken."""
        self.end()
        self._heart.cancel()
        # Each is cancelled once: a second time would end the cleaning up that the first one began.
        under_way = set(self._under_way)
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way, timeout=CLOSING_S)
        await self._fetcher.aclose()
        await asyncio.get_running_loop().shutdown_asyncgens()
        left = [sent for line in self._lines.values() for sent in line.out.values()]
        answered = sorted((sent for sent in left if sent.job_result), key=lambda sent: sent.cell.place)
        return Left(
            results=[self._message(sent) for sent in answered],
            n_out=len(left),
            spent_usd=self._fetcher.budget.here_usd,
        )
