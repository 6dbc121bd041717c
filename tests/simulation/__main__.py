"""The tables of `docs/maintaining/simulations.md`: `python -m tests.simulation` writes them."""

from pathlib import Path

import numpy as np

from tests.simulation.coverage import RATES, coverage_of_percentiles, coverage_of_rates
from tests.simulation.models import REPEATS, Design, Latencies

PAGE = Path(__file__).parents[2] / "docs/maintaining/simulations.md"
MARKER = "<!-- The rest is written by `python -m tests.simulation`. -->"
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
        ("1", 400),
        ("5", 30),
        ("5", 80),
        ("5", 400),
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


def rate_table(n_runs):
    """Coverage of rate intervals: a row for each number of repeats, over all resemblances, and the worst cases."""
    source = np.random.default_rng(SEED)
    # Equal time for all: few prompts vary most, and cost least.
    found = [coverage_of_rates(source, design, n_runs * 100 // design.n_prompts) for design in RATE_DESIGNS]
    yield "| repeats | " + " | ".join(f"{n} prompts" for n in PROMPTS) + " |"
    yield "| --- |" + " --- |" * len(PROMPTS)
    for repeats in REPEATS:
        cells = [
            _range([one.mean for one in found if (one.design.repeats, one.design.n_prompts) == (repeats, n)])
            for n in PROMPTS
        ]
        yield f"| {repeats} | {' | '.join(cells)} |"
    exact = {one.design.n_prompts: one.worst for one in found if one.design.repeats == "1"}
    yield ""
    yield (
        "Without repeats the worst single rates are "
        + ", ".join(f"{share:.1%} (at {rate:g}, {n} prompts)" for n, (rate, share) in exact.items())
        + f". For each of the {len(RATES)} rates "
        f"{n_runs * 100 // PROMPTS[0]} runs of {PROMPTS[0]} prompts to {n_runs * 100 // PROMPTS[-1]} of {PROMPTS[-1]}: "
        f"standard errors of 0.2 to {100 * max(coverage.error for coverage in found):.1f} points."
    )


def percentile_table(n_runs):
    """Coverage of the intervals of percentiles: a row for each design, over all distributions of times."""
    source = np.random.default_rng(SEED)
    found = {}
    for design, latencies in TIMED_DESIGNS:
        shares = coverage_of_percentiles(source, design, latencies, n_runs)
        found.setdefault((design.n_prompts, design.repeats), []).append(dict(shares))
    yield "| prompts | repeats | p50 | p95 | p99 |"
    yield "| --- | --- | --- | --- | --- |"
    for (n_prompts, repeats), rows in found.items():
        cells = (_range([row[name] for row in rows]) for name in rows[0])
        yield f"| {n_prompts} | {repeats} | {' | '.join(cells)} |"
    yield ""
    yield (
        f"Lowest and highest of {n_runs} runs each of lognormal times, times with a heavy tail, and multiples of "
        "200 ms, with resemblances from 0 to 0.9."
    )


def _range(shares):
    known = [f"{share:.1%}" for share in sorted(share for share in shares if share is not None)]
    if not known:
        return "–"
    return known[0] if known[0] == known[-1] else f"{known[0]}–{known[-1]}"


def write_page(n_runs=300, n_timed_runs=3000):
    """Simulate: for each true rate runs of 100 prompts, and half as many of 200; runs for each percentile."""
    lines = [*rate_table(n_runs), "", *percentile_table(n_timed_runs)]
    above = PAGE.read_text("utf-8").split(MARKER)[0]
    PAGE.write_text(f"{above}{MARKER}\n\n" + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    write_page()
