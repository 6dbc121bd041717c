"""The client of a process, made when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.asking.client import AskingClient
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.replies import CallResult


class AskerConnection:
    """The client of this process; most processes of a session send nothing.

    Args:
        connect: makes the client.
    """

    def __init__(self, connect: Callable[[], AskingClient]) -> None:
        self._connect = connect
        self._client: AskingClient | None = None

    @property
    def client(self) -> AskingClient:
        """The client, made by now."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    @property
    def used(self) -> AskingClient | None:
        """The client, if there is one."""
        return self._client

    @property
    def n_out(self) -> int:
        """Cells that were sent and that no test has taken."""
        return self._client.n_out if self._client else 0

    def awaited(self) -> Mapping[str, str] | None:
        """Return what is awaited; None where nothing was sent."""
        return self._client.awaited() if self._client else None

    def close(self) -> list[tuple[Cell, CallResult]]:
        """Disconnect; return what was answered and no test has taken, the first time."""
        return self._client.close() if self._client else []

    def let_go(self) -> None:
        """Wait for the closed client's processes."""
        if self._client:
            self._client.let_go()
