"""Scheduling under xdist: a few items at a time, in order, and the cells of a host on that host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.remote import Producer

from pytest_openclaw.distributed.scheduling import ENOUGH, CellScheduling


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
    """Schedules items, one letter each, over workers; digits are cells of that worker, c of any."""

    def schedule(items: str, workers: list[Worker]) -> CellScheduling:
        monkeypatch.setattr(pytestconfig.option, "tx", ["popen"] * len(workers))
        scheduling = CellScheduling(
            pytestconfig,
            Producer("test", enabled=False),
            lambda: any(letter == "c" or letter.isdigit() for letter in items),
            lambda node: node.number,
            lambda place: int(items[place]) if items[place].isdigit() else None,
        )
        for worker in workers:
            scheduling.add_node(worker)
        for worker in workers:
            scheduling.add_node_collection(worker, ids_of(items))
        if scheduling.collection_is_completed:
            scheduling.schedule()
        return scheduling

    return schedule


def ids_of(items: str) -> list[str]:
    """The items that workers collect."""
    return [f"{letter}{n}" for n, letter in enumerate(items)]


def test_cells_are_given_few_at_a_time(begin: Any) -> None:
    """So they run nearly in the order in which they are sent; the first free worker gets the next."""
    slow, fast = Worker(0), Worker(1)
    scheduling = begin("c" * 12, [slow, fast])
    assert (slow.given, fast.given) == ([0, 1, 2], [3, 4, 5])

    for place in range(3, 11):
        scheduling.mark_test_complete(fast, place)

    assert slow.given == [0, 1, 2]
    assert fast.given == [*range(3, 12)]
    assert fast.shutting_down
    for place in range(3):
        scheduling.mark_test_complete(slow, place)
    assert slow.shutting_down
    assert scheduling.tests_finished


def test_items_without_cells_are_given_as_xdist_does(begin: Any) -> None:
    """A session without cells is not affected."""
    workers = [Worker(0), Worker(1)]

    begin("x" * 80, workers)

    assert [len(worker.given) for worker in workers] == [10, 10]


def test_cells_stay_on_their_host(begin: Any) -> None:
    """A worker gets its own at once, and may end after them."""
    workers = [Worker(0), Worker(1), Worker(2)]

    begin("011001", workers)

    assert [worker.given for worker in workers] == [[0, 3, 4], [1, 2, 5], []]
    assert all(worker.shutting_down for worker in workers)


def test_other_items_go_to_a_free_worker(begin: Any) -> None:
    """A worker that is busy with the cells of its host leaves the other items to the others."""
    busy, free = Worker(0), Worker(1)
    scheduling = begin("0" * ENOUGH + "x" * (ENOUGH + 1), [busy, free])

    assert (busy.given, free.given) == ([0, 1, 2], [3, 4, 5])
    scheduling.mark_test_complete(free, 3)
    assert free.given == [3, 4, 5, 6]
    assert free.shutting_down


def test_what_a_dead_worker_left_is_run_by_the_others(begin: Any) -> None:
    """The item at which it died is reported; a plugin may have it run again."""
    dies, lives = Worker(0), Worker(1)
    scheduling = begin("c" * 8, [dies, lives])
    scheduling.mark_test_complete(dies, 0)

    assert scheduling.remove_node(dies) == "c1"
    scheduling.mark_test_pending("c1")
    replaced = Worker(0)
    scheduling.add_node(replaced)
    scheduling.add_node_collection(replaced, ids_of("c" * 8))
    scheduling.schedule()

    assert replaced.given[0] == 1
    run = [0, *lives.given, *replaced.given]
    for worker in (lives, replaced):
        for place in worker.given:
            scheduling.mark_test_complete(worker, place)
    assert sorted({*run, *lives.given, *replaced.given}) == list(range(8))
    assert scheduling.tests_finished


def test_who_replaces_a_dead_worker_must_have_its_tests(begin: Any) -> None:
    """Without its items the replacement could never finish, so the session ends with an error."""
    dies, lives = Worker(0), Worker(1)
    scheduling = begin("cc", [dies, lives])
    scheduling.remove_node(dies)
    replaced = Worker(0)
    scheduling.add_node(replaced)

    with pytest.raises(pytest.UsageError, match="gw0 came in place of a dead one and collected other tests"):
        scheduling.add_node_collection(replaced, ["c0"])


@pytest.mark.parametrize("first", [[], ["x"]], ids=["nothing", "other-tests"])
def test_a_worker_without_the_cells_is_reported(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, first: list[str]
) -> None:
    """One that has no suite, though the others do, ends the session, whichever has collected first."""
    messages: list[str] = []
    hooks = SimpleNamespace(pytest_collectreport=lambda report: messages.append(str(report.longrepr)))
    lacks, has = Worker(0), Worker(1)
    monkeypatch.setattr(pytestconfig.option, "tx", ["2*popen"])
    log = Producer("test", enabled=False)
    scheduling = CellScheduling(pytestconfig, log, lambda: True, lambda node: node.number, lambda place: None)
    scheduling.config = SimpleNamespace(hook=hooks)
    for worker in (lacks, has):
        scheduling.add_node(worker)

    scheduling.add_node_collection(lacks, first)
    scheduling.add_node_collection(has, ["c0", "c1"])
    assert scheduling.collection_is_completed
    scheduling.schedule()

    assert "Different tests were collected" in messages[0]
    assert scheduling.tests_finished
    assert (lacks.given, has.given) == ([], [])
