"""How an endpoint's limit is divided over the workers of a run."""

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
    """A process's part of an endpoint: `limit` of its requests may be in flight at once.

    Without workers it is the whole endpoint; with them the limits of an endpoint's parts add up to the
    endpoint's.
    """

    endpoint: str
    limit: int


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The endpoint on which a worker asks a provider.

    Attributes:
        endpoint: equal for two workers that reach the same server, and for these only.
        limit: requests in flight over all workers that reach it.
    """

    endpoint: str
    limit: int


def reaches(providers: Mapping[str, Provider], settings: Settings, machine: str) -> dict[str, Reach]:
    """Return what a process on `machine` reaches, by provider."""
    return {
        name: Reach(
            endpoint=f"{machine} {provider.endpoint}" if _is_own(provider) else provider.endpoint,
            limit=settings.concurrency.limit(name, is_local=provider.is_local),
        )
        for name, provider in providers.items()
    }


def _is_own(provider: Provider) -> bool:
    """Whether the endpoint is the asking machine's own: Ollama itself always counts as local."""
    try:
        host = urlsplit(provider.endpoint).hostname
    except ValueError:  # a guest's endpoint has any name
        host = None
    return provider.is_local and (host is None or is_loopback(host))


def whole_limits(reached: Sequence[Mapping[str, Reach]]) -> list[dict[str, int]]:
    """Return the limit of each worker's endpoints, by provider, for workers that share the limits.

    Providers with equal endpoints have one limit, the smallest.
    """
    limits = _limits(reached)
    return [{provider: limits[reach.endpoint] for provider, reach in seen.items()} for seen in reached]


def _limits(reached: Sequence[Mapping[str, Reach]]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for seen in reached:
        for reach in seen.values():
            limits[reach.endpoint] = min(reach.limit, limits.get(reach.endpoint, reach.limit))
    return limits


class Division:
    """Divides each endpoint's limit over the workers that reach it, and deals its cells out to them.

    Workers on one machine reach the same servers. A worker on another machine has a loopback of its own, so
    its local server is another endpoint: both are asked at once, each within its limit. As many workers ask
    on an endpoint as there are, but no more than requests may be in flight: an endpoint that allows one is
    asked by one.

    Attributes:
        shares: requests that each worker may have in flight, by provider. On each endpoint they add up to the
            endpoint's limit; a worker with 0 is dealt none of its cells.

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
        endpoints_of: dict[str, list[str]] = {}
        group: dict[str, list[int]] = {}
        for worker, reached in enumerate(reaches):
            for provider, reach in reached.items():
                endpoints = endpoints_of.setdefault(provider, [])
                if reach.endpoint not in endpoints:
                    endpoints.append(reach.endpoint)
                if worker not in group.setdefault(reach.endpoint, []):
                    group[reach.endpoint].append(worker)
        held = [0] * len(reaches)
        for endpoint, workers in group.items():
            # Who holds the fewest endpoints, so that two endpoints that allow one request each keep two
            # workers busy.
            chosen = sorted(workers, key=lambda worker: held[worker])[: self._limits[endpoint]]
            self._holders[endpoint] = sorted(chosen)
            for worker in chosen:
                held[worker] += 1
        # A worker with a share may reach that endpoint through another provider only.
        self._asking = {
            provider: {
                endpoint: fitting
                for endpoint in endpoints
                if (
                    fitting := [
                        w for w in self._holders[endpoint] if reaches[w][provider].endpoint == endpoint
                    ]
                )
            }
            for provider, endpoints in endpoints_of.items()
        }
        for provider, by_endpoint in self._asking.items():
            if not by_endpoint:
                raise ValueError(f"no worker may ask {provider}: its addresses are others' on other machines")
        self.shares = [
            {provider: self._share(worker, reach.endpoint) for provider, reach in reached.items()}
            for worker, reached in enumerate(reaches)
        ]

    def deal(self, provider: str, *, is_kept: bool = False) -> int:
        """Return the worker of the provider's next cell: endpoints by their limits, their workers in turn.

        Args:
            provider: of the cell.
            is_kept: it is not asked again, so what is asked is dealt without a look at it.
        """
        asking, dealt = self._asking[provider], self._kept if is_kept else self._dealt
        endpoint = min(asking, key=lambda endpoint: dealt[endpoint] / self._limits[endpoint])
        workers = asking[endpoint]
        worker = workers[dealt[endpoint] % len(workers)]
        dealt[endpoint] += 1
        return worker

    def _share(self, worker: int, endpoint: str) -> int:
        holders, limit = self._holders[endpoint], self._limits[endpoint]
        if worker not in holders:
            return 0
        return limit // len(holders) + (holders.index(worker) < limit % len(holders))
