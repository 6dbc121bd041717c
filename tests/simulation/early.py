"""Simulated runs with `--openclaw-until-conclusive`: the prompts they ask, and how often they are wrong.

The order, the stages, the decisions and the recommendation are those of the code that ships.
`python -m tests.simulation.early` prints the table of docs/statistics.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from pytest_openclaw.conclusions.recommendation import recommend
from pytest_openclaw.judging.text import Noop
from pytest_openclaw.runs.session import EarlyStopping
from pytest_openclaw.stats.tool_use import MOST_NEEDLESS, TIER_FLOORS, tool_use_of
from pytest_openclaw.suites.cells import mixed, spread, stages_of
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.settings import Settings
from tests.simulation.models import Generator, own_rates
from tests.unit.reports.summaries import TARGET, cell

SEED = 20261126
SETTINGS = Settings(until_conclusive=True, repeat=10)
RATES = (0.02, 0.3, 0.5, 0.65, 0.8, 0.9, 0.97)
NEEDLESS = (0.05, 0.2, 0.4)
N_CATEGORIES = 6
HARDNESS = 0.6
"""Of the smaller of the rate and its complement: so far the rates of the categories lie from it."""
_RIGHT, _FORBIDDING = {True: "valid", False: "no_call"}, {True: "called_needlessly", False: "restrained"}


@dataclass(frozen=True, kw_only=True)
class Ended:
    """Many runs of one target.

    Attributes:
        against, trusting: shares of runs whose recommendation is wrong against the model, or for it.
        settled: the share with a recommendation other than `not_enough_evidence`.
        prompts: the mean number of prompts asked.
        whole: the same if the first repeat is always asked to its end, as without looks within it.
    """

    n: int
    against: float
    trusting: float
    settled: float
    prompts: float
    whole: float


def suite(n: int, repeats: int) -> list[Cell]:
    """A suite of which every third prompt forbids a call, in the order of a run, with 6 categories of each kind."""
    prompts = [
        Prompt(
            suite="s",
            id=f"T{number}",
            name="",
            prompt="?",
            validator=Noop(),
            tools=(),
            category=f"{'forbids' if number % 3 == 2 else 'calls'} {number * N_CATEGORIES // n}",
        )
        for number in range(n)
    ]
    places = mixed(prompts)
    return spread(
        [
            Cell(prompt=prompt, target=TARGET, repeat=repeat)
            for repeat in range(1, repeats + 1)
            for prompt in prompts
        ],
        target_of=lambda one: one.target,
        endpoints={TARGET: ""},
        repeat_of=lambda one: one.repeat,
        position_of=lambda one: places["s", one.prompt.id],
    )


def simulate(
    source: Generator,
    n_prompts: int,
    rate: float,
    needless: float,
    n_runs: int,
    *,
    resemblance: float = 0.0,
    settings: Settings = SETTINGS,
) -> Ended:
    """Let so many runs end as they do; the categories differ in difficulty, around the true rate."""
    cells = suite(n_prompts, settings.repeat)
    stages = stages_of(cells)
    prompts = {one.prompt.id: number for number, one in enumerate(cells) if one.repeat == 1}
    chance = np.array([_chance(one, rate, needless) for one in cells[:n_prompts]])
    prompt_of = [prompts[one.prompt.id] for one in cells]
    against = trusting = settled = asked = whole = 0
    for _ in range(n_runs):
        own = own_rates(source, chance, resemblance, (n_prompts,))
        luck = source.random(len(cells)) < own[prompt_of]
        stopping = EarlyStopping(stages, settings.looks)
        rows = []
        for one, hit in zip(cells, luck, strict=True):
            if stopping.ended:
                break
            rows.append(_row(one.prompt.id, one.repeat, _forbids(one), bool(hit)))
            any(stopping.take(rows[-1]))
        kind = recommend(rows, tool_use_of(rows, 1, settings.looks)).kind
        asked += len(rows)
        whole += max(len(rows), n_prompts)
        settled += kind != "not_enough_evidence"
        against += kind == "not_trusted" and rate >= TIER_FLOORS[2] and needless <= MOST_NEEDLESS
        trusting += (kind == "trusted" and (rate < TIER_FLOORS[1] or needless > MOST_NEEDLESS)) or (
            kind == "trusted_with" and rate < TIER_FLOORS[2]
        )
    return Ended(
        n=n_runs,
        against=against / n_runs,
        trusting=trusting / n_runs,
        settled=settled / n_runs,
        prompts=asked / n_runs,
        whole=whole / n_runs,
    )


def _forbids(one: Cell) -> bool:
    return str(one.prompt.category).startswith("forbids")


def _chance(one: Cell, rate: float, needless: float) -> float:
    """The chance of a call: the categories lie evenly around the true rate."""
    mean = needless if _forbids(one) else rate
    at = int(str(one.prompt.category).split()[1]) / (N_CATEGORIES - 1)
    return mean + (2 * at - 1) * HARDNESS * min(mean, 1 - mean)


@cache
def _row(prompt_id: str, repeat: int, forbids: bool, hit: bool) -> Record:
    outcome = (_FORBIDDING if forbids else _RIGHT)[hit]
    return cell(
        prompt_id, outcome, repeat=repeat, objective_pass=hit, tools_offered=1, ttft_ms=None, tokens_per_s=None,
        tools_tested=() if forbids else ("read",),
    )  # fmt: skip


def table(n_runs: int, sizes: tuple[int, ...] = (34, 72, 200)) -> Iterator[str]:
    """The mean number of prompts until a run ends, and how often its recommendation is wrong."""
    source = np.random.default_rng(SEED)
    yield "| prompts | needless | " + " | ".join(f"rate {rate:g}" for rate in RATES) + " |"
    yield "| --- | --- |" + " --- |" * len(RATES)
    for n in sizes:
        for needless in NEEDLESS:
            found = [simulate(source, n, rate, needless, n_runs) for rate in RATES]
            shown = (
                f"{one.prompts:.0f} ({one.whole:.0f}), {one.against:.1%}, {one.trusting:.1%}" for one in found
            )
            yield f"| {n} | {needless:g} | " + " | ".join(shown) + " |"


if __name__ == "__main__":
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000):
        print(line, flush=True)
