"""The hooks of an xdist worker that its controller depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.core import signals
from pytest_openclaw.distributed.messages import WorkerEnd, WorkerReport
from pytest_openclaw.distributed.worker_protocol import shares_of, tell
from pytest_openclaw.session.messages import PAYLOAD
from pytest_openclaw.session.report_payload import benchmarks_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_openclaw.session.plugin_session import State


class Worker:
    """Registered in every xdist worker."""

    def __init__(self, state: State) -> None:
        self._state = state
        state.receive_shares = lambda: shares_of(state)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Send where this worker is, before xdist sends what it has collected."""
        tell(self._state, benchmarks_of(session.items))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Make a text of a report's payload, which xdist can carry."""
        report = yield
        if payload := vars(report).get(PAYLOAD):
            message = WorkerReport(payload=payload, n_unreported=self._state.n_out, spent_usd=self._spent_usd)
            setattr(report, PAYLOAD, message.to_text())
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop asking; send what no report contains, and how much is lost."""
        signals.ends()
        n_out, unreported = self._state.n_out, self._state.end_asking()
        end = WorkerEnd(unreported=unreported, n_lost=n_out - len(unreported), spent_usd=self._spent_usd)
        vars(session.config)["workeroutput"][PAYLOAD] = end.to_text()

    @property
    def _spent_usd(self) -> float | None:
        return self._state.budget.here_usd if self._state.settings.budget_usd is not None else None
