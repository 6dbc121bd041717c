"""Suite files and their items: which files are suites, what they contain, and an item for each cell."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw import options
from pytest_openclaw.session.cells import CellRun, Missed
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.util.text import printable

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.session.cells import CellParts, KeptCell
    from pytest_openclaw.values.prompts import Cell, Prompt, Suite
    from pytest_openclaw.values.settings import Settings


class SuiteFiles:
    """The suites of a session."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.prompt_ids: set[str] = set()
        self._config = config
        self._settings = settings
        self._owners: dict[tuple[str, str], str] = {}

    @cached_property
    def registry(self) -> Registry:
        """The validators, collected with the first suite, so that nested conftest files count."""
        from pytest_openclaw.session.registries import validator_registry

        return validator_registry(self._config)

    def reader_of(self, path: Path) -> Callable[[str], Suite] | None:
        """Return what reads a file as a suite; None if it is not one, or is not selected."""
        # pytest keeps symbolic links in its paths.
        places = {path, path.parent, path.resolve(), path.resolve().parent}
        if places.isdisjoint(self._named) and not self._is_in_suite_folder(path):
            return None
        reader: Callable[[str], Suite] | None = self._config.hook.pytest_openclaw_suite(
            path=path, config=self._config
        )
        return reader

    def own_reader(self, path: Path) -> Callable[[str], Suite] | None:
        """Return what reads a file as a suite in our format, in a folder of suites or named itself."""
        is_chosen = path.resolve() in self._named or self._is_in_suite_folder(path)
        return partial(self._load, path) if is_chosen and options.SUITE_NAME.match(path.name) else None

    @cached_property
    def _named(self) -> frozenset[Path]:
        return frozenset(options.named_paths(self._config))

    def _is_in_suite_folder(self, path: Path) -> bool:
        return any(options.is_below(place, self._settings.suite_dirs) for place in (path, path.resolve()))

    def _load(self, path: Path, name: str) -> Suite:
        from pytest_openclaw.openclaw.catalog import read_catalogue
        from pytest_openclaw.suites.load import load_suite

        file = self._settings.catalogue_file
        catalogue = read_catalogue(file) if file else None
        suite = load_suite(path, name=name, registry=self.registry, catalogue=catalogue)
        if suite.named_only and path.resolve() not in options.named_benchmarks(self._config):
            return replace(suite, prompts=())
        return suite

    def left_out(self, suite: Suite) -> Mapping[str, str]:
        """Return why entries of a suite are not asked, by id; none of a selection of prompts."""
        self.prompt_ids |= {*suite.left_out}
        return {} if self._settings.prompts else suite.left_out

    def cells_of(self, prompts: Sequence[Prompt]) -> list[Cell]:
        """Return a cell for each selected prompt on each target and each repeat of it, target by target."""
        from pytest_openclaw.suites.cells import build_cells, select_prompts

        settings = self._settings
        self.prompt_ids |= {prompt.id for prompt in prompts}
        return [
            *build_cells(
                select_prompts(prompts, settings.prompts),
                settings.targets,
                settings.repeat,
                of_tools_alone=settings.until_conclusive,
                surface=settings.surface,
            )
        ]

    def name_of(self, path: Path) -> str:
        """Return a suite's name in rows: its path from the root folder, with `/`."""
        root = self._config.rootpath
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()

    def claim_id(self, prompt: Prompt, nodeid: str) -> str:
        """Return the test that has this prompt's id in its module: this one, unless another came first."""
        return self._owners.setdefault((prompt.suite, prompt.id), nodeid)

    def unknown_ids(self) -> str:
        """Return the error of a selected prompt id that no suite has; empty if there is none."""
        from pytest_openclaw.suites.cells import unmatched
        from pytest_openclaw.suites.wording import closest

        ids = sorted(self.prompt_ids)
        lost = unmatched(self._settings.prompts, ids)
        if not lost:
            return ""
        hint = closest(lost[0], ids) or f" There are {', '.join(ids[:20]) or 'no prompts'}."
        return f"--openclaw-prompts: no prompt has the id {', '.join(lost)}.{hint}"


class SuiteFile(pytest.File):
    """A prompt file; its items are cells."""

    def __init__(
        self, *, read: Callable[[str], Suite], suites: SuiteFiles, parts: CellParts, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._read = read
        self._suites = suites
        self._parts = parts

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each of the suite's cells, and for each entry that is left out."""
        try:
            suite = self._read(self._suites.name_of(self.path))
        except (SuiteError, pytest.UsageError) as error:
            raise self.CollectError(printable(str(error))) from None
        for prompt_id, reason in self._suites.left_out(suite).items():
            yield LeftOutItem.from_parent(self, name=prompt_id, reason=reason)
        for cell in self._suites.cells_of(suite.prompts):
            # pytest would make an id from the name without seeing its parameters, and `--lf` compares those.
            nodeid = f"{self.nodeid}::{cell.id}"
            yield CellItem.from_parent(
                self, name=cell.id, nodeid=nodeid, held=self._parts.held(cell, CellRun)
            )


class SuiteItem(pytest.Item):
    """An item of a suite."""

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the item is, for pytest's headings; TOML and JSON have no lines."""
        return self.path, 0, self.name


class LeftOutItem(SuiteItem):
    """An entry of a suite that is not asked; skipped with the reason."""

    def __init__(self, *, reason: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_marker(pytest.mark.skip(reason=printable(reason)))

    def runtest(self) -> None:
        """Do nothing: it is skipped."""


class CellItem(SuiteItem):
    """One prompt on one target. Set-up sends and judges; the call only asserts the verdict."""

    def __init__(self, *, held: CellRun | KeptCell, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.held = held
        self.add_marker(pytest.mark.openclaw)
        if held.cell.prompt.known_failures:
            self._expect_known_failure(held.cell)

    def _expect_known_failure(self, cell: Cell) -> None:
        """Add pytest's own mark to a cell that its suite expects to fail; a fault is still an error."""
        from pytest_openclaw.suites.prompt import known_failure_of

        if (known := known_failure_of(cell.prompt, cell.target)) is not None:
            strict = {} if known.strict is None else {"strict": known.strict}
            self.add_marker(pytest.mark.xfail(reason=printable(known.reason), raises=Missed, **strict))

    def setup(self) -> None:
        """Send the cell and judge its reply; skip or fail here if there is none."""
        self.held.set_up(self.nodeid)

    def runtest(self) -> None:
        """Fail with the verdict's reasons unless the reply passed."""
        self.held.test(self)


def hint_on_suites(config: pytest.Config) -> str:
    """Say why nothing was collected, if a named folder has suites and is not configured as theirs."""
    base = options.base_dir(config)
    for folder in options.named_paths(config):
        files = sorted(file for file in folder.rglob("prompts_*") if options.SUITE_NAME.match(file.name))
        if files and not options.is_below(folder, options.suite_dirs(config)):
            name = folder.relative_to(base).as_posix() if folder.is_relative_to(base) else str(folder)
            return (
                f"openclaw: {files[0].name} is not collected; set openclaw_suites = {name}, or name the file"
            )
    return ""
