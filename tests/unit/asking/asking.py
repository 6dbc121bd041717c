"""An asker with one provider, `fake`, as a test uses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pytest_openclaw import Provider
from pytest_openclaw.asking.asker import Asker, PlannedCell
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.replies import CallResult
from pytest_openclaw.values.settings import Concurrency, Settings


class Room:
    """The asker, and what a test asks of it."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker

    def plan(self, *cells: Cell) -> None:
        """Plan cells; the token of each is its prompt's id and its repeat."""
        self.asker.plan([PlannedCell(token=token_of(one), cell=one) for one in cells])

    def ask(self, one: Cell) -> CallResult:
        """Ask for a cell and wait."""
        return self.asker.ask(token_of(one), one)


def token_of(one: Cell) -> str:
    """The token of a cell."""
    return f"{one.prompt.id} r{one.repeat}"


@contextmanager
def open_room(provider: Provider, *, limit: int = 1, **settings: Any) -> Iterator[Room]:
    """Open an asker whose provider takes `limit` requests at once; close it at the end."""
    chosen = Settings(**{"concurrency": Concurrency(everywhere=limit), **settings})
    asker = Asker({"fake": provider}, chosen)
    try:
        yield Room(asker)
    finally:
        asker.close()
