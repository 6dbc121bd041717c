"""What a report carries of its cell, on its way between processes."""

from __future__ import annotations

import json

import pytest

from pytest_openclaw.distributed.messages import WorkerEnd, WorkerReport
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


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_is_the_same_after_its_way(payload: ReportPayload) -> None:
    """Its JSON form has all of it."""
    assert ReportPayload.from_json(json.loads(json.dumps(payload.to_json()))) == payload


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_workers_messages_are_texts(payload: ReportPayload) -> None:
    """Each is read as it was sent."""
    report = WorkerReport(payload=payload, n_unreported=3, spent_usd=0.5)
    end = WorkerEnd(unreported=[payload], n_lost=1)

    assert WorkerReport.from_text(report.to_text()) == report
    assert WorkerEnd.from_text(end.to_text()) == end
