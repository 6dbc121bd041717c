"""The simulations whose results are published, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.simulation.coverage import Coverage, coverage_of_percentiles, coverage_of_rates
from tests.simulation.models import REPEATS, Design, Latencies

SEED = 20261122
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
    """Coverage of rate intervals: a row for each way to repeat and each resemblance."""
    source = np.random.default_rng(SEED)
    found: list[Coverage] = []
    yield "| repeats | resemblance | " + " | ".join(f"{n} prompts" for n in PROMPTS) + " |"
    yield "| --- | --- |" + " --- |" * len(PROMPTS)
    row: list[str] = []
    for design in RATE_DESIGNS:
        coverage = coverage_of_rates(source, design, n_runs)
        found.append(coverage)
        rate, share = coverage.worst
        exact = "" if coverage.n_runs else " exact"
        row.append(f"{coverage.mean:.1%}{exact} ({share:.1%} at {rate:g})")
        if len(row) == len(PROMPTS):
            resemblance = "–" if design.repeats == "1" else f"{design.resemblance:g}"
            yield f"| {design.repeats} | {resemblance} | " + " | ".join(row) + " |"
            row = []
    means = sorted(found, key=lambda coverage: coverage.mean)
    worst = min(found, key=lambda coverage: coverage.worst[1])
    yield ""
    yield f"Averaged over the rates: from {_told(means[0])} to {_told(means[-1])}."
    yield (
        f"Worst single case: {worst.worst[1]:.1%} at a rate of {worst.worst[0]:g}, "
        f"{worst.design.n_prompts} prompts, repeats {worst.design.repeats}, "
        f"resemblance {worst.design.resemblance:g}."
    )


def percentile_table(n_runs: int) -> Iterator[str]:
    """Coverage of the intervals of percentiles: a row a design."""
    source = np.random.default_rng(SEED)
    lowest = 1.0
    yield "| prompts | repeats | times | resemblance | p50 | p95 | p99 |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for design, latencies in TIMED_DESIGNS:
        shares = coverage_of_percentiles(source, design, latencies, n_runs)
        lowest = min(lowest, *(share for share in shares.values() if share is not None))
        times = "heavy tail" if latencies.heavy else "lognormal"
        ties = f", multiples of {latencies.tick_ms} ms" if latencies.tick_ms > 1 else ""
        resemblance = "–" if design.repeats == "1" else f"{latencies.resemblance:g}"
        cells = " | ".join("–" if share is None else f"{share:.1%}" for share in shares.values())
        yield f"| {design.n_prompts} | {design.repeats} | {times}{ties} | {resemblance} | {cells} |"
    yield ""
    yield f"Worst case: {lowest:.1%}; {n_runs} runs a row."


def _told(coverage: Coverage) -> str:
    design = coverage.design
    return (
        f"{coverage.mean:.1%} ({design.n_prompts} prompts, repeats {design.repeats}, "
        f"resemblance {design.resemblance:g})"
    )
