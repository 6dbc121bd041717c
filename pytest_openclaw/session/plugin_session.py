"""The parts of a pytest session with benchmarks, made by `composition.compose`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from pytest_openclaw.recording.kept_cells import Replay
    from pytest_openclaw.session.cell_runs import CellParts
    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.session.suite_files import SuiteFiles
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import CellKey


@dataclass(frozen=True, kw_only=True)
class PluginSession:
    """The parts from which the hooks are made; no part refers back to it.

    Attributes:
        config: pytest's.
        settings: with resolved wildcards, and with the recorded settings of a resumed run.
        sends: False in a session that only lists or forecasts cells.
        suites: read as they are collected.
        providers: of the targets, by name.
        cell_parts: what cells share, with the link to the owner of the run.
        kept: the verdicts that a resumed run keeps.
        owner: sends requests and records the run; None in an xdist worker.
    """

    config: pytest.Config
    settings: Settings
    sends: bool
    suites: SuiteFiles
    providers: Mapping[str, Provider]
    cell_parts: CellParts
    kept: Mapping[CellKey, Replay]
    owner: Owner | None
