"""The shipped pressure suite with a server that counts, truncates, and calls only tools that it still sees."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.bad_servers import point_at
from tests.providers.servers.apis import CHAT, texts_in
from tests.providers.servers.counting import TOKENS_FOR_3_WORDS
from tests.providers.servers.misbehaving import MisbehavingServer, Request, Script

pytestmark = pytest.mark.newest

SUITE = Path(__file__).parents[2] / "benchmarks" / "prompts_pressure.toml"
CONTEXT_TOKENS = 8192
MOST_TOOLS = 20
CALLS = {
    "journal": ("read", {"path": "journal/monday.md"}),
    "uname": ("exec", {"command": "uname -a"}),
    "wish": ("write", {"path": "wish.txt", "content": "peace"}),
    "attic": ("ls", {"path": "attic"}),
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MisbehavingServer]:
    """Reads the end of a prompt that is too long, and calls nothing if there are more than 20 tools."""
    with MisbehavingServer() as running:
        point_at(monkeypatch, running)
        running.on(CHAT.path, answer)
        yield running


def answer(request: Request) -> Script:
    """Call the requested tool, if it is still in the text that is read."""
    text = " ".join(texts_in(request.json))
    counted = min(CONTEXT_TOKENS, len(text.split()) * TOKENS_FOR_3_WORDS // 3)
    call = next((call for word, call in CALLS.items() if word in text), None)
    if call is None or len(request.json.get("tools", ())) > MOST_TOOLS:
        whole = CHAT.whole("I would rather not.")
    else:
        name, arguments = call
        whole = CHAT.whole(None, "tool_calls", calls=((name, json.dumps(arguments)),))
    whole["usage"] = {"prompt_tokens": counted, "completion_tokens": 5}
    return Script.answer(whole)


def test_the_summary_says_where_a_target_breaks(plain_project: Any, server: MisbehavingServer) -> None:
    """Right up to 11 tools and 2,000 tokens; wrong with 54 tools; and a truncated prompt is no wrong answer."""
    (plain_project.folder / "benchmarks").mkdir(exist_ok=True)
    shutil.copy(SUITE, plain_project.folder / "benchmarks")

    session = plain_project.run(
        "--openclaw-stream=off", models="ollama_openai/m", target=f"benchmarks/{SUITE.name}"
    )

    rows = session.rows
    assert len(rows) == 20
    cut = [row for row in rows if row["padding_tokens"] == 16000]
    assert {(row["availability_status"], row["failure_type"]) for row in cut} == {
        ("error", "context_overflow")
    }
    assert {row["tool_outcome"] for row in cut} == {None}
    (group,) = session.summary["groups"]
    assert group["tool_use"]["n"] == 0
    levels = {(level["tools_offered"], level["padding_tokens"]): level for level in group["pressure"]}
    assert {key: (level["n"], level["n_success"], level["n_overflow"]) for key, level in levels.items()} == {
        (1, 0): (4, 4, 0),
        (11, 0): (4, 4, 0),
        (54, 0): (4, 0, 0),
        (1, 2000): (4, 4, 0),
        (1, 16000): (0, 0, 4),
    }
    assert group["holds_to"] == {"tools_offered": 11, "padding_tokens": 2000}
    assert group["breaks_at"] == {"tools_offered": 54, "padding_tokens": 16000}
    assert "breaks at 54 tools" in session.text
