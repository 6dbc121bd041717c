"""Starts, before this process loads the rest of its modules, what takes as long to start: the asker."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw import options
from pytest_openclaw.asking.shared_dir import SharedDir
from pytest_openclaw.asking.starting import OWN, place_of, start, start_process
from pytest_openclaw.core.errors import HostDied

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    import pytest

# Options of pytest with which no test is run.
_LISTING = (
    "collectonly",
    "help",
    "markers",
    "showfixtures",
    "show_fixtures_per_test",
    "cacheshow",
    "setuponly",
    "setupplan",
)


@dataclass(frozen=True, kw_only=True)
class EarlyStart:
    """What a plain session and xdist's controller have before their settings.

    Attributes:
        shared_dir: the run's folder on this machine.
        asker: the process that its clients find there; None if they start one themselves.
    """

    shared_dir: Path
    asker: subprocess.Popen[bytes] | None

    def end_asker(self) -> None:
        """End the asker if it goes on: its clients have left it, or there was none, so nothing is lost."""
        if self.asker:
            if self.asker.poll() is None:
                self.asker.kill()
            self.asker.wait()


def start_early(config: pytest.Config) -> EarlyStart:
    """Make the run's folder, and start the asker where cells may be sent.

    Both last until pytest is unconfigured.
    """
    stack = ExitStack()
    config.add_cleanup(stack.close)
    shared_dir = stack.enter_context(SharedDir.create()).path
    asker = _start_asker(shared_dir) if options.is_used(config) and not lists_only(config) else None
    early = EarlyStart(shared_dir=shared_dir, asker=asker)
    stack.callback(early.end_asker)
    return early


def lists_only(config: pytest.Config) -> bool:
    """Whether the session runs no test."""
    return bool(options.lookup(config, "dry-run")[0]) or any(
        getattr(config.option, name, None) for name in _LISTING
    )


def _start_asker(shared_dir: Path) -> subprocess.Popen[bytes] | None:
    if os.name != "posix":  # sockets cannot be inherited
        return None
    try:
        return start(place_of(shared_dir, OWN, in_process=True), start_process)
    except (HostDied, OSError):
        return None  # the client tries again, and reports it
