"""The hooks of xdist's controller: what workers are told, who gets which cell, when the run begins."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScheduling, LoadScopeScheduling

from pytest_openclaw.cells import PAYLOAD, STOP
from pytest_openclaw.options import SUITE_NAME
from pytest_openclaw.records import CellKey
from pytest_openclaw.run.resume import IS_ANOTHER
from pytest_openclaw.state import suite_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

    from pytest_openclaw.records import JsonObject, Target
    from pytest_openclaw.state import State


class Distributed:
    """Registered in xdist's controller."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._nodes: list[WorkerController] = []
        self._n_out: dict[WorkerController, int] = {}
        self._told_by: dict[str, WorkerController] = {}
        self._stops = False

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Hand over what was decided once: the targets, and the folder where the workers meet."""
        self._nodes.append(node)
        node.workerinput["openclaw"] = {
            "targets": [target.label for target in self._state.settings.targets],
            "shared_dir": str(self._state.shared_path),
            "resumed": self._state.resumption.for_workers(),
        }

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> FittingScheduling | None:
        """Keep a lane within its limit over all workers, unless the user chose how to distribute."""
        if _chose_dist(config):
            return None
        usual = LoadScheduling(config, log)
        return FittingScheduling(
            usual,
            CellScheduling(config, log, self._lane_slot(usual.numnodes), self._told_by),
            self._is_cell,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note who told of a cell; let the recorder see its first row alone."""
        payload = vars(report).get(PAYLOAD)
        if payload is None:
            return
        node = vars(report)["node"]
        if "n_out" in payload:
            self._n_out[node] = payload["n_out"]
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
            if not hasattr(node, "workeroutput"):
                with contextlib.suppress(OSError):  # it has died
                    node.sendcommand(STOP, at_once=at_once)

    def take_what_is_left(self) -> int:
        """Record the rows that have come and that xdist did not look at any more.

        Returns:
            How many calls of workers may have no row.
        """
        while not self._dsession.queue.empty():
            event, told = self._dsession.queue.get()
            if event == "testreport" and PAYLOAD in vars(told["rep"]):
                self._take_late(told["rep"], told["node"])
        return sum(map(self._n_unrecorded, self._nodes))

    def _take_late(self, report: pytest.TestReport, node: WorkerController) -> None:
        vars(report)["node"] = node
        self.pytest_runtest_logreport(report)
        if payload := vars(report).get(PAYLOAD):
            if "row" in payload:
                payload["row"]["reported"] = False
            self._state.take(report, payload)

    def _n_unrecorded(self, node: WorkerController) -> int:
        if (told := getattr(node, "workeroutput", {}).get("openclaw_n_out")) is not None:
            return int(told)
        # It died: what it had told last, and the cell that it had in hand.
        return self._n_out.get(node, self._most_out) + 1

    @property
    def _most_out(self) -> int:
        """Calls that a worker may have out before it tells of any."""
        from pytest_openclaw.run.executor import ahead_of

        # Of each lane it holds a part.
        lanes = {self._lane_and_limit(target) for target in self._state.settings.targets}
        return sum(ahead_of(-(-limit // min(limit, len(self._nodes)))) for _, limit in lanes)

    def _lane_and_limit(self, target: Target) -> tuple[str, int]:
        provider = self._state.providers[target.provider]
        limit = self._state.settings.concurrency.limit(target.provider, is_local=provider.is_local)
        return provider.lane, limit

    @property
    def _dsession(self) -> Any:
        return self._state.config.pluginmanager.get_plugin("dsession")

    def _is_cell(self, nodeid: str) -> bool:
        return self._target_of(nodeid) is not None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Stop for a malformed suite before anybody is called, as pytest does; xdist would ask the others."""
        if report.failed and IS_ANOTHER in report.longreprtext:
            # A Python benchmark, whose definition a worker alone can read.
            raise pytest.UsageError(report.longreprtext)
        option, name = self._state.config.option, report.nodeid.rpartition("/")[2]
        if report.failed and SUITE_NAME.match(name) and not option.continue_on_collection_errors:
            self._dsession.shouldstop = "error during collection"

    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Begin the run, as soon as the first worker tells what is selected."""
        state = self._state
        if state.run is not None or state.calls_nobody:
            return
        n_selected = Counter(target for nodeid in ids if (target := self._target_of(nodeid)) is not None)
        state.begin_with(n_selected, self._definitions(ids), self._cells(ids), has_python=False)

    def _target_of(self, nodeid: str) -> Target | None:
        parameters = nodeid.partition("[")[2].removesuffix("]")
        # A Python benchmark may have parameters of its own beside the label; pytest writes them in ASCII.
        fitting = [
            target
            for target in self._state.settings.targets
            if target.label in parameters or _in_ascii(target.label) in parameters
        ]
        return max(fitting, key=lambda target: len(target.label), default=None)

    def _definitions(self, ids: Sequence[str]) -> list[JsonObject]:
        """Read the selected prompts from their suites; those of Python benchmarks come with their rows."""
        from pytest_openclaw.errors import SuiteError
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
                mend = "Under xdist, validators and providers come from the root conftest.py or a plugin."
                raise pytest.UsageError(f"{error}\n{mend}") from None
            definitions += [definition(prompt) for prompt in prompts if (name, prompt.id) in wanted]
        return definitions

    def _cells(self, ids: Sequence[str]) -> Iterator[CellKey]:
        """Yield the cells of suites; an id of a Python benchmark does not tell its prompt."""
        for nodeid in ids:
            name, _, cell = nodeid.partition("::")
            path = self._state.config.rootpath / name
            if SUITE_NAME.match(path.name) and (target := self._target_of(nodeid)):
                yield CellKey(suite_name(self._state.config, path), cell.partition("[")[0], target, 1)

    def _lane_slot(self, workers: int) -> Callable[[str], str]:
        """Return the function that names the part of a lane in which a cell is asked."""
        from pytest_openclaw.run.parts import Parts

        slots: dict[str, str] = {}
        parts = Parts(workers)

        def slot(nodeid: str) -> str:
            if nodeid not in slots:
                target = self._target_of(nodeid)
                if target is None:
                    slots[nodeid] = nodeid
                else:
                    slots[nodeid] = parts.deal(*self._lane_and_limit(target)).name
            return slots[nodeid]

        return slot


class FittingScheduling:
    """Distributes as xdist does, until a worker tells that it has collected cells: then by their lanes.

    Everything but that choice is done by the scheduler that was chosen.
    """

    def __init__(
        self, usual: LoadScheduling, for_cells: CellScheduling, is_cell: Callable[[str], bool]
    ) -> None:
        self.chosen = usual
        self._for_cells = for_cells
        self._is_cell = is_cell

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take what a worker has collected; all workers collect the same."""
        if self.chosen is not self._for_cells and any(map(self._is_cell, collection)):
            for known in self.chosen.nodes:
                self._for_cells.add_node(known)
            self.chosen = self._for_cells
        self.chosen.add_node_collection(node, collection)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.chosen, name)


class CellScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives all cells of one part of a lane to one worker, so that all workers together keep its limit.

    Items that are no cells go wherever there is room.
    """

    def __init__(
        self,
        config: pytest.Config,
        log: Producer,
        slot: Callable[[str], str],
        told_by: Mapping[str, WorkerController],
    ) -> None:
        super().__init__(config, log)
        self._slot = slot
        self._told_by = told_by

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the cells of a worker that died to others, but none that it had told of."""
        for work_unit in self.assigned_work[node].values():
            work_unit.update({nodeid: True for nodeid in work_unit if self._told_by.get(nodeid) is node})
        crashed: str | None = super().remove_node(node)
        return crashed

    def _split_scope(self, nodeid: str) -> str:
        return self._slot(nodeid)


def _chose_dist(config: pytest.Config) -> bool:
    if config.getvalue("dist") != "load":  # which `-n` alone means
        return True
    words: list[Any] = [
        *config.invocation_params.args,
        *config.getini("addopts"),
        *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
    ]
    return any(str(word) in {"--dist", "-d"} or str(word).startswith("--dist=") for word in words)


def _in_ascii(label: str) -> str:
    return label.encode("unicode_escape").decode("ascii")
