"""Under pytest-xdist: workers run tests and judge, the controller asks all models and writes all rows.

Each worker has one execnet channel to the controller. The worker sends its collected cells, then a question
per cell; the controller sends the replies back. xdist's own schedulers distribute the items.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import queue
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.session.cells import CellParts, JudgedElsewhere
from pytest_openclaw.session.execution import Collected, Runner
from pytest_openclaw.session.owner import Owner, Start
from pytest_openclaw.util.errors import AskerFailed, OpenClawError
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.replies import CallResult
from pytest_openclaw.values.requests import CellKey
from pytest_openclaw.values.rows import PAYLOAD, Record, payload_from_text, payload_to_text
from pytest_openclaw.values.settings import Settings

if TYPE_CHECKING:
    from concurrent.futures import Future

    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

    from pytest_openclaw.runs.session import EarlierVerdict

INPUT = "openclaw"
CHANNEL = "openclaw_channel"
"""The keys of a worker's input and of its channel in xdist's `workerinput`."""
STOP = b""
"""The message after which a worker runs no further test."""


class _Pickler(pickle.Pickler):
    """Sends a stand-in for a plugin's validator, which the controller may be unable to load."""

    def reducer_override(self, value: object) -> Any:
        return (JudgedElsewhere, ()) if _is_of_a_plugin(value) else NotImplemented


def _is_of_a_plugin(value: object) -> bool:
    """Whether a value is a plugin's validator, or a built-in one that contains such a validator."""
    if not (hasattr(type(value), "check") and isinstance(getattr(type(value), "type", None), str)):
        return False
    parts = (*getattr(value, "validators", ()), getattr(value, "validator", None))
    return not type(value).__module__.startswith("pytest_openclaw.") or any(map(_is_of_a_plugin, parts))


class WorkerLink:
    """A worker's end of the channel, used in place of an `Asker`."""

    def __init__(self, config: pytest.Config) -> None:
        given: Mapping[str, Any] = vars(config)["workerinput"]
        self.settings: Settings
        self.kept: Mapping[CellKey, EarlierVerdict]
        self.settings, self.kept = pickle.loads(given[INPUT])  # noqa: S301 - from our controller
        self._channel = given[CHANNEL]
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        self._config = config
        self._channel.setcallback(self._receive, endmarker=None)

    def _receive(self, message: bytes | None) -> None:
        if message == STOP:
            session: Any = self._config.pluginmanager.get_plugin("session")
            session.shouldstop = "the controller stops"
        else:
            self._answers.put(message)

    def send(self, collected: Collected) -> None:
        """Send the collected cells."""
        message = io.BytesIO()
        _Pickler(message).dump(collected)
        self._channel.send(message.getvalue())

    def ask(self, token: str, cell: Cell) -> CallResult:
        """Return the result of the cell's call; see `Asker.ask`."""
        del cell  # the controller finds it by the token
        with contextlib.suppress(OSError):  # the controller has closed the channel; None follows
            self._channel.send(("ask", token))
        answer = self._answers.get()
        if answer is None:
            raise pytest.exit.Exception("the session is stopping")
        result: CallResult | Exception = pickle.loads(answer)  # noqa: S301 - from our controller
        if isinstance(result, Exception):
            raise result
        return result

    def done(self, token: str) -> None:
        """Let the controller drop the reply of a cell."""
        with contextlib.suppress(OSError):  # the controller has closed the channel
            self._channel.send(("done", token))


class Worker(Runner):
    """The hooks of a worker: it runs cells, and sends rows with their reports."""

    def __init__(
        self, config: pytest.Config, parts: CellParts, providers: Mapping[str, Provider], link: WorkerLink
    ) -> None:
        super().__init__(config, parts, providers)
        self._link = link

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Send the collected cells, before xdist, which registers first, sends its message about them."""
        self._link.send(self.collected(session))

    def handle(self, report: pytest.TestReport) -> None:
        """Make the report safe, and its payload one text, which execnet sends faster than a nested dict."""
        super().handle(report)
        if payload := vars(report).get(PAYLOAD):
            setattr(report, PAYLOAD, payload_to_text(payload))


def has_workers(config: pytest.Config) -> bool:
    """Whether xdist distributes the tests of this session, by its own rule."""
    option = config.option
    is_active = config.pluginmanager.hasplugin("xdist") and not option.collectonly
    return is_active and option.dist != "no" and bool(option.tx)


class Controller(Owner):
    """The hooks of xdist's controller: it gives each worker its input, and answers all questions."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self._channels: dict[WorkerController, Any] = {}
        self._collected: dict[WorkerController, Collected] = {}
        self._running: set[WorkerController] = set()
        self._tokens: frozenset[str] = frozenset()
        self._ended: set[str] = set()
        # Workers get few items at a time, so that cells run nearly in the order in which they are sent.
        option = self._config.option
        option.maxschedchunk = option.maxschedchunk or 1
        # xdist calls this for our event, and handles all events in order: a worker's earlier rows, which may
        # decide whether a repeat is sent, come before its question.
        self._dsession.worker_openclaw_question = self._answer_question

    @property
    def _dsession(self) -> Any:
        return self._config.pluginmanager.get_plugin("dsession")

    # --- workers ---

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Give a worker the settings and kept verdicts, and open its channel."""
        settings = replace(self.settings, suite_dirs=(), runs_dir=Path())  # local folders
        channel = node.gateway.newchannel()
        channel.setcallback(partial(self._receive, node))
        self._channels[node] = channel
        node.workerinput[INPUT] = pickle.dumps((settings, self.start.kept))
        node.workerinput[CHANNEL] = channel

    def _receive(self, node: WorkerController, message: bytes | tuple[str, str]) -> None:
        if isinstance(message, bytes):
            self._collected[node] = pickle.loads(message)  # noqa: S301 - from our worker
        elif message[0] == "ask":
            node.notify_inproc("openclaw_question", node=node, token=message[1])
        else:
            self.asker.done(message[1])

    def _answer_question(self, node: WorkerController, token: str) -> None:
        try:
            future = self.asker.submit(token)
        except AskerFailed as error:
            self._send(node, error)
        else:
            future.add_done_callback(partial(self._send_result, node))

    def _send_result(self, node: WorkerController, future: Future[CallResult]) -> None:
        error = future.exception()
        if error is not None and not isinstance(error, OpenClawError):
            # Another process may be unable to load a plugin's exception, which can be defined anywhere.
            broke = OpenClawError(f"{type(error).__name__}: {error}")
            broke.add_note("".join(traceback.format_exception(error)))
            error = broke
        self._send(node, error or future.result())

    def _send(self, node: WorkerController, answer: CallResult | BaseException) -> None:
        with contextlib.suppress(OSError):  # the worker has died; its replacement asks again
            self._channels[node].send(pickle.dumps(answer))

    # --- the run ---

    def pytest_xdist_make_scheduler(self) -> Scheduling | None:
        """Refuse `--dist=each`, which would ask every cell once in each worker."""
        if self._config.getvalue("dist") == "each":
            raise pytest.UsageError(
                "--dist=each would ask every cell once in each worker, but a run has one row for each cell. "
                "Leave it out; to measure on several machines, start a run on each, then: "
                "pytest-openclaw merge RUN… --into RUN"
            )
        return None

    def pytest_xdist_node_collection_finished(self, node: WorkerController) -> None:
        """Start the run with the cells of the first worker; all workers collect the same cells."""
        collected = self._collected.pop(node, None)
        if collected is None:
            raise pytest.UsageError(f"worker {node.gateway.id} has not sent its collected cells")
        if not self._tokens:
            self._tokens = frozenset(planned.token for planned in collected.cells)
            self.begin(collected)
        self._running.add(node)
        self.asker.set_runners(len(self._running))

    def pytest_testnodedown(self, node: WorkerController) -> None:
        """Note that a worker has ended or died, of which the reporter writes a line."""
        self.hide()
        self._running.discard(node)
        self.asker.set_runners(len(self._running))

    def pytest_handlecrashitem(self, crashitem: str, sched: Scheduling) -> None:
        """Run a cell without a row again; the controller still has its reply, if one arrived."""
        if crashitem in self._tokens and crashitem not in self._ended:
            from xdist.scheduler import LoadScopeScheduling

            # Schedulers of scopes, files and groups redistribute a dead worker's items themselves.
            if not isinstance(sched, LoadScopeScheduling):
                # xdist has put the worker's other items last, but a repeat waits for the earlier repeats.
                getattr(sched, "pending", []).sort()
                sched.mark_test_pending(crashitem)

    # --- reports ---

    def handle(self, report: pytest.TestReport) -> None:
        """Read the payload, write the row, and note which cells have one."""
        if text := vars(report).get(PAYLOAD):
            setattr(report, PAYLOAD, payload_from_text(text))
        super().handle(report)
        if report.when == "call" or (report.when == "setup" and not report.passed):
            self._ended.add(report.nodeid)

    def pytest_runtest_logfinish(self) -> None:
        """Stop the workers when `-x` stops the session; xdist lets them run all items they hold."""
        if self._dsession.shouldstop:
            for channel in self._channels.values():
                with contextlib.suppress(OSError):  # the worker has died
                    channel.send(STOP)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Stop before any call if a suite is malformed, as pytest does; xdist would run the others."""
        name = report.nodeid.rpartition("/")[2]
        is_suite = "." in name and not name.endswith(".py")
        if report.failed and is_suite and not self._config.option.continue_on_collection_errors:
            self._dsession.shouldstop = "error during collection"

    def end_tests(self) -> None:
        """End the tests that wait for a reply, before xdist waits for their workers."""
        for channel in self._channels.values():
            channel.close()

    def late_records(self) -> Iterator[Record]:
        """Yield the rows that arrived after xdist's last look at its events."""
        events = self._dsession.queue
        while not events.empty():
            name, event = events.get()
            text = vars(event["rep"]).get(PAYLOAD) if name == "testreport" else None
            if text and isinstance(payload := payload_from_text(text), Record):
                yield replace(payload, reported=False)
