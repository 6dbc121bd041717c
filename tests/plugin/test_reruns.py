"""Items that another plugin runs again: one request and one row for each cell."""

from typing import Any

import pytest

from tests.plugin.conftest import YES

pytestmark = pytest.mark.newest


@pytest.mark.under_workers
def test_a_cell_that_runs_again_is_asked_once(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure under pytest-rerunfailures has one row, and its rate is the rate of a run without reruns."""
    pytest.importorskip("pytest_rerunfailures")
    monkeypatch.delenv("PYTEST_ADDOPTS")
    project.suite({"P0": ("say yes", YES), "P1": ("say no", YES)})

    session = project.run("--reruns=2")

    outcomes = session.result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (1, 1)
    assert [session.row(name)["objective_pass"] for name in ("P0", "P1")] == [True, False]
    assert session.summary["groups"][0]["objective_pass_rate"] == 0.5
    assert sorted(session.asked) == ["m say no", "m say yes"]
