"""The suites of a session: which files they are, what they contain, and the ids that they use."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

    from pytest_openclaw.tools.catalogue import Catalogue
    from pytest_openclaw.types.prompts import Cell, Prompt, Suite
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.validators.registry import Registry


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
        from pytest_openclaw.tools.catalogue import read_catalogue

        return read_catalogue(Path(self._settings.catalogue)) if self._settings.catalogue else None

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
    for folder in options.named_folders(config):
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
