"""The workers of a run: what each is told, and by which names rows call their hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_openclaw.distributed.messages import (
    Handshake,
    HostFacts,
    Shares,
    command_from_text,
    command_to_text,
)
from pytest_openclaw.distributed.worker_protocol import OURS, Workers
from pytest_openclaw.recording.inventory import installed_version
from pytest_openclaw.types.settings import Concurrency, Settings
from tests.unit.asking.fake_providers import Fake, says


@dataclass
class Line:
    """A channel to a worker: what it sends, and what it has received."""

    sends: str = ""
    is_open: bool = True
    answers: list[str] = field(default_factory=list)

    def receive(self, timeout: float) -> str:
        return self.sends

    def send(self, text: str) -> None:
        if not self.is_open:
            raise OSError("cannot send to a gateway that is gone")
        self.answers.append(text)


def handshake(machine: str, host: str, base_url: str, limit: int) -> str:
    """What a worker sends first."""
    return Handshake(
        selection='{"prompts": [], "cells": []}',
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
        settings=Settings(concurrency=Concurrency(by_provider=limits)),
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
    """A worker of a spec; a second one of the same spec comes in place of the first."""
    gateway = SimpleNamespace(spec=spec, id="gw", newchannel=lambda: line or Line())
    return SimpleNamespace(gateway=gateway, nodemanager=manager)


@pytest.mark.parametrize(
    ("dist", "shares"),
    [
        pytest.param("load", [{"a": 2, "b": 2}, {"a": 1, "b": 1}], id="ours"),
        pytest.param("worksteal", [{"a": 3, "b": 3}, {"a": 3, "b": 3}], id="the-users"),
    ],
)
def test_what_a_worker_may_have_in_flight(dist: str, shares: list[dict[str, int]]) -> None:
    """A part of each endpoint, or all of it where any worker may be given any cell; its providers have one limit."""
    workers = workers_of(dist=dist, a=("endpoint", 3), b=("endpoint", 5))
    nodes = nodes_of([None, None])

    assert [workers.input_of(node).shares for node in nodes] == shares
    assert [workers.shares_of(node) for node in nodes] == shares


def test_workers_elsewhere_are_answered_the_whole_where_any_may_be_given_any_cell() -> None:
    """Each machine keeps its own endpoints."""
    lines = [Line(handshake(name, name, "http://127.0.0.1/v1", 2)) for name in ("north", "south")]
    workers = workers_of(dist="loadfile", fake=("x", 1))
    for node in (nodes := nodes_of(lines)):
        assert workers.input_of(node).shares is None
    for node in nodes:
        workers.receive(node)

    assert [command_from_text(*line.answers) for line in lines] == [Shares(by_provider={"fake": 2})] * 2


def test_a_worker_that_dies_before_all_have_told_costs_nobody_the_run() -> None:
    """The others are answered, and so is who comes in its place."""
    told = [handshake(name, name, "http://127.0.0.1/v1", 1) for name in ("north", "south")]
    lines = list(map(Line, told))
    workers = workers_of(fake=("x", 1))
    nodes = nodes_of(lines)
    for node in nodes:
        workers.input_of(node)
    workers.receive(nodes[0])
    lines[0].is_open = False
    workers.receive(nodes[1])
    replaced = Line(told[0])
    node = worker(nodes[0].nodemanager, nodes[0].gateway.spec, replaced)
    workers.input_of(node)
    workers.receive(node)

    answer = [command_to_text(Shares(by_provider={"fake": 1}))]
    assert [line.answers for line in (*lines, replaced)] == [[], answer, answer]


def test_a_host_of_a_resumed_run_keeps_its_name() -> None:
    """Two hosts of one name, which come in another order than before, and one that is new."""
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
