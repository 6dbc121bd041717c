"""The workers of a run: the messages to each, and the names of their hosts in rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_openclaw.distributed.worker_messages import (
    Assigned,
    Handshake,
    HostFacts,
    command_from_text,
    command_to_text,
)
from pytest_openclaw.distributed.worker_protocol import OURS, Workers
from pytest_openclaw.recording.inventory import installed_version
from pytest_openclaw.recording.selection import Selection
from pytest_openclaw.types.settings import Concurrency, Settings
from pytest_openclaw.types.targets import Target
from tests.unit.asking.fake_providers import Fake, cell, says

TARGETS = (Target(provider="fake", model="m"),)


@dataclass
class Line:
    """A channel to a worker, with the messages in both directions."""

    sends: str = ""
    is_open: bool = True
    answers: list[str] = field(default_factory=list)

    def receive(self, timeout: float) -> str:
        return self.sends

    def setcallback(self, callback: Any) -> None:
        """No more messages arrive."""

    def send(self, text: str) -> None:
        if not self.is_open:
            raise OSError("cannot send to a gateway that is gone")
        self.answers.append(text)


def handshake(machine: str, host: str, base_url: str, limit: int, items: str = "") -> str:
    """The first message of a worker; of its items, one letter each, c is a cell."""
    one = [cell() if letter == "c" else None for letter in items]
    return Handshake(
        selection=json.dumps(Selection.of(one).to_json(TARGETS)),
        host=HostFacts(
            machine=machine,
            inventory={"host": {"name": host}, "packages": {OURS: installed_version(OURS)}},
            providers={"fake": {"base_url": base_url}},
            reaches={"fake": {"endpoint": f"{machine} {base_url}", "limit": limit}},
            suites={},
        ),
    ).to_text()


def workers_of(
    *, dist: str = "load", hosts_before: Mapping[str, Any] | None = None, **providers: tuple[str, int]
) -> Workers:
    """The workers of a run that has these providers, each with its endpoint and limit here."""
    limits = {name: limit for name, (_, limit) in providers.items()}
    earlier = SimpleNamespace(
        earlier=SimpleNamespace(inventory={"hosts": hosts_before}), for_workers=lambda settings: ({}, [])
    )
    hooks = SimpleNamespace(pytest_xdist_make_scheduler=SimpleNamespace(get_hookimpls=list))
    session: Any = SimpleNamespace(
        config=SimpleNamespace(getvalue=lambda name: dist, hook=hooks, rootpath=None),
        providers={name: Fake(says("hi"), endpoint=endpoint) for name, (endpoint, _) in providers.items()},
        settings=Settings(targets=TARGETS, concurrency=Concurrency(by_provider=limits)),
        kept={},
        shared_dir="shared",
        resumed=earlier if hosts_before else None,
        writer=SimpleNamespace(run=SimpleNamespace(host="leader")),
    )
    return Workers(session)


def nodes_of(lines: Sequence[Line | None]) -> list[Any]:
    """Workers as xdist's controller sees them; one without a line is on this machine."""
    specs = [SimpleNamespace(popen=line is None, via=None, env={}) for line in lines]
    manager = SimpleNamespace(specs=specs, testrunuid="run")
    return [worker(manager, spec, line) for spec, line in zip(specs, lines, strict=True)]


def worker(manager: Any, spec: Any, line: Line | None) -> Any:
    """A worker of a spec; a second one of the same spec replaces the first."""
    gateway = SimpleNamespace(spec=spec, id="gw", newchannel=lambda: line or Line())
    return SimpleNamespace(gateway=gateway, nodemanager=manager)


def test_workers_of_this_machine_are_assigned_nothing() -> None:
    """They share one asker, which sends all cells; any of them may run any cell."""
    workers = workers_of(a=("endpoint", 3))
    nodes = nodes_of([None, None])

    assert [workers.input_of(node).is_here for node in nodes] == [True, True]
    assert [workers.limits_of(node) for node in nodes] == [None, None]
    assert [workers.owner_of(place) for place in range(3)] == [None] * 3


@pytest.mark.parametrize(
    ("dist", "expected"),
    [
        pytest.param("load", [Assigned(limits={"fake": 2}, places=places) for places in ([0, 3], [1, 4])], id="load"),
        pytest.param("loadfile", [Assigned(limits={"fake": 2}, places=None)] * 2, id="the-users"),
    ],
)  # fmt: skip
def test_hosts_are_assigned_their_cells(dist: str, expected: list[Assigned]) -> None:
    """If xdist distributes by load, each runs its own; otherwise a host sends the cells of its workers."""
    lines = [Line(handshake(name, name, "http://127.0.0.1/v1", 2, "ccxcc")) for name in ("north", "south")]
    workers = workers_of(dist=dist, fake=("x", 1))
    nodes = nodes_of(lines)
    for node in nodes:
        assert not workers.input_of(node).is_here
    for node in nodes:
        workers.receive(node)

    assert [command_from_text(*line.answers) for line in lines] == expected
    owners = [workers.owner_of(place) for place in range(5)]
    assert owners == ([0, 1, None, 0, 1] if dist == "load" else [None] * 5)


def test_two_workers_of_a_host_are_assigned_the_same() -> None:
    """They share its asker."""
    lines = [
        Line(handshake(name, name, "http://127.0.0.1/v1", 1, "cccc")) for name in ("north", "north", "south")
    ]
    workers = workers_of(fake=("x", 1))
    nodes = nodes_of(lines)
    for node in nodes:
        workers.input_of(node)
    for node in nodes:
        workers.receive(node)

    answers = [command_from_text(*line.answers) for line in lines]
    assert answers == [
        Assigned(limits={"fake": 1}, places=[0, 2]),
        Assigned(limits={"fake": 1}, places=[0, 2]),
        Assigned(limits={"fake": 1}, places=[1, 3]),
    ]
    assert [workers.owner_of(place) for place in range(4)] == [0, 2, 1, 2]


def test_a_worker_that_dies_before_all_handshakes_does_not_end_the_run() -> None:
    """The others are answered, and so is its replacement."""
    sent = [handshake(name, name, "http://127.0.0.1/v1", 1) for name in ("north", "south")]
    lines = list(map(Line, sent))
    workers = workers_of(fake=("x", 1))
    nodes = nodes_of(lines)
    for node in nodes:
        workers.input_of(node)
    workers.receive(nodes[0])
    lines[0].is_open = False
    workers.receive(nodes[1])
    replaced = Line(sent[0])
    node = worker(nodes[0].nodemanager, nodes[0].gateway.spec, replaced)
    workers.input_of(node)
    workers.receive(node)

    answer = [command_to_text(Assigned(limits={"fake": 1}, places=[]))]
    assert [line.answers for line in (*lines, replaced)] == [[], answer, answer]


def test_a_host_of_a_resumed_run_keeps_its_name() -> None:
    """Two hosts of one name, which connect in another order than before, and a new one."""
    bases = {"vm": "http://127.0.0.1:1", "vm-2": "http://127.0.0.1:2"}
    before = {
        name: {"host": {"name": "vm"}, "providers": {"fake": {"base_url": base}}}
        for name, base in bases.items()
    }
    lines = [
        Line(handshake(machine, "vm", base, 1))
        for machine, base in (("s", bases["vm-2"]), ("new", "http://127.0.0.1:3"), ("n", bases["vm"]))
    ]
    workers = workers_of(hosts_before=before, fake=("x", 1))
    nodes = nodes_of(lines)
    for node in nodes:
        workers.input_of(node)
    for node in nodes:
        workers.receive(node)

    assert [workers.host_of(node) for node in nodes] == ["vm-2", "vm-3", "vm"]
