"""`--openclaw-dry-run`: shows the cells of a run and their cost; no call is made, nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.session.cell_runs import run_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Settings


class DryRun:
    """Registered in a session that only shows what a run would do."""

    def __init__(self, settings: Settings, providers: Mapping[str, Provider]) -> None:
        self._settings = settings
        self._providers = providers
        self._lines: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run no test; forecast the run."""
        from pytest_openclaw.reports.forecast_text import render_forecast
        from pytest_openclaw.session.forecasting import forecast

        if session.testsfailed:  # a suite that cannot be read; pytest reports it
            return True
        selected = (run_of(item) for item in session.items if item.get_closest_marker("skip") is None)
        cells = [run.cell for run in selected if run is not None]
        self._lines = ["nothing: no cell is selected, or each has its answer"]
        if cells:
            width = session.config.get_terminal_writer().fullwidth
            self._lines = render_forecast(forecast(cells, self._providers, self._settings), width)
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table."""
        from pytest_openclaw.reports.forecast_text import TITLE

        if self._lines:
            terminalreporter.write_sep("=", TITLE)
        for line in self._lines:
            terminalreporter.write_line(line)


def lead_no_workers(config: pytest.Config) -> None:
    """Undo the options for xdist's workers, which would be started for nothing."""
    option = config.option
    if hasattr(option, "numprocesses"):
        option.numprocesses, option.distload, option.dist, option.tx = 0, False, "no", []
