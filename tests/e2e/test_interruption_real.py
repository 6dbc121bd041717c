"""An interrupted run ends the real program that answers it."""

import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.sessions import ENGINE, all_gone
from tests.providers.servers.messages import MessagesServer

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

SHORT = {"id": "P1", "prompt": "Say hello.", "max_output_tokens": 3}
LONG = {"id": "P2", "prompt": "Write a very long story about the sea.", "max_output_tokens": 6000}


class ThenHangs(MessagesServer):
    @property
    def mode(self):
        return "ok" if len(self.requests) <= 1 else "hang"

    @mode.setter
    def mode(self, _):
        return


def check_interrupted(session, programs):
    """Interrupt a session whose first cell has ended, and check that its programs are gone."""
    session.process.send_signal(signal.SIGINT)
    ended = session.end()

    assert ended.status == 2, ended.text
    assert [row["prompt_id"] for row in ended.run.rows] == ["P1"]
    assert ended.run.summary["state"] == "interrupted"
    assert ended.left == []
    assert programs
    assert all_gone(programs)


@pytest.mark.engine
def test_ctrl_c_ends_the_engine(project, embedded_model):
    """An engine that is generating a reply ends with the run that started it."""
    project.suite(SHORT, LONG)
    with project.start(models=f"llama_cpp/{embedded_model}") as session:
        session.wait_until(lambda: session.run.n_rows == 1)
        check_interrupted(session, session.started(ENGINE))


@pytest.mark.claude
def test_ctrl_c_ends_the_cli(project, claude):
    """A CLI that waits for its server ends with the run that started it."""
    project.suite(SHORT, LONG)
    with ThenHangs() as server:
        environ = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-dummy-1234567890",
            "OPENCLAW_CLAUDE_COMMAND": claude,
        }
        with project.where(**environ).start(models="claude_code_cli/opus") as session:
            session.wait_until(lambda: session.run.n_rows == 1 and len(server.requests) == 2)
            check_interrupted(session, session.started(f"{Path(claude).name} -p"))
