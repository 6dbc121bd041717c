"""The difference that a number of prompts can detect, and the prompts needed to detect a difference.

The model: a share of the prompts, which passed whenever they were asked, fails now whenever it is asked.
Every other prompt passes as often as before, and two askings of it differ with the rate `flips`, which is
what a model's own unsteadiness makes of a benchmark. Seen is a loss that `significance.sign_flip` finds.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from math import comb, exp, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from pytest_openclaw.stats.intervals import binomial
from pytest_openclaw.stats.significance import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator

POWER = 0.8
MOST_PROMPTS = 100_000
MOST_EXACT = 400
"""Prompts up to which one repeat is computed exactly."""
STEPS = 1000
_NORMAL = NormalDist()
_NEGLIGIBLE = 1e-12


@lru_cache(maxsize=4096)
def power(n_prompts: int, repeats: int, flips: float, loss: float, *, n_targets: int = 1) -> float:
    """Return the probability that a loss is detected.

    For one repeat exact: prompts that turned worse, turned better and stayed are trinomial, and the test is
    McNemar's (compare Connor 1987, Biometrics 43, which approximates this). For more, the number of prompts
    that fail now is binomial and what the others add is normal; half a step is taken off for the test being
    one of whole numbers. The simulation in the tests says how well that fits.

    Args:
        n_prompts: 1 or more.
        repeats: cells a prompt, on each side.
        flips: 0 to 1, how often two cells of an unchanged prompt differ.
        loss: 0 to 1, the share of prompts that fail now.
        n_targets: so many are compared, and Holm's correction asks each for more.
    """
    level = LEVEL / n_targets
    if repeats == 1 and n_prompts <= MOST_EXACT:
        return _exact(n_prompts, flips, loss, level)
    return _approximate(n_prompts, repeats, flips, loss, level)


@lru_cache(maxsize=4096)
def smallest_loss(
    n_prompts: int, repeats: int, flips: float, *, wanted: float = POWER, n_targets: int = 1
) -> float | None:
    """Return the smallest loss, in steps of a thousandth, that is seen so often; None if none is."""

    def seen(step: int) -> bool:
        return power(n_prompts, repeats, flips, step / STEPS, n_targets=n_targets) >= wanted

    step = bisect_left(range(STEPS + 1), True, key=seen) if n_prompts else STEPS + 1
    return step / STEPS if step <= STEPS else None


def fewest_prompts(
    repeats: int, flips: float, loss: float, *, wanted: float = POWER, n_targets: int = 1
) -> int | None:
    """Return how many prompts see a loss so often; None if over `MOST_PROMPTS`."""

    def seen(n_prompts: int) -> bool:
        return power(n_prompts, repeats, flips, loss, n_targets=n_targets) >= wanted

    top = 1
    while not seen(top):
        top *= 2
        if top > MOST_PROMPTS:
            return None
    return bisect_left(range(top + 1), True, lo=1, key=seen)


def _exact(n_prompts: int, flips: float, loss: float, level: float) -> float:
    worse, better = loss + (1 - loss) * flips / 2, (1 - loss) * flips / 2
    differing = worse + better
    if not differing:
        return 0.0
    return sum(
        share * _upper(n, fewest_worse(n, level), worse / differing)
        for n, share in _binomial(n_prompts, differing)
    )


@lru_cache(maxsize=4096)
def fewest_worse(n_differing: int, level: float = LEVEL) -> int:
    """Return how many of the differing prompts must be worse to be seen; more than all if none will do."""
    tail, fewest = 0, n_differing + 1
    while fewest > 0 and 2 * (tail := tail + comb(n_differing, fewest - 1)) < level * 2**n_differing:
        fewest -= 1
    return fewest


def _approximate(n_prompts: int, repeats: int, flips: float, loss: float, level: float) -> float:
    quantile = _NORMAL.inv_cdf(1 - level / 2)
    seen = 0.0
    for n_failing, share in _binomial(n_prompts, loss):
        others = n_prompts - n_failing
        noise = others * flips / repeats
        # Few prompts that flip leave gaps between the sums of the others, which are as wide as a prompt.
        gaps = exp(-others * min(1.0, 2 * flips) * (1 - comb(2 * repeats, repeats) / 4**repeats) / 2)
        step = 1 / repeats + (1 - 1 / repeats) * gaps
        beyond = n_failing - step - quantile * sqrt(n_failing + noise)
        seen += share * (_NORMAL.cdf(beyond / sqrt(noise)) if noise else float(beyond >= 0))
    return seen


def _upper(n: int, least: int, rate: float) -> float:
    return sum(share for k, share in _binomial(n, rate) if k >= least)


def _binomial(n: int, rate: float) -> Iterator[tuple[int, float]]:
    """Yield how often `k` of `n` happens, without what never does."""
    if rate <= 0 or rate >= 1:
        yield (n if rate >= 1 else 0), 1.0
        return
    spread = 8 * sqrt(n * rate * (1 - rate)) + 8
    for k in range(max(0, int(n * rate - spread)), min(n, int(n * rate + spread)) + 1):
        share = binomial(n, k, rate)
        if share > _NEGLIGIBLE:
            yield k, share
