"""Where the variance of a pass rate comes from: categories, prompts, wordings, repeats."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

from pytest_openclaw.stats.rates import cluster_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pytest_openclaw.types.records import Record

Level = Literal["category", "prompt", "wording", "repeat"]


@dataclass(frozen=True, kw_only=True)
class VariancePart:
    """One level's part of the variance of a cell.

    Attributes:
        n: so many categories, prompts, wordings or cells.
        variance: never negative, though the estimate may be. None where it is not separable from that of the
            level above, which then includes it: where each prompt has one wording, or none was repeated.
        of_rate: what it adds to the variance of the rate, `variance / n`; its root is a standard error.
    """

    level: Level
    n: int
    variance: float | None
    of_rate: float | None


def variance_parts(judged: Sequence[Record], passed: Callable[[Record], bool]) -> list[VariancePart]:
    """Return the parts, from the coarsest level to the finest; none without a cell.

    The mean product of two cells of one wording is the square of the rate plus the variances of category,
    prompt and wording; that of two cells that have the category alone in common has only the category's; and
    so on. Each difference of such means is a variance (Koch 1967, "A general approach to the estimation of
    variance components", Technometrics 9).

    Args:
        judged: cells that have a verdict.
        passed: whether one has passed.
    """
    values = [float(passed(record)) for record in judged]
    groups = _groups_of(judged)
    products = [_mean_product(coarse, fine, values) for coarse, fine in pairwise(groups)]
    means = [*products, _mean(values)]
    known = [depth for depth, mean in enumerate(means) if mean is not None]
    variances = {
        coarse: max(0.0, (means[fine] or 0.0) - (means[coarse] or 0.0)) for coarse, fine in pairwise(known)
    }
    parts = []
    for depth, level in enumerate(get_args(Level) if judged else ()):
        n, variance = len(set(groups[depth + 1])), variances.get(depth)
        of_rate = None if variance is None else variance / n
        parts.append(VariancePart(level=level, n=n, variance=variance, of_rate=of_rate))
    return parts


def _groups_of(judged: Sequence[Record]) -> list[Sequence[int]]:
    """Return the number of each cell's group by level: all, its category, prompt, wording, and itself."""
    groups: list[list[int]] = [[], [], []]
    numbers: list[dict[Hashable, int]] = [{}, {}, {}]
    for record in judged:
        group = 0
        names = (record.category or "", cluster_of(record), (record.suite, record.prompt_id))
        for level, known, name in zip(groups, numbers, names, strict=True):
            group = known.setdefault((group, name), len(known))
            level.append(group)
    return [[0] * len(judged), *groups, range(len(judged))]


def _mean_product(coarse: Sequence[int], fine: Sequence[int], values: Sequence[float]) -> float | None:
    """Return the mean product of pairs of a coarse group but different fine ones; None without such pairs."""
    total, n = _squares(coarse, values), _squares(coarse, [1.0] * len(values))
    total -= _squares(fine, values)
    n -= _squares(fine, [1.0] * len(values))
    return total / n if n else None


def _squares(groups: Sequence[int], values: Sequence[float]) -> float:
    """Return the sum of the squared sums of groups."""
    sums: dict[int, float] = {}
    for group, value in zip(groups, values, strict=True):
        sums[group] = sums.get(group, 0.0) + value
    return sum(one**2 for one in sums.values())


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
