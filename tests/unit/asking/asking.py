"""An asker in the event loop of a test, with clients that record what they receive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_openclaw import Provider
from pytest_openclaw.asking.asker import Asker
from pytest_openclaw.asking.client import request_for
from pytest_openclaw.asking.fetching import Fetcher
from pytest_openclaw.asking.journal import Journal, note_start
from pytest_openclaw.asking.messages import (
    CellPlan,
    ClaimCells,
    FromAsker,
    Hello,
    JobResult,
    PlannedCell,
    Want,
)
from pytest_openclaw.types.prompts import Cell
from pytest_openclaw.types.settings import Concurrency, Settings


class Receiver:
    """A client that records what it receives."""

    def __init__(self) -> None:
        self.received: list[FromAsker] = []

    def deliver(self, message: FromAsker) -> None:
        self.received.append(message)

    @property
    def replies(self) -> list[str]:
        """The tokens of the replies, in their order."""
        return [message.token for message in self.received if isinstance(message, JobResult)]


def planned(cells: Iterable[Cell]) -> list[PlannedCell]:
    """Cells in the asker's form, by their prompts' ids; all may be sent ahead."""
    return [
        PlannedCell(
            token=f"{one.prompt.id} r{one.repeat}" if one.n_repeats > 1 else one.prompt.id,
            place=place,
            target=one.target,
            request=request_for(one, Settings()),
            repeat=one.repeat,
            is_fixed_repeat=False,
            is_ahead=True,
        )
        for place, one in enumerate(cells)
    ]


class Room:
    """An asker of one provider, `fake`.

    Args:
        provider: sends the replies.
        folder: has the journal.
        limit: of the endpoint.
    """

    def __init__(
        self, provider: Provider, folder: Path, *, limit: int = 1, until_conclusive: bool = False
    ) -> None:
        self._folder = folder
        self._endpoint = provider.endpoint
        self._limit = limit
        self.settings = Settings(
            concurrency=Concurrency(everywhere=limit), retries=0, until_conclusive=until_conclusive
        )
        path = folder / "asker.journal"
        note_start(path)
        fetcher = Fetcher({"fake": provider}, self.settings)
        self.asker = Asker(
            fetcher, Journal(path), until_conclusive=until_conclusive, died="the asker was killed"
        )

    def join(self, held: Sequence[str] = ()) -> Receiver:
        """Connect a client."""
        client = Receiver()
        hello = Hello(
            makings={}, settings=self.settings, place=self._folder, anchor_s=0.0, is_alone=False, held=held
        )
        self.asker.join(client, hello)
        return client

    def plan(
        self,
        client: Receiver,
        cells: Iterable[Cell],
        *,
        is_claimed: bool = False,
        awaits_decisions: bool = False,
    ) -> None:
        """Send the whole plan from a client."""
        plan = CellPlan(
            cells=planned(cells),
            limits={self._endpoint: self._limit},
            endpoints={"fake": self._endpoint},
            is_claimed=is_claimed,
            awaits_decisions=awaits_decisions,
            is_last=True,
        )
        self.asker.receive(client, plan)

    def claim(self, client: Receiver, *tokens: str) -> None:
        """Send a client's claim of the cells that it runs."""
        self.asker.receive(client, ClaimCells(tokens=tokens))

    def want(self, client: Receiver, token: str, *, is_again: bool = False) -> None:
        """Let a test of a client wait for a reply."""
        self.asker.receive(client, Want(token=token, is_again=is_again))


async def settle(passes: int = 60) -> None:
    """Let the loop run until nothing more happens at once."""
    for _ in range(passes):
        await asyncio.sleep(0)
