"""Which repeats may be asked, as the process that asks knows it; it is decided where the rows arrive."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.prompts import Cell

Permit = Literal["ask", "wait", "leave_out"]
POLL_S = 0.5


class RepeatPermits:
    """What is decided on the repeats of each target, when they end with a settled tier.

    The items run in one thread; another one may hear decisions.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._through: dict[str, int] = {}
        self._ends: dict[str, tuple[int, str]] = {}
        self._waiting: set[str] = set()

    def plan(self, cells: Iterable[Cell]) -> None:
        """Learn the session's cells, in their order; from now on a repeat waits for the one before it.

        Not where a target's repeats come in another order (`--ff`, another plugin): a cell would wait for
        one that comes after it.
        """
        last: dict[str, int] = {}
        mixed = set()
        for cell in cells:
            if cell.is_fixed_repeat:
                continue
            label = cell.target.label
            if cell.repeat < last.get(label, 1):
                mixed.add(label)
            last[label] = cell.repeat
        self._waiting = last.keys() - mixed

    def receive(self, decision: JsonObject) -> None:
        """Take a decision, as `Decision.told` has it; any thread may call it, and any number of times."""
        label, repeat, why = decision["target"], decision["repeat"], decision["ends"]
        with self._changed:
            self._through[label] = max(repeat, self._through.get(label, 0))
            if why is not None:
                self._ends[label] = (repeat, why)
            self._changed.notify_all()

    def permit(self, cell: Cell) -> Permit:
        """Say whether the cell may be asked: not before its target's repeats so far are decided on.

        One whose prompt says itself how often it is asked waits for nothing.
        """
        if cell.is_fixed_repeat:
            return "ask"
        if self.why_left_out(cell) is not None:
            return "leave_out"
        label = cell.target.label
        is_decided = label not in self._waiting or self._through.get(label, 0) >= cell.repeat - 1
        return "ask" if is_decided else "wait"

    def why_left_out(self, cell: Cell) -> str | None:
        """Return why the cell is not asked any more; None if it is."""
        if cell.is_fixed_repeat:
            return None
        repeat, why = self._ends.get(cell.target.label, (cell.repeat, None))
        return why if cell.repeat > repeat else None

    def await_turn(self, cell: Cell, gives_up: Callable[[], bool]) -> None:
        """Wait until the repeats before this cell are decided on, in another process."""
        with self._changed:
            while self.permit(cell) == "wait" and not gives_up():
                # Not for ever at once: nothing wakes it when the session is to stop.
                self._changed.wait(POLL_S)

    def go_on(self, cell: Cell) -> None:
        """Ask the cell's repeat without a decision: its test is under way, and waiting would end nowhere."""
        with self._changed:
            label = cell.target.label
            self._through[label] = max(cell.repeat - 1, self._through.get(label, 0))
