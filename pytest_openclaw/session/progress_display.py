"""The line that shows how far a run is, where pytest writes on a terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.recording.progress import Progress, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from pytest_openclaw.recording.live_line import LiveLine
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.targets import Target


class ProgressDisplay:
    """Shows nothing until a run starts on a terminal; no other session has its hooks.

    Attributes:
        progress: what the line shows; None where there is none.

    Args:
        config: pytest's.
        providers: of the run's targets.
        awaited: returns, by endpoint, the item whose request has been in flight longest.
    """

    def __init__(
        self,
        config: pytest.Config,
        providers: Mapping[str, Provider],
        awaited: Callable[[], Mapping[str, str]],
    ) -> None:
        self.progress: Progress | None = None
        self._config = config
        self._providers = providers
        self._awaited = awaited
        self._waits: dict[str, tuple[str, float]] = {}
        self._line: LiveLine | None = None

    def start(self, n_selected: Mapping[Target, int]) -> None:
        """Show the line, if pytest writes on a terminal."""
        from pytest_openclaw.recording.live_line import LiveLine, terminal_of

        if (terminal := terminal_of(self._config)) is None:
            return
        endpoints = {target.label: self._providers[target.provider].endpoint for target in n_selected}
        n_by_label = {target.label: n for target, n in n_selected.items()}
        self.progress = progress = Progress(n_by_label, endpoints, time.monotonic)
        self._line = LiveLine(
            terminal,
            lambda width: progress.line(width, self._awaited(), self.wait_of),
        )
        self._config.pluginmanager.register(_LineHooks(progress, self._line), "openclaw-progress")

    def note_wait(self, nodeid: str, why: str, seconds: float) -> None:
        """Show that a cell waits before it is sent again; any thread may call it."""
        self._waits[nodeid] = (why, time.monotonic() + seconds)

    def wait_of(self, nodeid: str) -> Wait | None:
        """Return the wait of a cell, while it lasts."""
        why, until = self._waits.get(nodeid, ("", 0.0))
        left_s = until - time.monotonic()
        return Wait(why=why, seconds=left_s) if left_s > 0 else None

    def stop(self) -> None:
        """Remove the line for good."""
        if self._line:
            self._line.stop()


class _LineHooks:
    """Keeps the line off the terminal while pytest writes there, and up to date."""

    def __init__(self, progress: Progress, line: LiveLine) -> None:
        self._progress = progress
        self._line = line

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> Generator[None, None, None]:
        """Note that an item is awaited."""
        self._progress.started(nodeid)
        with self._line.away():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> Generator[None, None, None]:
        """Note that an item is no longer awaited."""
        self._progress.ended(nodeid)
        with self._line.away():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None, None, None]:
        """Do nothing else."""
        with self._line.away():
            return (yield)
