"""Items that another plugin runs again: one request and one row for each cell."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.newest

PROVIDER = """
import pathlib
from pytest_openclaw import Provider, Reply

ASKED = pathlib.Path(__file__).with_name("asked.txt")


class Learner(Provider):
    name = "learner"

    async def ask(self, request):
        with ASKED.open("a") as file:
            file.write(request.prompt + "\\n")
        return Reply(text="yes")


def pytest_openclaw_providers():
    return [Learner]
"""


@pytest.mark.under_workers
def test_a_cell_that_runs_again_is_asked_once(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure under pytest-rerunfailures has one row, and its rate is that of a run without reruns."""
    pytest.importorskip("pytest_rerunfailures")
    monkeypatch.delenv("PYTEST_ADDOPTS")
    project.pytester.makeconftest(PROVIDER)
    project.suite(
        {f"P{n}": (f"say {word}", {"type": "exact", "value": word}) for n, word in enumerate(["yes", "no"])}
    )

    session = project.run("--reruns=2", models="learner/m")

    outcomes = session.result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (1, 1)
    assert [session.row(name)["objective_pass"] for name in ("P0", "P1")] == [True, False]
    assert session.summary["groups"][0]["objective_pass_rate"] == 0.5
    assert sorted((project.folder / "asked.txt").read_text().splitlines()) == ["say no", "say yes"]
