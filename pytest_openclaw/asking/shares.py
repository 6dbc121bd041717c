"""How a lane's limit is divided over the workers of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_openclaw.providers.address import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Settings


@dataclass(frozen=True)
class Part:
    """A process's part of a lane: `limit` of its requests may be in flight at once.

    Without workers it is the whole lane; with them the limits of a lane's parts add up to the lane's.
    """

    lane: str
    limit: int


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The lane on which a worker asks a provider.

    Attributes:
        lane: equal for two workers that reach the same server, and for these only.
        limit: requests in flight over all workers that reach it.
    """

    lane: str
    limit: int


def reaches(providers: Mapping[str, Provider], settings: Settings, machine: str) -> dict[str, Reach]:
    """Return what a process on `machine` reaches, by provider."""
    return {
        name: Reach(
            lane=f"{machine} {provider.lane}" if _is_own(provider) else provider.lane,
            limit=settings.concurrency.limit(name, is_local=provider.is_local),
        )
        for name, provider in providers.items()
    }


def _is_own(provider: Provider) -> bool:
    """Whether the lane is the asking machine's own: Ollama itself counts as local wherever it points to."""
    try:
        host = urlsplit(provider.lane).hostname
    except ValueError:  # a guest's lane has any name
        host = None
    return provider.is_local and (host is None or is_loopback(host))


def whole_limits(reached: Sequence[Mapping[str, Reach]]) -> list[dict[str, int]]:
    """Return the limit of each worker's lanes, by provider, for workers that keep them together as they ask.

    Providers with equal lanes have one limit, the smallest.
    """
    limits = _limits(reached)
    return [{provider: limits[reach.lane] for provider, reach in seen.items()} for seen in reached]


def _limits(reached: Sequence[Mapping[str, Reach]]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for seen in reached:
        for reach in seen.values():
            limits[reach.lane] = min(reach.limit, limits.get(reach.lane, reach.limit))
    return limits


class Division:
    """Divides each lane's limit over the workers that reach it, and deals its cells out to them.

    Workers on one machine reach the same servers. A worker on another machine has a loopback of its own, so
    its local server is another lane: both are asked at once, each within its limit. As many workers ask on
    a lane as there are, but no more than requests may be in flight: a lane that allows one is asked by one.

    Attributes:
        shares: requests that each worker may have in flight, by provider. On each lane they add up to the
            lane's limit; a worker with 0 is dealt none of its cells.

    Args:
        reaches: what each worker reaches, by provider; every worker knows the same providers.

    Raises:
        ValueError: a provider is left without a worker, because two machines have swapped their addresses.
    """

    def __init__(self, reaches: Sequence[Mapping[str, Reach]]) -> None:
        self._holders: dict[str, list[int]] = {}
        self._limits = _limits(reaches)
        self._dealt: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        lanes_of: dict[str, list[str]] = {}
        group: dict[str, list[int]] = {}
        for worker, reached in enumerate(reaches):
            for provider, reach in reached.items():
                lanes = lanes_of.setdefault(provider, [])
                if reach.lane not in lanes:
                    lanes.append(reach.lane)
                if worker not in group.setdefault(reach.lane, []):
                    group[reach.lane].append(worker)
        held = [0] * len(reaches)
        for lane, workers in group.items():
            # Who holds the fewest lanes, so that two lanes that allow one request each keep two workers busy.
            chosen = sorted(workers, key=lambda worker: held[worker])[: self._limits[lane]]
            self._holders[lane] = sorted(chosen)
            for worker in chosen:
                held[worker] += 1
        # A worker with a share may reach that lane through another provider only.
        self._asking = {
            provider: {
                lane: fitting
                for lane in lanes
                if (fitting := [w for w in self._holders[lane] if reaches[w][provider].lane == lane])
            }
            for provider, lanes in lanes_of.items()
        }
        for provider, by_lane in self._asking.items():
            if not by_lane:
                raise ValueError(f"no worker may ask {provider}: its addresses are others' on other machines")
        self.shares = [
            {provider: self._share(worker, reach.lane) for provider, reach in reached.items()}
            for worker, reached in enumerate(reaches)
        ]

    def deal(self, provider: str, *, is_kept: bool = False) -> int:
        """Return the worker of the provider's next cell: its lanes by their limits, their workers in turn.

        Args:
            provider: of the cell.
            is_kept: it is not asked again, so what is asked is dealt without a look at it.
        """
        asking, dealt = self._asking[provider], self._kept if is_kept else self._dealt
        lane = min(asking, key=lambda lane: dealt[lane] / self._limits[lane])
        workers = asking[lane]
        worker = workers[dealt[lane] % len(workers)]
        dealt[lane] += 1
        return worker

    def _share(self, worker: int, lane: str) -> int:
        holders, limit = self._holders[lane], self._limits[lane]
        if worker not in holders:
            return 0
        return limit // len(holders) + (holders.index(worker) < limit % len(holders))
