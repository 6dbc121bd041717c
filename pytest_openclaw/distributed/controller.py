"""The hooks of xdist's controller: what workers receive, which of them runs a cell, when the run starts."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.asking.starting import OWN
from pytest_openclaw.distributed.scheduling import CellScheduling, in_scopes
from pytest_openclaw.distributed.worker_messages import (
    Decided,
    PackedReports,
    Spent,
    Stop,
    WorkerEnd,
    WorkerReport,
)
from pytest_openclaw.distributed.worker_protocol import Workers, distributes_freely, has_own_scheduler
from pytest_openclaw.options import SUITE_NAME
from pytest_openclaw.session.coordinator import INPUT
from pytest_openclaw.types.payloads import PAYLOAD
from pytest_openclaw.types.records import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdist.remote import Producer
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

    from pytest_openclaw.asking.links import AskerThread
    from pytest_openclaw.distributed.worker_messages import Command
    from pytest_openclaw.session.plugin_session import PluginSession
    from pytest_openclaw.types.payloads import ReportPayload
    from pytest_openclaw.types.targets import CellKey


class Controller:
    """Registered in xdist's controller."""

    def __init__(self, session: PluginSession) -> None:
        self._session = session
        self._writer = session.writer
        self._workers = Workers(session)
        self._nodes: list[WorkerController] = []
        self._n_unreported: dict[str | None, int] = {}
        self._reported_by: dict[str, WorkerController] = {}
        self._stops = False
        self._spent_usd: dict[str | None, float] = {}
        self._decided: list[Command] = []
        self._keys: dict[str, CellKey] = {}
        self._threads: list[AskerThread] | None = None
        session.config.pluginmanager.register(PackedReports())
        session.writer.on_decision = lambda decision: self._publish(Decided(**decision))

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Give a worker what was decided once: the targets, the folder of the run."""
        self._nodes.append(node)
        given = self._workers.input_of(node)
        node.workerinput[INPUT] = vars(given)
        if self._threads is None and given.is_here and self._session.sends:
            self._threads = self._host_askers()

    def _host_askers(self) -> list[AskerThread]:
        """Ask plugins' providers in this process, which no judging keeps busy and which outlives a worker."""
        from pytest_openclaw.asking.client import host_thread_askers

        session = self._session
        threads = host_thread_askers(session.providers, session.shared_dir, OWN)
        if threads:
            stack = ExitStack()
            session.config.add_cleanup(stack.close)
            stack.enter_context(session.cell_parts.redactor.over_logs())
            for thread in threads:
                stack.callback(thread.end)
        return threads

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> Scheduling | None:
        """Have workers run cells nearly in their order, unless the user chose how to distribute."""
        if distributes_freely(config):
            corrected = None if has_own_scheduler(config) else in_scopes(config.getvalue("dist"))
            return corrected(config, log) if corrected else None
        return CellScheduling(
            config, log, lambda: bool(self._keys), self._workers.number_of, self._workers.owner_of
        )

    def pytest_handlecrashitem(self, crashitem: str, sched: Scheduling) -> None:
        """Have a cell run again that has no row."""
        if crashitem in self._keys and crashitem not in self._reported_by:
            # Schedulers of scopes do not implement it: they redistribute a dead worker's items.
            with contextlib.suppress(NotImplementedError):
                sched.mark_test_pending(crashitem)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read a cell's payload, and keep it on its first report alone."""
        if (text := vars(report).get(PAYLOAD)) is None:
            return
        node = vars(report)["node"]
        message = WorkerReport.from_text(text)
        self._n_unreported[self._workers.identity_of(node)] = message.n_unreported
        self._count_spent(node, message.spent_usd)
        setattr(report, PAYLOAD, replace(message.payload, host=self._workers.host_of(node)))
        # A cell that a worker reported before it died may be run again by another one.
        if self._reported_by.setdefault(report.nodeid, node) is not node:
            del vars(report)[PAYLOAD]

    def pytest_runtest_logfinish(self) -> None:
        """After the last failure that the user allowed, stop the workers' remaining cells."""
        if not self._stops and self._dsession.shouldstop:
            self._stop(at_once=False)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Let the workers end before xdist waits for them, if the session has been interrupted."""
        self._stop(at_once=True)

    def _stop(self, *, at_once: bool) -> None:
        self._stops = True
        for node in self._nodes:
            self._workers.send(node, Stop(at_once=at_once))

    def _publish(self, command: Command) -> None:
        """Send all workers what their askers wait for, and those that come later."""
        self._decided.append(command)
        for node in self._nodes:
            self._workers.send(node, command)

    def _count_spent(self, node: WorkerController, usd: float | None) -> None:
        """Take what a worker's host has spent so far, and send it to all other hosts."""
        host = self._workers.identity_of(node)
        if usd is None or usd <= self._spent_usd.get(host, 0.0):
            return
        self._spent_usd[host] = usd
        total_usd = sum(self._spent_usd.values())
        self._session.budget.count_here(total_usd)
        for other in self._nodes:
            place = self._workers.identity_of(other)
            if place != host:
                self._workers.send(other, Spent(elsewhere_usd=total_usd - self._spent_usd.get(place, 0.0)))

    def take_last(self) -> int:
        """Record the rows that have come and that xdist did not look at any more.

        Returns:
            How many calls of workers may have no row.
        """
        while not self._dsession.queue.empty():
            name, event = self._dsession.queue.get()
            if name == "testreport" and PAYLOAD in vars(event["rep"]):
                self._take_late(event["rep"], event["node"])
        n_lost = sum(map(self._take_end, self._nodes))
        ended = {self._workers.identity_of(node) for node in self._nodes if _end_of(node)}
        unknown = {self._workers.identity_of(node): node for node in self._nodes}.items()
        return n_lost + sum(
            self._n_unreported.get(host, self._most_out(node)) for host, node in unknown if host not in ended
        )

    def _take_late(self, report: pytest.TestReport, node: WorkerController) -> None:
        vars(report)["node"] = node
        self.pytest_runtest_logreport(report)
        payload: ReportPayload | None = vars(report).get(PAYLOAD)
        if payload and isinstance(payload.outcome, Record):
            self._writer.keep([replace(payload, outcome=replace(payload.outcome, reported=False))])
        elif payload:
            self._writer.take(report, payload)

    def _take_end(self, node: WorkerController) -> int:
        """Record a worker's last message; return how many of its calls may have no row."""
        end = _end_of(node)
        if end is None:  # it died with the cell that it had in hand
            return 1
        self._count_spent(node, end.spent_usd)
        host = self._workers.host_of(node)
        self._writer.keep(replace(payload, host=host) for payload in end.unreported)
        self._writer.keep_diagnoses(end.diagnoses, host)
        return end.n_lost

    def _most_out(self, node: WorkerController) -> int:
        """Upper bound of the unreported calls of a host that has sent no report."""
        from pytest_openclaw.asking.asker import ahead_of
        from pytest_openclaw.asking.endpoint_limits import endpoint_limits

        limits = endpoint_limits(self._session.providers, self._session.settings)
        for name, limit in (self._workers.limits_of(node) or {}).items():
            limits[self._session.providers[name].endpoint] = limit
        return sum(ahead_of(limit) for limit in limits.values() if limit)

    @property
    def _dsession(self) -> Any:
        return self._session.config.pluginmanager.get_plugin("dsession")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Stop for a malformed suite before any call, as pytest does; xdist would run the others."""
        option, name = self._session.config.option, report.nodeid.rpartition("/")[2]
        if report.failed and SUITE_NAME.match(name) and not option.continue_on_collection_errors:
            self._dsession.shouldstop = "error during collection"

    def pytest_xdist_node_collection_finished(self, node: WorkerController, ids: Sequence[str]) -> None:
        """Read what a worker has selected; start the run with the first one's."""
        selection = self._workers.receive(node)
        self._keys.update((nodeid, key) for nodeid, key in zip(ids, selection.keys, strict=True) if key)
        if self._keys and self._session.config.getvalue("dist") == "each":
            raise pytest.UsageError(
                "--dist=each would ask every cell once a worker, but a run has one row a cell. "
                "Leave it out; to measure on several machines, start a run on each, then: "
                "pytest-openclaw merge RUN… --into RUN"
            )
        writer = self._writer
        if self._session.sends:
            writer.begin(selection)
        if writer.run is not None and (host := self._workers.host_of(node)):
            writer.run.meet(host, self._workers.facts_of(node))
        # Published before it could receive: it has come in place of another, or the run is resumed.
        for decision in self._decided:
            self._workers.send(node, decision)


def _end_of(node: WorkerController) -> WorkerEnd | None:
    """Return a worker's last message; None if it died."""
    text = getattr(node, "workeroutput", {}).get(PAYLOAD)
    return None if text is None else WorkerEnd.from_text(text)
