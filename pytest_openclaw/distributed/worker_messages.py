"""What workers and their controller send each other, after `WorkerInput`.

Each message is one text: xdist carries a text in a sixth of the time that a nested dict takes. A worker sends
its `Handshake` on its line and `Waits` after it, a `WorkerReport` on each report of a cell, and at last
`WorkerEnd` as xdist's `workeroutput`. The controller sends commands on the line.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.types.payloads import ReportPayload

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject

# --- from a worker ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """Where a worker is, which may be another machine than the controller's.

    Attributes:
        machine: distinguishes it from all others.
        inventory: what it is, as in `inventory.json`.
        providers: what shapes a request there, by provider; addresses, never a key.
        reaches: endpoint and limit as seen from there, by provider.
        suites: the digest of each suite that the worker has read.
    """

    machine: str
    inventory: JsonObject
    providers: Mapping[str, JsonObject]
    reaches: Mapping[str, JsonObject]
    suites: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Handshake:
    """The first message of a worker, before xdist sends what it has collected.

    Attributes:
        selection: the text of `Selection.to_json`; all workers of a session send the same.
        host: None from a worker that sees what its controller sees.
    """

    selection: str
    host: HostFacts | None = None

    def to_text(self) -> str:
        """Return the message for the line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Handshake:
        """Return the message of which `to_text` made this text."""
        plain = json.loads(text)
        return cls(selection=plain["selection"], host=plain["host"] and HostFacts(**plain["host"]))


@dataclass(frozen=True, kw_only=True)
class Waits:
    """A cell waits before its next attempt.

    Attributes:
        why: the fault of the last attempt, as a sentence.
    """

    nodeid: str
    why: str
    seconds: float

    def to_text(self) -> str:
        """Return the message for the line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Waits:
        """Return the message of which `to_text` made this text."""
        return cls(**json.loads(text))


@dataclass(frozen=True, kw_only=True)
class WorkerReport:
    """A cell's payload, as a report carries it to the controller.

    Attributes:
        n_unreported: calls of the worker's host that no report contained when the reply arrived.
        spent_usd: by the worker's host so far; None without a budget.
    """

    payload: ReportPayload
    n_unreported: int
    spent_usd: float | None = None

    def to_text(self) -> str:
        """Return the message for xdist."""
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


_TEXT = "openclaw_report"
_PLAIN = ("$report_type", "nodeid", "location", "keywords", "outcome", "when", "duration", "start", "stop")
_OFTEN_EMPTY = ("longrepr", "sections", "user_properties")


class PackedReports:
    """Hooks of a worker and of its controller: most of what xdist sends of a test's report is one text."""

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, JsonObject, JsonObject]:
        """Put the values that each report has into a text."""
        data = yield
        if data.get("$report_type") == "TestReport":  # a subtest's report has another type
            names = [*_PLAIN, *(name for name in _OFTEN_EMPTY if not data[name])]
            data[_TEXT] = json.dumps({name: data.pop(name) for name in names})
        return data

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_from_serializable(self, data: JsonObject) -> None:
        """Put them back, for the plugin that makes the report."""
        if _TEXT in data:
            packed = json.loads(data.pop(_TEXT))
            data.update(packed, location=tuple(packed["location"]))


@dataclass(frozen=True, kw_only=True)
class WorkerEnd:
    """The last message of a worker.

    Attributes:
        unreported: the cells that were answered and that no report contains.
        diagnoses: what the repeats of cells have shown, by the target's label.
        n_lost: calls of the host that may have no row at all; the last of its workers knows them.
        spent_usd: as in `WorkerReport`.
    """

    unreported: Sequence[ReportPayload]
    diagnoses: Mapping[str, JsonObject]
    n_lost: int
    spent_usd: float | None = None

    def to_text(self) -> str:
        """Return the message for xdist."""
        return json.dumps(
            {
                "unreported": [payload.to_json() for payload in self.unreported],
                "diagnoses": dict(self.diagnoses),
                "n_lost": self.n_lost,
                "spent_usd": self.spent_usd,
            }
        )

    @classmethod
    def from_text(cls, text: str) -> WorkerEnd:
        """Return the message of which `to_text` made this text."""
        plain = json.loads(text)
        unreported = [ReportPayload.from_json(payload) for payload in plain["unreported"]]
        return cls(
            unreported=unreported,
            diagnoses=plain["diagnoses"],
            n_lost=plain["n_lost"],
            spent_usd=plain["spent_usd"],
        )


# --- from the controller ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Assigned:
    """What the worker's host sends, see `coordinator.Assignment`."""

    limits: Mapping[str, int]
    places: Sequence[int] | None


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Run no further item; if `at_once`, end the one under way."""

    at_once: bool


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What follows from a repeat of a target, see `early_stopping.Decision`."""

    target: str
    repeat: int
    ends: str | None


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What all other machines together have spent."""

    elsewhere_usd: float


Command = Assigned | Stop | Decided | Spent
_COMMANDS: dict[str, type[Command]] = {kind.__name__: kind for kind in (Assigned, Stop, Decided, Spent)}


def command_to_text(command: Command) -> str:
    """Return a command for the line."""
    return json.dumps([type(command).__name__, asdict(command)])


def command_from_text(text: str) -> Command:
    """Return the command of which `command_to_text` made this text."""
    name, fields = json.loads(text)
    return _COMMANDS[name](**fields)
