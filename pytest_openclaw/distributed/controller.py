"""The hooks of xdist's controller: what workers are told, who gets which cell, when the run begins."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScheduling

from pytest_openclaw.distributed.messages import WorkerEnd, WorkerReport
from pytest_openclaw.distributed.scheduling import CellScheduling, FittingScheduling, in_scopes
from pytest_openclaw.distributed.worker_protocol import Crew, distributes_freely, has_own_scheduler
from pytest_openclaw.options import SUITE_NAME
from pytest_openclaw.session.messages import DECIDED, PAYLOAD, SPENT, STOP
from pytest_openclaw.session.plugin_session import suite_name
from pytest_openclaw.stored.resume import IS_ANOTHER
from pytest_openclaw.types.records import Record
from pytest_openclaw.types.targets import CellKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdist.remote import Producer
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.session.plugin_session import State
    from pytest_openclaw.session.run_writer import Ledger
    from pytest_openclaw.types.payloads import ReportPayload
    from pytest_openclaw.types.targets import Target


SUITE_CELL = re.compile(r"[^\[]*\[(?P<label>.*)\](?:-r(?P<repeat>[0-9]+))?(?:@[^]]*)?\Z", re.DOTALL)
"""The id of a suite's cell: `P1[label]-r2`, and a group of xdist's; a label may hold brackets itself."""


class Distributed:
    """Registered in xdist's controller."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger
        self._crew = Crew(state, ledger)
        self._nodes: list[WorkerController] = []
        self._n_out: dict[WorkerController, int] = {}
        self._told_by: dict[str, WorkerController] = {}
        self._stops = False
        self._spent_usd: dict[str, float] = {}
        self._decided: list[JsonObject] = []
        ledger.tell = self._tell_decided
        self._labels: dict[str, Target] = {}

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Hand over what was decided once: the targets, the folder where the workers meet, their shares."""
        self._nodes.append(node)
        node.workerinput["openclaw"] = {
            "targets": [target.label for target in self._state.settings.targets],
            "shared_dir": str(self._state.shared_path),
            "resumed": self._state.resumption.for_workers(),
            **self._crew.hand_over(node),
        }

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> Scheduling | None:
        """Keep an endpoint within its limit over all workers, unless the user chose how to distribute.

        Where they did, the workers keep it together as they ask.
        """
        if distributes_freely(config):
            fixed = None if has_own_scheduler(config) else in_scopes(config.getvalue("dist"))
            return fixed(config, log) if fixed else None
        for_cells = CellScheduling(config, log, self._deal, self._crew.number_of, self._told_by)
        return FittingScheduling(LoadScheduling(config, log), for_cells, self._is_cell)

    def _deal(self, nodeid: str) -> int | None:
        place = self._place_of(nodeid)
        if place is None:
            return None
        replays = self._state.resumption.replays
        return self._crew.deal(place[0].provider, is_kept=bool(replays) and self._key_of(nodeid) in replays)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Say on a cell's report where it was asked; let the recorder see a cell's first row alone."""
        if (text := vars(report).get(PAYLOAD)) is None:
            return
        node = vars(report)["node"]
        message = WorkerReport.from_text(text)
        self._n_out[node] = message.n_unreported
        self._receive_spent(node, message.spent_usd)
        setattr(report, PAYLOAD, replace(message.payload, host=self._crew.host_of(node)))
        # A cell that was told of by a worker that died may be run again by another one.
        if self._told_by.setdefault(report.nodeid, node) is not node:
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
            self._command(node, STOP, at_once=at_once)

    def _tell_decided(self, decision: JsonObject) -> None:
        """Tell all workers what was decided on a target's repeats: they wait for it."""
        self._decided.append(decision)
        for node in self._nodes:
            self._command(node, DECIDED, **decision)

    def _receive_spent(self, node: WorkerController, usd: float | None) -> None:
        """Take what a worker's machine has spent so far, and tell it to all other machines."""
        if usd is None:
            return
        machine, budget = self._crew.elsewhere(node), self._state.budget
        if machine is not None:
            if usd <= self._spent_usd.get(machine, 0.0):
                return
            self._spent_usd[machine] = usd
            # Whoever asks on this machine reads it there.
            budget.receive(sum(self._spent_usd.values()))
        for other in self._nodes:
            place = self._crew.elsewhere(other)
            if place is not None and place != machine:
                elsewhere_usd = budget.spent_usd - self._spent_usd.get(place, 0.0)
                self._command(other, SPENT, elsewhere_usd=elsewhere_usd)

    def _command(self, node: WorkerController, name: str, **told: Any) -> None:
        # One that was not started yet has no channel.
        if hasattr(node, "channel") and not hasattr(node, "workeroutput"):
            with contextlib.suppress(OSError):  # it has died
                node.sendcommand(name, **told)

    def take_what_is_left(self) -> int:
        """Record the rows that have come and that xdist did not look at any more.

        Returns:
            How many calls of workers may have no row.
        """
        while not self._dsession.queue.empty():
            event, told = self._dsession.queue.get()
            if event == "testreport" and PAYLOAD in vars(told["rep"]):
                self._take_late(told["rep"], told["node"])
        return sum(map(self._take_last, self._nodes))

    def _take_late(self, report: pytest.TestReport, node: WorkerController) -> None:
        vars(report)["node"] = node
        self.pytest_runtest_logreport(report)
        payload: ReportPayload | None = vars(report).get(PAYLOAD)
        if payload and isinstance(payload.outcome, Record):
            self._ledger.keep([replace(payload, outcome=replace(payload.outcome, reported=False))])
        elif payload:
            self._ledger.take(report, payload)

    def _take_last(self, node: WorkerController) -> int:
        """Record what a worker told at its end; return how many of its calls may have no row."""
        last = getattr(node, "workeroutput", {}).get(PAYLOAD)
        if last is None:  # it died: what it had told last, and the cell that it had in hand
            return self._n_out.get(node, self._most_out(node)) + 1
        end = WorkerEnd.from_text(last)
        self._receive_spent(node, end.spent_usd)
        host = self._crew.host_of(node)
        self._ledger.keep(replace(payload, host=host) for payload in end.unreported)
        return end.n_lost

    def _most_out(self, node: WorkerController) -> int:
        """Calls that a worker may have out before it tells of any."""
        from pytest_openclaw.asking.executor import ahead_of

        shares = self._crew.shares_of(node).items()
        endpoints = {self._state.providers[name].endpoint: share for name, share in shares if share}
        return sum(map(ahead_of, endpoints.values()))

    @property
    def _dsession(self) -> Any:
        return self._state.config.pluginmanager.get_plugin("dsession")

    def _is_cell(self, nodeid: str) -> bool:
        return self._place_of(nodeid) is not None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Stop for a malformed suite before anybody is called, as pytest does; xdist would ask the others."""
        if report.failed and IS_ANOTHER in report.longreprtext:
            # A Python benchmark, whose definition a worker alone can read.
            raise pytest.UsageError(report.longreprtext)
        option, name = self._state.config.option, report.nodeid.rpartition("/")[2]
        if report.failed and SUITE_NAME.match(name) and not option.continue_on_collection_errors:
            self._dsession.shouldstop = "error during collection"

    def pytest_xdist_node_collection_finished(self, node: WorkerController, ids: Sequence[str]) -> None:
        """Hear where a worker is; begin the run, as soon as the first one tells what is selected."""
        self._crew.receive(node)
        ledger = self._ledger
        if ledger.run is None and not self._state.calls_nobody:
            self._begin(ids)
        if ledger.run is not None and (host := self._crew.host_of(node)):
            ledger.run.meet(host, self._crew.facts_of(node))
        # What was decided before it could hear: it has come in place of another, or the run is resumed.
        for decision in self._decided:
            self._command(node, DECIDED, **decision)

    def _begin(self, ids: Sequence[str]) -> None:
        state = self._state
        places = {nodeid: place for nodeid in ids if (place := self._place_of(nodeid)) is not None}
        if places and state.config.getvalue("dist") == "each":
            raise pytest.UsageError(
                "--dist=each would ask every cell once a worker, but a run has one row a cell. "
                "Leave it out; to measure on several machines, start a run on each, then: "
                "pytest-openclaw merge RUN… --into RUN"
            )
        definitions = self._definitions(ids)
        keys = {nodeid: key for nodeid in places if (key := self._key_of(nodeid)) is not None}
        numbered = {(prompt["suite"], prompt["id"]) for prompt in definitions if prompt.get("repeat")}
        fixed = [nodeid for nodeid, key in keys.items() if (key.suite, key.prompt_id) in numbered]
        fixed += [nodeid for nodeid, (_, _, is_fixed) in self._crew.benchmarks.items() if is_fixed]
        self._ledger.begin_with(
            Counter(places[nodeid] for nodeid in ids if nodeid in places),
            definitions,
            keys.values(),
            has_python=False,
            fixed=Counter(places[nodeid] for nodeid in fixed),
        )

    def _place_of(self, nodeid: str) -> tuple[Target, int] | None:
        """Return the target and the repeat that an id tells; None if it is of no cell."""
        name, _, cell = nodeid.partition("::")
        if SUITE_NAME.match(name.rpartition("/")[2]):
            found = SUITE_CELL.match(cell)
            target = self._by_label.get(found["label"]) if found else None
            return (target, int(found["repeat"] or 1)) if found and target else None
        if (told := self._crew.benchmarks.get(nodeid)) is None:
            return None
        return self._by_label[told[0]], told[1]

    @property
    def _by_label(self) -> dict[str, Target]:
        if not self._labels:
            self._labels = {target.label: target for target in self._state.settings.targets}
        return self._labels

    def _definitions(self, ids: Sequence[str]) -> list[JsonObject]:
        """Read the selected prompts from their suites; those of Python benchmarks come with their rows."""
        from pytest_openclaw.core.errors import SuiteError
        from pytest_openclaw.suites import definition

        # A folder's name may hold brackets too.
        places = [nodeid.partition("::") for nodeid in ids]
        wanted = {(name, cell.partition("[")[0]) for name, _, cell in places}
        definitions = []
        for name in dict.fromkeys(name for name, _, _ in places):
            path = self._state.config.rootpath / name
            if not SUITE_NAME.match(path.name):
                continue
            try:
                prompts = self._state.load_suite(path).prompts
            except SuiteError as error:
                # The workers could read it: they see conftest files that a controller never loads.
                hint = "Under xdist, validators and providers come from the root conftest.py or a plugin."
                raise pytest.UsageError(f"{error}\n{hint}") from None
            definitions += [definition(prompt) for prompt in prompts if (name, prompt.id) in wanted]
        return definitions

    def _key_of(self, nodeid: str) -> CellKey | None:
        """Return the cell of a suite; an id of a Python benchmark does not tell its prompt."""
        name, _, cell = nodeid.partition("::")
        path = self._state.config.rootpath / name
        if not SUITE_NAME.match(path.name) or (place := self._place_of(nodeid)) is None:
            return None
        return CellKey(suite_name(self._state.config, path), cell.partition("[")[0], *place)
