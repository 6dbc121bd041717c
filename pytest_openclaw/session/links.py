"""How the process that runs tests reaches the process that owns the run; in a plain session they are one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.asking.asker import Asker, PlannedCell
    from pytest_openclaw.types.payloads import Payload
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.replies import CallResult


class Link(Protocol):
    """What tests need from the owner of the run; `xdist.WorkerLink` is the other implementation."""

    def collected(self, cells: Sequence[PlannedCell | None], divided: str | None) -> None:
        """Take what was collected, before any item runs.

        Args:
            cells: of each item, in order; None for an item that is not a cell.
            divided: the digest of the cells of all shards; None if the session runs all that it selects.
        """
        ...

    def ask(self, token: str, cell: Cell) -> CallResult:
        """Return how the cell's call ended; see `Asker.ask`."""
        ...

    def release(self, token: str) -> None:
        """Forget the reply of a cell whose test has ended or was interrupted."""
        ...

    def carried(self, payload: Payload) -> object:
        """Return the payload as the report of a cell carries it to the owner."""
        ...

    def reported(self) -> None:
        """Note that a report with a payload is on its way; another plugin may leave one out."""
        ...


class OwnLink:
    """The link of a plain session, which owns its run.

    Attributes:
        cells, divided: see `Link.collected`.
    """

    def __init__(self, asker: Asker) -> None:
        self.cells: Sequence[PlannedCell | None] = ()
        self.divided: str | None = None
        self._asker = asker
        self._used: set[str] = set()

    def collected(self, cells: Sequence[PlannedCell | None], divided: str | None) -> None:
        """Keep it until the run begins."""
        self.cells, self.divided = cells, divided

    def ask(self, token: str, cell: Cell) -> CallResult:
        """Return how the cell's call ended; see `Asker.ask`."""
        again = token in self._used
        self._used.add(token)
        return self._asker.wait(self._asker.ask(token, cell, again=again), cell)

    def release(self, token: str) -> None:
        """Forget the cell's reply."""
        self._used.discard(token)
        self._asker.done(token)

    def carried(self, payload: Payload) -> Payload:
        """Return the payload itself."""
        return payload

    def reported(self) -> None:
        """Do nothing: a report is recorded before the next test begins."""
