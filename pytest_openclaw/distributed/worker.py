"""The hooks of an xdist worker that its controller depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.distributed.worker_protocol import shares_of, tell
from pytest_openclaw.session.report_payload import benchmarks_of

if TYPE_CHECKING:
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
