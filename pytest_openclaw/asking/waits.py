"""Who waits before asking again, and why: told by the processes that ask, read by the one that shows it.

They meet in the run's folder on this machine. A wait is over when its time is, so nothing is taken back.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.core.clock import epoch_ms
from pytest_openclaw.core.run_once import read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject

_PATTERN = "waits-*.json"


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A cell is asked again later.

    Attributes:
        why: the fault of its last attempt, as a sentence.
        seconds: until then, from now.
    """

    why: str
    seconds: float


class Waits:
    """The waits of this process."""

    def __init__(self, shared_dir: Path) -> None:
        self._path = shared_dir / _PATTERN.replace("*", str(os.getpid()))
        self._until: dict[str, JsonObject] = {}

    def add(self, nodeid: str, wait: Wait) -> None:
        """Tell of a wait that begins now."""
        now = epoch_ms() / 1000
        self._until = {one: told for one, told in self._until.items() if told["until_s"] > now}
        self._until[nodeid] = {"why": wait.why, "until_s": now + wait.seconds}
        with contextlib.suppress(OSError):  # a full disk is told where rows are written
            write_json(self._path, self._until)


def find_wait(shared_dir: Path, nodeid: str) -> Wait | None:
    """Return the wait of a cell, as far as a process of this machine has told it."""
    now = epoch_ms() / 1000
    for path in shared_dir.glob(_PATTERN):
        told = (read_json(path) or {}).get(nodeid)
        if told and told["until_s"] > now:
            return Wait(why=told["why"], seconds=told["until_s"] - now)
    return None
