"""Simulated servers that are watched, and got worse or did not, by the code that ships.

`python -m tests.simulation.watching` prints the tables of docs/statistics.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from pytest_openclaw.stats.watching import WINDOWS, WatchedRun, limit_of, looks
from pytest_openclaw.types.records import Record
from tests.simulation.models import Generator
from tests.unit.reports.summaries import record

SEED = 20261123
HOUR_S, DAY_S = 3600, 86_400
RATE = 0.9
RESEMBLANCE = 0.5
LOSSES = (0.1, 0.2, 0.4)
SIZES = ((12, 20), (12, 40), (36, 20), (36, 40))
"""Prompts, and runs of the baseline."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A simulated one.

    Attributes:
        loss: by how much the rate of each prompt falls, as a share of it, when the baseline is complete.
        timed: times are measured, whole runs of which differ by a tenth or so.
    """

    n_prompts: int
    rate: float = RATE
    loss: float = 0.0
    repeats: int = 1
    timed: bool = False


def own_rates(source: Generator, server: Server) -> np.ndarray[Any, Any]:
    """Return a rate for each prompt, from a Beta distribution."""
    spread = 1 / RESEMBLANCE - 1
    return source.beta(server.rate * spread, (1 - server.rate) * spread, server.n_prompts)


def draw_runs(source: Generator, rates: np.ndarray[Any, Any], server: Server, n: int) -> list[WatchedRun]:
    """Return so many runs."""
    passed = source.random((n, server.repeats, server.n_prompts)) < rates
    factors = np.exp(source.normal(0, 0.1, n)) if server.timed else [None] * n
    return [
        WatchedRun(run_id=str(number), records=_rows(each.tolist(), factor))
        for number, (each, factor) in enumerate(zip(passed, factors, strict=True))
    ]


def _rows(passed: Sequence[Sequence[bool]], factor: float | None) -> list[Record]:
    rows = [
        _row(prompt, repeat, good)
        for repeat, each in enumerate(passed, 1)
        for prompt, good in enumerate(each)
    ]
    if factor is None:
        return rows
    return [record(prompt_id=one.prompt_id, ttft_ms=round(1000 * factor), tokens_per_s=None) for one in rows]


@cache
def _row(prompt: int, repeat: int, passed: bool) -> Record:
    return record(
        prompt_id=f"P{prompt}", repeat=repeat, objective_pass=passed, ttft_ms=None, tokens_per_s=None
    )


def n_alarms(
    source: Generator, server: Server, limit: float, *, n_base: int, n_runs: int, slower: float | None = None
) -> int:
    """Return how many of so many runs of an unchanged server have a window that is worse."""
    runs = draw_runs(source, own_rates(source, server), server, n_base + n_runs)
    base, later = runs[:n_base], runs[n_base:]
    return sum(
        any(look.chance <= limit for look in looks(base, later[max(0, n - WINDOWS[-1]) : n], slower=slower))
        for n in range(1, n_runs + 1)
    )


def delay(source: Generator, server: Server, limit: float, *, n_base: int, most: int) -> int | None:
    """Return after how many runs a loss is found; None if it is not found within the most."""
    rates = own_rates(source, server)
    base = draw_runs(source, rates, server, n_base)
    later = draw_runs(source, rates * (1 - server.loss), server, most)
    for n in range(1, most + 1):
        window = later[max(0, n - WINDOWS[-1]) : n]
        if any(look.chance <= limit for look in looks(base, window, slower=None)):
            return n
    return None


def delay_table(n_times: int) -> Iterator[str]:
    """After how many runs losses are found: the median, and nine times in ten."""
    source = np.random.default_rng(SEED)
    yield (
        "| prompts | runs of the baseline | schedule | "
        + " | ".join(f"{RATE * 100:.0f} % to {RATE * (1 - loss) * 100:.0f} %" for loss in LOSSES)
        + " |"
    )
    yield "| --- | --- | --- |" + " --- |" * len(LOSSES)
    for n_prompts, n_base in SIZES:
        for name, every_s in (("every hour", HOUR_S), ("every day", DAY_S)):
            limit = limit_of(0.1, every_s, 1)
            cells = []
            for loss in LOSSES:
                server = Server(n_prompts=n_prompts, loss=loss)
                found = [delay(source, server, limit, n_base=n_base, most=64) for _ in range(n_times)]
                cells.append(" (".join(_shown(found, share) for share in (0.5, 0.9)) + ")")
            yield f"| {n_prompts} | {n_base} | {name} | " + " | ".join(cells) + " |"


def _shown(found: Sequence[int | None], share: float) -> str:
    runs = sorted(65 if one is None else one for one in found)[int(share * len(found))]
    return "–" if runs == 65 else str(runs)


def alarm_table(n_servers: int) -> Iterator[str]:
    """How often an unchanged server is called worse: hourly runs, a stated 5 a month."""
    source = np.random.default_rng(SEED)
    yield "| prompts | repeats | rate | false alarms a month, stated 5 |"
    yield "| --- | --- | --- | --- |"
    for n_prompts, repeats, rate in ((12, 1, 0.9), (12, 3, 0.7), (36, 1, 0.5)):
        server = Server(n_prompts=n_prompts, rate=rate, repeats=repeats)
        limit, n_runs = limit_of(5, HOUR_S, 1), 72
        found = sum(n_alarms(source, server, limit, n_base=20, n_runs=n_runs) for _ in range(n_servers))
        yield f"| {n_prompts} | {repeats} | {rate:g} | {found / (n_servers * n_runs) * 720:.1f} |"


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    for line in chain(delay_table(n), [""], alarm_table(n)):
        print(line, flush=True)
