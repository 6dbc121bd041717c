"""The side of a run that asks: targets made ready, cells asked and judged, rows made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_openclaw.asking.cell_records import record_of
from pytest_openclaw.asking.resources import collect_snapshot
from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.judging.judge import Judgement, judge, prepare
from pytest_openclaw.types import faults
from pytest_openclaw.types.replies import Fault, Reply
from pytest_openclaw.types.rows import to_row

if TYPE_CHECKING:
    from pytest_openclaw.asking.executor import Executor
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.core.redact import Redactor
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.replies import CallResult


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A cell after its asking: the ending, and the judgement if there was a reply.

    A Python benchmark is judged later, by its own test; until then `judgement` is None.
    """

    cell: Cell
    ending: CallResult
    judgement: Judgement | None = None

    @property
    def outcome(self) -> faults.Outcome:
        """What the row and pytest say."""
        return self.judgement.outcome if self.judgement else faults.outcome_of(self.ending.result)


class Asker:
    """Asks and judges the cells that this process was given; close it when the session ends.

    Args:
        executor: asks ahead.
        redactor: takes secrets out of all that leaves this process.
        timeout_s: for the judging of a cell whose prompt has no time of its own.
    """

    def __init__(self, executor: Executor, redactor: Redactor, timeout_s: float) -> None:
        self.executor = executor
        self.redactor = redactor
        self._timeout_s = timeout_s

    def ask(self, token: str, cell: Cell) -> Asked:
        """Return how the cell's asking ended, without judging.

        Raises:
            Exception: whatever our own code or a guest's provider raised; the row is then `broken`.
        """
        return Asked(cell=cell, ending=self.executor.ask(token, cell))

    def unreported(self) -> list[Asked]:
        """Stop asking; return the cells that were answered while no test took the answer."""
        return [Asked(cell=cell, ending=ending) for cell, ending in self.executor.close()]

    def judge(self, asked: Asked) -> Asked:
        """Add the judgement of a suite's validator, if there is a reply."""
        result = asked.ending.result
        if isinstance(result, Fault):
            return asked
        prompt = asked.cell.prompt
        timeout_s = prompt.timeout_s or self._timeout_s
        return replace(asked, judgement=judge(prompt, result, timeout_s=timeout_s))

    def judge_or_break(self, asked: Asked) -> Asked:
        """Judge a cell whose test will not run any more; what breaks is told by its row alone."""
        try:
            return self.judge(asked)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return broken(asked, error)

    def prepared(self, asked: Asked) -> Reply:
        """Return the reply as a Python benchmark gets it: the answer without thinking, tools found."""
        result = asked.ending.result
        return prepare(asked.cell.prompt, result) if isinstance(result, Reply) else Reply()

    def record(self, run_id: str, asked: Asked) -> Record:
        """Return the cell's row."""
        return record_of(run_id, asked.cell, asked.ending, asked.judgement, self.redactor)

    def payload(self, record: Record, *, last_of_target: bool) -> JsonObject:
        """Return what the report carries: the row, and what is new about its target."""
        notes = self.executor.notes.pop(record.target, {})
        payload: JsonObject = {"row": to_row(record), **self.redactor.value(notes)}
        if last_of_target:
            payload["after"] = collect_snapshot()
        return payload


def broken(asked: Asked, error: BaseException) -> Asked:
    """Return a cell whose judging broke: the row says so and keeps what the model had answered."""
    result = asked.ending.result
    raw = result.raw or result.text if isinstance(result, Reply) else result.raw
    # Ours say what is wrong; of others the name often tells more than the text.
    why = str(error) if isinstance(error, OpenClawError) else f"{type(error).__name__}: {error}"
    fault = replace(faults.broke(asked.cell.id, why), raw=raw, cut=result.cut)
    return replace(asked, ending=replace(asked.ending, result=fault), judgement=None)
