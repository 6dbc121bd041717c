"""Compares targets whose figures were shared, prompt by prompt, without a text of any prompt or reply."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.stats.intervals import mean_difference_95
from pytest_openclaw.stats.significance import LEVEL, sign_flip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.intervals import Interval


class PromptCounts(NamedTuple):
    """A target's cells of one prompt: judged and passed ones, tool cells and right ones."""

    n: int
    n_passed: int
    n_calls: int
    n_right: int


@dataclass(frozen=True, kw_only=True)
class SharedResult:
    """A target in a result file.

    Attributes:
        name: its label.
        source: the file, for messages.
        figures: its entry in the file.
        conditions: of the measurement, by name: what has to be equal for a comparison.
        prompts: its counts by the prompt's digest.
        clusters: of each digest, the first digest of its cluster: wordings of one task resemble each other.
    """

    name: str
    source: str
    figures: JsonObject
    conditions: Mapping[str, object]
    prompts: Mapping[str, PromptCounts]
    clusters: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class SharedDifference:
    """How a target differs from another one in right tool calls, over the prompts that both were asked.

    Attributes:
        n_prompts: with tool cells in both.
        difference: of the rates of right calls, -1 to 1, each prompt counting alike; None without a prompt.
        interval_95: of it, over clusters; None without a prompt.
        p: two-sided, of the sign-flip test over clusters, `significance.sign_flip`.
        other_conditions: names of conditions that are not equal.
    """

    n_prompts: int
    difference: float | None
    interval_95: Interval | None
    p: float
    other_conditions: Sequence[str]


def compare_shared(one: SharedResult, other: SharedResult) -> SharedDifference:
    """Return how `one` differs from `other`."""
    shifts = _shifts(one, other)
    units = [(float(sum(values)), float(len(values))) for values in shifts.values()]
    n_prompts = sum(map(len, shifts.values()))
    return SharedDifference(
        n_prompts=n_prompts,
        difference=sum(total for total, _ in units) / n_prompts if n_prompts else None,
        interval_95=mean_difference_95(units),
        p=_test(shifts)[1],
        other_conditions=_other_conditions(one, other),
    )


def is_comparable(one: SharedResult, other: SharedResult) -> bool:
    """Whether both were asked a common tool prompt under the same conditions."""
    return not _other_conditions(one, other) and bool(_shifts(one, other))


def leaders(results: Sequence[SharedResult]) -> set[int]:
    """Return the places of those that no other one is shown to be better than in right tool calls.

    As in `best.best_of`: a target is left out if another one did better on the prompts that both were asked,
    with a one-sided p below 0.05 / (targets - 1), so that the true best is left out in at most 5 % of cases.
    Targets under other conditions are not compared.
    """
    level = LEVEL / max(1, len(results) - 1)
    worse = set()
    for (_, better), (place, one) in permutations(enumerate(results), 2):
        if not is_comparable(better, one):
            continue
        sign, p = _test(_shifts(better, one))
        if sign > 0 and p / 2 < level:
            worse.add(place)
    return set(range(len(results))) - worse


def _other_conditions(one: SharedResult, other: SharedResult) -> list[str]:
    names = {*one.conditions, *other.conditions}
    return sorted(name for name in names if one.conditions.get(name) != other.conditions.get(name))


def _shifts(one: SharedResult, other: SharedResult) -> Mapping[str, list[Fraction]]:
    """Return by cluster how much larger one's rate of right calls is, prompt by prompt."""
    shifts: dict[str, list[Fraction]] = defaultdict(list)
    for digest in one.prompts.keys() & other.prompts.keys():
        mine, its = one.prompts[digest], other.prompts[digest]
        if mine.n_calls and its.n_calls:
            rates = Fraction(mine.n_right, mine.n_calls), Fraction(its.n_right, its.n_calls)
            shifts[one.clusters[digest]].append(rates[0] - rates[1])
    return shifts


def _test(shifts: Mapping[str, Sequence[Fraction]]) -> tuple[int, float]:
    totals = [sum(values, Fraction()) for values in shifts.values()]
    scale = lcm(*(total.denominator for total in totals))
    found = sign_flip([int(total * scale) for total in totals])
    return found.sign, found.p
