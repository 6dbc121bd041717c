"""The Claude CLI in whole sessions: its process ends with its cell, and a missing one is never a pass."""

import sys

import pytest

from tests.providers.fake_claude import DUMMY_KEY, command, dies

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is named in POSIX quoting"),
]

EXACT = {"type": "exact", "value": "Hello"}


@pytest.fixture(autouse=True)
def _fake(_emptied, monkeypatch):
    monkeypatch.setenv("OPENCLAW_CLAUDE_COMMAND", command("prompted"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", DUMMY_KEY)


def test_a_cli_that_does_not_end_loses_its_own_cell(project):
    """It is killed after its time, with its row; another cell is answered, and the inventory names the CLI."""
    pid = project.folder / "pid"
    project.suite({"P1": ("hello", EXACT), "P2": (f"stubborn {pid}", EXACT)})

    session = project.run("--openclaw-timeout=4", "--openclaw-concurrency=4", models="claude_code_cli/m1")

    session.outcomes(passed=1, errors=1)
    assert (session.row("P1")["raw_output"], session.row("P2")["raw_output"]) == ("Hello", "Hel")
    assert session.row("P2")["failure_type"] == "timeout"
    assert dies(int(pid.read_text()))
    facts = session.load("inventory.json")["targets"]["claude_code_cli/m1"]
    assert facts["server"] == {"cli_version": "2.1.197 (Claude Code)"}


def test_a_missing_cli_is_never_a_pass(plain_project, monkeypatch):
    """Its cells are skipped, and a session without any answer fails."""
    monkeypatch.setenv("OPENCLAW_CLAUDE_COMMAND", "no-such-claude")
    plain_project.suite({"P1": ("hello", EXACT)})

    session = plain_project.run(models="claude_code_cli/m1")

    session.outcomes(skipped=1)
    assert session.status == pytest.ExitCode.TESTS_FAILED
    assert "no cell was answered" in session.text
