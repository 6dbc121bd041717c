"""How times, tokens and money have changed: ratios of two runs, prompt by prompt."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median
from typing import TYPE_CHECKING

from pytest_openclaw.stats.percentiles import percentile_interval
from pytest_openclaw.stats.rates import cluster_of
from pytest_openclaw.stats.significance import LEVEL, Difference, adjusted, sign_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.pairing import Pair, Paired, PromptKey
    from pytest_openclaw.types.records import Record

NO_DIFFERENCE = "no difference seen"


@dataclass(frozen=True, kw_only=True)
class RatioChange:
    """How a measurement has changed: the median over prompts of candidate / baseline.

    Attributes:
        n_prompts: that have it on both sides; a prompt's own ratio is that of its cells' geometric means.
        interval_95: of that median, as of every percentile; None under 6 prompts.
        word: which way, or `no difference seen`.
    """

    n_prompts: int
    ratio: float
    interval_95: Interval | None
    p: float
    p_adjusted: float
    word: str


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What of a row is compared, and what its being less or more is called."""

    of: Callable[[Record], float | None]
    less: str
    more: str


MEASURES: Mapping[str, Measure] = {
    "latency": Measure(of=lambda record: record.e2e_ms, less="faster", more="slower"),
    "ttft": Measure(of=lambda record: record.ttft_ms, less="faster", more="slower"),
    "output_tokens": Measure(of=lambda record: record.output_tokens, less="fewer", more="more"),
    "cost": Measure(of=lambda record: record.cost_usd, less="cheaper", more="dearer"),
}


def ratio_changes(paired: Sequence[Paired], measure: Measure) -> list[RatioChange | None]:
    """Compare one measurement of each target; None where no cell has it in both runs."""
    logs = [_logs(one.pairs, measure) for one in paired]
    found = [sign_test(sum(one > 0 for one in each), sum(one < 0 for one in each)) for each in logs]
    tested = [place for place, each in enumerate(logs) if each]
    ps = dict(zip(tested, adjusted([found[place] for place in tested]), strict=True))
    return [
        RatioChange(
            n_prompts=len(each),
            ratio=exp(median(each)),
            interval_95=percentile_interval(([exp(one)] for one in each), 50).interval,
            p=found[place].p,
            p_adjusted=ps[place],
            word=_ratio_word(found[place], ps[place], measure),
        )
        if each
        else None
        for place, each in enumerate(logs)
    ]


def _ratio_word(found: Difference, p_adjusted: float, measure: Measure) -> str:
    if p_adjusted >= LEVEL:
        return NO_DIFFERENCE
    return measure.more if found.sign > 0 else measure.less


def _logs(pairs: Iterable[Pair], measure: Measure) -> list[float]:
    """Return for each prompt the mean logarithm of its cells' ratios, where they succeeded in both runs."""
    logs: dict[PromptKey, list[float]] = {}
    for base, candidate in pairs:
        before, after = measure.of(base), measure.of(candidate)
        if base.success and candidate.success and before and after:
            logs.setdefault(cluster_of(base), []).append(log(after / before))
    return [fmean(each) for each in logs.values()]
