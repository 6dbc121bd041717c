"""Which xdist worker runs which item: cells by their endpoints, everything else wherever there is room."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import (
    LoadFileScheduling,
    LoadGroupScheduling,
    LoadScheduling,
    LoadScopeScheduling,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

ENOUGH = 3
"""Items, other than cells, of which a worker holds no more: the next one goes to whoever is free first."""


class FittingScheduling:
    """Distributes as xdist does, until a worker tells that it has collected cells: then by their endpoints.

    Everything but that choice is done by the scheduler that was chosen.
    """

    def __init__(
        self, usual: LoadScheduling, for_cells: CellScheduling, is_cell: Callable[[str], bool]
    ) -> None:
        self.chosen = usual
        self._for_cells = for_cells
        self._is_cell = is_cell
        self._collected: dict[WorkerController, Sequence[str]] = {}

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take what a worker has collected; all workers collect the same."""
        if self.chosen is not self._for_cells and any(map(self._is_cell, collection)):
            for known in self.chosen.nodes:
                self._for_cells.add_node(known)
                if known in self._collected:  # without a cell: it has other tests, which is told
                    self._for_cells.add_node_collection(known, self._collected[known])
            self.chosen = self._for_cells
        self._collected[node] = collection
        self.chosen.add_node_collection(node, collection)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.chosen, name)


class CellScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each worker at once all cells that are dealt to it, and other items to whoever has room.

    So a worker can ask ahead on all its endpoints side by side, and all workers together keep each endpoint's
    limit. A worker that comes in place of a dead one gets what that one has left.

    Args:
        config: pytest's.
        log: xdist's.
        deal: says to which worker an item is dealt, by its number; None for an item that is no cell. It is
            asked once for each item, in their order, when all workers have collected.
        number_of: a worker's number; one that replaces another has the other's.
        told_by: who has told of a cell, by its id; it has its row then.
    """

    def __init__(
        self,
        config: pytest.Config,
        log: Producer,
        deal: Callable[[str], int | None],
        number_of: Callable[[WorkerController], int],
        told_by: Mapping[str, WorkerController],
    ) -> None:
        super().__init__(config, log)
        self.collection: list[str] | None = None
        self._deal = deal
        self._number_of = number_of
        self._told_by = told_by
        self._dealt: dict[int, deque[int]] = {}
        self._others: deque[int] = deque()
        self._cells: set[int] = set()

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take what a worker has collected.

        Raises:
            pytest.UsageError: it came in place of another, and collected other tests than the run has.
        """
        super().add_node_collection(node, collection)
        if node not in self.registered_collections:
            raise pytest.UsageError(
                f"worker {node.gateway.id} came in place of a dead one and collected other tests than the "
                "others; suites and tests must stay as they are while they run."
            )

    def schedule(self) -> None:
        """Begin when all workers have collected, and go on when a worker has come in place of another."""
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                return
            self.collection = collection = list(next(iter(self.registered_collections.values())))
            for index, nodeid in enumerate(collection):
                if (number := self._deal(nodeid)) is None:
                    self._others.append(index)
                else:
                    self._cells.add(index)
                    self._dealt.setdefault(number, deque()).append(index)
        self._supply_all()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:  # noqa: ARG002
        """Note that a worker has run an item."""
        self.assigned_work[node].pop(item_index)
        if self._others and not node.shutting_down:
            self._supply(node)
            self._dismiss()

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker that has ended or died; return the item at which it died."""
        given = self.assigned_work.pop(node)
        collection = self.collection or []
        left = [index for index in given if self._told_by.get(collection[index]) is not node]
        if not left:
            self._supply_all()
            return None
        # The item at which it died is among them: its cell has no row yet.
        self._dealt.setdefault(self._number_of(node), deque()).extend(i for i in left if i in self._cells)
        self._others.extendleft(reversed([i for i in left if i not in self._cells]))
        self._supply_all()
        crashed: str = collection[left[0]]
        return crashed

    @property
    def has_pending(self) -> bool:
        """Whether an item is still to be run."""
        return bool(self._others or any(self._dealt.values()) or any(self.assigned_work.values()))

    @property
    def tests_finished(self) -> bool:
        """Whether all items have been run."""
        return self.collection_is_completed and not self.has_pending

    def _supply_all(self) -> None:
        for node in self._ready:
            self._supply(node)
        self._dismiss()

    def _supply(self, node: WorkerController) -> None:
        held = self.assigned_work[node]
        given = list(self._dealt.pop(self._number_of(node), ()))
        while self._others and len(held) + len(given) < ENOUGH:
            given.append(self._others.popleft())
        if given:
            held.update(dict.fromkeys(given))
            node.send_runtest_some(given)

    def _dismiss(self) -> None:
        """Let the workers end, once there is nothing more to give.

        A worker runs an item when it knows the one after it, or that there is none.
        """
        if not self._others:
            for node in self._ready:
                node.shutdown()

    @property
    def _ready(self) -> list[WorkerController]:
        """The workers that have collected and are not ending."""
        return [n for n in self.nodes if n in self.registered_collections and not n.shutting_down]


def in_scopes(dist: str) -> type[LoadScopeScheduling] | None:
    """Return xdist's scheduler for scopes, files or groups, mended; None where a user chose none of these.

    xdist 3.8 hangs when a worker has died: the one that comes in its place is given a unit of work, and if
    that is a single item waits for the next one, or for the word that there is none.
    """
    usual = {
        "loadscope": LoadScopeScheduling,
        "loadfile": LoadFileScheduling,
        "loadgroup": LoadGroupScheduling,
    }
    return type(f"Mended{usual[dist].__name__}", (_Supplying, usual[dist]), {}) if dist in usual else None


class _Supplying(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives whoever is new enough to begin with, or tells that nothing more comes."""

    def schedule(self) -> None:
        """Begin, or go on with a worker that has come in place of another."""
        super().schedule()
        if self.collection is None:
            return
        ready = [n for n in self.nodes if n in self.registered_collections and not n.shutting_down]
        for node in ready:
            while self.workqueue and self._pending_of(self.assigned_work[node]) < ENOUGH:
                self._assign_work_unit(node)
        if not self.workqueue:
            for node in ready:
                node.shutdown()
