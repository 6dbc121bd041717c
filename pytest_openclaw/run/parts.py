"""How a lane's limit is divided over the workers of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Part:
    """A part of a lane: cells that one worker asks, at most `limit` of them at once.

    Attributes:
        name: the lane's name and the part's number.
        limit: requests in flight; the limits of a lane's parts add up to the lane's.
    """

    name: str
    limit: int


@dataclass
class Parts:
    """Deals cells out to the parts of their lanes.

    A lane has as many parts as there are workers, but no more than requests may be in flight on it: a lane
    that allows one is one part, so one worker asks it. Controller and workers see the same cells in the same
    order, so each deals for itself and all agree.

    Attributes:
        workers: processes that ask; 1 without xdist.
    """

    workers: int = 1
    _dealt: Counter[str] = field(default_factory=Counter)

    def deal(self, lane: str, limit: int) -> Part:
        """Return the part of the lane's next cell."""
        n_parts = min(limit, self.workers)
        number = self._dealt[lane] % n_parts
        self._dealt[lane] += 1
        return Part(f"{lane} {number}", limit // n_parts + (number < limit % n_parts))
