"""The process that asks: jobs come over a socket, results go back, and the end of the socket is its end."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import pickle
import signal
import socket
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.asking.fetching import Alive, Fetcher, JobResult, Waiting
from pytest_openclaw.asking.frames import Frames, framed
from pytest_openclaw.asking.job_loop import Desk
from pytest_openclaw.core.clock import count_from
from pytest_openclaw.core.errors import AskingBroke
from pytest_openclaw.core.redact import Redactor
from pytest_openclaw.providers.over_http import OverHttp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from pytest_openclaw.types.protocols import Provider, ProviderSetup

SENDING_S = 10.0


def main(descriptor: int) -> None:
    """Serve the socket until it closes.

    Ctrl-C goes to every process of a terminal, and a tool that stops a test session may signal them all:
    this one ends with its parent and not before, so that what it has finished is not lost.
    """
    # Handlers, because the programs that are started from here would inherit what is ignored or blocked.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _outlive)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    asyncio.run(_serve(socket.socket(fileno=descriptor)))


def _outlive(number: int, frame: FrameType | None) -> None:
    """Handle a signal by doing nothing."""


async def _serve(connection: socket.socket) -> None:
    connection.setblocking(False)
    _, link = await asyncio.get_running_loop().connect_accepted_socket(_Link, connection)
    await link.ended.wait()
    await link.close()


class _Link(asyncio.Protocol):
    """The child's end of the socket."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._lost = asyncio.Event()
        self._frames = Frames()
        self._desk: Desk | None = None
        self._providers: dict[str, Provider] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "a socket's transport"
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            message = pickle.loads(frame)  # noqa: S301 - our own parent's
            if self._desk is None:
                makings, settings, shared_dir, others, anchor_s = message
                count_from(anchor_s)
                self._providers = _made(makings)
                fetcher = Fetcher(self._providers, settings, shared_dir, self._send, others)
                self._desk = Desk(fetcher, deliver=self._send)
                self._desk.open()
            else:
                self._desk.accept(message)

    def eof_received(self) -> bool:
        self.ended.set()
        return True  # what is finished may still be sent

    def connection_lost(self, _: Exception | None) -> None:
        self.ended.set()
        self._lost.set()

    async def close(self) -> None:
        """Give up what is under way, and send what is left to send."""
        if self._desk is not None:
            await self._desk.close()
        self._transport.close()
        # A socket holds some 200 KB; answers beyond that are sent while the other side reads.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._lost.wait(), SENDING_S)

    def _send(self, message: JobResult | Waiting | Alive) -> None:
        if isinstance(message, JobResult) and (message.error is not None or message.notes):
            message = self._redacted(message)
        self._transport.write(framed(pickle.dumps(message)))

    def _redacted(self, job_result: JobResult) -> JobResult:
        """Take secrets out of what is told in words, before anything shortens it and leaves half of one."""
        redactor = Redactor.of_run(self._providers.values(), os.environ)
        error = job_result.error
        if error is not None:
            broke = AskingBroke(redactor.text(f"{type(error).__name__}: {error}"))
            broke.add_note(redactor.text("".join(traceback.format_exception(error))))
            error = broke
        return replace(job_result, error=error, notes=redactor.value(job_result.notes))


def _made(makings: Mapping[str, tuple[str, str, ProviderSetup]]) -> dict[str, Provider]:
    providers: dict[str, Provider] = {
        name: getattr(importlib.import_module(module), kind)(setup)
        for name, (module, kind, setup) in makings.items()
    }
    if any(isinstance(provider, OverHttp) for provider in providers.values()):
        # Now, while tests are collected: at the first ask it would hold up the others.
        importlib.import_module("pytest_openclaw.providers.listening")
    return providers
