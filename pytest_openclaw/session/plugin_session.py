"""The parts of a pytest session with benchmarks, made by `composition.compose`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from pytest_openclaw.asking.budget import SpentBudget
    from pytest_openclaw.recording.kept_cells import Replay
    from pytest_openclaw.session.cell_runs import CellParts
    from pytest_openclaw.session.coordinator import Coordinator
    from pytest_openclaw.session.resuming import ResumedRun
    from pytest_openclaw.session.run_writer import RunWriter
    from pytest_openclaw.session.suite_files import SuiteFiles
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import CellKey


@dataclass(frozen=True, kw_only=True)
class PluginSession:
    """The parts from which the hooks are made; no part refers back to it.

    In a plain session one process sends cells and records them. Under xdist the workers send them and the
    controller records.

    Attributes:
        config: pytest's.
        settings: with resolved wildcards, and with the recorded settings of a resumed run.
        sends: False in a session that only lists or forecasts cells.
        suites: read as they are collected.
        providers: of the targets, by name.
        cell_parts: what cells share, with the connection to the side that makes the requests.
        kept: the verdicts that a resumed run keeps.
        resumed: the run that this session continues; None in a worker.
        shared_dir: the run's folder on this machine.
        budget: what the run has spent.
        coordinator: gives this process its items.
        writer: records the run; without one in a worker.
    """

    config: pytest.Config
    settings: Settings
    sends: bool
    suites: SuiteFiles
    providers: Mapping[str, Provider]
    cell_parts: CellParts
    kept: Mapping[CellKey, Replay]
    resumed: ResumedRun | None
    shared_dir: Path
    budget: SpentBudget
    coordinator: Coordinator
    writer: RunWriter
