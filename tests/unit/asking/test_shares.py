"""Parts: how a lane's limit is divided over workers."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw import Provider, ProviderSetup, Reply, Request
from pytest_openclaw.asking.shares import Division, Reach, reaches
from pytest_openclaw.types.settings import Settings

# --- over hosts ---------------------------------------------------------------------------------


def _crew(*workers: dict[str, tuple[str, int]]) -> Division:
    return Division(
        [{name: Reach(lane=lane, limit=limit) for name, (lane, limit) in seen.items()} for seen in workers]
    )


def test_a_local_lane_is_one_lane_a_host() -> None:
    """Two hosts, each with a server of its own that allows one request: both ask, one at a time."""
    crew = _crew({"ollama": ("north 11434", 1)}, {"ollama": ("south 11434", 1)})

    assert crew.shares == [{"ollama": 1}, {"ollama": 1}]
    assert [crew.deal("ollama") for _ in range(5)] == [0, 1, 0, 1, 0]


def test_on_one_host_a_local_lane_is_one_workers() -> None:
    """Two workers that reach the same server, which allows one request: one of them asks."""
    crew = _crew(*[{"ollama": ("here 11434", 1)}] * 2)

    assert crew.shares == [{"ollama": 1}, {"ollama": 0}]
    assert {crew.deal("ollama") for _ in range(5)} == {0}


def test_a_lane_for_all_is_divided_over_all() -> None:
    """A server that every host reaches has one limit, however many hosts there are."""
    crew = _crew(*[{"cloud": ("https://api", 8)}] * 3)

    assert crew.shares == [{"cloud": 3}, {"cloud": 3}, {"cloud": 2}]
    assert Counter(crew.deal("cloud") for _ in range(9)) == {0: 3, 1: 3, 2: 3}


def test_two_lanes_of_one_request_keep_two_workers_busy() -> None:
    """A lane goes to who has the fewest."""
    crew = _crew(*[{"a": ("lane a", 1), "b": ("lane b", 1)}] * 2)

    assert crew.shares == [{"a": 1, "b": 0}, {"a": 0, "b": 1}]


def test_two_providers_of_one_lane_are_asked_by_the_same_worker() -> None:
    """Providers with equal lanes share its limit, so its one request is one worker's."""
    crew = _crew(*[{"a": ("lane", 1), "b": ("lane", 1)}] * 2)

    assert {crew.deal(name) for name in "abab"} == {0}


def test_a_wider_lane_is_dealt_more() -> None:
    """Where hosts reach lanes of different limits, cells are dealt by these."""
    crew = _crew({"lab": ("north", 1)}, {"lab": ("https://far", 3)})

    assert Counter(crew.deal("lab") for _ in range(40)) == {0: 10, 1: 30}


@given(
    reached=st.lists(
        st.tuples(st.sampled_from("xyz"), st.integers(1, 9), st.booleans()), min_size=1, max_size=8
    ),
    cells=st.lists(st.sampled_from("ab"), max_size=60),
)
def test_no_lane_is_asked_beyond_its_limit(reached: list[tuple[str, int, bool]], cells: list[str]) -> None:
    """The shares of a lane add up to its limit, and only who has a share is dealt its cells."""
    workers = [
        {"a": (lane, limit), "b": (lane, limit) if is_same else ("far", 5)}
        for lane, limit, is_same in reached
    ]
    crew = _crew(*workers)
    lanes = {lane for seen in workers for lane, _ in seen.values()}

    for lane in lanes:
        limit = min(limit for seen in workers for at, limit in seen.values() if at == lane)
        shares = [
            max(crew.shares[n][name] for name, (at, _) in seen.items() if at == lane)
            for n, seen in enumerate(workers)
            if any(at == lane for at, _ in seen.values())
        ]
        assert sum(shares) == limit
    for name in cells:
        assert crew.shares[crew.deal(name)][name] >= 1


def test_swapped_addresses_are_refused() -> None:
    """Where nobody could ask a provider without two requests on a lane that allows one, that is said."""
    with pytest.raises(ValueError, match="no worker may ask b"):
        _crew({"a": ("x", 1), "b": ("y", 1)}, {"a": ("y", 1), "b": ("x", 1)})


class _Somewhere(Provider):
    """A provider with a lane of a test's choice."""

    def __init__(self, lane: str, *, is_local: bool) -> None:
        super().__init__(ProviderSetup(name="lab"))
        self._lane, self._is_local = lane, is_local

    async def ask(self, request: Request) -> Reply:
        raise NotImplementedError

    @property
    def lane(self) -> str:
        return self._lane

    @property
    def is_local(self) -> bool:
        return self._is_local


@pytest.mark.parametrize(
    ("lane", "is_local", "own"),
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
def test_whose_a_lane_is(lane: str, is_local: bool, own: bool) -> None:
    """A loopback address, an engine: each machine's own. An address elsewhere is the same for all."""
    provider = _Somewhere(lane, is_local=is_local)

    north, south = (reaches({"lab": provider}, Settings(), machine)["lab"] for machine in ("n", "s"))

    assert (north.lane != south.lane) is own
    assert north.limit == (1 if is_local else 8)
