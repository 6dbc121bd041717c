"""Who runs what under xdist: cells where they were dealt, other items wherever there is room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScheduling

from pytest_openclaw.distributed.scheduling import ENOUGH, CellScheduling, FittingScheduling


@dataclass(eq=False)
class Worker:
    """A worker as xdist's controller sees it."""

    number: int
    given: list[int] = field(default_factory=list)
    shutting_down: bool = False

    @property
    def gateway(self) -> Any:
        return SimpleNamespace(id=f"gw{self.number}")

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        assert not self.shutting_down
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.fixture
def begin(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Schedules items, a letter each, over workers; digits are cells that are dealt to that worker."""

    def schedule(items: str, workers: list[Worker]) -> CellScheduling:
        monkeypatch.setattr(pytestconfig.option, "tx", ["popen"] * len(workers))
        scheduling = CellScheduling(
            pytestconfig,
            Producer("test", enabled=False),
            lambda nodeid: int(nodeid[0]) if nodeid[0].isdigit() else None,
            lambda node: node.number,
            {},
        )
        ids = [f"{letter}{n}" for n, letter in enumerate(items)]
        for worker in workers:
            scheduling.add_node(worker)
        for worker in workers:
            scheduling.add_node_collection(worker, ids)
        if scheduling.collection_is_completed:
            scheduling.schedule()
        return scheduling

    return schedule


def test_cells_go_where_they_were_dealt(begin: Any) -> None:
    """Each worker gets its cells at once, in their order, and may end after them."""
    workers = [Worker(0), Worker(1), Worker(2)]

    begin("011001", workers)

    assert [worker.given for worker in workers] == [[0, 3, 4], [1, 2, 5], []]
    assert all(worker.shutting_down for worker in workers)


def test_other_items_go_to_whoever_is_free(begin: Any) -> None:
    """A worker that is busy with cells leaves the other items to the rest."""
    busy, free = Worker(0), Worker(1)
    scheduling = begin("0000000000" + "x" * (ENOUGH + 1), [busy, free])

    assert busy.given == list(range(10))
    assert free.given == [10, 11, 12]
    assert not busy.shutting_down
    scheduling.mark_test_complete(free, 10)
    assert free.given == [10, 11, 12, 13]
    assert busy.shutting_down
    assert free.shutting_down


def test_it_ends_when_all_has_been_run(begin: Any) -> None:
    """Nothing is pending after the last item, and not before."""
    workers = [Worker(0), Worker(1)]
    scheduling = begin("01x", workers)

    for worker in workers:
        for index in list(worker.given):
            assert not scheduling.tests_finished
            scheduling.mark_test_complete(worker, index)

    assert scheduling.tests_finished
    assert [scheduling.remove_node(worker) for worker in workers] == [None, None]


def test_who_replaces_a_dead_worker_gets_what_it_left(begin: Any) -> None:
    """The item at which it died is told, and run again with the rest, by the worker of the same number."""
    dies, lives = Worker(0), Worker(1)
    scheduling = begin("0001", [dies, lives])
    scheduling.mark_test_complete(dies, 0)

    assert scheduling.remove_node(dies) == "01"
    assert lives.given == [3]
    assert not scheduling.tests_finished

    replaced = Worker(0)
    scheduling.add_node(replaced)
    scheduling.add_node_collection(replaced, scheduling.collection)
    scheduling.schedule()
    assert replaced.given == [1, 2]
    assert replaced.shutting_down


def test_other_items_of_a_dead_worker_go_to_the_rest(begin: Any) -> None:
    """An item that is no cell waits for nobody in particular."""
    dies, lives = Worker(0), Worker(1)
    scheduling = begin("x" * 8, [dies, lives])
    assert (dies.given, lives.given) == ([0, 1, 2], [3, 4, 5])

    assert scheduling.remove_node(dies) == "x0"
    for index in (3, 4, 5):
        scheduling.mark_test_complete(lives, index)

    assert lives.given == [3, 4, 5, 0, 1, 2]


def test_nothing_is_given_before_all_have_collected(begin: Any) -> None:
    """A worker that is not ready yet may have a share of any endpoint."""
    workers = [Worker(0), Worker(1)]
    scheduling = begin("", workers[:1])
    scheduling.numnodes = 2

    assert not scheduling.collection_is_completed
    assert not scheduling.tests_finished
    assert workers[0].given == []


def test_who_replaces_a_dead_worker_must_have_its_tests(begin: Any) -> None:
    """What it was to run it does not have, and nobody would wait for an end that cannot come."""
    dies, lives = Worker(0), Worker(1)
    scheduling = begin("01", [dies, lives])
    scheduling.remove_node(dies)
    replaced = Worker(0)
    scheduling.add_node(replaced)

    with pytest.raises(pytest.UsageError, match="gw0 came in place of a dead one and collected other tests"):
        scheduling.add_node_collection(replaced, ["00"])


@pytest.mark.parametrize("first", [[], ["x"]], ids=["nothing", "other-tests"])
def test_a_worker_without_the_cells_is_told_of(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, first: list[str]
) -> None:
    """One that has no suite, though the others do, ends the session, whoever has collected first."""
    told: list[str] = []
    hooks = SimpleNamespace(pytest_collectreport=lambda report: told.append(str(report.longrepr)))
    lacks, has = Worker(0), Worker(1)
    monkeypatch.setattr(pytestconfig.option, "tx", ["2*popen"])
    log = Producer("test", enabled=False)
    usual = LoadScheduling(pytestconfig, log)
    for_cells = CellScheduling(pytestconfig, log, lambda nodeid: int(nodeid[0]), lambda node: node.number, {})
    for_cells.config = SimpleNamespace(hook=hooks)
    scheduling = FittingScheduling(usual, for_cells, lambda nodeid: nodeid[0].isdigit())
    for worker in (lacks, has):
        scheduling.add_node(worker)

    scheduling.add_node_collection(lacks, first)
    scheduling.add_node_collection(has, ["00", "11"])
    assert scheduling.collection_is_completed
    scheduling.schedule()

    assert "Different tests were collected" in told[0]
    assert scheduling.tests_finished
    assert (lacks.given, has.given) == ([], [])
