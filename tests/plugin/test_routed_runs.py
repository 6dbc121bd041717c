"""A real session's run, turned into a patch of OpenClaw's config by the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import json5
import pytest

from tests.plugin.bad_servers import point_at
from tests.providers.servers.apis import CHAT
from tests.providers.servers.misbehaving import MisbehavingServer, Request, Script

N_PROMPTS = 21
"""The fewest prompts that settle Tier 1 of two targets."""
PROMPT = """
[[prompts]]
id = "T{n}"
prompt = "Read note-{n}.md."
tools = ["read", "exec"]
validator = {{ type = "tool_call", calls = [{{ name = ["read", "exec"] }}] }}
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MisbehavingServer]:
    """A server on which the model `able` reads and the model `talker` talks."""
    with MisbehavingServer() as running:
        point_at(monkeypatch, running)
        running.on(CHAT.path, _answer)
        yield running


def _answer(request: Request) -> Script:
    if request.json["model"] == "able":
        return Script.answer(CHAT.whole(None, "tool_calls", calls=(("read", '{"path": "note.md"}'),)))
    return Script.answer(CHAT.whole("I would read the note."))


def _route(project: Any, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_openclaw", "route", "last", *words],
        cwd=project.folder,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )


def test_a_session_is_routed(plain_project: Any, server: MisbehavingServer) -> None:
    """The patch has the session's measurements, its evidence the tools of the prompts."""
    plain_project.suite("".join(PROMPT.format(n=n) for n in range(N_PROMPTS)))
    plain_project.run(models="ollama_openai/able,ollama_openai/talker")

    done = _route(plain_project)

    assert (done.returncode, done.stderr) == (0, "")
    (path,) = plain_project.folder.glob("runs/*/openclaw.patch.json5")
    assert json5.loads(path.read_text("utf-8")) == {
        "tools": {
            "byProvider": {
                "ollama/able": {
                    "allow": ["read"],
                    "alsoAllow": None,
                    "deny": [
                        *("group:web", "browser"),
                        *("tool_search", "tool_describe", "tool_call", "tool_search_code"),
                    ],
                },
                "ollama/talker": {"deny": ["*"]},
            }
        },
    }


def test_a_session_without_tools_is_not_routed(plain_project: Any, server: MisbehavingServer) -> None:
    """Text results grant nothing: the command says so in one line."""
    plain_project.suite({"P1": ("say hi", {"type": "tool_invocation", "expected_tools": ["read"]})})
    plain_project.run(models="ollama_openai/able")

    done = _route(plain_project)

    assert (done.returncode, done.stdout) == (4, "")
    assert "has no native tool evidence" in done.stderr
    assert done.stderr.count("\n") == 1
