"""A cell from the end of its call to its verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.judging.judge import Judgement, conclude, judge, prepare
from pytest_openclaw.types import faults
from pytest_openclaw.types.replies import CallResult, Fault, Reply

if TYPE_CHECKING:
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.replies import Verdict


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """How a cell's call ended, and the judgement if there is a reply.

    A Python benchmark is judged by its own test; until that has run `judgement` is None.
    """

    cell: Cell
    call: CallResult
    judgement: Judgement | None = None

    @classmethod
    def never_sent(cls, cell: Cell, error: BaseException) -> CellResult:
        """Return the result of a cell that was never sent, because our own code or a plugin's broke."""
        return cls(cell=cell, call=CallResult.never_sent(faults.broke(cell.id, _reason(error))))

    @property
    def outcome(self) -> faults.Outcome:
        """What the row and pytest say."""
        return self.judgement.outcome if self.judgement else faults.outcome_of(self.call.result)

    @property
    def fault(self) -> Fault | None:
        """Why there is no reply; None if there is one."""
        return self.call.result if isinstance(self.call.result, Fault) else None

    @cached_property
    def prepared(self) -> Reply:
        """The reply as a Python benchmark gets it: the answer without thinking, tools found."""
        result = self.call.result
        return prepare(self.cell.prompt, result) if isinstance(result, Reply) else Reply()

    def judged(self, timeout_s: float) -> CellResult:
        """Add the judgement of a suite's validator, if there is a reply.

        Args:
            timeout_s: for a prompt that sets none.

        Raises:
            Exception: what a validator raises; the result is then `broken`.
        """
        result, prompt = self.call.result, self.cell.prompt
        if isinstance(result, Fault):
            return self
        return replace(self, judgement=judge(prompt, result, timeout_s=prompt.timeout_s or timeout_s))

    def judged_or_broken(self, timeout_s: float) -> CellResult:
        """Judge a cell whose test will not run any more; its row alone says what breaks."""
        try:
            return self.judged(timeout_s)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return self.broken(error)

    def with_verdict(self, verdict: Verdict) -> CellResult:
        """Add the verdict that a Python benchmark's test reached."""
        return replace(self, judgement=conclude(self.cell.prompt, self.prepared, verdict))

    def broken(self, error: BaseException) -> CellResult:
        """Return a cell that our own code, a plugin's or a test's broke: its row keeps the model's answer."""
        result = self.call.result
        raw = result.raw or result.text if isinstance(result, Reply) else result.raw
        fault = replace(faults.broke(self.cell.id, _reason(error)), raw=raw, cut=result.cut)
        return replace(self, call=replace(self.call, result=fault), judgement=None)


def _reason(error: BaseException) -> str:
    """Our own errors say what is wrong; of others the name often says more than the text."""
    return str(error) if isinstance(error, OpenClawError) else f"{type(error).__name__}: {error}"
