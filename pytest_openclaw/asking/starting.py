"""Starts an asker: its socket, the file that says where that is, and its process.

Loaded before the rest of a session, and therefore without any heavy module.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_openclaw.asking.journal import note_start
from pytest_openclaw.core.private import FILE_MODE, open_private
from pytest_openclaw.core.run_once import write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Started = TypeVar("Started")
OWN = "here"
"""The name of the asker that serves a plain session, and all workers on the controller's machine."""
_LONGEST_PATH = 100
"""Bytes of a Unix socket's path; the kernels allow 104 to 108."""
_BACKLOG = 128

# The process must find the modules that this process finds, whatever put them on its path.
_START = (
    "import gc, sys, json; gc.disable(); sys.path[:] = json.loads(sys.argv[1]);"
    "from pytest_openclaw.asking.asker_process import main; main(int(sys.argv[2]), *sys.argv[3:])"
)


def start(place: Path, starter: Callable[[socket.socket, Path, str], Started]) -> Started:
    """Start an asker at a place where none is, and write how to reach it.

    Args:
        place: a path in the run's shared folder, without a suffix; equal for all that share an asker.
        starter: starts it, from a listening socket, the file with its address, and the secret.

    Raises:
        OSError: it cannot be started.
        HostDied: those before it have died too often.
    """
    listener, where = _listen(place)
    with listener:
        note_start(place.with_suffix(".journal"))
        address = address_of(place)
        started = starter(listener, address, where.get("secret", ""))
        pid = started.pid if isinstance(started, subprocess.Popen) else None
        # Connections wait in the listener's queue until the asker is ready for them.
        write_json(address, {**where, "pid": pid})
    return started


def start_process(listener: socket.socket, address: Path, secret: str) -> subprocess.Popen[bytes]:
    """Start an asker in a process of its own.

    Raises:
        OSError: it cannot be started.
    """
    places = json.dumps([str(one) for one in sys.path])
    with open_private(address.with_suffix(".log"), "ab") as log:
        return subprocess.Popen(  # noqa: S603 - this interpreter
            [sys.executable, "-c", _START, places, str(listener.fileno()), str(address), secret],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[listener.fileno()],
        )


def place_of(shared_dir: Path, name: str, *, in_process: bool) -> Path:
    """Return the place of an asker in the run's folder.

    Args:
        shared_dir: the run's folder on this machine.
        name: of those that use it; see `Membership`.
        in_process: whether it is a process, and no thread.
    """
    return shared_dir / f"asker-{'process' if in_process else 'thread'}-{name}"


def address_of(place: Path) -> Path:
    """Return the file that says where the asker of a place is."""
    return place.with_suffix(".json")


def _listen(place: Path) -> tuple[socket.socket, dict[str, Any]]:
    """Return a listening socket, and how to reach it."""
    path = str(place.with_suffix(".sock"))
    if hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= _LONGEST_PATH:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - of an asker that died
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        os.chmod(path, FILE_MODE)  # noqa: PTH101
        where: dict[str, Any] = {"path": path}
    else:
        # Any user of the machine could connect here; only this one can read the secret.
        listener = socket.create_server(("127.0.0.1", 0))
        where = {"port": listener.getsockname()[1], "secret": os.urandom(16).hex()}
    listener.listen(_BACKLOG)
    return listener, where
