"""The line that shows how far a run is, where pytest writes on a terminal."""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from pytest_openclaw.recording.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import pytest

    from pytest_openclaw.recording.live_line import LiveLine
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.targets import Target


class ProgressDisplay:
    """Shows nothing until a run starts on a terminal.

    Attributes:
        progress: what the line shows; None where there is none.

    Args:
        config: pytest's.
        providers: of the run's targets.
        shared_dir: where waits before another attempt are published.
        awaited: returns, by endpoint, the item that waits longest, if this process knows it.
    """

    def __init__(
        self,
        config: pytest.Config,
        providers: Mapping[str, Provider],
        shared_dir: Path,
        awaited: Callable[[], Mapping[str, str] | None],
    ) -> None:
        self.progress: Progress | None = None
        self._config = config
        self._providers = providers
        self._shared_dir = shared_dir
        self._awaited = awaited
        self._line: LiveLine | None = None

    def start(self, n_selected: Mapping[Target, int]) -> None:
        """Show the line, if pytest writes on a terminal."""
        from pytest_openclaw.asking.waits import find_wait
        from pytest_openclaw.recording.live_line import LiveLine, terminal_of

        if (terminal := terminal_of(self._config)) is None:
            return
        endpoints = {target.label: self._providers[target.provider].endpoint for target in n_selected}
        n_by_label = {target.label: n for target, n in n_selected.items()}
        self.progress = progress = Progress(n_by_label, endpoints, time.monotonic)
        self._line = LiveLine(
            terminal,
            lambda width: progress.line(
                width, self._awaited(), lambda nodeid: find_wait(self._shared_dir, nodeid)
            ),
        )

    @contextmanager
    def away(self) -> Iterator[None]:
        """Keep the line off the terminal while pytest writes there."""
        with self._line.away() if self._line else nullcontext():
            yield

    def stop(self) -> None:
        """Remove the line for good."""
        if self._line:
            self._line.stop()
