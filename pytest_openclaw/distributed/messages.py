"""What a worker sends to the controller; each message is one text, which xdist carries six times as fast."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.types.payloads import ReportPayload

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class WorkerReport:
    """A cell's payload, as a report carries it to the controller.

    Attributes:
        n_unreported: calls of the worker that no report contains yet.
        spent_usd: by all workers of the worker's machine so far; None without a budget.
    """

    payload: ReportPayload
    n_unreported: int
    spent_usd: float | None = None

    def to_text(self) -> str:
        """Return the message for the wire."""
        return json.dumps(
            {"n_unreported": self.n_unreported, "spent_usd": self.spent_usd, **self.payload.to_json()}
        )

    @classmethod
    def from_text(cls, text: str) -> WorkerReport:
        """Return the message of which `to_text` made this text."""
        plain = json.loads(text)
        return cls(
            payload=ReportPayload.from_json(plain),
            n_unreported=plain["n_unreported"],
            spent_usd=plain["spent_usd"],
        )


@dataclass(frozen=True, kw_only=True)
class WorkerEnd:
    """The last message of a worker.

    Attributes:
        unreported: the cells that were answered and that no report contains.
        n_lost: calls that may have no row at all.
        spent_usd: as in `WorkerReport`.
    """

    unreported: Sequence[ReportPayload]
    n_lost: int
    spent_usd: float | None = None

    def to_text(self) -> str:
        """Return the message for the wire."""
        return json.dumps(
            {
                "unreported": [payload.to_json() for payload in self.unreported],
                "n_lost": self.n_lost,
                "spent_usd": self.spent_usd,
            }
        )

    @classmethod
    def from_text(cls, text: str) -> WorkerEnd:
        """Return the message of which `to_text` made this text."""
        plain = json.loads(text)
        unreported = [ReportPayload.from_json(payload) for payload in plain["unreported"]]
        return cls(unreported=unreported, n_lost=plain["n_lost"], spent_usd=plain["spent_usd"])
