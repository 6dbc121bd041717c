"""Messages between the processes of a run are parsed to the values that were sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_openclaw.distributed.worker_messages import (
    Assigned,
    Decided,
    Handshake,
    HostFacts,
    PackedReports,
    Spent,
    Stop,
    Waits,
    WorkerEnd,
    WorkerReport,
    command_from_text,
    command_to_text,
)
from pytest_openclaw.types.payloads import KeptVerdict, LeftOut, ReportPayload
from pytest_openclaw.types.targets import Target
from tests.unit.reports.summaries import record

TARGET = Target(provider="p", model="m")
PAYLOADS = [
    pytest.param(
        ReportPayload(outcome=record(TARGET), host="north", before={"n": 1}, serving={"server": {}}), id="row"
    ),
    pytest.param(
        ReportPayload(outcome=LeftOut(target="p/m", repeat=2, is_fixed=True), after={"n": 2}), id="left-out"
    ),
    pytest.param(ReportPayload(outcome=KeptVerdict(target="p/m", passed=False)), id="kept"),
]
HOST = HostFacts(
    machine="m", inventory={"host": {}}, providers={"p": {}}, reaches={"p": {"limit": 1}}, suites={"s": "ab"}
)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload(payload: ReportPayload) -> None:
    """Its JSON form has all of it."""
    assert ReportPayload.from_json(json.loads(json.dumps(payload.to_json()))) == payload


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_workers_results(payload: ReportPayload) -> None:
    """A report and the last message carry payloads."""
    report = WorkerReport(payload=payload, n_unreported=3, spent_usd=0.5)
    end = WorkerEnd(unreported=[payload], diagnoses={"p/m": {"tries": []}}, n_lost=1)

    assert WorkerReport.from_text(report.to_text()) == report
    assert WorkerEnd.from_text(end.to_text()) == end


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"longrepr": ("a.py", 3, "no model"), "outcome": "skipped"},
        {"longrepr": "missed", "sections": [("Captured log", "x")], "user_properties": [("row", "1")]},
    ],
    ids=["passed", "skipped", "failed"],
)
def test_a_packed_report(pytestconfig: pytest.Config, changes: dict[str, Any]) -> None:
    """The controller gets the report that the worker has, with its tuples, in few values."""
    report = pytest.TestReport(
        nodeid="a.py::P1[p/m]",
        location=("a.py", 0, "P1[p/m]"),
        keywords={"P1[p/m]": 1, "openclaw": 1},
        when="call",
        **{"outcome": "passed", "longrepr": None, "openclaw": "{}", **changes},
    )
    plugins = pytest.PytestPluginManager()
    plugins.register(PackedReports())
    plugins.import_plugin("_pytest.reports")
    hook = plugins.hook

    data = hook.pytest_report_to_serializable(config=pytestconfig, report=report)
    n_values = len(data)
    made = hook.pytest_report_from_serializable(config=pytestconfig, data=data)

    assert n_values == 2 + sum(name in changes for name in ("longrepr", "sections", "user_properties"))
    assert vars(made) == {**vars(report), "$report_type": "TestReport"}


@pytest.mark.parametrize("host", [None, HOST], ids=["here", "elsewhere"])
def test_a_handshake(host: HostFacts | None) -> None:
    """It has the place of a worker, unless the controller knows it."""
    message = Handshake(selection="{}", host=host)

    assert Handshake.from_text(message.to_text()) == message


@pytest.mark.parametrize(
    "command",
    [
        Assigned(limits={"p": 2}, places=[0, 3]),
        Assigned(limits={"p": 2}, places=None),
        Stop(at_once=True),
        Decided(target="p/m", repeat=1, ends=None),
        Spent(elsewhere_usd=0.1),
    ],
)
def test_a_command(command: Any) -> None:
    """It has the worker's own number."""
    assert command_from_text(command_to_text(command)) == command


def test_a_wait() -> None:
    """It has the cell that waits, and the reason."""
    message = Waits(nodeid="s.toml::P1[p/m]", why="busy", seconds=1.5)

    assert Waits.from_text(message.to_text()) == message
