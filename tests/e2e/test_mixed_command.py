"""One command for a local server, a cloud API and a CLI: available, absent or without a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.e2e.sessions import Ended, Project
from tests.providers.servers.messages import MessagesServer
from tests.providers.servers.misbehaving import unused_port

pytestmark = pytest.mark.workers

TARGETS = {
    "ollama_openai": "ollama_openai/llama3.2:3b",
    "openai_responses": "openai_responses/gpt-5.3-codex@high",
    "claude_code_cli": "claude_code_cli/claude-opus",
}
# The small model ends its reply to this by itself; a thinking level leaves room for thousands of tokens.
CAPITAL = {"prompt": "What is the capital of France?", "max_output_tokens": 24}
PROMPTS: list[dict[str, Any]] = [
    {"id": "P1", "name": "capital", **CAPITAL},
    {"id": "P10", "name": "not_asked", **CAPITAL},
]
DUMMY = "sk-dummy-1234567890"


def ask_all(project: Project, *words: str) -> Ended:
    """Run the command with all providers."""
    project.suite(*PROMPTS)
    ended = project.run(
        "-k", "P1", "-n", "2", "--openclaw-timeout=300", *words, models=",".join(TARGETS.values())
    )
    assert {(row["provider"], row["prompt_id"]) for row in ended.run.rows} == {
        (provider, "P1") for provider in TARGETS
    }
    assert ended.wide_lines == []
    return ended


def fields(ended: Ended, key: str) -> dict[str, Any]:
    """Return one field of each provider's row."""
    return {row["provider"]: row[key] for row in ended.run.rows}


@pytest.fixture
def closed_port() -> Iterator[Callable[[], str]]:
    """Returns addresses without a listener while the test runs."""
    with ExitStack() as reserved:
        yield lambda: f"http://127.0.0.1:{reserved.enter_context(unused_port())}"


@pytest.mark.nightly
@pytest.mark.engine
@pytest.mark.claude
def test_all_answer(project: Project, served: dict[str, str], claude: str) -> None:
    """Three replies pass; where another model than the requested one answered, row and terminal say so."""
    ended = ask_all(project.where(**served, OPENCLAW_CLAUDE_COMMAND=claude))

    assert (ended.status, ended.outcomes) == (0, {"passed": 3})
    assert fields(ended, "effective_model") == dict.fromkeys(TARGETS, "smollm2:135m")
    assert fields(ended, "thinking_level") == {
        "ollama_openai": None,
        "openai_responses": "high",
        "claude_code_cli": None,
    }
    assert fields(ended, "success") == dict.fromkeys(TARGETS, True)
    answered_by = [line for line in ended.page if " instead of " in line]
    assert [line.split(" instead of ")[1] for line in answered_by] == list(TARGETS.values())


@pytest.mark.nightly
def test_all_are_absent(project: Project, closed_port: Callable[[], str]) -> None:
    """Two closed ports and no CLI give three skips with their reasons, and not a passing run."""
    ollama, openai = closed_port(), closed_port()

    ended = ask_all(
        project.where(
            OLLAMA_HOST=ollama,
            OPENAI_BASE_URL=f"{openai}/v1",
            OPENAI_API_KEY=DUMMY,
            OPENCLAW_CLAUDE_COMMAND=str(project.folder / "no-such-claude"),
        ),
        "-rs",
    )

    assert (ended.status, ended.outcomes) == (1, {"skipped": 3})
    assert set(fields(ended, "availability_status").values()) == {"skipped_unavailable"}
    assert fields(ended, "failure_type") == {
        "ollama_openai": "connect_error",
        "openai_responses": "connect_error",
        "claude_code_cli": "not_installed",
    }
    assert fields(ended, "attempts") == {"ollama_openai": 1, "openai_responses": 1, "claude_code_cli": 0}
    assert f"ollama_openai: nothing answers at {ollama}/v1 (connection refused)." in ended.text
    assert f"openai_responses: nothing answers at {openai}/v1 (connection refused)." in ended.text
    assert "no-such-claude'. Install the Claude CLI" in ended.text
    assert ["no", "verdict", "no", "cell", "was", "answered"] in [line.split() for line in ended.page]
    assert [group["n_skipped_unavailable"] for group in ended.run.summary["groups"]] == [1, 1, 1]


@pytest.mark.nightly
@pytest.mark.claude
def test_one_answers_and_the_others_do_not(
    project: Project, claude: str, closed_port: Callable[[], str]
) -> None:
    """Absent providers do not affect the available one: one reply, one skip, one error."""
    with MessagesServer("ok") as messages:
        ended = ask_all(
            project.where(
                OLLAMA_HOST=closed_port(),
                OPENAI_BASE_URL="http://openai.invalid/v1",
                ANTHROPIC_BASE_URL=messages.url,
                ANTHROPIC_API_KEY=DUMMY,
                OPENCLAW_CLAUDE_COMMAND=claude,
            )
        )

    assert (ended.status, ended.outcomes) == (1, {"passed": 1, "skipped": 1, "errors": 1})
    assert fields(ended, "availability_status") == {
        "ollama_openai": "skipped_unavailable",
        "openai_responses": "auth_error",
        "claude_code_cli": "ok",
    }
    assert not any(line.startswith("no verdict") for line in ended.page)
