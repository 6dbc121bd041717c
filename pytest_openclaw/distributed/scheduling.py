"""xdist's schedulers, where cells need something else: few items at a time, and a host for each cell."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import (
    LoadFileScheduling,
    LoadGroupScheduling,
    LoadScheduling,
    LoadScopeScheduling,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

ENOUGH = 3
"""Items that a worker holds: the one that runs, the one after it, and one while the controller is busy."""


class CellScheduling(LoadScheduling):  # type: ignore[misc]  # xdist has no types
    """xdist's scheduling by load, but a worker holds no more than `ENOUGH` items of a session with cells.

    So workers run cells nearly in the order of the plan, in which they are sent. Where hosts send cells of
    their own, each worker gets its cells at once: another host that dies does not keep it from them.

    Args:
        config: pytest's.
        log: xdist's.
        has_cells: whether a cell is among the items; asked when all workers have collected.
        number_of: a worker's number; one that replaces another has the other's.
        owner_of: the number of the worker that runs the item of this place; None for any worker.

    Attributes:
        gives_few: the session has cells. Without them it is xdist's own scheduling, unchanged.
    """

    def __init__(
        self,
        config: pytest.Config,
        log: Producer,
        has_cells: Callable[[], bool],
        number_of: Callable[[WorkerController], int],
        owner_of: Callable[[int], int | None],
    ) -> None:
        super().__init__(config, log)
        self._has_cells = has_cells
        self._number_of = number_of
        self._owner_of = owner_of
        self.gives_few = False
        self._has_own: set[WorkerController] = set()
        self.collection: list[str] | None

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take what a worker has collected.

        Raises:
            pytest.UsageError: it came in place of another, and collected other tests than the run has.
        """
        super().add_node_collection(node, collection)
        if node not in self.node2collection:
            raise pytest.UsageError(
                f"worker {node.gateway.id} came in place of a dead one and collected other tests than the "
                "others; suites and tests must stay as they are while they run."
            )

    def schedule(self) -> None:
        """Begin when all workers have collected, and go on when a worker has come in place of another."""
        if self.collection is None:
            if not self._has_cells():
                super().schedule()
                return
            if not self._check_nodes_have_same_collection():
                return
            self.gives_few = True
            self.collection = collection = next(iter(self.node2collection.values()))
            self.pending[:] = range(len(collection))
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Give a worker the next items; let it end once there is nothing more for it.

        A worker runs an item when it knows the one after it, or that there is none.
        """
        if not self.gives_few:
            super().check_schedule(node, duration)
            return
        if node.shutting_down or node not in self.node2collection:
            return
        held = self.node2pending[node]
        given = self._own_of(node)
        room = max(0, ENOUGH - len(held) - len(given))
        free = list(islice((place for place in self.pending if self._owner_of(place) is None), room + 1))
        given += free[:room]
        if given:
            self._take(given)
            held.extend(given)
            node.send_runtest_some(given)
        if len(free) <= room:
            node.shutdown()

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker that has ended or died; return the item at which it died.

        What it leaves comes first, because later cells may wait for it.
        """
        if not self.gives_few:
            crashed: str | None = super().remove_node(node)
            return crashed
        assert self.collection is not None, "items were given"
        left = self.node2pending.pop(node)
        self.pending[:] = sorted([*left[1:], *self.pending])
        for other in self.nodes:
            self.check_schedule(other)
        return self.collection[left[0]] if left else None

    def _take(self, given: list[int]) -> None:
        if len(given) <= ENOUGH:  # near the front
            for place in given:
                self.pending.remove(place)
        else:
            taken = set(given)
            self.pending[:] = [place for place in self.pending if place not in taken]

    def _own_of(self, node: WorkerController) -> list[int]:
        """Return the items that are a worker's own, the first time."""
        if node in self._has_own:
            return []
        self._has_own.add(node)
        number = self._number_of(node)
        return [place for place in self.pending if self._owner_of(place) == number]


def in_scopes(dist: str) -> type[LoadScopeScheduling] | None:
    """Return xdist's scheduler for scopes, files or groups, fixed; None where a user chose none of these.

    xdist 3.8 hangs when a worker has died: the one that comes in its place is given a unit of work, and if
    that is a single item waits for the next one, or for the word that there is none.
    """
    usual = {
        "loadscope": LoadScopeScheduling,
        "loadfile": LoadFileScheduling,
        "loadgroup": LoadGroupScheduling,
    }
    return type(f"Corrected{usual[dist].__name__}", (_Supplying, usual[dist]), {}) if dist in usual else None


class _Supplying(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a new worker enough items to start, or the notice that there are no more."""

    def schedule(self) -> None:
        """Start, or continue with a worker that replaces another."""
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
