"""Parts: how a lane's limit is divided over workers."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.run.parts import Part, Parts


@given(limit=st.integers(1, 70), workers=st.integers(1, 20), cells=st.integers(0, 200))
def test_the_parts_of_a_lane_keep_its_limit(limit: int, workers: int, cells: int) -> None:
    """No worker more than there are, no request more than allowed, and cells dealt out evenly."""
    parts = Parts(workers)
    dealt = [parts.deal("lane", limit) for _ in range(cells)]

    assert len(set(dealt)) <= workers
    assert sum(part.limit for part in set(dealt)) <= limit
    assert all(part.limit >= 1 for part in dealt)
    sizes = Counter(dealt).values()
    assert not sizes or max(sizes) - min(sizes) <= 1


def test_all_of_a_limit_is_used() -> None:
    """Seven requests over two workers are four and three; a lane that allows one has one part."""
    parts = Parts(2)

    assert {parts.deal("a", 7) for _ in range(4)} == {Part("a 0", 4), Part("a 1", 3)}
    assert {parts.deal("b", 1) for _ in range(4)} == {Part("b 0", 1)}
