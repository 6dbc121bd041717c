"""The how-to on pictures, followed with a server that sees: its commands run, and the shipped suite leads to a place."""

from __future__ import annotations

import json
import shutil
import tomllib
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest

from tests.docs.pages import File, read_page
from tests.docs.reference import DOCS
from tests.docs.terminal import Terminal, follow
from tests.providers.servers.misbehaving import MisbehavingServer, Request, Script

pytestmark = pytest.mark.newest

PAGE = DOCS / "how-to/images.md"
BENCHMARKS = DOCS.parent / "benchmarks"
SUITE = tomllib.loads((BENCHMARKS / "prompts_images.toml").read_text("utf-8"))
REPLIES = tomllib.loads((DOCS.parent / "tests/suites/replies_images.toml").read_text("utf-8"))
SERVER = "http://127.0.0.1:8080/v1"


def sees(request: Request) -> Script:
    """Answer as a model that sees all pictures of the suite, and nothing without them."""
    content = request.json["messages"][-1]["content"]
    if isinstance(content, str):  # a warm-up
        return Script.answer(_answer({"text": "Hi"}))
    text, *pictures = content
    prompt = next(one for one in SUITE["prompts"] if one["prompt"] == text["text"])
    sent = [picture["image_url"]["url"] for picture in pictures]
    right = REPLIES[prompt["id"]]["right"] if sent == [_address(path) for path in prompt["images"]] else "?"
    return Script.answer(_answer(right if isinstance(right, dict) else {"text": right}))


def _answer(said: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for call in said.get("calls", ())
    ]
    message: dict[str, Any] = {"role": "assistant", "content": said["text"] or None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"object": "chat.completion", "model": "m", "choices": [choice]}


def _address(path: str) -> str:
    return f"data:image/png;base64,{b64encode((BENCHMARKS / path).read_bytes()).decode()}"


def test_the_page_is_followed(terminal: Terminal) -> None:
    """Every command of the page runs, and all cells of both suites pass."""
    with MisbehavingServer() as server:
        server.on("/v1/chat/completions", sees)
        blocks = [
            replace(block, text=block.text.replace(SERVER, server.url)) if isinstance(block, File) else block
            for block in read_page(PAGE.read_text("utf-8"))
        ]
        assert any(isinstance(block, File) and server.url in block.text for block in blocks)

        follow(blocks, terminal)

    rows = [
        json.loads(line)
        for results in terminal.folder.glob("runs/*/results.jsonl")
        for line in results.read_text("utf-8").splitlines()
    ]
    assert len(rows) == 1 + len(SUITE["prompts"])
    assert [row["prompt_id"] for row in rows if not row["objective_pass"]] == []


@pytest.fixture
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A project with the files that the page takes from the repository."""
    terminal = Terminal(tmp_path_factory.mktemp("pictures"))
    shutil.copytree(BENCHMARKS / "images", terminal.folder / "benchmarks" / "images")
    shutil.copy(BENCHMARKS / "prompts_images.toml", terminal.folder / "benchmarks")
    shutil.copy(BENCHMARKS / "images" / "bars.png", terminal.folder / "benchmarks" / "chart.png")
    return terminal
