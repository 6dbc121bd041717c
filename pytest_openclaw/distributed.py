"""The hooks of xdist's controller: what workers are told, who gets which cell, when the run begins."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScheduling, LoadScopeScheduling

from pytest_openclaw.options import SUITE_NAME
from pytest_openclaw.records import CellKey
from pytest_openclaw.run.resume import IS_ANOTHER
from pytest_openclaw.state import suite_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

    from pytest_openclaw.records import JsonObject, Target
    from pytest_openclaw.state import State


class Distributed:
    """Registered in xdist's controller."""

    def __init__(self, state: State) -> None:
        self._state = state

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Hand over what was decided once: the targets, and the folder where the workers meet."""
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
            usual, CellScheduling(config, log, self._lane_slot(usual.numnodes)), self._is_cell
        )

    def _is_cell(self, nodeid: str) -> bool:
        return self._target_of(nodeid) is not None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Stop for a malformed suite before anybody is called, as pytest does; xdist would ask the others."""
        if report.failed and IS_ANOTHER in report.longreprtext:
            # A Python benchmark, whose definition a worker alone can read.
            raise pytest.UsageError(report.longreprtext)
        option, name = self._state.config.option, report.nodeid.rpartition("/")[2]
        if report.failed and SUITE_NAME.match(name) and not option.continue_on_collection_errors:
            dsession: Any = self._state.config.pluginmanager.get_plugin("dsession")
            dsession.shouldstop = "error during collection"

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
                    provider = self._state.providers[target.provider]
                    limit = self._state.settings.concurrency.limit(
                        target.provider, is_local=provider.is_local
                    )
                    slots[nodeid] = parts.deal(provider.lane, limit).name
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

    def __init__(self, config: pytest.Config, log: Producer, slot: Callable[[str], str]) -> None:
        super().__init__(config, log)
        self._slot = slot

    def _split_scope(self, nodeid: str) -> str:
        return self._slot(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker enough to begin with, if there is as much.

        A worker holds back its last item until it knows the next one, and what a dead worker leaves may be
        parts with one item to do, or none: given one of these, as xdist does, its successor waits for ever.
        """
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


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
