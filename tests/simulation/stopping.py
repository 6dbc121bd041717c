"""Simulated runs with `--openclaw-until-conclusive`, ended and rated by the code that ships."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from pytest_openclaw.runs.session import EarlyStopping
from pytest_openclaw.stats.groups import Snapshots, summarize_group
from pytest_openclaw.stats.tiers import TIER_FLOORS
from pytest_openclaw.suites.cells import Stage
from pytest_openclaw.values.requests import CellKey
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.settings import Settings
from tests.simulation.models import Generator
from tests.unit.reports.summaries import TARGET, cell

SEED = 20261123
N_PROMPTS = 34
LIMITS = (TIER_FLOORS[1], TIER_FLOORS[2])
RESEMBLANCES = (0.0, 0.2, 0.5, 1.0)
RATES = (0.95, 0.9, 0.8, 0.65, 0.5, 0.3)
SETTINGS = Settings(until_conclusive=True, repeat=10)


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """What so many simulated runs came to.

    Attributes:
        above, below: shares of runs with a conclusive tier above the limit, and below it; the limit is the
            floor of a tier, and the true rate lies at it.
        conclusive: the share with a conclusive tier.
        repeats: the mean number of repeats of a prompt.
    """

    n: int
    above: float
    below: float
    conclusive: float
    repeats: float


def draw(source: Generator, rate: float, resemblance: float, n_repeats: int) -> list[list[bool]]:
    """Return of each repeat whether the prompts pass; their own rates have a Beta distribution."""
    if resemblance == 0:
        own = np.full(N_PROMPTS, rate)
    elif resemblance == 1:
        own = (source.random(N_PROMPTS) < rate).astype(float)
    else:
        spread = 1 / resemblance - 1
        own = source.beta(rate * spread, (1 - rate) * spread, N_PROMPTS)
    passed: list[list[bool]] = (source.random((n_repeats, N_PROMPTS)) < own).tolist()
    return passed


def simulate(
    source: Generator, rate: float, resemblance: float, n_runs: int, settings: Settings = SETTINGS
) -> Stopped:
    """Let so many runs of one target end as they do, and rate them as their summaries do."""
    limit = min(LIMITS, key=lambda one: abs(one - rate))
    above = below = conclusive = repeats = 0
    for _ in range(n_runs):
        rows, n_repeats = _run(draw(source, rate, resemblance, settings.repeat), settings)
        use = summarize_group(TARGET, rows, Snapshots(), n_targets=1, looks=settings.looks).tool_use
        repeats += n_repeats
        if use.conclusive:
            assert use.tier is not None, "what is conclusive has a tier"
            conclusive += 1
            above += TIER_FLOORS[use.tier] >= limit
            below += TIER_FLOORS[use.tier] < limit
    shares = (count / n_runs for count in (above, below, conclusive, repeats))
    return Stopped(n=n_runs, **dict(zip(("above", "below", "conclusive", "repeats"), shares, strict=True)))


def _run(passed: Sequence[Sequence[bool]], settings: Settings) -> tuple[list[Record], int]:
    """Return the rows of a run up to its end, and how many repeats it had."""
    keys = (
        CellKey("s", f"P{prompt}", TARGET, repeat + 1)
        for prompt in range(N_PROMPTS)
        for repeat in range(settings.repeat)
    )
    stages = {key: Stage(key.repeat, key.repeat, is_always_asked=False) for key in keys}
    stopping = EarlyStopping(stages, settings.looks)
    rows: list[Record] = []
    for repeat, of_repeat in enumerate(passed, 1):
        for prompt, has_passed in enumerate(of_repeat):
            rows.append(_row(prompt, repeat, has_passed))
            any(stopping.take(rows[-1]))
        if stopping.ended:
            return rows, repeat
    return rows, settings.repeat


@cache
def _row(prompt: int, repeat: int, passed: bool) -> Record:
    given = {"repeat": repeat, "objective_pass": passed, "ttft_ms": None, "tokens_per_s": None}
    return cell(f"P{prompt}", "valid" if passed else "no_call", **given)
