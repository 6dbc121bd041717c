"""Whether a difference between two runs can be chance: exact tests over prompts, and Holm's correction."""

from __future__ import annotations

from itertools import pairwise
from math import comb, gcd, lcm, log2, prod, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


LEVEL = 0.05
"""A two-sided p below this, after Holm's correction, is a difference."""
MOST_EXACT_BITS = 2**26
"""Beyond this, some ten thousand prompts that differ, the normal distribution is as good as the exact one."""
_NORMAL = NormalDist()


class Difference(NamedTuple):
    """What a test found: the sign of the difference, 0 for none, and its two-sided p."""

    sign: int
    p: float


def sign_flip(totals: Sequence[int]) -> Difference:
    """Test whether the differences of prompts are centred at zero.

    The exact randomisation test: where nothing has changed, each prompt's difference could as well have had
    the other sign (Fisher 1935, "The Design of Experiments", section 21; Pitman 1937, "Significance tests
    which may be applied to samples from any populations", Suppl. J. Royal Stat. Soc. 4). With one cell a
    prompt every difference is -1, 0 or 1, and this is the exact McNemar test (1947, Psychometrika 12). With
    several it accounts for cells of one prompt resembling each other, because a prompt's sign is flipped
    whole.

    Args:
        totals: of each prompt, how many more of its cells passed in the candidate than in the baseline.
    """
    return exchange([(total, 0) for total in totals])


def exchange(prompts: Sequence[Sequence[int]]) -> Difference:
    """Test whether a candidate passes more or fewer cells than several baselines.

    Where nothing has changed, any of the runs could as well have been the candidate, prompt by prompt.
    With one baseline this is `sign_flip`. Whole runs are exchanged and never single cells, because the cells
    of one prompt in one run may end alike.

    How many choices lead to which sum is counted for all sums at once, in one whole number: each sum has a
    place of its bits that is wide enough for all choices, so that a shift moves every count to another sum.

    Args:
        prompts: of each, how many cells passed in the candidate, then in each baseline with the same cells.
    """
    common = lcm(*(len(passed) - 1 for passed in prompts))
    # By how much each run, if it were the candidate, would differ from the mean of the others.
    shifts = [
        [(len(passed) * one - sum(passed)) * (common // (len(passed) - 1)) for one in passed]
        for passed in prompts
        if len(set(passed)) > 1
    ]
    found = sum(each[0] for each in shifts)
    if not found:
        return Difference(0, 1.0)
    sign = 1 if found > 0 else -1
    steps = [sorted(sign * one for one in each) for each in shifts]
    unit = gcd(*(b - a for each in steps for a, b in pairwise(each)))
    lowest = sum(each[0] for each in steps)
    least = (abs(found) - lowest) // unit
    powers = [[(one - each[0]) // unit for one in each] for each in steps]
    bits = int(sum(log2(len(each)) for each in powers)) + 2
    if bits * sum(each[-1] for each in powers) > MOST_EXACT_BITS:
        spread = sqrt(sum(sum(one**2 for one in each) / len(each) for each in shifts))
        return Difference(sign, min(1.0, 2 * (1 - _NORMAL.cdf((abs(found) - unit / 2) / spread))))
    choices = 1
    for each in powers:
        choices = sum(choices << (power * bits) for power in each)
    total = prod(len(each) for each in powers)
    # How many have a sum of `least` or more: the remainder by all ones adds up the places, as the remainder
    # by nine does with digits.
    n_extreme = (choices >> (least * bits)) % ((1 << bits) - 1)
    return Difference(sign, min(1.0, 2 * (n_extreme / total)))


def sign_test(n_up: int, n_down: int) -> Difference:
    """Test whether as many prompts went up as down; those that stayed do not count.

    Exact, by the binomial distribution: Dixon & Mood (1946), "The statistical sign test", JASA 41.
    """
    n, most = n_up + n_down, max(n_up, n_down)
    if n_up == n_down:
        return Difference(0, 1.0)
    if n > 1000:
        tail = 1 - _NORMAL.cdf((2 * most - n - 1) / sqrt(n))
    else:
        tail = sum(comb(n, k) for k in range(most, n + 1)) / 2**n
    return Difference(1 if n_up > n_down else -1, min(1.0, 2 * tail))


class Tested(NamedTuple):
    """A difference among several that are looked at together; without a test, none."""

    sign: int = 0
    p: float = 1.0
    p_adjusted: float = 1.0

    @property
    def significant(self) -> int:
        """The sign of a difference that is more than chance; 0 otherwise."""
        return self.sign if self.p_adjusted < LEVEL else 0


def adjusted_together(found: Sequence[Difference | None]) -> list[Tested]:
    """Adjust each two-sided p for all tests; None, where there was nothing to test, is not a test.

    Holm (1979), "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6, for each
    direction separately: where nothing has changed, any of them is below `LEVEL` and negative in at most
    half of `LEVEL` of all cases, and the same holds for positive ones.
    """
    tests = [one for one in found if one]
    by_sign = {sign: _holm([one.p / 2 if one.sign == sign else 1.0 for one in tests]) for sign in (-1, 1)}
    ps = iter([min(1.0, 2 * by_sign[one.sign][n]) if one.sign else 1.0 for n, one in enumerate(tests)])
    return [Tested(one.sign, one.p, next(ps)) if one else Tested() for one in found]


def _holm(ps: Sequence[float]) -> list[float]:
    largest = 0.0
    result = [0.0] * len(ps)
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        result[place] = largest
    return result
