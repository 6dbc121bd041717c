"""The simulations whose results are published, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tests.simulation.coverage import RATES, Coverage, coverage_of_percentiles, coverage_of_rates
from tests.simulation.models import REPEATS, Design, Latencies

SEED = 20261122
SUSPECTS, RUNS_AGAIN = 6, 5000
PROMPTS = (30, 50, 100, 200)
RESEMBLANCES = (0.0, 0.2, 0.5, 0.8, 1.0)

RATE_DESIGNS = [
    Design(n_prompts=n_prompts, repeats=repeats, resemblance=resemblance)
    for repeats in REPEATS
    for resemblance in RESEMBLANCES
    for n_prompts in PROMPTS
    if repeats != "1" or resemblance == 0
]
# Without repeats the ranks are exact, so one such row is enough.
TIMED_DESIGNS = [
    (Design(n_prompts=n_prompts, repeats=repeats, resemblance=latencies.resemblance), latencies)
    for repeats, n_prompts in (
        ("1", 300),
        ("5", 30),
        ("5", 60),
        ("5", 300),
        ("10", 100),
        ("1, 3, 5, 10 mixed", 130),
    )
    for latencies in (
        Latencies(resemblance=0.0),
        Latencies(resemblance=0.3, heavy=True),
        Latencies(resemblance=0.6, tick_ms=200),
        Latencies(resemblance=0.9),
    )
    if repeats != "1" or not latencies.resemblance
]


def rate_table(n_runs: int) -> Iterator[str]:
    """Coverage of rate intervals: a row for each number of repeats and correlation, and the worst cases."""
    source = np.random.default_rng(SEED)
    found: list[Coverage] = []
    yield "| repeats | resemblance | " + " | ".join(f"{n} prompts" for n in PROMPTS) + " |"
    yield "| --- | --- |" + " --- |" * len(PROMPTS)
    for design in RATE_DESIGNS:
        # Equal time for all: few prompts vary most, and cost least.
        found.append(coverage_of_rates(source, design, n_runs * 100 // design.n_prompts))
        if design.n_prompts == PROMPTS[-1]:
            row = " | ".join(map(_averaged, found[-len(PROMPTS) :]))
            yield f"| {design.repeats} | {_resemblance(design)} | {row} |"
    means = sorted(found, key=lambda coverage: coverage.mean)
    yield ""
    yield (
        f"Averaged over the rates: from {_shares(means[0])} to {_shares(means[-1])}. "
        f"For each of the {len(RATES)} rates "
        f"{n_runs * 100 // PROMPTS[0]} runs of {PROMPTS[0]} prompts to {n_runs * 100 // PROMPTS[-1]} of {PROMPTS[-1]}: "
        f"standard errors of 0.2 to {100 * max(coverage.error for coverage in found):.1f} points."
    )
    yield ""
    yield from worst_cases([(coverage.design, *coverage.worst) for coverage in found])


def worst_cases(found: Sequence[tuple[Design, float, float]]) -> Iterator[str]:
    """The worst single rates: the lowest of those found are simulated again, as the lowest are partly chance.

    Args:
        found: designs, with the rate at which each was lowest, and that share.

    """
    source = np.random.default_rng(SEED + 1)
    cases: list[tuple[float, Design, float]] = []
    for n_prompts in PROMPTS:
        simulated = [case for case in found if case[0].n_prompts == n_prompts and not case[0].is_exact]
        for design, rate, _ in sorted(simulated, key=lambda case: case[2])[:SUSPECTS]:
            again = coverage_of_rates(source, design, RUNS_AGAIN, [rate])
            cases.append((again.by_rate[rate], design, rate))
    yield (
        f"Worst single rates: of the {SUSPECTS} lowest found for each number of prompts, simulated again with "
        f"{RUNS_AGAIN} runs, these are the lowest:"
    )
    yield ""
    yield "| prompts | repeats | resemblance | rate | coverage |"
    yield "| --- | --- | --- | --- | --- |"
    for share, design, rate in sorted(cases, key=lambda case: case[0])[:8]:
        yield f"| {design.n_prompts} | {design.repeats} | {_resemblance(design)} | {rate:g} | {share:.1%} |"


def percentile_table(n_runs: int) -> Iterator[str]:
    """Coverage of the intervals of percentiles, with a row for each design."""
    source = np.random.default_rng(SEED)
    lowest = 1.0
    yield "| prompts | repeats | times | resemblance | p50 | p95 | p99 |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for design, latencies in TIMED_DESIGNS:
        shares = coverage_of_percentiles(source, design, latencies, n_runs)
        lowest = min(lowest, *(share for share in shares.values() if share is not None))
        times = "heavy tail" if latencies.heavy else "lognormal"
        ties = f", multiples of {latencies.tick_ms} ms" if latencies.tick_ms > 1 else ""
        cells = " | ".join("–" if share is None else f"{share:.1%}" for share in shares.values())
        yield f"| {design.n_prompts} | {design.repeats} | {times}{ties} | {_resemblance(design)} | {cells} |"
    yield ""
    yield f"Worst case: {lowest:.1%}; {n_runs} runs a row."


def _averaged(coverage: Coverage) -> str:
    if coverage.n_runs:
        return f"{coverage.mean:.1%}"
    rate, share = coverage.worst
    return f"{coverage.mean:.1%} exact ({share:.1%} at {rate:g})"


def _resemblance(design: Design) -> str:
    return "–" if design.repeats == "1" else f"{design.resemblance:g}"


def _shares(coverage: Coverage) -> str:
    design = coverage.design
    return (
        f"{coverage.mean:.1%} ({design.n_prompts} prompts, repeats {design.repeats}, "
        f"resemblance {design.resemblance:g})"
    )
