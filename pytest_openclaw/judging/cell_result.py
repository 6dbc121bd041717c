"""The result of a cell: its call, and later its judgment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.judging.judge import Judgment, conclude, judge, judge_done, prepare
from pytest_openclaw.types import faults
from pytest_openclaw.types.replies import CallResult, Fault, Reply

if TYPE_CHECKING:
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.replies import Verdict


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """How a cell's call ended, and the judgment if there is a reply.

    A Python benchmark is judged by its own test; until that has run `judgment` is None. `done` is
    the judgment of a probe's calls before a fault; see `judge_done`.
    """

    cell: Cell
    call: CallResult
    judgment: Judgment | None = None
    done: Judgment | None = None

    @classmethod
    def never_sent(cls, cell: Cell, error: BaseException) -> CellResult:
        """Return the result of a cell that was never sent, because our own code or a plugin's failed."""
        return cls(cell=cell, call=CallResult.never_sent(faults.broke(cell.id, _reason(error))))

    @property
    def outcome(self) -> faults.Outcome:
        """The outcome for the row and for pytest."""
        return self.judgment.outcome if self.judgment else faults.outcome_of(self.call.result)

    @property
    def fault(self) -> Fault | None:
        """Why there is no reply; None if there is one."""
        return self.call.result if isinstance(self.call.result, Fault) else None

    @cached_property
    def prepared(self) -> Reply:
        """The reply for a Python benchmark: the answer without thinking, with the tools found."""
        result = self.call.result
        return prepare(self.cell.prompt, result) if isinstance(result, Reply) else Reply()

    def judged(self, timeout_s: float) -> CellResult:
        """Add the judgment of a suite's validator: of the reply, or of what was done before a fault.

        Args:
            timeout_s: for a prompt that sets none.

        Raises:
            Exception: what a validator raises; the result is then `broken`.
        """
        result, prompt = self.call.result, self.cell.prompt
        timeout_s = prompt.timeout_s or timeout_s
        if isinstance(result, Fault):
            return replace(self, done=judge_done(prompt, result.turns, timeout_s=timeout_s))
        return CellResult(cell=self.cell, call=self.call, judgment=judge(prompt, result, timeout_s=timeout_s))

    def judged_or_broken(self, timeout_s: float) -> CellResult:
        """Judge a cell whose test will no longer run; an error is only recorded in its row."""
        try:
            return self.judged(timeout_s)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return self.broken(error)

    def with_verdict(self, verdict: Verdict) -> CellResult:
        """Add the verdict of a Python benchmark's test."""
        return replace(self, judgment=conclude(self.cell.prompt, self.prepared, verdict))

    def broken(self, error: BaseException) -> CellResult:
        """Return the result with an error of our own code, a plugin or a test; it keeps the model's reply."""
        result = self.call.result
        raw = result.raw or result.text if isinstance(result, Reply) else result.raw
        fault = replace(faults.broke(self.cell.id, _reason(error)), raw=raw, cut=result.cut)
        return replace(self, call=replace(self.call, result=fault), judgment=None, done=None)


def _reason(error: BaseException) -> str:
    """Return the message of our own error; for another one also its name, which often says more."""
    return str(error) if isinstance(error, OpenClawError) else f"{type(error).__name__}: {error}"
