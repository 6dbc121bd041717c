"""Cells as items of pytest: the file of a suite, its items, and items of cells that a resumed run keeps."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import pytest

from pytest_openclaw.core.errors import SuiteError
from pytest_openclaw.core.text import printable
from pytest_openclaw.session.cell_runs import HELD, CellRun, KeptCell, Missed

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pytest_openclaw.types.prompts import Cell


class SuiteFile(pytest.File):
    """A prompt file; its items are cells.

    Attributes:
        place: its path in the locations of its items, once one of them has asked pytest.

    Args:
        read: returns the cells in the file, each as its item needs it: to run, or to repeat a verdict.
    """

    def __init__(self, *, read: Callable[[Path], Iterable[CellRun | KeptCell]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._read = read
        self.place = ""

    def collect(self) -> Iterator[CellItem | KeptItem]:
        """Yield an item for each of the suite's cells."""
        try:
            cells = self._read(self.path)
        except (SuiteError, pytest.UsageError) as error:
            raise self.CollectError(printable(str(error))) from None
        for held in cells:
            kind = CellItem if isinstance(held, CellRun) else KeptItem
            name = held.cell.id
            # pytest would make an id from the name without seeing its parameters, and `--lf` compares those.
            yield kind.from_parent(self, name=name, nodeid=f"{self.nodeid}::{name}", held=held)


HeldT = TypeVar("HeldT", bound=CellRun | KeptCell)
MARK = pytest.mark.openclaw  # one for all items: pytest makes it anew each time


class _SuiteItem(pytest.Item, Generic[HeldT]):
    """An item of a suite.

    Attributes:
        held: what it does for its cell.
    """

    def __init__(self, *, held: HeldT, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.held = held
        self.add_marker(MARK)
        cell = held.cell
        if cell.prompt.known_failures and (known := _known_failure_of(cell)) is not None:
            self.add_marker(known)

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """As pytest's own; the path is found once for a file, because pytest takes 20 µs for it."""
        file = cast("SuiteFile", self.parent)
        file.place = file.place or super().location[0]
        return file.place, 0, self.name

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the cell is, for pytest's headings; TOML and JSON have no lines."""
        return self.path, 0, self.name


class CellItem(_SuiteItem[CellRun]):
    """One prompt on one target. Set-up sends and judges; the call only asserts the verdict."""

    def setup(self) -> None:
        """Send the cell and judge its reply; skip or fail here if there is none."""
        self.held.call(self.nodeid)
        self.held.judge()

    def runtest(self) -> None:
        """Fail with the verdict's reasons unless the reply passed."""
        assert self.held.result is not None, "set-up has sent the cell"
        self.held.assert_passed(self.held.result)


class KeptItem(_SuiteItem[KeptCell]):
    """A suite's cell that a resumed run keeps: the call repeats its verdict."""

    def runtest(self) -> None:
        """Fail as the cell did before."""
        self.held.assert_passed(self)


class KeptFunction(pytest.Function):
    """A Python benchmark whose cell a resumed run keeps: neither its fixtures nor its test run again."""

    kept: KeptCell

    def setup(self) -> None:
        """Set up nothing."""

    def runtest(self) -> None:
        """Fail as the cell did before."""
        self.kept.assert_passed(self)

    @classmethod
    def of(cls, function: pytest.Function, kept: KeptCell) -> KeptFunction:
        """Return the item that takes the place of a benchmark's function."""
        item: KeptFunction = cls.from_parent(
            function.parent,
            name=function.name,
            callspec=function.callspec,
            keywords={function.callspec.id: True},
            originalname=function.originalname,
        )
        item.own_markers[:] = function.own_markers
        item.extra_keyword_matches.update(function.extra_keyword_matches)
        item.kept = item.stash[HELD] = kept
        return item


def _known_failure_of(cell: Cell) -> pytest.MarkDecorator | None:
    """Return pytest's own mark for a cell that its suite expects to fail; a fault is still an error."""
    from pytest_openclaw.suites import known_failure_of

    if (known := known_failure_of(cell.prompt, cell.target)) is None:
        return None
    strict = {} if known.strict is None else {"strict": known.strict}
    return pytest.mark.xfail(reason=printable(known.reason), raises=Missed, **strict)
