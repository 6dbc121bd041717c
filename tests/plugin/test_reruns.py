"""Items that another plugin runs again: one row for each cell, and the first try counts."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.cli import main

pytestmark = pytest.mark.newest

# "right WORD" is answered with WORD, "wrong WORD" with something else, "later WORD" with WORD from the third
# request on.
PROVIDER = """
import pathlib
from pytest_openclaw import Provider, Reply

ASKED = pathlib.Path(__file__).with_name("asked.txt")


class Learner(Provider):
    name = "learner"

    async def ask(self, request):
        with ASKED.open("a") as file:
            file.write(request.prompt + "\\n")
        n_asked = ASKED.read_text().splitlines().count(request.prompt)
        how, _, word = request.prompt.partition(" ")
        return Reply(text=word if how == "right" or (how == "later" and n_asked > 2) else "hm")


def pytest_openclaw_providers():
    return [Learner]
"""
# Runs failures again and logs only the last try.
QUIET_RERUNS = """
import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    for _ in range(4):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if not any(report.failed for report in reports):
            break
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
SUITE: dict[str, Any] = {
    f"P{n}": (f"{how} {n}", {"type": "exact", "value": str(n)})
    for n, how in enumerate(["right", "wrong", "later"])
}


@pytest.fixture
def rerunfailures(_emptied: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions load pytest-rerunfailures."""
    pytest.importorskip("pytest_rerunfailures")
    monkeypatch.delenv("PYTEST_ADDOPTS")


@pytest.fixture(params=["pytest-rerunfailures", "logs-the-last-try"])
def rerunning(request: pytest.FixtureRequest, project: Any) -> tuple[str, ...]:
    """The options by which failures run again up to three times."""
    project.pytester.makeconftest(PROVIDER)
    if request.param == "pytest-rerunfailures":
        request.getfixturevalue("rerunfailures")
        return ("--reruns=3",)
    project.extend_conftest(QUIET_RERUNS)
    return ()


@pytest.mark.under_workers
def test_the_first_try_counts(project: Any, rerunning: tuple[str, ...]) -> None:
    """A cell has one row, with how later tries ended; rates are those of a run without reruns."""
    project.suite(SUITE)

    session = project.run(*rerunning, models="learner/m")

    outcomes = session.result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (2, 1)
    assert [session.row(name)["objective_pass"] for name in SUITE] == [True, False, False]
    tries = {row["prompt_id"]: [one["objective_pass"] for one in row["reruns"]] for row in session.rows}
    assert tries == {"P0": [], "P1": [False, False, False], "P2": [False, True]}
    (group,) = session.summary["groups"]
    assert (group["n_total"], group["objective_pass_rate"]) == (3, pytest.approx(1 / 3))
    assert session.summary["n_rerun"] == 2
    assert "the first try counts" in session.text


@pytest.mark.usefixtures("rerunfailures")
def test_stored_runs_keep_reruns(plain_project: Any) -> None:
    """A resumed run keeps a cell and its reruns; the summary of a merged one counts them from the rows."""
    plain_project.pytester.makeconftest(PROVIDER)
    plain_project.suite(SUITE)
    first = plain_project.run("--reruns=1", "-x", "--openclaw-run-id=r", models="learner/m")
    kept = first.row("P1")

    second = plain_project.run("--reruns=3", "--openclaw-resume=r", models="learner/m")

    assert second.row("P1") == kept
    assert (len(kept["reruns"]), second.summary["n_rerun"]) == (1, 1)
    assert main(["merge", "--into=c", "r"]) == 0
    assert '"n_rerun": 1' in (plain_project.folder / "runs" / "c" / "summary.json").read_text()
