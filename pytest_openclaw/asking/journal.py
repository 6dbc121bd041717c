"""What an asker has done, for the one that is started after its death: a file of one line a step.

The process that starts an asker writes the first line, and the asker the others. Measured: a line takes 2 µs.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.core.errors import HostDied
from pytest_openclaw.core.private import FILE_MODE, open_private

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MOST_DEATHS = 3
_BEGIN, _SENT, _TAKEN, _END = "begin", "sent", "taken", "end"


@dataclass(frozen=True, kw_only=True)
class Past:
    """What the askers so far have done.

    Attributes:
        n_deaths: how many of them have not ended in order.
        lost: places of cells that they had sent and that no test has taken.
        taken: places of cells whose tests have ended.
    """

    n_deaths: int
    lost: frozenset[int]
    taken: frozenset[int]


def read_past(path: Path) -> Past:
    """Return what the journal says; nothing has happened where there is none."""
    lost: set[int] = set()
    open_now: set[int] = set()
    taken: set[int] = set()
    n_open = 0
    text = path.read_text("ascii") if path.exists() else ""
    # Half a line is the last step of a killed process.
    for line in text[: text.rfind("\n") + 1].splitlines():
        step, _, place = line.partition(" ")
        if step == _BEGIN:
            n_open += 1
            lost |= open_now
            open_now = set()
        elif step == _END:
            n_open -= 1
            open_now = set()
        elif step == _SENT:
            open_now.add(int(place))
        else:
            taken.add(int(place))
            open_now.discard(int(place))
    return Past(n_deaths=n_open, lost=frozenset((lost | open_now) - taken), taken=frozenset(taken))


def note_start(path: Path) -> None:
    """Note that an asker is started, which then reads what those before it have done.

    Raises:
        HostDied: they have died too often.
    """
    if read_past(path).n_deaths >= MOST_DEATHS:
        raise HostDied("the asker has ended too often; no more cells are asked")
    with open_private(path, "ab") as file:
        file.write(f"{_BEGIN}\n".encode("ascii"))


class Journal:
    """The journal of an asker that begins now."""

    def __init__(self, path: Path) -> None:
        self.past = read_past(path)
        self._file: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)

    def sent(self, place: int) -> None:
        """Note that a cell is being sent."""
        if place >= 0:
            self._write(f"{_SENT} {place}")

    def taken(self, places: Iterable[int]) -> None:
        """Note that the tests of these cells have ended."""
        lines = [f"{_TAKEN} {place}" for place in places if place >= 0]
        if lines:
            self._write("\n".join(lines))

    def end(self) -> None:
        """Note that the asker ends in order: what it had sent may be sent again."""
        self._write(_END)
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def _write(self, line: str) -> None:
        if self._file is None:  # a call that starts at the end, and is given up
            return
        with contextlib.suppress(OSError):  # a full disk is reported where rows are written
            os.write(self._file, f"{line}\n".encode("ascii"))
