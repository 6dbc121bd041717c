"""The Claude CLI's faults in whole sessions: row, pytest's outcome, exit status."""

from __future__ import annotations

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

NOOP = {"type": "noop"}
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
    "noise-around-it": ("noisy", End("PASSED", "ok", None, raw="Hello")),
    "flood": ("flood", End("ERROR", "error", "cli_error", "the CLI wrote more than 64 MiB and was stopped.")),
    "killed": ("killed", End("ERROR", "error", "harness_error", "the CLI was killed by SIGKILL.", raw="Hel")),
    "403": (error("Failed to authenticate. API Error: 403 no", status=403, word="authentication_failed"), End("ERROR", "auth_error", "http_403", "HTTP 403: no")),
    "429": (error("API Error: Request rejected (429) · slow down", status=429, word="rate_limit"), End("ERROR", "rate_limited", "http_429", "slow down", attempts=2)),
    "overloaded-after-tokens": (error("API Error: Overloaded", word="unknown", pieces=["Hel"]), End("ERROR", "error", "stream_error", "Overloaded", raw="Hel")),
    "hostile-words": (error("\x1b[31mred\u202e <b>|x\n# y", status=400), End("ERROR", "error", "http_400", "HTTP 400: ")),
    "hang": ("hang", End("ERROR", "error", "timeout", "no complete answer within 6 s. Raise --openclaw-timeout", raw="Hel")),
    "deaf-to-sigterm": ("stubborn PID", End("ERROR", "error", "timeout", "no complete answer within 6 s.", raw="Hel")),
}  # fmt: skip
SLOW = {"hang", "deaf-to-sigterm"}

# Faults that stop a target; each on a separate model.
LOST_TARGETS = {
    "not-logged-in": (
        error("Not logged in · Please run /login", word="authentication_failed"),
        End("ERROR", "auth_error", "auth_missing", "Run `claude /login`, or set ANTHROPIC_API_KEY.", attempts=0),
    ),
    "401": (error("Failed to authenticate. API Error: 401 no", status=401, word="authentication_failed"), End("ERROR", "auth_error", "http_401", "HTTP 401: no")),
    "bad-model": (
        error("There's an issue with the selected model (x).", status=404, word="model_not_found"),
        End("SKIPPED", "skipped_unavailable", "model_not_found", "the server has no model"),
    ),
    "session-limit": (
        error("You've hit your session limit · resets 3am", status=429, word="rate_limit", rejected=True),
        End("ERROR", "rate_limited", "quota_exhausted", "resets 3am"),
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _fake(_emptied: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake in place of the CLI, with a dummy key."""
    monkeypatch.setenv("OPENCLAW_CLAUDE_COMMAND", command("prompted"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", DUMMY_KEY)


def write(
    project: Any, prompts: dict[str, str], rule: Any = EXACT, slow: frozenset[str] | set[str] = frozenset()
) -> None:
    """Write a suite: id → the fake's mode."""
    folder = project.folder / "benchmarks"
    folder.mkdir()
    entries = [
        {"id": key, "prompt": text, "validator": rule, **({"timeout_s": 6} if key in slow else {})}
        for key, text in prompts.items()
    ]
    (folder / "prompts_a.json").write_text(json.dumps(entries))


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
    pids = {key: project.folder / f"pid-{key}" for key, (text, _) in ENDS.items() if "PID" in text}
    write(
        project, {key: text.replace("PID", str(pids.get(key))) for key, (text, _) in ENDS.items()}, slow=SLOW
    )

    session = project.run(
        "-rA", "--openclaw-retries=1", "--openclaw-concurrency=4", models="claude_code_cli/m1"
    )

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
    assert [key for key, path in pids.items() if not dies(int(path.read_text()))] == []
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


def test_an_api_out_of_reach_ends_the_cli_s_endpoint(project: Any) -> None:
    """If no API answers behind the CLI, no model is asked again, and a run without a reply fails."""
    write(
        project,
        {
            "P1": error("API Error: Unable to connect to API (ConnectionRefused)", word="server_error"),
            "P2": "hello",
        },
    )

    session = project.run("--openclaw-concurrency=1", models="claude_code_cli/a,claude_code_cli/b")

    session.outcomes(skipped=4)
    assert sorted(ending(row) for row in session.rows) == [
        ("skipped_unavailable", "connect_error", "", n) for n in (0, 0, 0, 1)
    ]
    assert session.status == pytest.ExitCode.TESTS_FAILED
    assert "no cell was answered" in session.text


@pytest.mark.parametrize(
    ("arguments", "outcomes", "status"),
    [
        pytest.param([], {"skipped": 1}, 1, id="skipped"),
        pytest.param(["--openclaw-fail-unavailable"], {"errors": 1}, 1, id="failed-when-asked-to"),
        pytest.param(["--openclaw-min-pass-rate=0.5"], {"skipped": 1}, 10, id="no-verdict-for-a-gate"),
        pytest.param(["--openclaw-verdict=gate"], {"skipped": 1}, 1, id="nothing-answered"),
    ],
)
def test_a_missing_cli_is_never_a_pass(
    plain_project: Any,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    outcomes: dict[str, int],
    status: int,
) -> None:
    """Whatever decides the session's verdict, a missing CLI does not make it pass."""
    monkeypatch.setenv("OPENCLAW_CLAUDE_COMMAND", "no-such-claude")
    write(plain_project, {"P1": "hello"})

    session = plain_project.run(*arguments, models="claude_code_cli/m1")

    session.outcomes(**outcomes)
    assert session.status == status


def test_the_key_is_written_nowhere(project: Any) -> None:
    """If the CLI prints the key in an error or a reply, it reaches no file and no terminal."""
    echo = error(f"API Error: 400 the key {DUMMY_KEY} is odd", status=400)
    write(
        project,
        {"P1": echo, "P2": error("API Error: Overloaded", pieces=[f"I know {DUMMY_KEY}"]), "P3": "hello"},
        rule=NOOP,
    )
    # The prompts contain the key here, as no user's do; their definitions are stored in config.json.
    suite = project.folder / "benchmarks" / "prompts_a.json"
    assert DUMMY_KEY in suite.read_text()

    session = project.run("-rA", models="claude_code_cli/m1")

    assert session.row("P1")["fault_message"] == "claude_code_cli: HTTP 400: the key [secret] is odd"
    assert session.row("P2")["raw_output"] == "I know [secret]"
    assert DUMMY_KEY not in session.text
    for path in session.run_dir.iterdir():
        assert path.name == "config.json" or DUMMY_KEY not in path.read_text()
