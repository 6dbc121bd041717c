"""Projects that `init` has begun: their first run, and the steps of their workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.commands import main

HEAD = "        word, _, rest = request.prompt.partition"
ANSWER = "        return Reply(text='Paris, and `df -h`')\n"


@pytest.fixture
def begun(plain_project: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A project after `init`, whose model answers every question alike."""
    monkeypatch.chdir(plain_project.folder)
    conftest = plain_project.folder / "conftest.py"
    conftest.write_text(conftest.read_text("utf-8").replace(HEAD, ANSWER + HEAD), "utf-8")
    assert main(["init", "--models", "scripted/m"]) == 0
    return plain_project


def test_the_first_run_works(begun: Any) -> None:
    """`pytest benchmarks/` asks the four prompts, without a word about models, and leaves a run."""
    session = begun.run(models=None, target="benchmarks/")

    session.outcomes(passed=3, failed=1)
    assert [row["prompt_id"] for row in session.rows] == ["M1", "M2", "M3", "M4"]
    assert {row["availability_status"] for row in session.rows} == {"ok"}
    for words in (["show", "last", "M4"], ["history"], ["export", "last"]):
        assert main(words) == 0


def test_a_bare_session_stays_with_the_tests(begun: Any) -> None:
    """Where the project had tests, they alone are run, and no model is asked."""
    (begun.folder / "tests").mkdir()
    (begun.folder / "tests/test_mine.py").write_text("def test_mine(): pass\n")
    (begun.folder / "pytest.ini").unlink()
    assert main(["init", "--models", "scripted/m"]) == 0

    session = begun.run(models=None, target="")

    session.outcomes(passed=1)
    assert not session.has_run


def test_the_workflow_asks_without_a_verdict(begun: Any) -> None:
    """Its step that asks ends well although a prompt was missed, until its author sets a gate."""
    workflow = (begun.folder / ".github/workflows/openclaw.yml").read_text("utf-8")
    (command,) = (line.strip() for line in workflow.splitlines() if "python -m pytest benchmarks" in line)
    words = command.removeprefix("python -m pytest ").removesuffix(' "$@"').split()
    words.remove("--openclaw-run-id=whole")

    assert begun.run(*words, models=None, target="").status == 0
    assert begun.run(*words, "--openclaw-min-pass-rate=0.8", models=None, target="").status == 1
    assert Path("runs").is_dir()
    assert "          path: runs/whole\n" in workflow
