"""The asker as a process of its own, which serves a socket that it inherits."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.asking.asker import Asker
from pytest_openclaw.asking.asker_server import AskerServer
from pytest_openclaw.asking.fetching import Fetcher
from pytest_openclaw.asking.journal import Journal
from pytest_openclaw.core.clock import count_from
from pytest_openclaw.core.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from pytest_openclaw.asking.messages import Hello
    from pytest_openclaw.types.protocols import Provider, ProviderSetup

_NEW_OBJECTS = 20_000
"""After which garbage is collected."""


def main(descriptor: int, address: str, secret: str) -> None:
    """Serve the socket until the last client has gone.

    Ctrl-C goes to every process of a terminal, and a tool that stops a test session may signal them all:
    this one ends with its clients and not before, so that what it has finished is not lost.
    """
    # Handlers, because the programs that are started from here would inherit what is ignored or blocked.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _outlive)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # Now, while the session loads its own modules: at the first request it would hold up the others.
    importlib.import_module("pytest_openclaw.providers.http")
    asyncio.run(_serve(socket.socket(fileno=descriptor), Path(address), secret.encode()))


def _outlive(number: int, frame: FrameType | None) -> None:
    """Handle a signal by doing nothing."""


async def _serve(listener: socket.socket, address: Path, secret: bytes) -> None:
    parent = os.getppid()  # it may take minutes to collect before it greets
    server = AskerServer(_make, address, secret, is_awaited=lambda: os.getppid() == parent)
    await server.serve(listener)


def _make(hello: Hello) -> tuple[Asker, Redactor]:
    count_from(hello.anchor_s)
    providers = _made(hello.makings)
    # Few of its objects are in circles, and each search for them holds up the times of what arrives.
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    gc.enable()
    return make_asker(providers, hello), Redactor.of_run(providers.values(), os.environ)


def make_asker(providers: Mapping[str, Provider], hello: Hello) -> Asker:
    """Return the asker that a first client's greeting describes."""
    fetcher = Fetcher(providers, hello.settings)
    journal = Journal(hello.place.with_suffix(".journal"))
    return Asker(fetcher, journal, until_conclusive=hello.settings.until_conclusive, died=hello.died)


def _made(makings: Mapping[str, tuple[str, str, ProviderSetup]]) -> dict[str, Provider]:
    return {
        name: getattr(importlib.import_module(module), kind)(setup)
        for name, (module, kind, setup) in makings.items()
    }
