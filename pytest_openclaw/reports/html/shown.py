"""What the page shows, read and worked out beforehand: a run and its cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import CellKey
    from pytest_openclaw.types.tool_calls import Tool


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A cell.

    Attributes:
        tools: those that its prompt offered; None if they are not known any more.
        before: the row of the same cell in the baseline; None if it has none.
    """

    record: Record
    tools: Sequence[Tool] | None = None
    before: Record | None = None


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
