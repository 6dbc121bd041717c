"""Synthetic models: how many repeats of each prompt pass, and how long they take, with known truths."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy import stats

REPEATS = {
    "1": (1,),
    "3": (3,),
    "5": (5,),
    "10": (10,),
    "1, 3, 5, 10 mixed": (1, 3, 5, 10, 1, 1),
    "10 for every tenth": (10, 1, 1, 1, 1, 1, 1, 1, 1, 1),
}
"""How often the prompts are asked, in turn."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """A run to be simulated; `resemblance` is the intraclass correlation of a prompt's repeats."""

    n_prompts: int
    repeats: str
    resemblance: float

    @property
    def sizes(self):
        return np.resize(REPEATS[self.repeats], self.n_prompts)

    @property
    def is_exact(self):
        return len(REPEATS[self.repeats]) == 1 and (self.repeats == "1" or self.resemblance == 1)


def own_rates(source, rate, resemblance, shape):
    if resemblance == 0:
        return np.broadcast_to(rate, shape)
    if resemblance == 1:
        return (source.random(shape) < rate).astype(float)
    spread = 1 / resemblance - 1
    return source.beta(rate * spread, (1 - rate) * spread, shape)


def draw_counts(source, design, rate, n_runs):
    own = own_rates(source, rate, design.resemblance, (n_runs, design.n_prompts))
    return source.binomial(design.sizes, own)


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Times in multiples of `tick_ms`: lognormal, or with Pareto's tail; repeats of a prompt are correlated."""

    resemblance: float
    heavy: bool = False
    tick_ms: int = 1

    def truth(self, share):
        return float(self._measured(np.array(NormalDist().inv_cdf(share))))

    def draw(self, source, design):
        prompts = source.standard_normal((design.n_prompts, 1))
        noise = source.standard_normal((design.n_prompts, int(design.sizes.max())))
        scores = np.sqrt(self.resemblance) * prompts + np.sqrt(1 - self.resemblance) * noise
        times = self._measured(scores).astype(int).tolist()
        return [of_prompt[:n] for of_prompt, n in zip(times, design.sizes.tolist(), strict=True)]

    def _measured(self, score):
        # Pareto's tail is so long that its variance is infinite.
        pareto, lognormal = 200 * stats.norm.sf(score) ** (-1 / 1.5), 800 * np.exp(0.6 * score)
        times = pareto if self.heavy else lognormal
        return np.ceil(times / self.tick_ms) * self.tick_ms
