"""`compare`: what it prints."""

import pytest

from pytest_openclaw.values.requests import Target
from tests.unit.runs.stored_runs import A, B, files_of, row, store


@pytest.fixture
def runs(project):
    """Three runs of a target, a good one, an equal one and a worse one; one of another target; one of both."""
    for name, target, passes in (("good", A, 9), ("same", A, 9), ("bad", A, 2), ("other", B, 9)):
        rows = [row(target, f"P{n}", objective_pass=n < passes) for n in range(9)]
        store(project / "runs" / name, rows)
    both = [
        row(target, f"P{n}", objective_pass=n < passes)
        for target, passes in ((A, 9), (B, 2))
        for n in range(9)
    ]
    store(project / "runs/both", both)
    return project / "runs"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(["good", "bad"], "lab/a: worse", id="worse"),
        pytest.param(["bad", "good"], "lab/a: better", id="better"),
        pytest.param(["good", "same"], "lab/a: no difference seen", id="the-same"),
        pytest.param(["good", "other"], "lab/a -> lab/b@low: no difference seen", id="two-models"),
        pytest.param(["good", "bad", "--target=lab/a"], "lab/a: worse", id="named"),
    ],
)
def test_a_run_is_compared_with_another(runs, words, line, command):
    """Every target gets a verdict, JSON has the same, and the runs stay unchanged."""
    before = {path.name: files_of(path) for path in runs.iterdir()}

    lines = command("compare", *words).out.splitlines()
    data = command.json("compare", *words)

    assert {" -> ".join(words[:2]), line} <= set(lines)
    assert [data["baseline"], data["candidate"]] == words[:2]
    assert line.endswith(data["targets"][0]["verdicts"]["word"])
    assert {path.name: files_of(path) for path in runs.iterdir()} == before


def test_two_targets_of_one_run_are_compared(runs, command):
    """With all their cells: both are in the run, and no cell is set aside."""
    shown = command("compare", "both", "--target=lab/a=lab/b@low").out

    assert shown.startswith("both\n\nlab/a -> lab/b@low: worse\n")
    assert "set aside" not in shown


def test_cells_of_only_one_run_are_set_aside(runs, command):
    """Runs without a common target are not compared."""
    store(runs / "neither", [row(Target(provider="lab", model="c"), "P1")])

    shown = command("compare", "both", "neither").out

    assert "no target is in both runs; select two with --target BASE=CANDIDATE" in shown
    assert "1 cell of lab/c: only in the candidate: P1" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--across=moon"], "unknown difference 'moon'", id="no-difference"),
        pytest.param(["--target=lab/x"], "--target: good has no target lab/x", id="no-target"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(runs, words, message, command):
    """One line on stderr, and exit status 4."""
    assert message in command.refused("compare", "good", "bad", *words)
