"""When an asker without clients ends."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_openclaw.asking import asker_server
from pytest_openclaw.asking.asker_server import AskerServer


def test_it_waits_for_its_first_client_as_long_as_one_may_come(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A session may collect for minutes before it greets; without a session there is nothing to wait for."""
    monkeypatch.setattr(asker_server, "LINGER_S", 0.001)
    answers = [True, True, False]
    server = AskerServer(_never, tmp_path / "address.json", is_awaited=lambda: answers.pop(0))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        asyncio.run(asyncio.wait_for(server.serve(listener), 60))

    assert answers == []


def _never(hello: object) -> NoReturn:
    raise AssertionError("no client greets")
