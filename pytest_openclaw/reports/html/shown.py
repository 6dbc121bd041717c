"""What the page shows, read and worked out beforehand: a run, its cells, their turns and calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import CellKey
    from pytest_openclaw.types.tool_calls import Dispatched


@dataclass(frozen=True, kw_only=True)
class ShownCall:
    """A call as it was on the wire.

    Attributes:
        result: what it was answered in a scripted exchange; None if there was no answer.
        problem: why it was not executed, as the row has it; None if it was, or if the row does not say.
        dispatched: what OpenClaw makes of it; None if the tools that were offered are not known any more.
    """

    name: str
    arguments: str
    result: str | None = None
    problem: str | None = None
    dispatched: Dispatched | None = None


@dataclass(frozen=True, kw_only=True)
class ShownTurn:
    """One step of a cell; a single question has one.

    Attributes:
        user: the message of the user before it; None if there is none, as before the first.
    """

    text: str
    user: str | None = None
    thinking: str = ""
    calls: Sequence[ShownCall] = ()
    e2e_ms: int | None = None
    ttft_ms: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A cell: its row, and the reply taken apart.

    Attributes:
        before: the row of the same cell in the baseline; None if it has none.
        before_text: the answer of that row.
    """

    record: Record
    turns: Sequence[ShownTurn]
    before: Record | None = None
    before_text: str = ""


@dataclass(frozen=True, kw_only=True)
class ShownBaseline:
    """A baseline that the run is compared with.

    Attributes:
        gone: cells of it that the run has not.
    """

    run_id: str
    gone: Sequence[CellKey] = ()


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """All that the page shows.

    Attributes:
        cells: of a large run a sample.
        unshown: the rows of all other cells, each with the one of the baseline.
        prompts: definitions as `config.json` has them, of a sample those of its cells.
        notes: what is worth knowing of the run's files, such as a line that is torn.
    """

    summary: Summary
    cells: Sequence[Shown]
    prompts: Sequence[JsonObject]
    config: JsonObject
    inventory: JsonObject
    earlier: ShownBaseline | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    unshown: Sequence[tuple[Record, Record | None]] = ()

    @property
    def pairs(self) -> Iterator[tuple[Record, Record | None]]:
        """The row of each cell, shown or not, with the one of the baseline."""
        yield from ((cell.record, cell.before) for cell in self.cells)
        yield from self.unshown
