"""The link of an xdist worker to its controller."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_openclaw.session.xdist import CHANNEL, INPUT, Worker


class ClosedChannel:
    """As execnet's, after its other side has closed it."""

    def setcallback(self, callback: Any, endmarker: Any) -> None:
        callback(endmarker)

    def send(self, message: Any) -> None:
        raise OSError("cannot send to <Channel id=3 closed>")


def test_a_worker_ends_if_its_controller_has_closed_the_channel() -> None:
    """A cell that cannot be sent any more is not a broken harness."""
    config: Any = SimpleNamespace(workerinput={INPUT: pickle.dumps((None, {})), CHANNEL: ClosedChannel()})
    cell: Any = None

    with pytest.raises(pytest.exit.Exception, match="the session is stopping"):
        Worker(config).ask("suite::P1", cell)
