"""The side of an xdist worker: it receives its items and commands from the controller, and sends results."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.asking.shares import reaches
from pytest_openclaw.core.run_once import once
from pytest_openclaw.distributed.messages import (
    Command,
    Decided,
    Handshake,
    HostFacts,
    Shares,
    Spent,
    Stop,
    WorkerEnd,
    WorkerReport,
    command_from_text,
)
from pytest_openclaw.distributed.worker_protocol import LINE_S, digest_of
from pytest_openclaw.recording.inventory import collect_inventory, machine_id
from pytest_openclaw.recording.selection import Selection
from pytest_openclaw.session.coordinator import WorkerInput
from pytest_openclaw.session.registries import describe
from pytest_openclaw.types.payloads import PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.session.coordinator import Execution
    from pytest_openclaw.types.payloads import ReportPayload
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Settings


class UnderController:
    """Coordinates a worker; see `Coordinator`.

    Args:
        given: the values of a `WorkerInput`.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given: WorkerInput = WorkerInput(**given)
        self.decides_repeats = self.given.others == "own_parts"
        self._shares = self.given.shares
        self._has_shares = threading.Event()
        self._output: dict[str, Any] = {}

    def shares(self) -> Mapping[str, int]:
        """Return the requests that this worker may have in flight, by provider."""
        if self._shares is None and not self._has_shares.wait(LINE_S):
            raise pytest.UsageError("the controller has sent no shares")
        assert self._shares is not None, "they have arrived"
        return self._shares

    def collected(
        self,
        cells: Sequence[Cell | None],
        settings: Settings,
        providers: Mapping[str, Provider],
        shared_dir: Path,
        suites: Mapping[str, Path],
    ) -> None:
        """Send what is selected, and where this worker is if the controller does not know."""
        host = None
        if self.given.shares is None:
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
        selection = json.dumps(Selection.of(cells).to_json(settings.targets))
        self.given.line.send(Handshake(selection=selection, host=host).to_text())

    def begin(self, session: pytest.Session, execution: Execution) -> None:
        """Receive commands from now on, and what is given, unless it may have to be given back."""
        self._output = vars(session.config)["workeroutput"]
        if not self.given.gives_back:
            _follow_items(session, execution)

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
            case Shares():
                self._shares = command.by_provider
                self._has_shares.set()
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
        self, unreported: Sequence[ReportPayload], n_lost: int, spent_usd: float | None
    ) -> Sequence[ReportPayload]:
        """Send what no report contains; a worker records nothing."""
        end = WorkerEnd(unreported=unreported, n_lost=n_lost, spent_usd=spent_usd)
        self._output[PAYLOAD] = end.to_text()
        return ()


def _follow_items(session: pytest.Session, execution: Execution) -> None:
    """Let the side that runs items know early which ones xdist gives this worker.

    xdist offers no hook for this: tests/unit/distributed/test_xdist.py checks what is used here.
    """
    plugins = session.config.pluginmanager.get_plugins()
    fitting = (plugin for plugin in plugins if hasattr(plugin, "handle_command") and hasattr(plugin, "torun"))
    interactor: Any = next(fitting, None)
    assert interactor is not None, "this pytest-xdist gives its workers items in another way; install 3.8"
    handle = interactor.handle_command

    def follow(command: Any) -> None:
        if isinstance(command, tuple) and command[0] == "runtests":
            execution.give(command[1]["indices"])
        handle(command)

    interactor.handle_command = follow
