"""The command that resumes a run."""

from __future__ import annotations

import pytest

from pytest_openclaw.session.owner import resume_command


@pytest.mark.parametrize(
    ("args", "command"),
    [
        pytest.param([], "pytest", id="nothing"),
        pytest.param(["benchmarks/", "-n", "2"], "pytest benchmarks/ -n 2", id="kept"),
        pytest.param(["benchmarks/", "--openclaw-models=a/b,c"], "pytest benchmarks/", id="models"),
        pytest.param(["--openclaw-models", "a/b", "benchmarks/"], "pytest benchmarks/", id="models-apart"),
        pytest.param(["b", "--openclaw-run-id=x", "--openclaw-resume", "last"], "pytest b", id="runs"),
        pytest.param(["b", "--openclaw-thinking=low", "--openclaw-providers=p"], "pytest b", id="crossed"),
        pytest.param(["b", "-x", "--sw", "--stepwise", "--exitfirst", "--maxfail=2", "--maxfail", "3"], "pytest b", id="stops"),
        pytest.param(["-xq", "b"], "pytest -q b", id="bundle"),
        pytest.param(["-k", "P1 or P2", "b"], "pytest -k 'P1 or P2' b", id="quoted"),
        pytest.param(["-k", "x", "b"], "pytest -k x b", id="a-word-x"),
        pytest.param(
            ["b", "--openclaw-verdict=gate", "--openclaw-prompts=P1", "--openclaw-runs-dir=o"],
            "pytest b --openclaw-verdict=gate --openclaw-prompts=P1 --openclaw-runs-dir=o",
            id="other-options",
        ),
    ],
)  # fmt: skip
def test_the_command_selects_the_same_cells(args: list[str], command: str) -> None:
    """The run's own settings are omitted, and options that would end it at a kept failure."""
    assert resume_command(args, "r1") == f"{command} --openclaw-resume=r1"
