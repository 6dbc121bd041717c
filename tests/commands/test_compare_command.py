"""`compare`: what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_openclaw.cli import main
from tests.unit.runs.stored_runs import A, B, files_of, row, store


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs of a target: a good one, a worse one and one with other questions; and one of another target."""
    monkeypatch.chdir(tmp_path)
    for name, target, passes in (("good", A, 9), ("same", A, 9), ("bad", A, 2), ("other", B, 9)):
        rows = [row(target, f"P{n}", objective_pass=n < passes) for n in range(9)]
        store(tmp_path / "runs" / name, rows)
    store(tmp_path / "runs" / "unlike", [row(A, "P0")], stream=False)
    return tmp_path / "runs"


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        pytest.param(["good", "bad"], ["good -> bad", "lab/a: worse"], id="worse-is-printed"),
        pytest.param(["bad", "good"], ["lab/a: better"], id="better"),
        pytest.param(["good", "same"], ["lab/a: no difference seen"], id="the-same"),
        pytest.param(["good", "other"], ["lab/a -> lab/b@low: no difference seen"], id="two-models"),
        pytest.param(["good", "bad", "--target=lab/a"], ["lab/a: worse"], id="named"),
    ],
)  # fmt: skip
def test_a_run_is_compared_with_another(
    runs: Path, words: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every target gets a verdict, and the runs stay as they are."""
    before = {path.name: files_of(path) for path in runs.iterdir()}

    assert main(["compare", *words]) == 0

    assert set(lines) <= set(capsys.readouterr().out.splitlines())
    assert {path.name: files_of(path) for path in runs.iterdir()} == before


def test_what_only_one_run_has_is_set_aside(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs without a common target are not compared."""
    rows = [row(target, "P1") for target in (A, B)]
    store(runs / "both", rows)
    store(runs / "neither", [row(B.__class__(provider="lab", model="c"), "P1")])

    assert main(["compare", "both", "neither"]) == 0

    shown = capsys.readouterr().out
    assert "no target is in both runs; --target BASE=CANDIDATE says which to compare" in shown
    assert "set aside: 1 cell of lab/c: only in the candidate: P1" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["good", "lost"], "there is no run lost", id="no-run"),
        pytest.param(["good", "bad", "--across=moon"], "unknown difference 'moon'", id="no-difference"),
        pytest.param(["good", "bad", "--target=lab/x"], "--target: good has no target lab/x", id="no-target"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(
    runs: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr, and exit status 4."""
    assert main(["compare", *words]) == 4
    assert message in capsys.readouterr().err


def test_json_has_every_figure(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON has the same figures as a summary."""
    main(["compare", "good", "bad", "--json"])

    printed = json.loads(capsys.readouterr().out)
    assert (printed["baseline"], printed["candidate"]) == ("good", "bad")
    assert printed["targets"][0]["verdicts"]["word"] == "worse"
