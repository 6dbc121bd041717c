"""How an endpoint's limit is divided over hosts."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw import Provider, ProviderSetup, Reply, Request
from pytest_openclaw.asking.shares import Allocation, HostEndpoint, reaches
from pytest_openclaw.types.settings import Settings

# --- over hosts ---------------------------------------------------------------------------------


def _allocation(*hosts: dict[str, tuple[str, int]]) -> Allocation:
    return Allocation(
        [
            {name: HostEndpoint(endpoint=endpoint, limit=limit) for name, (endpoint, limit) in seen.items()}
            for seen in hosts
        ]
    )


def test_a_local_endpoint_is_one_endpoint_a_host() -> None:
    """Two hosts, each with its own server that allows one request: both ask, one at a time."""
    allocation = _allocation({"ollama": ("north 11434", 1)}, {"ollama": ("south 11434", 1)})

    assert allocation.shares == [{"ollama": 1}, {"ollama": 1}]
    assert [allocation.assign("ollama") for _ in range(5)] == [0, 1, 0, 1, 0]


def test_an_endpoint_that_allows_one_request_is_one_hosts() -> None:
    """Two hosts that use the same server: one of them asks."""
    allocation = _allocation(*[{"ollama": ("here 11434", 1)}] * 2)

    assert allocation.shares == [{"ollama": 1}, {"ollama": 0}]
    assert {allocation.assign("ollama") for _ in range(5)} == {0}


def test_an_endpoint_for_all_is_divided_over_all() -> None:
    """A server that every host reaches has one limit, however many hosts there are."""
    allocation = _allocation(*[{"cloud": ("https://api", 8)}] * 3)

    assert allocation.shares == [{"cloud": 3}, {"cloud": 3}, {"cloud": 2}]
    assert Counter(allocation.assign("cloud") for _ in range(9)) == {0: 3, 1: 3, 2: 3}


def test_two_endpoints_of_one_request_keep_two_hosts_busy() -> None:
    """An endpoint goes to the host with the fewest."""
    allocation = _allocation(*[{"a": ("endpoint a", 1), "b": ("endpoint b", 1)}] * 2)

    assert allocation.shares == [{"a": 1, "b": 0}, {"a": 0, "b": 1}]


def test_two_providers_of_one_endpoint_are_asked_by_the_same_host() -> None:
    """Providers with equal endpoints share its limit, so one host sends its only request."""
    allocation = _allocation(*[{"a": ("endpoint", 1), "b": ("endpoint", 1)}] * 2)

    assert {allocation.assign(name) for name in "abab"} == {0}


def test_a_wider_endpoint_is_assigned_more() -> None:
    """If hosts reach endpoints with different limits, cells are assigned in proportion."""
    allocation = _allocation({"lab": ("north", 1)}, {"lab": ("https://far", 3)})

    assert Counter(allocation.assign("lab") for _ in range(40)) == {0: 10, 1: 30}


@given(
    reached=st.lists(
        st.tuples(st.sampled_from("xyz"), st.integers(1, 9), st.booleans()), min_size=1, max_size=8
    ),
    cells=st.lists(st.sampled_from("ab"), max_size=60),
)
def test_no_endpoint_is_asked_beyond_its_limit(
    reached: list[tuple[str, int, bool]], cells: list[str]
) -> None:
    """The shares of an endpoint add up to its limit, and only a host with a share is assigned its cells."""
    hosts = [
        {"a": (endpoint, limit), "b": (endpoint, limit) if is_same else ("far", 5)}
        for endpoint, limit, is_same in reached
    ]
    allocation = _allocation(*hosts)
    endpoints = {endpoint for seen in hosts for endpoint, _ in seen.values()}

    for endpoint in endpoints:
        limit = min(limit for seen in hosts for at, limit in seen.values() if at == endpoint)
        shares = [
            max(allocation.shares[n][name] for name, (at, _) in seen.items() if at == endpoint)
            for n, seen in enumerate(hosts)
            if any(at == endpoint for at, _ in seen.values())
        ]
        assert sum(shares) == limit
    for name in cells:
        assert allocation.shares[allocation.assign(name)][name] >= 1


def test_swapped_addresses_are_refused() -> None:
    """If no host could ask a provider without exceeding an endpoint's limit of one, this is an error."""
    with pytest.raises(ValueError, match="no worker may ask b"):
        _allocation({"a": ("x", 1), "b": ("y", 1)}, {"a": ("y", 1), "b": ("x", 1)})


class _Somewhere(Provider):
    """A provider with an endpoint that the test sets."""

    def __init__(self, endpoint: str, *, is_local: bool) -> None:
        super().__init__(ProviderSetup(name="lab"))
        self._endpoint, self._is_local = endpoint, is_local

    async def ask(self, request: Request) -> Reply:
        raise AssertionError("limits are divided without a request")

    @property
    def endpoint(self) -> str:
        return self._endpoint

    @property
    def is_local(self) -> bool:
        return self._is_local


@pytest.mark.parametrize(
    ("endpoint", "is_local", "own"),
    [
        pytest.param("http://127.0.0.1:11434/v1", True, True, id="loopback"),
        pytest.param("http://[::1]:8000/v1", True, True, id="loopback-6"),
        pytest.param("http://localhost:8000/v1", True, True, id="localhost"),
        pytest.param("llama_cpp", True, True, id="engine"),
        pytest.param("http://[", True, True, id="any-name"),
        pytest.param("http://192.168.1.20:11434/v1", True, False, id="ollama-elsewhere"),
        pytest.param("https://api.openai.com/v1", False, False, id="cloud"),
        pytest.param("claude_code_cli", False, False, id="cli"),
    ],
)
def test_which_endpoints_belong_to_a_machine(endpoint: str, is_local: bool, own: bool) -> None:
    """A loopback address and an engine belong to each machine; another address is the same for all."""
    provider = _Somewhere(endpoint, is_local=is_local)

    north, south = (reaches({"lab": provider}, Settings(), machine)["lab"] for machine in ("n", "s"))

    assert (north.endpoint != south.endpoint) is own
    assert north.limit == (1 if is_local else 8)
