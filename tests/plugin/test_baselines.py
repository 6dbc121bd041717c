"""A run that is compared with an earlier one."""

import json
import os

import pytest

from pytest_openclaw.cli import main
from tests.plugin.conftest import YES

pytestmark = pytest.mark.newest

GATE = ("--openclaw-verdict=gate", "--openclaw-fail-on=regression")


def _suite(project, *, n_bad, n=9):
    project.suite({f"P{k}": ("say no" if k < n_bad else "say yes", YES) for k in range(n)})


def _run(project, run_id, *args, **more):
    return project.run(f"--openclaw-run-id={run_id}", *args, **more)


@pytest.mark.parametrize(
    ("n_bad", "status", "ruling", "word"),
    [
        pytest.param(6, 1, "failed", "worse", id="worse"),
        pytest.param(5, 0, "passed", "no difference seen", id="chance"),
    ],
)
def test_a_regression_fails(project, n_bad, status, ruling, word):
    """The model answers the same questions worse; here changes of the prompts are ignored."""
    _suite(project, n_bad=0)
    _run(project, "before")
    _suite(project, n_bad=n_bad)

    session = _run(project, "after", "--openclaw-baseline=before", "--openclaw-across=prompt", *GATE)

    assert session.status == status
    summary = session.summary
    assert [(gate["gate"], gate["ruling"]) for gate in summary["gates"]] == [("fail-on-regression", ruling)]
    assert summary["comparison"]["baseline"] == "before"
    (target,) = summary["comparison"]["targets"]
    assert (target["target"], target["verdicts"]["word"]) == ("scripted/m", word)
    assert f"9/9 -> {9 - n_bad}/9" in session.text
    assert "The baseline is before" in session.page
    config = session.load("config.json")
    assert (config["baseline"], config["across"]) == ("before", ["prompt"])


def test_the_ini_file_can_name_a_baseline(plain_project, monkeypatch):
    """It can be switched off for the first run; later ones find it from any folder."""
    _suite(plain_project, n_bad=0)
    plain_project.ini(
        "openclaw_baseline = last", "openclaw_fail_on = regression", "openclaw_across = serving"
    )

    first = _run(plain_project, "first", "--openclaw-baseline=off", "--openclaw-fail-on=off")
    monkeypatch.chdir(plain_project.folder / "benchmarks")
    second = _run(plain_project, "second", target=".")

    assert (first.status, second.status) == (0, 0)
    assert first.summary["comparison"] is None
    assert second.summary["comparison"]["baseline"] == "first"
    assert "gate passed" in second.text


def test_a_resumed_run_is_compared_if_its_command_says_so(plain_project):
    """The baseline is not part of the run: the gate needs it again, and it is never the run itself."""
    _suite(plain_project, n_bad=0)
    _run(plain_project, "before")
    _run(plain_project, "after", "--openclaw-baseline=before", *GATE)

    refused = plain_project.run("--openclaw-resume=after", models=None)
    itself = plain_project.run("--openclaw-resume=after", "--openclaw-baseline=after", models=None)
    resumed = plain_project.run("--openclaw-resume=after", "--openclaw-baseline=last", models=None)
    without = plain_project.run("--openclaw-resume=after", "--openclaw-fail-on=off", models=None)

    refused.is_refused("name the run to compare with")
    assert itself.status == pytest.ExitCode.USAGE_ERROR
    assert (resumed.status, without.status) == (0, 0)
    assert "compared with     before" in resumed.text
    assert "compared with" not in without.text


def test_a_session_and_the_command_agree(plain_project, capsys):
    """Figures and words do not depend on which of them compares."""
    across = ("--openclaw-baseline=before", "--openclaw-across=prompt")
    _suite(plain_project, n_bad=1)
    _run(plain_project, "before", "--openclaw-repeat=2")
    _suite(plain_project, n_bad=3)
    session = _run(plain_project, "after", "--openclaw-repeat=3", *across)
    capsys.readouterr()

    status = main(["compare", "before", "after", "--across=prompt", "--json"])

    printed = json.loads(capsys.readouterr().out)
    assert status == 0
    comparison = session.summary["comparison"]
    assert {name: printed[name] for name in comparison} == comparison
    assert comparison["targets"][0]["verdicts"]["n_cells"] == 18
    assert [(one["reason"], one["n_cells"]) for one in comparison["set_aside"]] == [("only_in_candidate", 9)]


@pytest.mark.skipif(os.name == "nt", reason="Windows lets few users make links")
@pytest.mark.parametrize("option", ["resume", "baseline"])
def test_a_run_from_elsewhere_may_not_lead_out_of_its_folder(plain_project, option):
    """A link in it is wrong usage before the first request, and its target is not shown."""
    _suite(plain_project, n_bad=0, n=1)
    outside = plain_project.folder / "outside.txt"
    outside.write_text("canary-7f3a")
    run = plain_project.folder / "runs/before"
    run.mkdir(parents=True)
    (run / "results.jsonl").touch()
    (run / "config.json").symlink_to(outside)

    session = plain_project.run(f"--openclaw-{option}=before")

    session.is_refused(f"--openclaw-{option}=before: {run}/config.json is not a regular file in its folder")
    assert "canary" not in session.text
