"""Suite files and their items: which files are suites, what they contain, and an item for each cell."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw import options
from pytest_openclaw.session.cells import CellRun, Missed
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.util.text import printable

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.session.cells import CellParts, KeptCell
    from pytest_openclaw.values.prompts import Cell, Prompt
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

    def is_suite(self, path: Path) -> bool:
        """Whether a file is a suite: it has its name, and is in a folder of suites or is named."""
        # pytest keeps symbolic links in its paths.
        places = {path, path.resolve()}
        return bool(options.SUITE_NAME.match(path.name)) and (
            not places.isdisjoint(options.named_benchmarks(self._config))
            or any(options.is_below(place, self._settings.suite_dirs) for place in places)
        )

    def read(self, path: Path) -> list[Cell]:
        """Return the cells of a suite.

        Raises:
            SuiteError: it is malformed.
        """
        from pytest_openclaw.openclaw.catalog import read_catalogue
        from pytest_openclaw.suites import load_suite

        file = self._settings.catalogue_file
        catalogue = read_catalogue(file) if file else None
        suite = load_suite(path, name=self.name_of(path), registry=self.registry, catalogue=catalogue)
        if suite.named_only and path.resolve() not in options.named_benchmarks(self._config):
            return []
        return self.cells_of(suite.prompts)

    def cells_of(self, prompts: Sequence[Prompt]) -> list[Cell]:
        """Return a cell for each selected prompt on each target and each repeat of it, target by target."""
        from pytest_openclaw.suites import build_cells, select_prompts

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
        from pytest_openclaw.suites import closest, unmatched

        ids = sorted(self.prompt_ids)
        lost = unmatched(self._settings.prompts, ids)
        if not lost:
            return ""
        hint = closest(lost[0], ids) or f" There are {', '.join(ids[:20]) or 'no prompts'}."
        return f"--openclaw-prompts: no prompt has the id {', '.join(lost)}.{hint}"


class SuiteFile(pytest.File):
    """A prompt file; its items are cells."""

    def __init__(self, *, suites: SuiteFiles, parts: CellParts, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._suites = suites
        self._parts = parts

    def collect(self) -> Iterator[CellItem]:
        """Yield an item for each of the suite's cells."""
        try:
            cells = self._suites.read(self.path)
        except (SuiteError, pytest.UsageError) as error:
            raise self.CollectError(printable(str(error))) from None
        for cell in cells:
            # pytest would make an id from the name without seeing its parameters, and `--lf` compares those.
            nodeid = f"{self.nodeid}::{cell.id}"
            yield CellItem.from_parent(
                self, name=cell.id, nodeid=nodeid, held=self._parts.held(cell, CellRun)
            )


class CellItem(pytest.Item):
    """One prompt on one target. Set-up sends and judges; the call only asserts the verdict."""

    def __init__(self, *, held: CellRun | KeptCell, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.held = held
        self.add_marker(pytest.mark.openclaw)
        if held.cell.prompt.known_failures:
            self._expect_known_failure(held.cell)

    def _expect_known_failure(self, cell: Cell) -> None:
        """Add pytest's own mark to a cell that its suite expects to fail; a fault is still an error."""
        from pytest_openclaw.suites import known_failure_of

        if (known := known_failure_of(cell.prompt, cell.target)) is not None:
            strict = {} if known.strict is None else {"strict": known.strict}
            self.add_marker(pytest.mark.xfail(reason=printable(known.reason), raises=Missed, **strict))

    def setup(self) -> None:
        """Send the cell and judge its reply; skip or fail here if there is none."""
        self.held.set_up(self.nodeid)

    def runtest(self) -> None:
        """Fail with the verdict's reasons unless the reply passed."""
        self.held.test(self)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the cell is, for pytest's headings; TOML and JSON have no lines."""
        return self.path, 0, self.name


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
