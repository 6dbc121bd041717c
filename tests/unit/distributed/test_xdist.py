"""Assumptions about pytest-xdist's internals, for which it has no hooks; a new version may differ."""

from __future__ import annotations

import queue
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.dsession import DSession
from xdist.remote import Producer
from xdist.scheduler import LoadScheduling
from xdist.workermanage import WorkerController


@pytest.fixture
def config() -> Any:
    """The part of pytest's configuration that xdist reads."""
    plugins = SimpleNamespace(register=lambda plugin, name="": None, getplugin=lambda name: None)
    return SimpleNamespace(
        option=SimpleNamespace(debug=False, maxworkerrestart=None, numprocesses=2, maxfail=0),
        workerinput={"testrunuid": "run", "workerid": "gw0"},
        pluginmanager=plugins,
        getvalue=lambda name: ["2*popen"] if name == "tx" else 0,
    )


def test_a_controller_reads_events_from_a_queue(config: Any) -> None:
    """Events after an interruption stay in `queue`."""
    dsession = DSession(config)

    assert isinstance(dsession.queue, queue.Queue)
    assert "shouldstop" in DSession.pytest_runtestloop.__code__.co_names


def test_a_workers_events_are_pairs(config: Any) -> None:
    """A report arrives as `("testreport", {"node", "rep"})`; a worker's last output is `workeroutput`."""
    events: list[Any] = []
    config.hook = SimpleNamespace(
        pytest_report_from_serializable=lambda config, data: SimpleNamespace(**data)
    )
    manager = SimpleNamespace(specs=[], testrunuid="run")
    node = WorkerController(manager, SimpleNamespace(id="gw0"), config, events.append)
    assert not hasattr(node, "workeroutput")
    assert not hasattr(node, "channel")

    node.process_from_remote(("testreport", {"data": {"nodeid": "a"}}))
    node.process_from_remote(("workerfinished", {"workeroutput": {"openclaw": "{}"}}))

    name, fields = events[0]
    assert (name, fields["node"], fields["rep"].nodeid) == ("testreport", node, "a")
    assert node.workeroutput == {"openclaw": "{}"}


def test_a_scheduler_keeps_who_collected_and_who_was_given_what(config: Any) -> None:
    """`CellScheduling` fills these, and waits for `numnodes` workers."""
    config.getoption = lambda name: None
    scheduling = LoadScheduling(config, Producer("test", enabled=False))

    assert (scheduling.numnodes, scheduling.node2pending, scheduling.node2collection) == (2, {}, {})
    assert (scheduling.pending, scheduling.collection) == ([], None)
