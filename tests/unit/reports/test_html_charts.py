"""The places of points on the axes of the page's charts."""

from __future__ import annotations

import pytest

from pytest_openclaw.reports.html.pieces import ChartPoint, times


@pytest.mark.parametrize("ms", [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 2000.0)])
def test_times_of_a_fast_server_have_a_place_on_the_axis(ms: tuple[float, float]) -> None:
    """A row has whole milliseconds, so that every one of a run may be 0; on the axis it is drawn as 1."""
    low, high = ms

    given = ChartPoint(target="a/m", value=low, low=low, high=high, shown="")
    (point,) = times("Latency", [given]).points

    assert 0 <= point.low == point.value <= point.high <= 1
