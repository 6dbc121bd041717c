"""How an endpoint's limit is divided over the hosts of a run.

A host is a machine, or an environment on it that reaches other servers.
"""

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


@dataclass(frozen=True, kw_only=True)
class HostEndpoint:
    """The endpoint on which a host reaches a provider.

    Attributes:
        endpoint: equal for two hosts that reach the same server, and for these only.
        limit: requests in flight over all hosts that reach it.
    """

    endpoint: str
    limit: int


def reaches(providers: Mapping[str, Provider], settings: Settings, machine: str) -> dict[str, HostEndpoint]:
    """Return what a process on `machine` reaches, by provider."""
    return {
        name: HostEndpoint(
            endpoint=f"{machine} {provider.endpoint}" if _is_own(provider) else provider.endpoint,
            limit=settings.concurrency.limit(name, is_local=provider.is_local),
        )
        for name, provider in providers.items()
    }


def _is_own(provider: Provider) -> bool:
    """Whether the endpoint is the machine's own: Ollama itself always counts as local."""
    try:
        host = urlsplit(provider.endpoint).hostname
    except ValueError:  # a plugin's endpoint has any name
        host = None
    return provider.is_local and (host is None or is_loopback(host))


def whole_limits(reached: Sequence[Mapping[str, HostEndpoint]]) -> list[dict[str, int]]:
    """Return the limit of each host's endpoints, by provider, for hosts that each have the whole of it.

    Providers with equal endpoints have one limit, the smallest.
    """
    limits = _limits(reached)
    return [{provider: limits[reach.endpoint] for provider, reach in seen.items()} for seen in reached]


def _limits(reached: Sequence[Mapping[str, HostEndpoint]]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for seen in reached:
        for reach in seen.values():
            limits[reach.endpoint] = min(reach.limit, limits.get(reach.endpoint, reach.limit))
    return limits


class Allocation:
    """Divides each endpoint's limit over the hosts that reach it, and assigns its cells to them.

    A host has a loopback of its own, so its local server is another endpoint: two hosts ask theirs at once,
    each within its limit. A server that several hosts reach is asked by as many as requests may be in
    flight: an endpoint that allows one is asked by one host.

    Attributes:
        shares: requests that each host may have in flight, by provider. On each endpoint they add up to the
            endpoint's limit; a host with 0 is assigned none of its cells.

    Args:
        reaches: what each host reaches, by provider; every host knows the same providers.

    Raises:
        ValueError: a provider is left without a host, because two of them have swapped their addresses.
    """

    def __init__(self, reaches: Sequence[Mapping[str, HostEndpoint]]) -> None:
        self._limits = _limits(reaches)
        self._n_assigned: Counter[tuple[str, bool]] = Counter()
        holders = self._holders_of(reaches)
        self.shares = [
            {
                name: _share(holders[reach.endpoint], host, self._limits[reach.endpoint])
                for name, reach in reached.items()
            }
            for host, reached in enumerate(reaches)
        ]
        # A host with a share may reach that endpoint through another provider only.
        self._asking: dict[str, dict[str, list[int]]] = {}
        for host, reached in enumerate(reaches):
            for name, reach in reached.items():
                by_endpoint = self._asking.setdefault(name, {})
                if host in holders[reach.endpoint]:
                    by_endpoint.setdefault(reach.endpoint, []).append(host)
        for name, by_endpoint in self._asking.items():
            if not by_endpoint:
                raise ValueError(f"no worker may ask {name}: its addresses are others' on other machines")

    def assign(self, provider: str, *, is_kept: bool = False) -> int:
        """Return the host of the provider's next cell: endpoints by their limits, their hosts in turn.

        Args:
            provider: of the cell.
            is_kept: it is not sent again, so it does not count for those that are.
        """
        asking = self._asking[provider]
        endpoint = min(asking, key=lambda one: self._n_assigned[one, is_kept] / self._limits[one])
        hosts = asking[endpoint]
        host = hosts[self._n_assigned[endpoint, is_kept] % len(hosts)]
        self._n_assigned[endpoint, is_kept] += 1
        return host

    def _holders_of(self, reaches: Sequence[Mapping[str, HostEndpoint]]) -> dict[str, list[int]]:
        """Return the hosts that ask on each endpoint: those first that hold the fewest."""
        group: dict[str, dict[int, None]] = {}
        for host, reached in enumerate(reaches):
            for reach in reached.values():
                group.setdefault(reach.endpoint, {})[host] = None
        n_held = [0] * len(reaches)
        holders = {}
        for endpoint, hosts in group.items():
            chosen = sorted(hosts, key=lambda host: n_held[host])[: self._limits[endpoint]]
            holders[endpoint] = sorted(chosen)
            for host in chosen:
                n_held[host] += 1
        return holders


def _share(holders: Sequence[int], host: int, limit: int) -> int:
    if host not in holders:
        return 0
    return limit // len(holders) + (holders.index(host) < limit % len(holders))
