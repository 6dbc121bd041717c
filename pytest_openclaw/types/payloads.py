"""The payload of a cell's test report: a row, or why there is none, and the context of both."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.types.records import Record
from pytest_openclaw.types.rows import from_row, to_row

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject

PAYLOAD = "openclaw"
"""The attribute of a report with its payload, or with its text between processes."""
_CONTEXT = ("host", "before", "after", "serving")


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


@dataclass(frozen=True, kw_only=True)
class ReportPayload:
    """How a cell ended, with new facts about its target.

    Attributes:
        host: the machine that sent the requests, by its name in rows; None is the one that writes them.
        before, after: snapshots of the machine's resources, if they were taken.
        serving: the target's warm-up, and its server's facts; with the first rows of a target.
    """

    outcome: Record | LeftOut | KeptVerdict
    host: str | None = None
    before: JsonObject | None = None
    after: JsonObject | None = None
    serving: JsonObject | None = None

    def to_json(self) -> JsonObject:
        """Return the payload as plain values."""
        context = {name: value for name in _CONTEXT if (value := getattr(self, name)) is not None}
        match self.outcome:
            case Record():
                return {"row": to_row(self.outcome), **context}
            case LeftOut():
                return {"left_out": asdict(self.outcome), **context}
            case KeptVerdict():
                return {"kept": asdict(self.outcome), **context}

    @classmethod
    def from_json(cls, plain: JsonObject) -> ReportPayload:
        """Return the payload from the values of `to_json`."""
        context = {name: plain.get(name) for name in _CONTEXT}
        if "row" in plain:
            return cls(outcome=from_row(plain["row"]), **context)
        if "left_out" in plain:
            return cls(outcome=LeftOut(**plain["left_out"]), **context)
        return cls(outcome=KeptVerdict(**plain["kept"]), **context)
