"""What the process that runs tests uses to send cells, wherever the requests are made.

`AskingClient` is the seam between tests and requests: of this folder the execution hooks know nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.replies import CallResult
    from pytest_openclaw.types.targets import Target


class AskingClient(Protocol):
    """Sends cells ahead of their tests; a cell has a token, any text that is unique in the session.

    Attributes:
        notes: what is new about targets, `before` and `serving`; who reports them takes them out.
        is_stopping: no more cells are sent ahead; any thread may set it.
    """

    notes: dict[Target, JsonObject]
    is_stopping: bool

    def start(self) -> None:
        """Start what takes a moment to start."""
        ...

    def plan(self, cells: Iterable[tuple[str, Cell]]) -> None:
        """Take all cells of the session, in their order; none is sent by that."""
        ...

    def expect(self, tokens: Iterable[str]) -> None:
        """Send these cells ahead of their tests, which will come in this order."""
        ...

    def feed(self) -> None:
        """Send ahead what may be sent by now."""
        ...

    def is_asked(self, token: str) -> bool:
        """Whether the cell is sent, or has its reply."""
        ...

    def ask(self, token: str, cell: Cell) -> CallResult:
        """Return how the cell's call ended; sends now what was not expected.

        Raises:
            HostDied: the asking side has ended; what it was sending is lost.
            Exception: what a provider raised that is no `CallFailed`.
        """
        ...

    def drop(self, token: str) -> None:
        """Forget a cell whose test does not use its reply."""
        ...

    @property
    def n_out(self) -> int:
        """Cells that were sent and that no test has taken."""
        ...

    def awaited(self) -> Mapping[str, str]:
        """Return, by endpoint, the token that waits longest; any thread may call it."""
        ...

    def close(self) -> list[tuple[Cell, CallResult]]:
        """Stop sending; return what was answered and no test has taken, in the order of the plan."""
        ...


class Connection:
    """The client of this process, made when a cell is first sent: most processes of a session send none.

    Args:
        connect: makes the client.
    """

    def __init__(self, connect: Callable[[], AskingClient]) -> None:
        self._connect = connect
        self._client: AskingClient | None = None

    @property
    def client(self) -> AskingClient:
        """The client, connected by now."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    @property
    def n_out(self) -> int:
        """Cells that were sent and that no test has taken."""
        return self._client.n_out if self._client else 0

    def awaited(self) -> Mapping[str, str] | None:
        """Return what is awaited; None where nothing was sent."""
        return self._client.awaited() if self._client else None

    def stop_ahead(self) -> None:
        """Send no more cells ahead; any thread may call it."""
        if self._client:
            self._client.is_stopping = True

    def close(self) -> list[tuple[Cell, CallResult]]:
        """Stop sending; return what was answered and no test has taken, the first time."""
        return self._client.close() if self._client else []
