"""The hooks of xdist's controller: what workers receive, which of them runs a cell, when the run starts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScheduling

from pytest_openclaw.distributed.messages import Decided, Spent, Stop, WorkerEnd, WorkerReport
from pytest_openclaw.distributed.scheduling import CellScheduling, FittingScheduling, in_scopes
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

    from pytest_openclaw.core.json_types import JsonObject
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
        self._n_unreported: dict[WorkerController, int] = {}
        self._reported_by: dict[str, WorkerController] = {}
        self._stops = False
        self._spent_usd: dict[str, float] = {}
        self._decided: list[Decided] = []
        self._keys: dict[str, CellKey] = {}
        session.writer.on_decision = self._publish

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Give a worker what was decided once: the targets, the folder of the run, its share."""
        self._nodes.append(node)
        node.workerinput[INPUT] = vars(self._workers.input_of(node))

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> Scheduling | None:
        """Keep a endpoint within its limit over all workers, unless the user chose how to distribute.

        Where they did, the workers keep it together as they ask.
        """
        if distributes_freely(config):
            mended = None if has_own_scheduler(config) else in_scopes(config.getvalue("dist"))
            return mended(config, log) if mended else None
        for_cells = CellScheduling(config, log, self._assign, self._workers.number_of, self._reported_by)
        return FittingScheduling(LoadScheduling(config, log), for_cells, self._keys.__contains__)

    def _assign(self, nodeid: str) -> int | None:
        """Return the number of the worker that runs a cell; None for an item that is no cell."""
        if (key := self._keys.get(nodeid)) is None:
            return None
        return self._workers.deal(key.target.provider, is_kept=key in self._session.kept)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read a cell's payload, and keep it on its first report alone."""
        if (text := vars(report).get(PAYLOAD)) is None:
            return
        node = vars(report)["node"]
        message = WorkerReport.from_text(text)
        self._n_unreported[node] = message.n_unreported
        self._count_spent(node, message.spent_usd)
        setattr(report, PAYLOAD, replace(message.payload, host=self._workers.host_of(node)))
        # A cell that a worker reported before it died may be run again by another one.
        if self._reported_by.setdefault(report.nodeid, node) is not node:
            del vars(report)[PAYLOAD]

    def pytest_runtest_logfinish(self) -> None:
        """After the last failure that the user allowed, let no worker go on with what it was given."""
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

    def _publish(self, decision: JsonObject) -> None:
        """Send all workers what was decided on a target's repeats: they wait for it."""
        command = Decided(**decision)
        self._decided.append(command)
        for node in self._nodes:
            self._workers.send(node, command)

    def _count_spent(self, node: WorkerController, usd: float | None) -> None:
        """Take what a worker's machine has spent so far, and send it to all other machines."""
        if usd is None:
            return
        machine, budget = self._workers.elsewhere(node), self._session.budget
        if machine is not None:
            if usd <= self._spent_usd.get(machine, 0.0):
                return
            self._spent_usd[machine] = usd
            # The processes of this machine read it there.
            budget.hear(sum(self._spent_usd.values()))
        for other in self._nodes:
            place = self._workers.elsewhere(other)
            if place is not None and place != machine:
                elsewhere_usd = budget.spent_usd - self._spent_usd.get(place, 0.0)
                self._workers.send(other, Spent(elsewhere_usd=elsewhere_usd))

    def take_last(self) -> int:
        """Record the rows that have come and that xdist did not look at any more.

        Returns:
            How many calls of workers may have no row.
        """
        while not self._dsession.queue.empty():
            name, event = self._dsession.queue.get()
            if name == "testreport" and PAYLOAD in vars(event["rep"]):
                self._take_late(event["rep"], event["node"])
        return sum(map(self._take_end, self._nodes))

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
        last = getattr(node, "workeroutput", {}).get(PAYLOAD)
        if last is None:  # it died: what it had reported last, and the cell that it had in hand
            return self._n_unreported.get(node, self._most_out(node)) + 1
        end = WorkerEnd.from_text(last)
        self._count_spent(node, end.spent_usd)
        host = self._workers.host_of(node)
        self._writer.keep(replace(payload, host=host) for payload in end.unreported)
        return end.n_lost

    def _most_out(self, node: WorkerController) -> int:
        """Upper bound of the unreported calls of a worker that has sent no report."""
        from pytest_openclaw.asking.executor import ahead_of

        shares = self._workers.shares_of(node).items()
        endpoints = {self._session.providers[name].endpoint: share for name, share in shares if share}
        return sum(map(ahead_of, endpoints.values()))

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
        # Decided before it could receive: it has come in place of another, or the run is resumed.
        for decision in self._decided:
            self._workers.send(node, decision)
