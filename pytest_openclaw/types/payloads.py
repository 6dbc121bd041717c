"""The payload of a cell's test report: its row, or why it has none."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from pytest_openclaw.types.records import Record
from pytest_openclaw.types.rows import from_row, to_row

PAYLOAD = "openclaw"
"""The attribute of a report with its payload; from an xdist worker it is a text."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A cell that was skipped before it was sent: by a mark, or as a repeat that is not needed.

    Attributes:
        target: the target's label.
        is_fixed: the prompt sets its own number of repeats.
    """

    target: str
    repeat: int
    is_fixed: bool = False


@dataclass(frozen=True, kw_only=True)
class KeptVerdict:
    """A cell whose row an earlier session of the run has written.

    Attributes:
        target: the target's label.
        passed: the verdict of that row.
    """

    target: str
    passed: bool


Payload = Record | LeftOut | KeptVerdict


def payload_to_text(payload: Payload) -> str:
    """Return the payload as xdist carries it; one text is faster than a nested dict."""
    match payload:
        case Record():
            return json.dumps({"row": to_row(payload)})
        case LeftOut():
            return json.dumps({"left_out": asdict(payload)})
        case KeptVerdict():
            return json.dumps({"kept": asdict(payload)})


def payload_from_text(text: str) -> Payload:
    """Return the payload of which `payload_to_text` made this text."""
    plain = json.loads(text)
    if "row" in plain:
        return from_row(plain["row"])
    if "left_out" in plain:
        return LeftOut(**plain["left_out"])
    return KeptVerdict(**plain["kept"])
