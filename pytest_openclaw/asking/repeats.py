"""Which repeats of a target may be sent; it is decided where the rows arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_openclaw.types.prompts import Cell

Permit = Literal["ask", "wait", "leave_out"]


class RepeatPermits:
    """The decisions on the repeats of each target; without a plan every cell may be sent."""

    def __init__(self) -> None:
        self._through: dict[str, int] = {}
        self._ends: dict[str, tuple[int, str]] = {}
        self._last: dict[str, int] = {}
        self._mixed: set[str] = set()

    def plan(self, cells: Iterable[Cell]) -> None:
        """Take the cells of a session, in their order; from now on a repeat waits for the one before it.

        A target whose repeats come in another order (`--ff`, another plugin) waits for nothing: a cell would
        wait for one that comes after it.
        """
        for cell in cells:
            if cell.is_fixed_repeat:
                continue
            label = cell.target.label
            if cell.repeat < self._last.get(label, 1):
                self._mixed.add(label)
            self._last[label] = cell.repeat

    def receive(self, target: str, repeat: int, ends: str | None) -> None:
        """Take a decision: the label of a target, the repeat, and why no further repeat is sent, if so."""
        self._through[target] = max(repeat, self._through.get(target, 0))
        if ends is not None:
            self._ends[target] = (repeat, ends)

    def permit(self, cell: Cell) -> Permit:
        """Return whether the cell may be sent: not before its target's repeats so far are decided on.

        A cell whose prompt sets its own number of repeats waits for nothing.
        """
        if cell.is_fixed_repeat:
            return "ask"
        if self.why_left_out(cell) is not None:
            return "leave_out"
        label = cell.target.label
        waits = label in self._last and label not in self._mixed
        return "wait" if waits and self._through.get(label, 0) < cell.repeat - 1 else "ask"

    def why_left_out(self, cell: Cell) -> str | None:
        """Return why the cell is not sent; None if it is."""
        if cell.is_fixed_repeat:
            return None
        repeat, why = self._ends.get(cell.target.label, (cell.repeat, None))
        return why if cell.repeat > repeat else None

    def go_on(self, cell: Cell) -> None:
        """Allow the cell's repeat without a decision: its test waits, and no decision can come."""
        label = cell.target.label
        self._through[label] = max(cell.repeat - 1, self._through.get(label, 0))
