"""Two runs → pairs of cells that may be compared, and those that may not, with the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import Target

Reason = Literal[
    "only_in_baseline",
    "only_in_candidate",
    "asked_differently",
    "on_another_surface",
    "served_differently",
    "prompt_changed",
    "validator_changed",
    "not_answered_in_baseline",
    "not_answered_in_candidate",
]

PromptKey = tuple[str, str]
"""Suite and prompt id."""
_Place = tuple[str, str, int]


class Obstacle(NamedTuple):
    """Why cells may not be compared: the reason, and what exactly differs."""

    reason: Reason
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Obstacles:
    """Differences between two runs other than their rows.

    Attributes:
        of_targets: by the candidate's target.
        of_prompts: by suite and id.
        with_answering_model: whether another answering model, as the server reports it, counts as one.
    """

    of_targets: Mapping[Target, Obstacle] = field(default_factory=dict)
    of_prompts: Mapping[PromptKey, Obstacle] = field(default_factory=dict)
    with_answering_model: bool = True


class Pair(NamedTuple):
    """One cell in both runs."""

    base: Record
    candidate: Record


@dataclass(frozen=True, kw_only=True)
class SetAside:
    """Cells of one target that are not compared.

    Attributes:
        target: its label, in the run that has these cells.
        prompts: their ids, each once, in order.
    """

    target: str
    reason: Reason
    detail: str
    n_cells: int
    prompts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Paired:
    """The cells of one target in both runs.

    Attributes:
        base, candidate: the target, which may be another one in the candidate.
        pairs: answered in both.
        open: the baseline's rows of cells that the candidate has not answered, or may not have asked yet.
    """

    base: Target
    candidate: Target
    pairs: tuple[Pair, ...]
    open: tuple[Record, ...]
    set_aside: tuple[SetAside, ...]


def pair_cells(
    base: Sequence[Record],
    candidate: Sequence[Record],
    targets: Iterable[tuple[Target, Target]],
    obstacles: Obstacles,
    unfinished: frozenset[Target] = frozenset(),
) -> tuple[Paired, ...]:
    """Pair cells by suite, prompt id, target and repeat; of a cell the last row counts.

    Args:
        base: rows of the baseline.
        candidate: rows of the candidate.
        targets: of both, those to be compared.
        obstacles: what must not be compared.
        unfinished: the candidate's targets of which not every cell was asked.
    """
    of_base, of_candidate = _by_target(base), _by_target(candidate)
    return tuple(
        _pair_target(
            one,
            other,
            of_base.get(one, {}),
            of_candidate.get(other, {}),
            obstacles,
            is_unfinished=other in unfinished,
        )
        for one, other in targets
    )


def left_over(records: Iterable[Record], compared: Iterable[Target], reason: Reason) -> list[SetAside]:
    """Return the targets that the other run does not have."""
    known = set(compared)
    return [
        _set_aside(target, Obstacle(reason), list(rows.values()))
        for target, rows in _by_target(records).items()
        if target not in known
    ]


def _by_target(records: Iterable[Record]) -> dict[Target, dict[_Place, Record]]:
    found: dict[Target, dict[_Place, Record]] = {}
    for record in records:
        place = (record.suite, record.prompt_id, record.repeat)
        found.setdefault(record.target, {})[place] = record
    return found


def _pair_target(
    one: Target,
    other: Target,
    base: Mapping[_Place, Record],
    candidate: Mapping[_Place, Record],
    obstacles: Obstacles,
    *,
    is_unfinished: bool,
) -> Paired:
    pairs: list[Pair] = []
    still_open: list[Record] = []
    apart: dict[Obstacle, list[Record]] = {}
    for place in dict.fromkeys([*base, *candidate]):
        before, after = base.get(place), candidate.get(place)
        record = before or after
        assert record is not None, "a place is of one of the two"
        found = obstacles.of_targets.get(other) or obstacles.of_prompts.get(place[:2])
        if before is None or after is None:
            missing: Reason = "only_in_candidate" if before is None else "only_in_baseline"
            apart.setdefault(Obstacle(missing), []).append(record)
            if before and is_unfinished and not found and _is_answered(before):
                still_open.append(before)
        elif found := found or _obstacle(before, after, obstacles):
            apart.setdefault(found, []).append(after)
            if found.reason == "not_answered_in_candidate":
                still_open.append(before)
        else:
            pairs.append(Pair(before, after))
    return Paired(
        base=one,
        candidate=other,
        pairs=tuple(pairs),
        open=tuple(still_open),
        set_aside=tuple(
            _set_aside(one if obstacle.reason == "only_in_baseline" else other, obstacle, rows)
            for obstacle, rows in apart.items()
        ),
    )


def _obstacle(base: Record, candidate: Record, obstacles: Obstacles) -> Obstacle | None:
    if not _is_answered(base):
        return Obstacle("not_answered_in_baseline")
    if not _is_answered(candidate):
        return Obstacle("not_answered_in_candidate")
    models = base.effective_model, candidate.effective_model
    if obstacles.with_answering_model and all(models) and models[0] != models[1]:
        return Obstacle("served_differently", f"answered by {models[0]} -> {models[1]}")
    return None


def _is_answered(record: Record) -> bool:
    return record.availability_status == "ok"


def _set_aside(target: Target, obstacle: Obstacle, records: Sequence[Record]) -> SetAside:
    return SetAside(
        target=target.label,
        reason=obstacle.reason,
        detail=obstacle.detail,
        n_cells=len(records),
        prompts=tuple(Counter(record.prompt_id for record in records)),
    )
