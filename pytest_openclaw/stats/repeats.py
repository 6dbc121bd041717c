"""Results of repeated prompts: the chance that at least one passes, that all pass, and which prompts flip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, fsum
from operator import attrgetter
from statistics import fmean, median_low
from typing import TYPE_CHECKING

from pytest_openclaw.stats.intervals import Cluster, Interval, clustered_95, wilson_95

if TYPE_CHECKING:
    from pytest_openclaw.values.rows import Record

MOST_FLAKY = 5
_ending_of = attrgetter(
    "success", "objective_pass", "violation", "tool_outcome", "tool_use_success", "tool_calls",
    "tool_call_count", "output_tokens", "reasoning_tokens", "finish_reason",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PassAt:
    """What `k` repeats come to, averaged over the prompts that have so many, with 95 % intervals.

    Attributes:
        pass_at_k: the chance that at least one of `k` passes.
        pass_hat_k: the chance that all of `k` pass.
        n_prompts: prompts with at least `k` judged repeats, and at least two.
    """

    k: int
    pass_at_k: float
    pass_at_k_interval_95: Interval | None
    pass_hat_k: float
    pass_hat_k_interval_95: Interval | None
    n_prompts: int


@dataclass(frozen=True, kw_only=True)
class RepeatedPrompt:
    """A prompt that was asked more than once.

    Attributes:
        n: its judged repeats.
        pass_at_k, pass_hat_k: for `k` from 1 to `n`: the chance that one of `k` passes, that all do.
    """

    suite: str
    prompt_id: str
    n: int
    n_success: int
    pass_at_k: Sequence[float]
    pass_hat_k: Sequence[float]

    @property
    def flips(self) -> float:
        """The share of its pairs of repeats that disagree; unbiased for two askings to come."""
        return self.n_success * (self.n - self.n_success) / comb(self.n, 2)


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """The prompts that were asked more than once.

    Attributes:
        k: from one repeat to as many as at least half of the prompts have.
        always_alike: every repeat of each prompt ended as the others did, so that only new prompts add
            evidence; see `always_alike`.
        flip_rate: the share of pairs of repeats of a prompt that disagree, averaged over prompts. It is twice
            the mean variance within a prompt: half the mean squared difference of all pairs is the unbiased
            variance (Hoeffding 1948, Ann. Math. Stat. 19).
        flakiest: those that flip most, at most five; none of those that always end alike.
        prompts: all of them, in order of their rows.
    """

    k: Sequence[PassAt]
    always_alike: bool
    flip_rate: float
    flip_interval_95: Interval | None
    flakiest: Sequence[RepeatedPrompt]
    prompts: Sequence[RepeatedPrompt]


def pass_at_k(n: int, n_success: int, k: int) -> float:
    """Return the chance that at least one of `k` repeats passes, unbiased, from `n` of which some did.

    `1 - C(n - c, k) / C(n, k)`: Chen et al. (2021), "Evaluating Large Language Models Trained on Code".

    Raises:
        ValueError: `k` is not from 1 to `n`, or `n_success` not from 0 to `n`.
    """
    _check(n, n_success, k)
    return 1 - comb(n - n_success, k) / comb(n, k)


def pass_hat_k(n: int, n_success: int, k: int) -> float:
    """Return the chance that all of `k` repeats pass, unbiased, from `n` of which some did.

    `C(c, k) / C(n, k)`: Yao et al. (2024), "τ-bench: A Benchmark for Tool-Agent-User Interaction".

    Raises:
        ValueError: `k` is not from 1 to `n`, or `n_success` not from 0 to `n`.
    """
    _check(n, n_success, k)
    return comb(n_success, k) / comb(n, k)


def repeats_of(judged: Iterable[Record]) -> Repeats | None:
    """Return the results of one target's repeats; None if no prompt has two."""
    judged = [*judged]
    counted: dict[tuple[str, str], list[bool]] = {}
    for record in judged:
        counted.setdefault((record.suite, record.prompt_id), []).append(record.objective_pass is True)
    prompts = [
        _repeated(suite, prompt_id, len(passed), sum(passed))
        for (suite, prompt_id), passed in counted.items()
        if len(passed) > 1
    ]
    if not prompts:
        return None
    flaky = sorted((prompt for prompt in prompts if prompt.flips), key=lambda p: p.flips, reverse=True)
    flips = [prompt.flips for prompt in prompts]
    return Repeats(
        k=[_pass_at(prompts, k) for k in range(1, median_low(prompt.n for prompt in prompts) + 1)],
        always_alike=always_alike(judged),
        flip_rate=fmean(flips),
        flip_interval_95=_interval_of_mean(flips),
        flakiest=flaky[:MOST_FLAKY],
        prompts=prompts,
    )


def always_alike(answered: Iterable[Record]) -> bool:
    """Whether repeats of one prompt never differ: in verdict, calls, violation and numbers of tokens.

    Such a server answers the same each time, whatever the seed. False if no prompt has two answers.
    """
    endings: dict[tuple[str, str], list[object]] = {}
    for record in answered:
        endings.setdefault((record.suite, record.prompt_id), []).append(_ending_of(record))
    repeated = [found for found in endings.values() if len(found) > 1]
    return bool(repeated) and all(one == found[0] for found in repeated for one in found)


def _repeated(suite: str, prompt_id: str, n: int, n_success: int) -> RepeatedPrompt:
    ks = range(1, n + 1)
    return RepeatedPrompt(
        suite=suite,
        prompt_id=prompt_id,
        n=n,
        n_success=n_success,
        pass_at_k=[pass_at_k(n, n_success, k) for k in ks],
        pass_hat_k=[pass_hat_k(n, n_success, k) for k in ks],
    )


def _pass_at(prompts: Sequence[RepeatedPrompt], k: int) -> PassAt:
    enough = [prompt for prompt in prompts if prompt.n >= k]
    at_least_one = [prompt.pass_at_k[k - 1] for prompt in enough]
    every = [prompt.pass_hat_k[k - 1] for prompt in enough]
    intervals = [_interval_of_mean(at_least_one), _interval_of_mean(every)]
    if k == 1 and len({prompt.n for prompt in enough}) == 1:
        # The plain rate, whose interval accounts for how much repeats resemble each other.
        intervals = 2 * [clustered_95([Cluster(prompt.n_success, prompt.n) for prompt in enough])]
    return PassAt(
        k=k,
        pass_at_k=fmean(at_least_one),
        pass_at_k_interval_95=intervals[0],
        pass_hat_k=fmean(every),
        pass_hat_k_interval_95=intervals[1],
        n_prompts=len(enough),
    )


def _interval_of_mean(shares: Sequence[float]) -> Interval | None:
    """Return Wilson's interval for as many prompts that each pass always or never, the largest variance."""
    return wilson_95(min(fsum(shares), len(shares)), len(shares))


def _check(n: int, n_success: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"{n} repeats say nothing about {k}")
    if not 0 <= n_success <= n:
        raise ValueError(f"{n_success} successes of {n} are impossible")
