"""The Claude CLI's faults in whole sessions: row, pytest's outcome, exit status."""

import json
import re
import shlex
import sys
from typing import Any, NamedTuple

import pytest

from tests.providers.fake_claude import DUMMY_KEY, command, dies

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is named in POSIX quoting"),
]

EXACT = {"type": "exact", "value": "Hello"}


class End(NamedTuple):
    """How a prompt ends: pytest's outcome, and the fields of the row."""

    outcome: str
    status: str
    failure_type: str | None
    message: str = ""
    raw: str = ""
    attempts: int = 1


def error(text: str, **fields: Any) -> str:
    """Return the prompt on which the fake reports an error of the API."""
    return shlex.join(["error", json.dumps({"text": text, **fields})])


# The fake's mode, and how the cell ends. PID is a file of the test's own.
ENDS = {
    "answer": ("hello", End("PASSED", "ok", None, raw="Hello")),
    "killed": ("killed", End("ERROR", "error", "harness_error", "the CLI was killed by SIGKILL.", raw="Hel")),
    "403": (error("Failed to authenticate. API Error: 403 no", status=403, word="authentication_failed"), End("ERROR", "auth_error", "http_403", "HTTP 403: 403 no")),
    "overloaded-after-tokens": (error("API Error: Overloaded", word="unknown", pieces=["Hel"]), End("ERROR", "error", "stream_error", "Overloaded", raw="Hel")),
    "deaf-to-sigterm": ("stubborn PID", End("ERROR", "error", "timeout", "no complete answer within 4 s.", raw="Hel")),
}  # fmt: skip

# Faults that stop a target; each on a separate model.
LOST_TARGETS = {
    "not-logged-in": (
        error("Not logged in · Please run /login", word="authentication_failed"),
        End("ERROR", "auth_error", "auth_missing", "Run `claude /login`, or set ANTHROPIC_API_KEY.", attempts=0),
    ),
    "bad-model": (
        error("There's an issue with the selected model (x).", status=404, word="model_not_found"),
        End("SKIPPED", "skipped_unavailable", "model_not_found", "the server has no model"),
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _fake(_emptied: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake in place of the CLI, with a dummy key."""
    monkeypatch.setenv("OPENCLAW_CLAUDE_COMMAND", command("prompted"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", DUMMY_KEY)


def write(project: Any, prompts: dict[str, str]) -> None:
    """Write a suite: id → the fake's mode."""
    project.suite({key: (text, EXACT) for key, text in prompts.items()})


def ends_of(session: Any) -> dict[tuple[str, str], str]:
    """Return the outcome of each prompt and model in pytest's summary."""
    found = re.findall(
        r"^(PASSED|FAILED|ERROR) \S+?::(\S+?)\[claude_code_cli/(\S+?)\]", session.text, re.MULTILINE
    )
    return {(prompt, model): word for word, prompt, model in found}


def ending(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the fields of a row about its end."""
    return row["availability_status"], row["failure_type"], row["raw_output"], row["attempts"]


def test_every_end_of_a_call(project: Any) -> None:
    """Each end of the CLI is one row and one outcome; the other cells are asked, and no process is left."""
    pid = project.folder / "pid"
    write(project, {key: text.replace("PID", str(pid)) for key, (text, _) in ENDS.items()})

    words = ("-rA", "--openclaw-timeout=4", "--openclaw-concurrency=4")
    session = project.run(*words, models="claude_code_cli/m1")

    rows = {row["prompt_id"]: row for row in session.rows}
    assert len(session.rows) == len(ENDS)
    assert {key: ending(row) for key, row in rows.items()} == {
        key: (end.status, end.failure_type, end.raw, end.attempts) for key, (_, end) in ENDS.items()
    }
    for key, (_, end) in ENDS.items():
        assert end.message in (rows[key]["fault_message"] or ""), key
    assert ends_of(session) == {(key, "m1"): end.outcome for key, (_, end) in ENDS.items()}
    assert session.status == pytest.ExitCode.TESTS_FAILED
    assert "Traceback" not in session.text
    assert [line for line in session.text.split("\n") if not line.replace("\t", "").isprintable()] == []
    assert dies(int(pid.read_text()))
    assert session.load("inventory.json")["targets"]["claude_code_cli/m1"]["server"] == {
        "cli_version": "2.1.197 (Claude Code)"
    }


def test_faults_that_end_a_target(project: Any) -> None:
    """After such a fault the target's next cell is recorded without a call; other targets are asked."""
    write(project, {key: text for key, (text, _) in LOST_TARGETS.items()} | {"next": "hello"})
    models = [*LOST_TARGETS, "sound"]
    cells = [f"{key}[claude_code_cli/{key}]" for key in LOST_TARGETS]
    cells += [f"next[claude_code_cli/{model}]" for model in models]
    first, *others = [f"benchmarks/prompts_a.json::{cell}" for cell in cells]

    session = project.run(
        *others,
        "-rA",
        "--openclaw-concurrency=1",
        models=",".join(f"claude_code_cli/{model}" for model in models),
        target=first,
    )

    rows = {(row["prompt_id"], row["model"]): row for row in session.rows}
    expected = {("next", "sound"): ("ok", None, "Hello", 1)}
    for key, (_, end) in LOST_TARGETS.items():
        expected[key, key] = (end.status, end.failure_type, "", end.attempts)
        expected["next", key] = (end.status, end.failure_type, "", 0)
        assert end.message in rows[key, key]["fault_message"]
    assert {cell: ending(row) for cell, row in rows.items()} == expected
    skipped = [key for key, (_, end) in LOST_TARGETS.items() if end.outcome == "SKIPPED"]
    session.outcomes(passed=1, skipped=2 * len(skipped), errors=2 * (len(LOST_TARGETS) - len(skipped)))
    assert session.status == pytest.ExitCode.TESTS_FAILED


def test_a_missing_cli_is_never_a_pass(plain_project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells are skipped, and a session without any answer fails."""
    monkeypatch.setenv("OPENCLAW_CLAUDE_COMMAND", "no-such-claude")
    write(plain_project, {"P1": "hello"})

    session = plain_project.run(models="claude_code_cli/m1")

    session.outcomes(skipped=1)
    assert session.status == pytest.ExitCode.TESTS_FAILED
    assert "no cell was answered" in session.text
