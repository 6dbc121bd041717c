"""Under pytest-xdist: workers run tests and judge, the controller asks all models and writes all rows.

Each worker has one execnet channel to the controller. It sends what it has collected, and then a question for
each of its cells; the controller sends the replies back. xdist's own schedulers distribute the items.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import queue
import threading
import traceback
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_openclaw.options import SUITE_NAME
from pytest_openclaw.util.errors import AskerFailed, CallBroke, OpenClawError
from pytest_openclaw.values.rows import PAYLOAD, Record, payload_from_text, payload_to_text

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from concurrent.futures import Future

    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

    from pytest_openclaw.asking.asker import PlannedCell
    from pytest_openclaw.runs.resume import Replay
    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.replies import CallResult, Reply, Verdict
    from pytest_openclaw.values.requests import CellKey
    from pytest_openclaw.values.rows import Payload
    from pytest_openclaw.values.settings import Settings
    from pytest_openclaw.values.tool_calls import Surface

INPUT = "openclaw"
CHANNEL = "openclaw_channel"
"""The keys of a worker's input and of its channel in xdist's `workerinput`."""
STOP = b""
"""The message after which a worker runs no further test."""
CONTROLLER = "openclaw-controller"
"""The name of the plugin that is registered in a controller."""


@dataclass(frozen=True, kw_only=True)
class WorkerInput:
    """What a worker receives at its start.

    Attributes:
        targets: their labels, without wildcards.
        settings: the settings that a resumed run takes from its config.
        surface: of OpenClaw; None if no target is asked on it.
        kept: the verdicts that a resumed run keeps.

    """

    targets: Sequence[str]
    settings: Mapping[str, Any]
    surface: Surface | None
    kept: Mapping[CellKey, Replay]


@dataclass(frozen=True, kw_only=True)
class Collected:
    """The items that a worker has collected.

    Attributes:
        cells: of each item, in order; None for an item that is not a cell.
        divided: the digest of the cells of all shards; None if the session runs all that it selects.

    """

    cells: Sequence[PlannedCell | None]
    divided: str | None


class Question(NamedTuple):
    """A worker asks for a cell's reply.

    Attributes:
        again: the worker has used a reply of this cell already.
        n_reported: how many rows it has sent before.

    """

    token: str
    again: bool
    n_reported: int


class JudgedByWorkers:
    """Takes the place of a plugin's validator in the controller, which may not load it."""

    type = "judged_by_workers"

    def check(self, reply: Reply) -> Verdict:  # noqa: ARG002 - of the protocol
        """Raise: only workers judge."""
        raise AssertionError("only workers judge with a plugin's validator")


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: object) -> Any:
        is_validator = hasattr(type(value), "check") and isinstance(getattr(type(value), "type", None), str)
        if is_validator and not type(value).__module__.startswith("pytest_openclaw."):
            return JudgedByWorkers, ()
        return NotImplemented


# --- a worker ---------------------------------------------------------------------------------------


class WorkerLink:
    """A worker's side of the channel; see `links.Link`."""

    def __init__(self, config: pytest.Config) -> None:
        given: Mapping[str, Any] = vars(config)["workerinput"]
        self.input: WorkerInput = pickle.loads(given[INPUT])  # noqa: S301 - from our controller
        self._channel = given[CHANNEL]
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        self._used: set[str] = set()
        self._n_reported = 0
        self._config = config
        self._channel.setcallback(self._receive, endmarker=None)

    def _receive(self, message: bytes | None) -> None:
        """Take a message, in execnet's thread."""
        if message == STOP:
            session: Any = self._config.pluginmanager.get_plugin("session")
            session.shouldstop = "the controller stops"
        else:
            self._answers.put(message)

    def collected(self, cells: Sequence[PlannedCell | None], divided: str | None) -> None:
        """Send what was collected, before xdist sends its own message about it."""
        message = io.BytesIO()
        _Pickler(message).dump(Collected(cells=cells, divided=divided))
        self._channel.send(message.getvalue())

    def ask(self, token: str, cell: Cell) -> CallResult:
        """Return how the cell's call ended; see `Asker.ask`."""
        del cell  # the controller has it
        again = token in self._used
        self._used.add(token)
        self._channel.send(tuple(Question(token, again, self._n_reported)))
        answer = self._answers.get()
        if answer is None:
            raise pytest.exit.Exception("the session is stopping")
        result: CallResult | Exception = pickle.loads(answer)  # noqa: S301 - from our controller
        if isinstance(result, Exception):
            raise result
        return result

    def release(self, token: str) -> None:
        """Forget that a cell's reply was used; the controller forgets the reply with the item's report."""
        self._used.discard(token)

    def carried(self, payload: Payload) -> str:
        """Return the payload as the report of a cell carries it to the controller."""
        return payload_to_text(payload)

    def reported(self) -> None:
        """Count a report that the controller will receive."""
        self._n_reported += 1


# --- the controller ---------------------------------------------------------------------------------


class Controller:
    """Registered in xdist's controller."""

    def __init__(self, owner: Owner, config: pytest.Config, settings: Settings) -> None:
        self._owner = owner
        self._config = config
        self._settings = settings
        self._workers: dict[WorkerController, _Worker] = {}
        self._first: WorkerController | None = None
        self._keys: dict[str, CellKey] = {}
        self._reported_by: dict[str, WorkerController] = {}
        # A worker holds few items, so that cells run nearly in the order in which they are sent.
        config.option.maxschedchunk = config.option.maxschedchunk or 1

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Give a worker what was decided once, and open its channel."""
        owner = self._owner
        given = WorkerInput(
            targets=[target.label for target in self._settings.targets],
            settings=owner.resumed.for_workers(self._settings) if owner.resumed else {},
            surface=self._settings.surface,
            kept=owner.resumed.kept if owner.resumed else {},
        )
        channel = node.gateway.newchannel()
        self._workers[node] = _Worker(owner, channel)
        node.workerinput[INPUT] = pickle.dumps(given)
        node.workerinput[CHANNEL] = channel

    def pytest_xdist_make_scheduler(self) -> Scheduling | None:
        """Refuse the one way of distributing items that would ask every cell once in each worker."""
        if self._config.getvalue("dist") == "each":
            raise pytest.UsageError(
                "--dist=each would ask every cell once in each worker, but a run has one row for each cell. "
                "Leave it out; to measure on several machines, start a run on each, then: "
                "pytest-openclaw merge RUN… --into RUN"
            )
        return None

    def pytest_xdist_node_collection_finished(self, node: WorkerController) -> None:
        """Start the run with what the first worker has selected; all workers collect the same."""
        worker = self._workers[node]
        collected = worker.collected
        if collected is None:
            raise pytest.UsageError(f"worker {node.gateway.id} has not sent what it has collected")
        if self._first is None:
            self._first = node
            self._keys = {one.token: one.cell.key for one in collected.cells if one}
            self._owner.begin(collected.cells, collected.divided)
        else:
            self._refuse_other_suites(self._first, node)
        worker.is_running = True
        self._count_runners()

    def _refuse_other_suites(self, first: WorkerController, node: WorkerController) -> None:
        """Refuse a worker whose copy of a suite differs; xdist compares only the ids of items."""
        of_first, of_node = (self._workers[each].prompts for each in (first, node))
        changed = [key for key, prompt in of_node.items() if of_first.get(key, prompt) != prompt]
        if changed:
            raise pytest.UsageError(
                f"{changed[0][0]} is not the same on {first.gateway.id} and {node.gateway.id}. "
                "Copy the project again to every machine."
            )

    def pytest_testnodedown(self, node: WorkerController) -> None:
        """Note that a worker has ended or died."""
        self._workers[node].is_running = False
        self._count_runners()

    def _count_runners(self) -> None:
        self._owner.asker.set_runners(sum(worker.is_running for worker in self._workers.values()))

    def pytest_handlecrashitem(self, crashitem: str, sched: Scheduling) -> None:
        """Run a cell again that has no row; its reply, if it has come, is still here."""
        if crashitem in self._keys and crashitem not in self._reported_by:
            from xdist.scheduler import LoadScopeScheduling

            # Schedulers of scopes, files and groups redistribute a dead worker's items themselves.
            if not isinstance(sched, LoadScopeScheduling):
                sched.mark_test_pending(crashitem)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Read a cell's payload, keep it on its first report, then pass on the worker's questions."""
        if (text := vars(report).get(PAYLOAD)) is None:
            return (yield)
        node = vars(report)["node"]
        setattr(report, PAYLOAD, payload_from_text(text))
        # A cell that a worker reported before it died may be run again by another one.
        if self._reported_by.setdefault(report.nodeid, node) is not node:
            del vars(report)[PAYLOAD]
        result = yield
        self._workers[node].recorded()
        return result

    def pytest_runtest_logfinish(self) -> None:
        """End the workers when `-x` stops the session: xdist lets them run all that they hold."""
        if self._dsession.shouldstop:
            for worker in self._workers.values():
                worker.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """End the tests that wait for a reply, before xdist waits for their workers."""
        for worker in self._workers.values():
            worker.close()

    def take_last(self) -> None:
        """Record the rows that have come and that xdist did not look at any more."""
        events = self._dsession.queue
        while not events.empty():
            name, event = events.get()
            if name != "testreport" or (text := vars(event["rep"]).get(PAYLOAD)) is None:
                continue
            payload = payload_from_text(text)
            if isinstance(payload, Record):
                self._owner.keep([replace(payload, reported=False)])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Stop for a malformed suite before any call, as pytest does; xdist would run the others."""
        option, name = self._config.option, report.nodeid.rpartition("/")[2]
        if report.failed and SUITE_NAME.match(name) and not option.continue_on_collection_errors:
            self._dsession.shouldstop = "error during collection"

    @property
    def _dsession(self) -> Any:
        return self._config.pluginmanager.get_plugin("dsession")


class _Worker:
    """The controller's side of a worker's channel.

    A question is passed on when the rows that the worker has sent before it are recorded: they may decide
    whether the repeat that it asks for is sent at all.

    Attributes:
        collected: its first message.
        is_running: it has collected and has not ended.

    """

    def __init__(self, owner: Owner, channel: Any) -> None:
        self.collected: Collected | None = None
        self.is_running = False
        self._owner = owner
        self._channel = channel
        self._n_recorded = 0
        self._is_stopping = False
        self._questions: deque[Question] = deque()
        self._lock = threading.Lock()
        channel.setcallback(self._receive)

    @property
    def prompts(self) -> dict[tuple[str, str], JsonObject]:
        """The definitions of the prompts that it has collected, by suite and id."""
        from pytest_openclaw.suites import definitions

        cells = self.collected.cells if self.collected else ()
        prompts = {(one.cell.prompt.suite, one.cell.prompt.id): one.cell.prompt for one in cells if one}
        return dict(zip(prompts, definitions(prompts.values()), strict=True))

    def _receive(self, message: bytes | tuple[str, bool, int]) -> None:
        """Take a message, in execnet's thread."""
        if isinstance(message, bytes):
            self.collected = pickle.loads(message)  # noqa: S301 - from a worker of ours
            return
        with self._lock:
            self._questions.append(Question(*message))
        self._pass_on()

    def recorded(self) -> None:
        """Note that a row of the worker's is recorded."""
        self._n_recorded += 1
        self._pass_on()

    def stop(self) -> None:
        """Let the worker end after its present test."""
        if not self._is_stopping:
            self._is_stopping = True
            with contextlib.suppress(OSError):  # it has died
                self._channel.send(STOP)

    def close(self) -> None:
        """Answer nothing more: a test that waits ends the worker's session."""
        self._channel.close()

    def _pass_on(self) -> None:
        with self._lock:
            ready = [one for one in self._questions if one.n_reported <= self._n_recorded]
            for question in ready:
                self._questions.remove(question)
        for question in ready:
            try:
                future = self._owner.asker.submit(question.token, again=question.again)
            except AskerFailed as error:
                self._send(error)
            else:
                future.add_done_callback(self._answer)

    def _answer(self, future: Future[CallResult]) -> None:
        error = future.exception()
        self._send(future.result() if error is None else _portable(error))

    def _send(self, answer: CallResult | BaseException) -> None:
        with contextlib.suppress(OSError):  # the worker has died; the one in its place asks again
            self._channel.send(pickle.dumps(answer))


def _portable(error: BaseException) -> BaseException:
    """Return an error that another process can load: a plugin's exception may be defined anywhere."""
    if isinstance(error, OpenClawError):
        return error
    broke = CallBroke(f"{type(error).__name__}: {error}")
    broke.add_note("".join(traceback.format_exception(error)))
    return broke
