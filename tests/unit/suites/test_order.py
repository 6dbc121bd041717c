"""The order of cells: endpoints interleaved, targets one after the other."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.suites.cells import spread
from pytest_openclaw.values.requests import Target

LOCAL_A, LOCAL_B = Target(provider="ollama", model="a"), Target(provider="ollama", model="b")
CLOUD = Target(provider="cloud", model="c")
ENDPOINTS = {LOCAL_A: "http://local", CLOUD: "https://cloud", LOCAL_B: "http://local"}


def _order(cells: list[tuple[str, Target]]) -> list[str]:
    return [name for name, _ in spread(cells, target_of=lambda cell: cell[1], endpoints=ENDPOINTS)]


def test_one_endpoint_goes_target_by_target() -> None:
    """A local model is loaded once, whatever order the suites have."""
    cells = [("P1b", LOCAL_B), ("P1a", LOCAL_A), ("P2b", LOCAL_B), ("P2a", LOCAL_A)]

    assert _order(cells) == ["P1a", "P2a", "P1b", "P2b"]


def test_endpoints_are_mixed_evenly() -> None:
    """A cloud's two cells are among the four of two local models, not after them."""
    cells = [
        *((f"a{n}", LOCAL_A) for n in range(2)),
        *((f"c{n}", CLOUD) for n in range(2)),
        *((f"b{n}", LOCAL_B) for n in range(2)),
    ]

    assert _order(cells) == ["a0", "c0", "a1", "b0", "c1", "b1"]


def test_a_target_goes_repeat_by_repeat() -> None:
    """Also over several suites, each with its own repeats next to each other."""
    cells = [(f"{suite}{prompt}-r{n}", LOCAL_A, n) for suite in "AB" for n in (1, 2) for prompt in (1, 2)]

    mixed = spread(cells, target_of=lambda c: c[1], endpoints=ENDPOINTS, repeat_of=lambda c: c[2])

    assert [c[0] for c in mixed] == [
        f"{suite}{prompt}-r{n}" for n in (1, 2) for suite in "AB" for prompt in (1, 2)
    ]


@given(targets=st.lists(st.sampled_from(list(ENDPOINTS))))
def test_spreading_loses_nothing_and_keeps_each_target_in_order(targets: list[Target]) -> None:
    """The same cells come out; a target's cells stay in their order, one target an endpoint at a time."""
    cells = [(f"{n:03}", target) for n, target in enumerate(targets)]

    mixed = spread(cells, target_of=lambda cell: cell[1], endpoints=ENDPOINTS)

    assert sorted(mixed) == sorted(cells)
    for target in ENDPOINTS:
        assert [c for c in mixed if c[1] == target] == [c for c in cells if c[1] == target]
    local = [target for _, target in mixed if ENDPOINTS[target] == "http://local"]
    assert local == sorted(local, key=[LOCAL_A, LOCAL_B].index)
