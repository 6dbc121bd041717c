"""Times and tokens of earlier cells → a forecast for the same cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import CellKey


@dataclass(frozen=True, kw_only=True)
class Typical:
    """What a cell may be expected to take; None where nothing is known.

    Attributes:
        e2e_ms: of all its turns.
        input_tokens, cached_tokens, output_tokens: as in rows.
        run_id: of the newest run that has rows of it; None if none has.
    """

    e2e_ms: float | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    run_id: str | None = None


@dataclass
class _Before:
    """The rows of something, all of the newest run that has any."""

    run_id: str
    records: list[Record] = field(default_factory=list)

    def middle(self, name: str) -> float | None:
        values = [value for record in self.records if (value := getattr(record, name)) is not None]
        return median(values) if values else None


class PastAnswers:
    """The answered rows of earlier runs.

    A cell takes what its prompt took on its target, in the median. If it was not asked there, time and output
    are the target's, and the input is the prompt's on others; a target that was never asked has no time.

    Args:
        runs: each run's id and rows, newest first.
    """

    def __init__(self, runs: Iterable[tuple[str, Sequence[Record]]]) -> None:
        # By cell without its repeat, by target, and by prompt.
        self._known: dict[object, _Before] = {}
        for run_id, records in runs:
            for record in records:
                if record.availability_status == "ok":
                    for key in _keys(record.key):
                        before = self._known.setdefault(key, _Before(run_id))
                        if before.run_id == run_id:
                            before.records.append(record)

    def typical(self, key: CellKey) -> Typical:
        """Return what a cell may be expected to take."""
        cell, target, prompt = map(self._known.get, _keys(key))
        known = [before for before in (cell, target, prompt) if before is not None]
        return Typical(
            e2e_ms=_first("e2e_ms", cell, target),
            input_tokens=_whole(_first("input_tokens", cell, prompt, target)),
            cached_tokens=_whole(_first("cached_tokens", cell)),
            output_tokens=_whole(_first("output_tokens", cell, target, prompt)),
            run_id=known[0].run_id if known else None,
        )


def _keys(key: CellKey) -> tuple[object, ...]:
    prompt = (key.suite, key.prompt_id)
    return (*prompt, key.target), key.target, prompt


def _first(name: str, *befores: _Before | None) -> float | None:
    """Return the middle of the first that knows any."""
    for before in befores:
        if before is not None and (middle := before.middle(name)) is not None:
            return middle
    return None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


# --- the forecast -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Sum:
    """A sum over cells of which only some may be known.

    Attributes:
        n_known: of `n` cells.
    """

    value: float = 0.0
    n_known: int = 0
    n: int = 0

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Sum:
        """Add up what is known."""
        given = [*values]
        known = [value for value in given if value is not None]
        return cls(value=sum(known), n_known=len(known), n=len(given))

    @property
    def is_whole(self) -> bool:
        """Whether every cell's part is known."""
        return self.n_known == self.n


@dataclass(frozen=True, kw_only=True)
class Line:
    """The forecast for one target, or for all.

    Attributes:
        label: the target's.
        n_cells: that would be asked.
        n_calls: at most; a scripted exchange may end before its last turn.
        seconds: with the requests in flight that the endpoint allows.
        endpoint: of the target; where several share one, their times add up.
    """

    label: str
    n_cells: int
    n_calls: int
    input_tokens: Sum
    output_tokens: Sum
    seconds: Sum
    usd: Sum
    endpoint: str = ""


def total(lines: Sequence[Line]) -> Line:
    """Return the sum of all targets; endpoints go on side by side."""
    by_endpoint: dict[str, list[Line]] = {}
    for line in lines:
        by_endpoint.setdefault(line.endpoint, []).append(line)
    seconds = _joined(line.seconds for line in lines)
    longest = max(
        (sum(line.seconds.value for line in endpoint) for endpoint in by_endpoint.values()), default=0.0
    )
    return Line(
        label="all",
        n_cells=sum(line.n_cells for line in lines),
        n_calls=sum(line.n_calls for line in lines),
        input_tokens=_joined(line.input_tokens for line in lines),
        output_tokens=_joined(line.output_tokens for line in lines),
        seconds=Sum(value=longest, n_known=seconds.n_known, n=seconds.n),
        usd=_joined(line.usd for line in lines),
    )


def _joined(sums: Iterable[Sum]) -> Sum:
    parts = [*sums]
    return Sum(
        value=sum(part.value for part in parts),
        n_known=sum(part.n_known for part in parts),
        n=sum(part.n for part in parts),
    )


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The forecast for a run.

    Attributes:
        lines: one a target, in their order.
        based_on: cells by the run that has rows of them, runs in their order; the others are in none.
        budget_usd: at which it would stop.
        notes: what else is to be known of it.
        next_command: what to run so that more is known; empty if nothing helps.
    """

    lines: Sequence[Line]
    based_on: Mapping[str, int] = field(default_factory=dict)
    budget_usd: float | None = None
    notes: Sequence[str] = ()
    next_command: str = ""
