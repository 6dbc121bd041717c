"""The cells that a resumed run keeps: their rows, and their verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import shorten
from pytest_openclaw.tools.thinking import strip_thinking

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import CellKey

MAX_SHOWN = 10
REPLY_WIDTH = 400
WHAT_WIDTH = 300


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The verdict of a kept cell, to be reported again without a call.

    Texts are shortened, because under xdist every worker receives all replays.

    Attributes:
        passed: as pytest reported it.
        what: the violation, or the server's message; None if only `failure_type` is known.
        reply: the answer, shortened in the middle.
        known_failure: why it was expected.
    """

    passed: bool
    what: str | None = None
    failure_type: str | None = None
    reply: str = ""
    finish_reason: str | None = None
    tool_names: tuple[str, ...] = ()
    e2e_ms: int = 0
    ttft_ms: int | None = None
    known_failure: str | None = None

    @classmethod
    def of(cls, record: Record) -> Replay:
        """Return the replay of a cell with a reply."""
        if record.success and record.objective_pass is not False:
            return cls(passed=True)
        what = record.violation or record.fault_message
        return cls(
            passed=False,
            what=what and shorten(what, WHAT_WIDTH),
            failure_type=record.failure_type,
            reply=shorten(_answer(record), REPLY_WIDTH),
            finish_reason=record.finish_reason,
            tool_names=record.tool_calls[:MAX_SHOWN],
            e2e_ms=record.e2e_ms,
            ttft_ms=record.ttft_ms,
            known_failure=record.known_failure,
        )


def _answer(record: Record) -> str:
    """The answer without thinking; of a scripted exchange the last text."""
    text = str(record.turns[-1]["text"]) if record.turns else record.raw_output
    return strip_thinking(text).strip()


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The rows that a resumed run keeps.

    Attributes:
        records: in the order of the file, without the models' replies.
        lines: their lines in `results.jsonl`, from 1.
        replays: by cell.
        is_whole: whether the file has these rows and nothing else.
    """

    records: tuple[Record, ...]
    lines: frozenset[int]
    replays: Mapping[CellKey, Replay]
    is_whole: bool
