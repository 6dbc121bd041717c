"""What test processes and the asker send each other, and a process's view of its session.

Named tuples, because every process of a session makes these classes when it starts, and sends some for each
cell: a frozen dataclass takes 0.4 ms to make and a named tuple 0.1, and its pickle has no names of fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.asking.starting import OWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.protocols import ProviderSetup
    from pytest_openclaw.types.replies import CallResult
    from pytest_openclaw.types.requests import Request
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target


class Listed(NamedTuple):
    """A cell of the session's plan.

    Attributes:
        token: any text that is unique in the session.
        is_ahead: it may be sent before its test begins.
    """

    token: str
    cell: Cell
    is_ahead: bool = True


class Membership(NamedTuple):
    """Which asker a process uses, and who else does.

    Attributes:
        name: equal for all processes of the run on this machine that reach the same servers.
        is_alone: this process runs all cells.
        awaits_decisions: a test waits until the repeats before its own are decided on, in another process.
    """

    name: str = OWN
    is_alone: bool = True
    awaits_decisions: bool = False


class PlannedCell(NamedTuple):
    """A cell as the asker needs it.

    Attributes:
        token: unique in the session.
        place: in the order of the plan, equal in every process of the session; -1 outside of the plan.
        repeat, is_fixed_repeat: as in `Cell`.
        is_ahead: it may be sent before a test asks for it.
    """

    token: str
    place: int
    target: Target
    request: Request
    repeat: int
    is_fixed_repeat: bool
    is_ahead: bool


# --- from a client ------------------------------------------------------------------------------


class Hello(NamedTuple):
    """The first message of a client; the first of all makes the providers.

    Attributes:
        makings: module, class and setup of each provider, by name.
        anchor_s: what the session's clock counts from.
        is_alone: no other process of the machine runs cells, and none comes in the client's place.
        died: how the asker before this one ended, if it did not end in order.
        held: cells whose reply the client has from the asker before.
    """

    makings: Mapping[str, tuple[str, str, ProviderSetup]]
    settings: Settings
    place: Path
    anchor_s: float
    is_alone: bool
    died: str | None = None
    held: Sequence[str] = ()


class CellPlan(NamedTuple):
    """Cells of the session, in their order; a long plan comes in parts.

    Attributes:
        limits: requests in flight, by endpoint.
        endpoints: by provider.
        is_claimed: the client runs all of them.
        awaits_decisions: a repeat waits for the decision on those before it, also when a test wants it.
    """

    cells: Sequence[PlannedCell]
    limits: Mapping[str, int]
    endpoints: Mapping[str, str]
    is_claimed: bool
    awaits_decisions: bool
    is_last: bool


class ClaimCells(NamedTuple):
    """The client runs these cells next; their replies are sent to it when they arrive."""

    tokens: Sequence[str]


class Want(NamedTuple):
    """A test waits for this cell.

    Attributes:
        cell: the cell, if it is outside of the plan, or if the only client wants it again.
        is_again: the client has used a reply of this cell before; each call is a request of its own.
    """

    token: str
    cell: PlannedCell | None = None
    is_again: bool = False


class Taken(NamedTuple):
    """The tests of these cells have ended, with their replies or without."""

    tokens: Sequence[str]


class RepeatDecision(NamedTuple):
    """What follows from a repeat of a target, see `early_stopping.Decision`.

    Attributes:
        target: its label.
        ends: why its further repeats are not sent; None if they are.
    """

    target: str
    repeat: int
    ends: str | None


class Elsewhere(NamedTuple):
    """What the rest of the run has spent."""

    usd: float


class StopAhead:
    """Send nothing ahead any more."""


class Goodbye:
    """The client is done; the last one receives what no test has taken."""


FromClient = Hello | CellPlan | ClaimCells | Want | Taken | RepeatDecision | Elsewhere | StopAhead | Goodbye

# --- from the asker -----------------------------------------------------------------------------


class Welcome(NamedTuple):
    """The answer to `Hello`.

    Attributes:
        has_plan: another client has sent it.
    """

    has_plan: bool


class JobResult(NamedTuple):
    """How a cell's call ended.

    Attributes:
        ending: None if something broke that is no fault of a provider.
        error: what broke then.
        notes: what is new about the target: `before` (a snapshot of the machine) and `serving` (its warm-up,
            and what its server says of itself).
        n_out: cells that were sent and that no test has taken, this one included.
        spent_usd: by this asker so far.
    """

    token: str
    ending: CallResult | None = None
    error: BaseException | None = None
    notes: JsonObject | None = None
    n_out: int = 0
    spent_usd: float = 0.0


class NotSent(NamedTuple):
    """A wanted cell is not sent, because its target's repeats have ended."""

    token: str
    why: str


class Waiting(NamedTuple):
    """A cell waits before its next attempt.

    Attributes:
        why: the fault of the last attempt, as a sentence.
        seconds: how long it waits.
    """

    token: str
    why: str
    seconds: float


class Alive:
    """Nothing is new; the asker has not died."""


class Left(NamedTuple):
    """The answer to `Goodbye`.

    Attributes:
        results: to the last client, what was answered and no test has taken, in the order of the plan.
        n_out: how many cells were sent and have no test that took them, answered or not.
    """

    results: Sequence[JobResult] = ()
    n_out: int = 0
    spent_usd: float = 0.0


FromAsker = Welcome | JobResult | NotSent | Waiting | Alive | Left
