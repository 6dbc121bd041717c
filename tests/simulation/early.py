"""Simulated runs with `--openclaw-until-conclusive`: the prompts they ask, and how often they are wrong."""

import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np

from pytest_openclaw.conclusions.recommendation import Evidence, recommend
from pytest_openclaw.judging.text import Noop
from pytest_openclaw.parts.repeats import look_schedule, positions_of, stages_of, why_it_ends
from pytest_openclaw.stats.tool_use import MOST_NEEDLESS, TIER_FLOORS, tool_use_of
from pytest_openclaw.suites.cells import spread
from pytest_openclaw.values.parts import whole
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.settings import Settings
from tests.simulation.models import own_rates
from tests.unit.reports.summaries import TARGET, cell

SEED = 20261126
REPEATS = 10
RATES = (0.02, 0.3, 0.5, 0.65, 0.8, 0.9, 0.97)
NEEDLESS = (0.05, 0.2, 0.4)
SIZES = (34, 72, 200)
N_CATEGORIES = 6
HARDNESS = 0.6
"""Of the smaller of the rate and its complement: so far the rates of the categories lie from it."""
_RIGHT, _FORBIDDING = {True: "valid", False: "no_call"}, {True: "called_needlessly", False: "restrained"}


@dataclass(frozen=True, kw_only=True)
class Ended:
    """Many runs of one target: shares that were wrong or settled, and the mean number of prompts asked."""

    n: int
    against: float
    trusting: float
    settled: float
    prompts: float
    whole: float


def suite(n, repeats):
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
    cells = [
        Cell(prompt=prompt, target=TARGET, repeat=repeat)
        for repeat in range(1, repeats + 1)
        for prompt in prompts
    ]
    keys = {n: cell.key for n, cell in enumerate(cells)}
    return [cells[n] for n in spread(keys, {TARGET.provider: ""}, positions_of(prompts))]


class Schedule:
    """When a run of one suite ends, and with which recommendation: runs with equal counts share one answer."""

    def __init__(self, n_prompts, repeats, n_targets):
        self.cells = suite(n_prompts, repeats)
        self._n_targets = n_targets
        self.looks = look_schedule(whole(Settings)(until_conclusive=True, repeat=repeats))
        first = self.cells[:n_prompts]
        numbers = {one.prompt.id: number for number, one in enumerate(first)}
        self.prompt_of = np.array([numbers[one.prompt.id] for one in self.cells])
        self._forbids = np.array([_forbids(one) for one in first])
        stages = stages_of(self.cells)
        n_cells = Counter(stages[one.key].number for one in self.cells)
        self._ends = [*accumulate(n_cells[number] for number in sorted(n_cells))]
        self._repeats = [stages[self.cells[end - 1].key].repeat for end in self._ends]
        self._settled = {}
        self._kinds = {}

    def run(self, called):
        """Return the number of cells asked, and the recommendation, if every cell would be `called` or not."""
        for stage, end in enumerate(self._ends):
            key = stage, *self._counts(called[:end])
            # After the last stage nothing is left to decide.
            if end == self._ends[-1]:
                break
            if key not in self._settled:
                rows = self.rows(called[:end])
                why = why_it_ends(rows, self._repeats[stage], self.looks, n_targets=self._n_targets)
                self._settled[key] = why is not None
            if self._settled[key]:
                break
        if key not in self._kinds:
            rows = self.rows(called[:end])
            self._kinds[key] = recommend(
                Evidence(records=rows, use=tool_use_of(rows, self._n_targets, self.looks))
            ).kind
        return end, self._kinds[key]

    def _counts(self, called):
        """Return how many of the prompts so far were called 0, 1, 2 … times: which forbid it, and the others."""
        times = np.bincount(self.prompt_of[: len(called)], weights=called).astype(int)
        forbids = self._forbids[: len(times)]
        return np.bincount(times[forbids]).tobytes(), np.bincount(times[~forbids]).tobytes()

    def rows(self, called):
        pairs = zip(self.cells, called.tolist(), strict=False)
        return [_row(one.prompt.id, one.repeat, _forbids(one), is_called) for one, is_called in pairs]


schedule_of = cache(Schedule)


def simulate(source, n_prompts, rate, needless, n_runs, *, resemblance=0.0, repeats=REPEATS, n_targets=1):
    """Let so many runs of one of `n_targets` end as they do; categories differ in difficulty around the rate."""
    schedule = schedule_of(n_prompts, repeats, n_targets)
    chance = np.array([_chance(one, rate, needless) for one in schedule.cells[:n_prompts]])
    against = trusting = settled = asked = whole = 0
    for _ in range(n_runs):
        own = own_rates(source, chance, resemblance, (n_prompts,))
        n_asked, kind = schedule.run(source.random(len(schedule.cells)) < own[schedule.prompt_of])
        asked += n_asked
        whole += max(n_asked, n_prompts)
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


def _forbids(one):
    return str(one.prompt.category).startswith("forbids")


def _chance(one, rate, needless):
    mean = needless if _forbids(one) else rate
    at = int(str(one.prompt.category).split()[1]) / (N_CATEGORIES - 1)
    return mean + (2 * at - 1) * HARDNESS * min(mean, 1 - mean)


@cache
def _row(prompt_id, repeat, forbids, hit):
    outcome = (_FORBIDDING if forbids else _RIGHT)[hit]
    return cell(
        prompt_id, outcome, repeat=repeat, objective_pass=hit, tools_offered=1, ttft_ms=None, tokens_per_s=None,
        tools_tested=() if forbids else ("read",),
    )  # fmt: skip


def table(n_runs, sizes):
    """The mean number of prompts until a run ends, and how often its recommendation is wrong."""
    yield "| prompts | needless | " + " | ".join(f"rate {rate:g}" for rate in RATES) + " |"
    yield "| --- | --- |" + " --- |" * len(RATES)
    for n in sizes:
        source = np.random.default_rng([SEED, n])
        for needless in NEEDLESS:
            found = [simulate(source, n, rate, needless, n_runs) for rate in RATES]
            shown = (
                f"{one.prompts:.0f} ({one.whole:.0f}), {one.against:.1%}, {one.trusting:.1%}" for one in found
            )
            yield f"| {n} | {needless:g} | " + " | ".join(shown) + " |"


if __name__ == "__main__":
    n_runs, *sizes = map(int, sys.argv[1:] or ["10000"])
    for line in table(n_runs, sizes or SIZES):
        print(line, flush=True)
