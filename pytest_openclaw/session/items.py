"""Cells as items of pytest: the file of a suite, its items, and items of cells that a resumed run keeps.

The suites of a session: which files they are, what they contain, and the ids that they use.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import pytest

from pytest_openclaw import options
from pytest_openclaw.session.cell_runs import HELD, CellRun, KeptCell, Missed
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.util.text import printable

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.openclaw.catalog import Catalogue
    from pytest_openclaw.values.prompts import Cell, Prompt, Suite
    from pytest_openclaw.values.settings import Settings


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


class SuiteFiles:
    """Reads each suite once.

    Args:
        config: pytest's.
        settings: contain the folders of suites, and their catalog.

    """

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._suites: dict[Path, Suite] = {}
        self._ids: dict[tuple[str, str], str] = {}

    @cached_property
    def registry(self) -> Registry:
        """The validators, collected with the first suite, so that nested conftest files count."""
        from pytest_openclaw.session.registries import validator_registry

        return validator_registry(self._config)

    @cached_property
    def _catalogue(self) -> Catalogue | None:
        from pytest_openclaw.openclaw.catalog import read_catalogue

        return read_catalogue(self._settings.catalogue_file) if self._settings.catalogue_file else None

    @property
    def files(self) -> dict[str, Path]:
        """The suites that were read, by their names in rows."""
        return {suite.path: path for path, suite in self._suites.items()}

    def load(self, path: Path) -> Suite:
        """Return the suite in a file.

        Raises:
            SuiteError: it is malformed.

        """
        from pytest_openclaw.suites import load_suite

        if path not in self._suites:
            name = suite_name(self._config, path)
            self._suites[path] = load_suite(
                path, name=name, registry=self.registry, catalogue=self._catalogue
            )
        return self._suites[path]

    def is_selected(self, path: Path, suite: Suite) -> bool:
        """Whether a suite's prompts are collected: some are only if the command line names their file."""
        return not suite.named_only or path.resolve() in options.named_benchmarks(self._config)

    def is_suite(self, path: Path) -> bool:
        """Whether a prompt file is a suite: it is in a folder of suites, or is named."""
        # pytest keeps symbolic links in its paths.
        places = {path, path.resolve()}
        return not places.isdisjoint(options.named_benchmarks(self._config)) or any(
            place.is_relative_to(folder) for place in places for folder in self._settings.suite_dirs
        )

    def paths(self) -> Iterator[Path]:
        """Yield the suite files that this session may collect."""
        for path in self._roots:
            if path.is_file():
                yield path
            elif path.is_dir():
                yield from sorted(
                    file
                    for file in path.rglob("prompts_*")
                    # Reading a pipe would wait forever; pytest does not collect pipes either.
                    if options.SUITE_NAME.match(file.name) and file.is_file()
                )

    @property
    def may_include_python(self) -> bool:
        """Whether this session may collect Python benchmarks."""
        return any(
            path.suffix == ".py" or (path.is_dir() and any(path.rglob("test_*.py"))) for path in self._roots
        )

    def claim_id(self, prompt: Prompt, nodeid: str) -> str:
        """Return the test that has this prompt's id in its module: this one, unless another came first."""
        return self._ids.setdefault((prompt.suite, prompt.id), nodeid)

    @property
    def _roots(self) -> tuple[Path, ...]:
        return options.named_benchmarks(self._config) or self._settings.suite_dirs


def cells_of(prompts: Sequence[Prompt], settings: Settings) -> list[Cell]:
    """Return a cell for each selected prompt on each target and each repeat of it, target by target."""
    from pytest_openclaw.suites import build_cells, select_prompts

    selected = select_prompts(prompts, settings.prompts)
    of_tools_alone = settings.until_conclusive
    return [
        *build_cells(
            selected,
            settings.targets,
            settings.repeat,
            of_tools_alone=of_tools_alone,
            surface=settings.surface,
        )
    ]


def hint_on_suites(config: pytest.Config) -> str:
    """Say why nothing was collected, if a named folder has suites and is not configured as theirs."""
    base = options.base_dir(config)
    for folder in options.named_paths(config):
        files = sorted(file for file in folder.rglob("prompts_*") if options.SUITE_NAME.match(file.name))
        if files:
            name = folder.relative_to(base).as_posix() if folder.is_relative_to(base) else str(folder)
            return (
                f"openclaw: {files[0].name} is not collected; set openclaw_suites = {name}, or name the file"
            )
    return ""


def suite_name(config: pytest.Config, path: Path) -> str:
    """Return a suite's name in rows: its path from the root folder, with `/`."""
    root = config.rootpath
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
