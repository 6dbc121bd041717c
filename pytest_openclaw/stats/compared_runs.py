"""Two runs → the changes from baseline to candidate, prompt by prompt.

A baseline and a candidate are compared by the cells that both have answered. Prompts are taken as a sample of
what a user asks, so a prompt counts once, however often it was repeated.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_openclaw.stats.intervals import Interval
from pytest_openclaw.stats.outcome_changes import OutcomeChange, outcome_changes
from pytest_openclaw.stats.pairing import SetAside, left_over, pair_cells
from pytest_openclaw.stats.ratio_changes import MEASURES, RatioChange, ratio_changes
from pytest_openclaw.stats.verdict_changes import VerdictChange, verdict_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.pairing import Obstacles, Pair, Paired
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import Target


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One target in two runs.

    Attributes:
        target: its label in the candidate; `base_target` that in the baseline.
        outcomes: how tool use ended, as far as it ended so in either run.
        notes: conditions that differ, and change the ratios too.
    """

    target: str
    base_target: str
    verdicts: VerdictChange
    latency: RatioChange | None
    ttft: RatioChange | None
    output_tokens: RatioChange | None
    cost: RatioChange | None
    outcomes: tuple[OutcomeChange, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ratios(self) -> dict[str, RatioChange]:
        """Those that there are, by what was measured."""
        measured = {name: getattr(self, name) for name in MEASURES}
        return {name: ratio for name, ratio in measured.items() if ratio}


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """The comparison of two runs: one entry per target, and the cells that are left out.

    Attributes:
        baseline: its run id.
        notes: what is true of all targets.
    """

    baseline: str
    targets: tuple[Comparison, ...]
    set_aside: tuple[SetAside, ...]
    notes: tuple[str, ...] = ()

    def of(self, target: str) -> Comparison | None:
        """Return the comparison of a target, by its label; None if it was not compared."""
        return next((one for one in self.targets if one.target == target), None)


def compare_records(
    base: Sequence[Record],
    candidate: Sequence[Record],
    targets: Sequence[tuple[Target, Target]],
    obstacles: Obstacles,
    *,
    baseline: str,
    unfinished: frozenset[Target] = frozenset(),
    notes: Sequence[str] = (),
    pool: Sequence[Sequence[Paired]] = (),
) -> ComparedRuns:
    """Compare two runs by the cells that both have answered.

    Verdicts are compared with all baselines together, everything else with the first: times of one run have
    one distribution, and the mean of several another.

    Args:
        base: rows of the baseline; texts may be left out.
        candidate: rows of the candidate.
        targets: of both runs, those to be compared.
        obstacles: what must not be compared.
        baseline: the run id of the baseline.
        unfinished: the candidate's targets of which not every cell was asked.
        notes: what is true of all targets.
        pool: the candidate's cells with those of further baselines, of each the same targets.
    """
    first = pair_cells(base, candidate, targets, obstacles, unfinished)
    apart = [one for target in first for one in target.set_aside]
    apart += left_over(base, (one for one, _ in targets), "only_in_baseline")
    apart += left_over(candidate, (other for _, other in targets), "only_in_candidate")
    ratios = {name: ratio_changes(first, measure) for name, measure in MEASURES.items()}
    verdicts = verdict_changes([*zip(first, *pool, strict=True)])
    outcomes = outcome_changes(first)
    return ComparedRuns(
        baseline=baseline,
        targets=tuple(
            Comparison(
                target=one.candidate.label,
                base_target=one.base.label,
                verdicts=verdicts[place],
                **{name: found[place] for name, found in ratios.items()},
                outcomes=outcomes[place],
                notes=tuple(_conditions(one.pairs)),
            )
            for place, one in enumerate(first)
        ),
        set_aside=tuple(apart),
        notes=tuple(notes),
    )


def comparison_from_json(data: Mapping[str, Any]) -> ComparedRuns:
    """Parse the comparison in `summary.json`.

    Raises:
        KeyError, TypeError: it is not as a run writes it.
    """
    return ComparedRuns(
        baseline=data["baseline"],
        targets=tuple(_target_from_json(one) for one in data["targets"]),
        set_aside=tuple(SetAside(**{**one, "prompts": tuple(one["prompts"])}) for one in data["set_aside"]),
        notes=tuple(data["notes"]),
    )


def _target_from_json(data: Mapping[str, Any]) -> Comparison:
    ratios = {name: data[name] and RatioChange(**_with_intervals(data[name])) for name in MEASURES}
    values = {
        **ratios,
        "verdicts": VerdictChange(**_with_intervals(data["verdicts"])),
        "outcomes": tuple(OutcomeChange(**one) for one in data["outcomes"]),
        "notes": tuple(data["notes"]),
    }
    return Comparison(**{**data, **values})


def _with_intervals(data: Mapping[str, Any]) -> dict[str, Any]:
    names = ("interval_95", "range_95", "range_if_well", "range_if_ill")
    return {**data, **{name: data[name] and Interval(**data[name]) for name in names if name in data}}


def _conditions(pairs: Sequence[Pair]) -> Iterator[str]:
    """Say under which other conditions the candidate was measured."""
    for what, name in (("host", "host"), ("requests in flight", "in_flight")):
        usual = _usual(getattr(pair.base, name) for pair in pairs)
        now = _usual(getattr(pair.candidate, name) for pair in pairs)
        if None not in (usual, now) and usual != now:
            yield f"{what}: {usual} -> {now}"


def _usual(values: Iterable[object]) -> str | None:
    """Return the most frequent value; of equally frequent ones the first by name."""
    counted = Counter(str(value) for value in values if value is not None)
    return min(counted, key=lambda value: (-counted[value], value), default=None)
