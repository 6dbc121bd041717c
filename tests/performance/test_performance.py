"""Every measure runs to its end, and its arithmetic is right; speed does not matter here."""

from pathlib import Path

import pytest

from tests.performance.__main__ import MEASURES, measure, render
from tests.performance.measures import Sample, errors_of, ideal_share, per_cell_ms
from tests.performance.programs import Cost, Run
from tests.performance.server import Served

pytestmark = pytest.mark.newest

LOG = {"a": Served(10.0, 10.1, 10.2), "b": Served(10.25, 10.4, 10.5)}
PAGE = """\
- machine

|  | target |  | ours | loop |
| --- | --- | --- | --- | --- |
| s | ≤ 1 | **missed** | 1.25 (0.5 – 150) | – |
| share | ≥ 0.98 | met | 0.981 | – |
| ms |  |  | – | 2 |
"""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.nightly) for name in MEASURES])
def test_a_measure_runs_to_its_end(name):
    """Every run counts, and the measure has targets."""
    text = measure([name], passes=1, scale=0.005)

    assert "did not count" not in text
    assert "| met |" in text or "| **missed** |" in text


def test_figures_are_by_the_servers_log():
    """Two rounds took half a second; errors count alike in both directions, answer by answer."""
    run = Run(Path(), Cost(1.0, 1.0, 1.0), LOG, {"a": (101.0, 198.0), "b": (150.0, 253.0)})

    assert ideal_share(LOG, 2) == pytest.approx(0.39 / 0.5)
    assert errors_of(run)["ttft_ms"] == pytest.approx([1.0, 0.0])
    assert errors_of(run)["e2e_ms"] == pytest.approx([2.0, 3.0])
    assert per_cell_ms(0.5, 1.5, 11) == 100.0


def test_the_page_has_targets_first():
    """A figure is the median of its passes, with the smallest and the largest; a target is met or missed."""
    seconds = [Sample("ours", "s", value, most=1.0) for value in (0.5, 150.4, 1.25)]
    others = [Sample("loop", "ms", 2.0), Sample("ours", "share", 0.981, least=0.98)]

    assert render(["machine"], [*seconds, *others]) == PAGE
