"""A run that is interrupted or killed keeps its results, and leaves no process behind."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import is_gone
from tests.e2e.sessions import ENGINE, Ended, Project, Session, all_gone
from tests.providers.servers.messages import MessagesServer
from tests.providers.servers.misbehaving import Hang, MisbehavingServer, Script

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

MODES = [
    pytest.param((), id="plain"),
    pytest.param(("-n", "2"), id="workers", marks=[pytest.mark.workers, pytest.mark.nightly]),
]
KEPT = ["comment.md", "config.json", "inventory.json", "results.jsonl", "summary.json", "summary.md"]
ANSWER = {
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
}


class ThenHangs(MessagesServer):
    """Answers the first request; every later reply starts and never ends."""

    @property
    def mode(self) -> str:
        return "ok" if len(self.requests) <= 1 else "hang"

    @mode.setter
    def mode(self, _: str) -> None:
        return


def prompts(**last: Any) -> list[dict[str, Any]]:
    """A short prompt, and three others."""
    first = {"id": "P1", "name": "short", "prompt": "Say hello.", "max_output_tokens": 3}
    return [first, *({"id": f"P{n}", "name": "other", "prompt": "Say hello.", **last} for n in (2, 3, 4))]


LONG = {"prompt": "Write a very long story about the sea.", "max_output_tokens": 6000}


def interrupted(session: Session, *, group: bool = False) -> Ended:
    """Interrupt a session whose first cell has ended, and check what every interruption must leave."""
    session.signal(signal.SIGINT, group=group)
    ended = session.end()

    assert ended.status == 2, ended.text
    summary = ended.run.summary
    assert (summary["state"], summary["n_cells"]) == ("interrupted", 4)
    assert summary["n_rows"] == len(ended.run.rows) == 1
    assert ended.run.rows[0]["prompt_id"] == "P1"
    assert ended.run.rows[0]["success"] is True
    assert [name for name in ended.run.files if not name.startswith("resources_")] == KEPT
    assert "1 of 4 cells have a row" in ended.text
    assert "Interrupted: Ctrl-C" in ended.text
    assert ended.left == []
    return ended


@pytest.mark.parametrize("words", MODES)
def test_ctrl_c_while_a_server_is_awaited(project: Project, words: tuple[str, ...]) -> None:
    """The cell in progress is abandoned at once; ended cells stay, and the server gets no more requests."""
    asked = iter(range(1000))

    def answer(_: object) -> Script:
        # The first one is the warm-up.
        return Script.answer(ANSWER) if next(asked) <= 1 else Script.of(Hang())

    def n_asked() -> int:
        return sum(request.path == "/v1/chat/completions" for request in server.requests)

    project.suite(*prompts())
    with MisbehavingServer() as server:
        server.on("/v1/chat/completions", answer)
        with project.where(OLLAMA_OPENAI_BASE=server.url).start(
            *words, "--openclaw-stream=off", models="ollama_openai/m"
        ) as session:
            session.wait_until(lambda: session.run.n_rows == 1 and n_asked() == 3)
            started = {pid for pid in session.started("") if pid != session.process.pid}
            interrupted(session, group=True)

    assert n_asked() == 3
    assert all_gone(started)


@pytest.mark.engine
def test_ctrl_c_ends_the_engine(project: Project, embedded_model: str) -> None:
    """An engine that is generating a reply ends with the run that started it."""
    project.suite(*prompts(**LONG))
    with project.start(models=f"llama_cpp/{embedded_model}") as session:
        session.wait_until(lambda: session.run.n_rows == 1)
        engines = session.started(ENGINE)
        interrupted(session)

    assert len(engines) == 1
    assert all_gone(engines)


@pytest.mark.claude
def test_ctrl_c_ends_the_cli(project: Project, claude: str) -> None:
    """A CLI that waits for its server ends with the run that started it."""
    program = Path(claude).name
    project.suite(*prompts())
    with ThenHangs() as server:
        environ = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-dummy-1234567890",
            "OPENCLAW_CLAUDE_COMMAND": claude,
        }
        with project.where(**environ).start(models="claude_code_cli/opus") as session:
            session.wait_until(lambda: session.run.n_rows == 1 and len(server.requests) == 2)
            clis = session.started(f"{program} -p")
            interrupted(session)

    assert clis
    assert all_gone(clis)


@pytest.mark.nightly
@pytest.mark.engine
def test_kill_leaves_no_engine_and_keeps_the_rows(project: Project, embedded_model: str) -> None:
    """Even SIGKILL leaves no engine and no worker behind, and a finished cell is on disk by then."""
    project.suite(*prompts(**LONG))
    with project.start(models=f"llama_cpp/{embedded_model}") as session:
        session.wait_until(lambda: session.run.n_rows == 1)
        engines, started = session.started(ENGINE), session.started("")
        session.signal(signal.SIGKILL)
        ended = session.end()

    assert ended.status == -signal.SIGKILL
    assert len(engines) == 1
    assert all_gone(started)
    assert [row["prompt_id"] for row in ended.run.rows] == ["P1"]
    assert is_gone(session.process.pid)
    assert "summary.json" not in ended.run.files
