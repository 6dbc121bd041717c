"""Pairs of runs, compared and gated."""

import random
from dataclasses import dataclass
from functools import cache

from pytest_openclaw.parts.baseline.comparison import compare_records
from pytest_openclaw.parts.gates import GateSettings
from pytest_openclaw.values.requests import Target
from tests.unit.reports.summaries import measured, record, summary_of

GATES = GateSettings.of(fail_on="regression")
TARGETS = [Target(provider="p", model=name) for name in "abc"]
LATENCIES = 16


@cache
def _row(target, prompt, repeat, passed, latency):
    # Made once; latencies are spread as those of prompts are, by a factor of ten or more.
    e2e_ms = int(400 * (1 + prompt % 17) * 1.1 ** (latency - LATENCIES / 2))
    return record(target, prompt_id=f"P{prompt}", repeat=repeat, objective_pass=passed, e2e_ms=e2e_ms)


def rows_of(rng, target, verdicts):
    return [
        _row(target, prompt, repeat, passed, rng.randrange(LATENCIES))
        for prompt, repeats in enumerate(verdicts)
        for repeat, passed in enumerate(repeats, 1)
    ]


@dataclass
class Found:
    """What was found over all simulated pairs of runs."""

    n: int = 0
    failed: int = 0
    better: int = 0
    slower_or_faster: int = 0
    covered: int = 0
    n_targets: int = 0

    @property
    def alarms(self):
        return self.failed / self.n


def simulate(model, *, n_prompts, repeats, n_targets=1, n_runs, seed=1, change=0.0):
    """Compare `n_runs` pairs of runs of at most 3 targets; `change` is the true difference."""
    rng = random.Random(f"{seed} {n_prompts} {repeats} {n_targets}")
    targets = TARGETS[:n_targets]
    found = Found()
    for _ in range(n_runs):
        base = []
        candidate = []
        for target in targets:
            before, after = model(rng, n_prompts, repeats)
            base += rows_of(rng, target, before)
            candidate += rows_of(rng, target, after)
        pairs = [(target, target) for target in targets]
        rows = measured(base).rows_of, measured(candidate).rows_of
        compared = compare_records(*rows, pairs, {}, baseline="base")
        n_selected = dict.fromkeys(targets, n_prompts * repeats)
        summary = summary_of(candidate, n_selected=n_selected, gates=GATES, comparison=compared)
        found.n += 1
        found.failed += summary.verdict == "failed"
        found.better += any(one.verdicts.word == "better" for one in compared.targets)
        found.slower_or_faster += any(
            one.ratios["latency"].word != "no difference seen" for one in compared.targets
        )
        for one in compared.targets:
            interval = one.verdicts.interval_95
            found.n_targets += 1
            found.covered += interval is not None and interval.low <= change <= interval.high
    return found


def beta(mean, resemblance):
    def draw(rng, n_prompts, repeats):
        rates = [_rate(rng, mean, resemblance) for _ in range(n_prompts)]
        return _asked(rng, rates, repeats), _asked(rng, rates, repeats)

    return draw


def moody(mean, resemblance):
    """As `beta`, but all repeats of a prompt in a run end alike, and in another run perhaps otherwise."""

    def draw(rng, n_prompts, repeats):
        rates = [_rate(rng, mean, resemblance) for _ in range(n_prompts)]
        first, second = _asked(rng, rates, 1), _asked(rng, rates, 1)
        return [one * repeats for one in first], [one * repeats for one in second]

    return draw


def losing(loss, flips):
    """Each prompt fails for good with the rate `loss`; the others flip, some more and some less."""

    def draw(rng, n_prompts, repeats):
        lost = [rng.random() < loss for _ in range(n_prompts)]
        rates = [_unsteady(rng, flips) for _ in range(n_prompts)]
        before = [1.0 if gone else rate for gone, rate in zip(lost, rates, strict=True)]
        after = [0.0 if gone else rate for gone, rate in zip(lost, rates, strict=True)]
        return _asked(rng, before, repeats), _asked(rng, after, repeats)

    return draw


def _rate(rng, mean, resemblance):
    if resemblance == 0:
        return mean
    if resemblance == 1:
        return float(rng.random() < mean)
    size = 1 / resemblance - 1
    return rng.betavariate(mean * size, (1 - mean) * size)


def _unsteady(rng, flips):
    """A rate whose 2p(1 - p) is `flips` on average: of a Beta distribution about 0.7."""
    mean = 0.7
    resemblance = 1 - flips / (2 * mean * (1 - mean))
    return _rate(rng, mean, resemblance)


def _asked(rng, rates, repeats):
    return [[rng.random() < rate for _ in range(repeats)] for rate in rates]


EQUAL_MODELS = {
    "steady, passes 70 %": beta(0.7, 1),
    "prompts differ, 30 %": beta(0.3, 0.5),
    "prompts differ, 70 %": beta(0.7, 0.5),
    "prompts alike, 50 %": beta(0.5, 0),
    "repeats end alike, 90 %": moody(0.9, 0.3),
    "repeats end alike, 50 %": moody(0.5, 0.3),
}
LOSSES = [
    (n_prompts, repeats, flips, loss)
    for n_prompts, loss in ((36, 0.2), (60, 0.15), (100, 0.1), (231, 0.1))
    for repeats, flips in ((1, 0.1), (1, 0.2), (3, 0.2), (5, 0.3))
]
"""Prompts, repeats, flips, and the share of prompts that fail for good."""


def mixed():
    models = list(EQUAL_MODELS.values())

    def draw(rng, n_prompts, repeats):
        return rng.choice(models)(rng, n_prompts, repeats)

    return draw


def simulate_loss(one, n_runs):
    n_prompts, repeats, flips, loss = one
    return simulate(
        losing(loss, flips), n_prompts=n_prompts, repeats=repeats, n_runs=n_runs, seed=2, change=-loss
    )
