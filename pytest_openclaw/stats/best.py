"""Which targets of a run may be the best with tools, as far as its evidence shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from pytest_openclaw.stats.groups import headline
from pytest_openclaw.stats.rates import cluster_of
from pytest_openclaw.stats.significance import LEVEL, sign_flip
from pytest_openclaw.stats.tool_use import calls_of, did_right

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.significance import Difference
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import Target

Outcomes = dict[tuple[str, str], tuple[tuple[str, str], dict[int, bool]]]
"""By suite and prompt: the cluster of the prompt, and whether each of its repeats ended right."""


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A target as `best_among` compares it.

    Attributes:
        p50_ms: the median latency; None is slower than all.
    """

    label: str
    outcomes: Outcomes
    p50_ms: float | None


@dataclass(frozen=True, kw_only=True)
class Best:
    """The targets that no other one is shown to be better than; the true best is among them in 95 % of runs.

    Attributes:
        n_targets: that were compared.
        targets: labels of those not shown to be worse than the best, fastest first.
    """

    n_targets: int
    targets: Sequence[str]

    @property
    def fastest(self) -> str:
        """The one with the lowest median latency."""
        return self.targets[0]


def best_of(groups: Sequence[Group], records: Mapping[Target, Sequence[Record]]) -> Best | None:
    """Compare the tool use of all pairs of targets; None if fewer than two have answered tool cells.

    Unsafe targets, and those that are not to be trusted, are not compared: no rate makes them the best.

    A target is left out if any other one did better in the cells that both answered, and a paired sign-flip
    test over prompts has a one-sided p below 0.05 / (targets - 1). The true best is compared with so many
    others, so that it is left out in at most 5 % of runs (Bonferroni).

    Args:
        groups: of the targets, of each the most realistic surface; those with evidence of calls on the wire
            are compared if there are any.
        records: the rows of each.
    """
    groups = headline(groups)
    evidence = "native" if any(group.tool_use.evidence == "native" for group in groups) else "text"
    compared = [
        group
        for group in groups
        if group.tool_use.n
        and group.tool_use.evidence == evidence
        and group.recommendation.kind not in ("unsafe", "not_trusted")
    ]
    return best_among(
        [
            Rival(
                label=group.target.label,
                outcomes=outcomes_of(calls_of(records.get(group.target, ()), group.tool_use), did_right),
                p50_ms=group.latency_ms["p50"],
            )
            for group in compared
        ]
    )


def best_among(rivals: Sequence[Rival]) -> Best | None:
    """Return those that no other one is shown to be better than, see `best_of`; None of fewer than two."""
    if len(rivals) < 2:
        return None
    level = LEVEL / (len(rivals) - 1)
    worse = set()
    for one, other in combinations(rivals, 2):
        found = _compared(one.outcomes, other.outcomes)
        if found.sign and found.p / 2 < level:
            worse.add(other.label if found.sign > 0 else one.label)
    kept = sorted((rival for rival in rivals if rival.label not in worse), key=_fastest_first)
    return Best(n_targets=len(rivals), targets=[rival.label for rival in kept])


def outcomes_of(records: Iterable[Record], is_right: Callable[[Record], bool]) -> Outcomes:
    """Return of each prompt the one whose repeats it belongs to, and whether its cells ended right."""
    outcomes: Outcomes = {}
    for record in records:
        _, repeats = outcomes.setdefault((record.suite, record.prompt_id), (cluster_of(record), {}))
        repeats[record.repeat] = is_right(record)
    return outcomes


def _compared(one: Outcomes, other: Outcomes) -> Difference:
    """Test whether the first did better; the other way round only the sign is another."""
    totals: Counter[tuple[str, str]] = Counter()
    for prompt in one.keys() & other.keys():
        cluster, repeats = one[prompt]
        others = other[prompt][1]
        for repeat in repeats.keys() & others.keys():
            totals[cluster] += repeats[repeat] - others[repeat]
    return sign_flip([*totals.values()])


def _fastest_first(rival: Rival) -> tuple[float, str]:
    return float("inf") if rival.p50_ms is None else rival.p50_ms, rival.label
