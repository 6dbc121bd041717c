"""The side of a run that asks: targets made ready, cells asked and judged, rows made."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw import faults
from pytest_openclaw.judge import Judgement, judge, prepare
from pytest_openclaw.records import Fault, Reply
from pytest_openclaw.run.executor import Executor
from pytest_openclaw.run.recording import record_of
from pytest_openclaw.run.resources import collect_snapshot
from pytest_openclaw.schema import to_row

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_openclaw.protocols import Provider
    from pytest_openclaw.records import Cell, Ending, JsonObject, Record, Target
    from pytest_openclaw.redact import Redactor
    from pytest_openclaw.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A cell after its asking: the ending, and the judgement if there was a reply.

    A Python benchmark is judged later, by its own test; until then `judgement` is None.
    """

    cell: Cell
    ending: Ending
    judgement: Judgement | None = None

    @property
    def outcome(self) -> faults.Outcome:
        """What the row and pytest say."""
        return self.judgement.outcome if self.judgement else faults.outcome_of(self.ending.result)


class Asker:
    """Asks and judges the cells that this process was given; close it when the session ends.

    Args:
        providers: by name.
        settings: the run's.
        shared_dir: the run's folder on this machine.
        redactor: takes secrets out of all that leaves this process.
    """

    def __init__(
        self, providers: Mapping[str, Provider], settings: Settings, shared_dir: Path, redactor: Redactor
    ) -> None:
        self.redactor = redactor
        self._stack = ExitStack()
        self._executor = self._stack.enter_context(Executor(providers, settings, shared_dir))
        self._before: dict[Target, JsonObject] = {}
        self._told: set[Target] = set()
        self._notes: dict[str, Any] = {}

    def close(self) -> None:
        """End the executor and give back what the providers opened."""
        self._stack.close()

    def ask(self, cell: Cell) -> Asked:
        """Ask the cell, without judging.

        Raises:
            Exception: whatever our own code or a guest's provider raised; the row is then `broken`.
        """
        target = cell.target
        if target not in self._before:
            self._before[target] = self._notes["before"] = collect_snapshot()
            self._notes["serving"] = self._executor.prepare(target)
        ending = self._executor.ask(cell)
        if target not in self._told and isinstance(ending.result, Reply):
            # After the first answer, so that the questions wait for no loading and delay no cell's clock.
            self._told.add(target)
            server = self._executor.fingerprint(target)
            self._notes["serving"] = {**self._notes.get("serving", {}), "server": server}
        return Asked(cell=cell, ending=ending)

    def judge(self, asked: Asked) -> Asked:
        """Add the judgement of a suite's validator, if there is a reply."""
        result = asked.ending.result
        if isinstance(result, Fault):
            return asked
        return replace(asked, judgement=judge(asked.cell.prompt, result))

    def prepared(self, asked: Asked) -> Reply:
        """Return the reply as a Python benchmark gets it: the answer without thinking, tools found."""
        result = asked.ending.result
        return prepare(result) if isinstance(result, Reply) else Reply()

    def record(self, run_id: str, asked: Asked) -> Record:
        """Return the cell's row."""
        return record_of(run_id, asked.cell, asked.ending, asked.judgement, self.redactor)

    def payload(self, record: Record, *, last_of_target: bool) -> JsonObject:
        """Return what the report carries: the row, and what is new about its target."""
        notes, self._notes = self._notes, {}
        payload: JsonObject = {"row": to_row(record), **self.redactor.value(notes)}
        if last_of_target:
            payload["after"] = collect_snapshot()
        return payload


def broken(asked: Asked, error: BaseException) -> Asked:
    """Return a cell whose judging broke: the row says so and keeps what the model had answered."""
    result = asked.ending.result
    raw = result.raw or result.text if isinstance(result, Reply) else result.raw
    fault = replace(faults.broke(asked.cell.id, f"{type(error).__name__}: {error}"), raw=raw)
    return replace(asked, ending=replace(asked.ending, result=fault), judgement=None)
