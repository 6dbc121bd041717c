"""What a process that runs tests says of its session: the cells in their order, and who else runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytest_openclaw.types.prompts import Cell


class Listed(NamedTuple):
    """A cell of the session's plan.

    Attributes:
        token: any text that is unique in the session.
        is_ahead: it may be sent before its test begins.
    """

    token: str
    cell: Cell
    is_ahead: bool = True


@dataclass(frozen=True, kw_only=True)
class Membership:
    """Which asker a process uses, and who else does.

    Attributes:
        name: equal for all processes of the run on this machine that reach the same servers.
        is_alone: this process runs all cells.
        awaits_decisions: a test waits until the repeats before its own are decided on, in another process.
    """

    name: str = "here"
    is_alone: bool = True
    awaits_decisions: bool = False
