"""Where a process gets its items from and where its results go: a plain session has both itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pytest_openclaw.asking.messages import Membership

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pytest

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.recording.selection import Selection
    from pytest_openclaw.types.payloads import ReportPayload
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Settings

INPUT = "openclaw"
"""The key of `WorkerInput` in xdist's `workerinput`."""


@dataclass(frozen=True, kw_only=True)
class WorkerInput:
    """What a controller gives a worker at its start; each value is one that xdist can carry.

    Attributes:
        targets: their labels, without wildcards.
        machine, shared_dir: the controller's machine, and the run's folder there.
        run: xdist's name of the session, the same for all workers.
        is_here: all workers of the session reach what the controller reaches.
        is_ordered: workers run cells in the order of the plan.
        anchor_s: what the controller's clock counts from; None where it may be another machine's.
        settings: those of a resumed run.
        surface: the text of a `surface.json`; empty if no target is asked on `openclaw`.
        kept: the verdicts that a resumed run keeps, as `stored.resume.to_wire` returns them.
        line: an execnet channel for messages in both directions.
    """

    targets: Sequence[str]
    machine: str
    shared_dir: str
    run: str
    is_here: bool
    is_ordered: bool
    anchor_s: float | None
    settings: JsonObject
    surface: str
    kept: Sequence[Any]
    line: Any


class Execution(Protocol):
    """The part of the process that runs items; any thread may call its methods."""

    def stop(self, *, at_once: bool) -> None:
        """Run no further item; end the one under way too if it is to be at once."""
        ...

    def decide(self, decision: JsonObject) -> None:
        """Take a decision on the repeats of a target."""
        ...

    def count_elsewhere(self, usd: float) -> None:
        """Take what all other machines together have spent."""
        ...


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """What the processes of one host send.

    Attributes:
        limits: requests in flight, by provider.
        places: the items whose cells they run, by their index; None if that is not known beforehand.
    """

    limits: Mapping[str, int]
    places: Sequence[int] | None


class Coordinator(Protocol):
    """Gives a process its items, and takes what becomes of them."""

    @property
    def given(self) -> WorkerInput | None:
        """What an xdist worker has received; None in a plain session."""
        ...

    def membership(self, providers: Mapping[str, Provider]) -> Membership:
        """Return which asker this process uses."""
        ...

    def assignment(self) -> Assignment | None:
        """Return what this host sends, as soon as that is decided; None if it is the only one."""
        ...

    def publish_wait(self, nodeid: str, why: str, seconds: float) -> None:
        """Say why a cell takes longer."""
        ...

    def collected(
        self,
        selection: Selection,
        settings: Settings,
        providers: Mapping[str, Provider],
        shared_dir: Path,
        suites: Mapping[str, Path],
    ) -> None:
        """Take what was collected, before anything runs.

        Args:
            selection: the cells of the items.
            settings: the session's.
            providers: of its targets.
            shared_dir: the run's folder on this machine.
            suites: the files that were read, by their names in rows.
        """
        ...

    def begin(self, session: pytest.Session, execution: Execution) -> None:
        """Pass on what is decided elsewhere from now on."""
        ...

    def report(self, payload: ReportPayload, n_unreported: int, spent_usd: float | None) -> object:
        """Return what a report carries for a payload."""
        ...

    def end(
        self,
        unreported: Sequence[ReportPayload],
        diagnoses: Mapping[str, JsonObject],
        n_lost: int,
        spent_usd: float | None,
    ) -> Sequence[ReportPayload]:
        """Take what no report contains; return what is to be recorded in this process."""
        ...


class Alone:
    """Coordinates a plain session: it runs all its items, in their order, and records them."""

    given: WorkerInput | None = None

    def membership(self, providers: Mapping[str, Provider]) -> Membership:  # noqa: ARG002 - for workers
        """Return that no other process uses the asker."""
        return Membership()

    def assignment(self) -> Assignment | None:
        """Return None: one process sends everything."""
        return None

    def publish_wait(self, nodeid: str, why: str, seconds: float) -> None:
        """Do nothing: the process that shows it has received it."""

    def collected(self, *args: object) -> None:
        """Do nothing: the run starts in this process."""

    def begin(self, *args: object) -> None:
        """Do nothing: everything is decided in this process."""

    def report(
        self,
        payload: ReportPayload,
        n_unreported: int,  # noqa: ARG002 - for a controller
        spent_usd: float | None,  # noqa: ARG002
    ) -> object:
        """Return the payload itself."""
        return payload

    def end(
        self,
        unreported: Sequence[ReportPayload],
        diagnoses: Mapping[str, JsonObject],  # noqa: ARG002 - for a controller
        n_lost: int,  # noqa: ARG002
        spent_usd: float | None,  # noqa: ARG002
    ) -> Sequence[ReportPayload]:
        """Return all of it: it is recorded here."""
        return unreported
