"""Sends the cells of a run and keeps each reply until its test has ended.

There is one `Asker`, in the process that owns the run: the pytest session, or xdist's controller. It runs an
asyncio loop in a thread. To each endpoint it sends the cells in the order of the plan, at most 2 × limit + 2
of them before their tests ask for them: a reply is ready when its test begins, and replies do not pile up.
A cell that a test waits for is sent next, wherever it is in the plan.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from pytest_openclaw.asking.sending import CLOSING_S, Sender, close_all, endpoint_limits, request_for
from pytest_openclaw.util.errors import AskerFailed, CellNotSent
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.replies import CallResult
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.settings import Settings

_SIGNAL_S = 1.0
"""The interval at which a waiting test looks for Ctrl-C, which does not interrupt a wait on Windows."""
_SWITCH_S = 0.001
"""The longest that another thread computes before this one can note when a token arrived."""


@dataclass(frozen=True, kw_only=True)
class PlannedCell:
    """A cell of the plan.

    Attributes:
        token: unique in the session; the node id of its item.
        is_ahead: whether the cell may be sent before its test begins.
        stage: the cell waits for the decisions on its target's earlier stages; 0 waits for none.
    """

    token: str
    cell: Cell
    is_ahead: bool = True
    stage: int = 0


@dataclass(kw_only=True, eq=False, slots=True)
class _Job:
    """A cell, from the plan to the end of its test; `queued_at` is when a test began to wait for it."""

    cell: Cell
    stage: int = 0
    request: Request | None = None
    queued_at: float | None = None
    is_sent: bool = False
    is_done: bool = False
    result: CallResult | BaseException | None = None
    waiters: list[Future[CallResult]] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class _Queue:
    """The cells of one endpoint.

    Attributes:
        planned: to be sent ahead of their tests, in the order of the plan.
        urgent: not sent yet, while a test waits for each of them.
        ahead: sent or answered, before a test has asked for them.
    """

    limit: int
    planned: deque[_Job] = field(default_factory=deque)
    urgent: dict[_Job, None] = field(default_factory=dict)
    ahead: set[_Job] = field(default_factory=set)
    in_flight: dict[_Job, asyncio.Task[CallResult]] = field(default_factory=dict)


class Asker:
    """Sends all requests of a run; any thread may call its methods.

    Attributes:
        facts, waiting: as in `Sender`.
    """

    def __init__(self, providers: Mapping[str, Provider], settings: Settings) -> None:
        self._providers = providers
        self._settings = settings
        self._sender = Sender(providers, settings)
        self.facts, self.waiting = self._sender.facts, self._sender.waiting
        limits = endpoint_limits(providers, settings)
        self._queues = {endpoint: _Queue(limit=limit) for endpoint, limit in limits.items()}
        self._jobs: dict[str, _Job] = {}
        # By the target's label: the last stage with a decision, and for a target that has
        # ended, its last stage and the reason.
        self._decided: dict[str, int] = {}
        self._ends: dict[str, tuple[int, str]] = {}
        self._n_runners = 1
        self._is_stopping = self._is_closed = False
        self._closing = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._switch_s = sys.getswitchinterval()

    # --- from any thread ---

    def plan(self, cells: Sequence[PlannedCell]) -> None:
        """Receive all cells of the session, in order, and begin to send them ahead of their tests."""
        self._call(self._plan, cells)

    def ask(self, token: str, cell: Cell | None = None, request: Request | None = None) -> CallResult:
        """Wait for the result of a cell's call; see `submit`.

        Raises:
            CellNotSent: the target was settled in an earlier stage.
            AskerFailed: the session is stopping, or the thread has ended.
            Exception: a provider raised it, and it is not a `CallFailed`.
        """
        future = self.submit(token, cell, request)
        while not concurrent.futures.wait([future], _SIGNAL_S).done:
            if self._thread is None or not self._thread.is_alive():  # ended as this call arrived
                raise AskerFailed("the thread that sends requests has ended")
        return future.result()

    def submit(
        self, token: str, cell: Cell | None = None, request: Request | None = None
    ) -> Future[CallResult]:
        """Return a future for the result of a cell's call; send the cell unless it was sent ahead.

        A token that is not in the plan needs its `cell`; `request` replaces the request made from the cell.
        """
        future: Future[CallResult] = Future()
        self._call(self._submit, token, cell, request, future)
        return future

    def done(self, token: str) -> None:
        """Forget a cell: its test has ended, with its reply or without it."""
        self._call_if_started(self._done, token)

    def decide(self, target: str, stage: int, ends: str | None) -> None:
        """Record the decision after a stage of a target; `ends` is the reason if no later stage is sent."""
        self._call_if_started(self._decide, target, stage, ends)

    def set_runners(self, n: int) -> None:
        """Set the number of processes that run tests; no stage waits for a cell that no process runs."""
        self._n_runners = n  # also before the loop has started
        self._call_if_started(self._release_held)

    def stop(self) -> None:
        """Send no more cells; a test that waits for an unsent cell receives `AskerFailed`."""
        self._call_if_started(self._stop)

    @property
    def spent_usd(self) -> float:
        """The cost of all calls so far."""
        return self._sender.spent_usd

    def close(self) -> list[tuple[Cell, CallResult]]:
        """Cancel all requests in flight; return the replies of cells whose tests have not ended."""
        self._call_if_started(self._closing.set)
        self._is_closed = True
        if self._thread is None:
            self._loop.close()
            return []
        self._thread.join(3 * CLOSING_S)  # a provider may block the loop; the thread ends with the process
        sys.setswitchinterval(self._switch_s)
        left = [job for job in self._jobs.values() if not job.is_done]
        return [(job.cell, job.result) for job in left if isinstance(job.result, CallResult)]

    # --- the thread ---

    def _call(self, function: Callable[..., object], *args: object) -> None:
        """Run a function in the loop; the first call starts the thread."""
        if self._is_closed:
            raise AskerFailed("the session has ended")
        if self._thread is None:
            sys.setswitchinterval(_SWITCH_S)
            self._thread = threading.Thread(target=self._serve, name="openclaw-asker", daemon=True)
            self._thread.start()
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            raise AskerFailed("the thread that sends requests has ended") from None

    def _call_if_started(self, function: Callable[..., object], *args: object) -> None:
        if self._thread is not None:
            with contextlib.suppress(AskerFailed):
                self._call(function, *args)

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._until_closed())
        finally:  # the session closed the asker, or a provider ended the loop
            for job in self._jobs.values():
                self._answer(job, AskerFailed("the thread that sends requests has ended"))

    async def _until_closed(self) -> None:
        try:
            await self._closing.wait()
        finally:  # also if a provider ends the loop, so that no more cells are sent
            self._stop()
        # Each task is cancelled only once: a second time would interrupt its cleanup after the first.
        if in_flight := [task for queue in self._queues.values() for task in queue.in_flight.values()]:
            for task in in_flight:
                task.cancel()
            await asyncio.wait(in_flight, timeout=CLOSING_S)
        await close_all(self._providers.values())

    # --- in the loop ---

    def _plan(self, cells: Sequence[PlannedCell]) -> None:
        for planned in cells:
            job = self._jobs[planned.token] = _Job(cell=planned.cell, stage=planned.stage)
            if planned.is_ahead:
                self._queue_of(job).planned.append(job)
        self._feed_all()

    def _submit(
        self, token: str, cell: Cell | None, request: Request | None, future: Future[CallResult]
    ) -> None:
        job = self._jobs.get(token)
        if job is None or job.is_done:
            job = self._jobs[token] = _Job(cell=cell or self._jobs[token].cell, request=request)
        job.waiters.append(future)
        queue = self._queue_of(job)
        if job.is_sent:
            queue.ahead.discard(job)
            self._answer(job)
        elif self._is_stopping:
            self._answer(job, AskerFailed("the session is stopping"))
        else:
            queue.urgent[job] = None
            job.queued_at = job.queued_at or time.perf_counter()
        self._feed(queue)
        self._release_held()

    def _done(self, token: str) -> None:
        if (job := self._jobs.get(token)) is None:
            return
        job.is_done, job.result = True, None
        queue = self._queue_of(job)
        queue.urgent.pop(job, None)
        queue.ahead.discard(job)
        self._feed(queue)

    def _decide(self, target: str, stage: int, ends: str | None) -> None:
        self._decided[target] = max(stage, self._decided.get(target, 0))
        if ends is not None:
            self._ends[target] = (stage, ends)
        self._feed_all()

    def _why_left_out(self, job: _Job) -> str | None:
        last, why = self._ends.get(job.cell.target.label, (job.stage, None))
        return why if job.stage > last else None

    def _waits(self, job: _Job) -> bool:
        """Whether a cell may be sent only after the decision on an earlier stage."""
        is_early = self._decided.get(job.cell.target.label, 0) < job.stage - 1
        return is_early and self._why_left_out(job) is None

    def _stop(self) -> None:
        self._is_stopping = True
        for queue in self._queues.values():
            for job in queue.urgent:
                self._answer(job, AskerFailed("the session is stopping"))
            queue.urgent.clear()

    def _feed_all(self) -> None:
        for queue in self._queues.values():
            self._feed(queue)

    def _feed(self, queue: _Queue) -> None:
        while not self._is_stopping and len(queue.in_flight) < queue.limit:
            job = self._next_urgent(queue) or self._next_planned(queue)
            if job is None:
                break
            job.is_sent = True
            if not job.waiters:
                queue.ahead.add(job)
            provider = self._providers[job.cell.target.provider]
            request = job.request or request_for(job.cell, self._settings, provider)
            sending = self._sender.send(job.cell, request, job.queued_at)
            queue.in_flight[job] = task = asyncio.ensure_future(sending)
            task.add_done_callback(partial(self._sent, queue, job))

    def _next_urgent(self, queue: _Queue) -> _Job | None:
        for job in [*queue.urgent]:
            if self._waits(job):
                continue
            del queue.urgent[job]
            if (why := self._why_left_out(job)) is None:
                return job
            self._answer(job, CellNotSent(why))
        return None

    def _next_planned(self, queue: _Queue) -> _Job | None:
        most_ahead = 2 * queue.limit + 2
        while queue.planned and len(queue.ahead) < most_ahead:
            job = queue.planned[0]
            is_over = job.is_sent or job.is_done
            if not is_over and self._waits(job):
                return None
            queue.planned.popleft()
            if not is_over and self._why_left_out(job) is None:
                queue.urgent.pop(job, None)
                return job
        return None

    def _release_held(self) -> None:
        """Send a stage before its decision if all processes that run tests wait for a decision.

        Such a decision needs a cell that no process will run, for example under `--dist loadfile`.
        """
        urgent = (job for queue in self._queues.values() for job in queue.urgent)
        held = [job for job in urgent if self._waits(job)]
        if held and len(held) >= self._n_runners:
            self._decide(held[0].cell.target.label, held[0].stage - 1, None)

    def _sent(self, queue: _Queue, job: _Job, task: asyncio.Task[CallResult]) -> None:
        del queue.in_flight[job]
        if task.cancelled():
            job.result = AskerFailed("the provider, or the end of the session, cancelled the request")
        else:
            job.result = task.exception() or task.result()
        self._feed(queue)
        self._answer(job)

    def _answer(self, job: _Job, error: AskerFailed | CellNotSent | None = None) -> None:
        """Pass a cell's result, or an error, to the tests that wait for it."""
        if (result := job.result or error) is None:
            return
        for waiter in job.waiters:
            if isinstance(result, BaseException):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)
        job.waiters.clear()

    def _queue_of(self, job: _Job) -> _Queue:
        return self._queues[self._providers[job.cell.target.provider].endpoint]
