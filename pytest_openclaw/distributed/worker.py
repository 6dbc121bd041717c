"""The side of an xdist worker: it receives its items and commands from the controller, and sends results."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.asking.messages import Membership
from pytest_openclaw.asking.shares import reaches
from pytest_openclaw.asking.starting import OWN
from pytest_openclaw.core.run_once import once
from pytest_openclaw.distributed.worker_messages import (
    Assigned,
    Command,
    Decided,
    Handshake,
    HostFacts,
    PackedReports,
    Spent,
    Stop,
    Waits,
    WorkerEnd,
    WorkerReport,
    command_from_text,
)
from pytest_openclaw.distributed.worker_protocol import LINE_S, digest_of
from pytest_openclaw.recording.inventory import collect_inventory, machine_id
from pytest_openclaw.session.coordinator import Assignment, WorkerInput
from pytest_openclaw.session.registries import describe
from pytest_openclaw.types.payloads import PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.recording.selection import Selection
    from pytest_openclaw.session.coordinator import Execution
    from pytest_openclaw.types.payloads import ReportPayload
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Settings


class UnderController:
    """Coordinates a worker; see `Coordinator`.

    Args:
        given: the values of a `WorkerInput`.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given: WorkerInput = WorkerInput(**given)
        self._assignment: Assignment | None = None
        self._is_assigned = threading.Event()
        self._output: dict[str, Any] = {}

    def membership(self, providers: Mapping[str, Provider]) -> Membership:
        """Return which asker this worker uses: that of its machine, for what its environment reaches."""
        name = OWN
        if not self.given.is_here:
            described = json.dumps(describe(providers), sort_keys=True)
            name = hashlib.sha256(described.encode()).hexdigest()[:8]
        return Membership(name=name, is_alone=False, awaits_decisions=self.given.is_ordered)

    def assignment(self) -> Assignment | None:
        """Return what this host sends; it is under way when an item is."""
        if self.given.is_here:
            return None
        if not self._is_assigned.wait(LINE_S):
            raise pytest.UsageError("the controller has assigned no cells")
        return self._assignment

    def publish_wait(self, nodeid: str, why: str, seconds: float) -> None:
        """Send the controller, which shows the progress, why a cell takes longer."""
        with contextlib.suppress(OSError):  # the controller has died, and stops this worker
            self.given.line.send(Waits(nodeid=nodeid, why=why, seconds=seconds).to_text())

    def collected(
        self,
        selection: Selection,
        settings: Settings,
        providers: Mapping[str, Provider],
        shared_dir: Path,
        suites: Mapping[str, Path],
    ) -> None:
        """Send what is selected, and where this worker is if the controller does not know."""
        host = None
        if not self.given.is_here:
            machine = machine_id()
            host = HostFacts(
                machine=machine,
                inventory=once(shared_dir, "inventory", collect_inventory),
                providers=describe(providers),
                reaches={
                    name: {"endpoint": reach.endpoint, "limit": reach.limit}
                    for name, reach in reaches(providers, settings, machine).items()
                },
                suites={name: digest_of(path) for name, path in suites.items()},
            )
        text = json.dumps(selection.to_json(settings.targets))
        self.given.line.send(Handshake(selection=text, host=host).to_text())

    def begin(self, session: pytest.Session, execution: Execution) -> None:
        """Receive commands from now on."""
        self._output = vars(session.config)["workeroutput"]
        session.config.pluginmanager.register(PackedReports())

        def receive(text: str | None) -> None:
            # In a thread of execnet's; cells are sent in that of the tests.
            if text is None:
                # The end of the line: the controller has died, and no process would record an answer.
                execution.stop(at_once=True)
            else:
                self._obey(command_from_text(text), execution)

        self.given.line.setcallback(receive, endmarker=None)

    def _obey(self, command: Command, execution: Execution) -> None:
        match command:
            case Assigned():
                self._assignment = Assignment(limits=command.limits, places=command.places)
                self._is_assigned.set()
            case Stop():
                execution.stop(at_once=command.at_once)
            case Decided():
                execution.decide({"target": command.target, "repeat": command.repeat, "ends": command.ends})
            case Spent():
                execution.count_elsewhere(command.elsewhere_usd)

    def report(self, payload: ReportPayload, n_unreported: int, spent_usd: float | None) -> object:
        """Return the text of a payload, for its report's way to the controller."""
        return WorkerReport(payload=payload, n_unreported=n_unreported, spent_usd=spent_usd).to_text()

    def end(
        self,
        unreported: Sequence[ReportPayload],
        diagnoses: Mapping[str, JsonObject],
        n_lost: int,
        spent_usd: float | None,
    ) -> Sequence[ReportPayload]:
        """Send what no report contains; a worker records nothing."""
        end = WorkerEnd(unreported=unreported, diagnoses=diagnoses, n_lost=n_lost, spent_usd=spent_usd)
        self._output[PAYLOAD] = end.to_text()
        return ()
