"""A conversation on the page: the messages before the prompt, and the user's between the turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Opener, reported
from tests.unit.reports.summaries import record
from tests.unit.runs.stored_runs import definition, store

pytestmark = pytest.mark.nightly

MESSAGES = [
    {"role": "user", "content": "Is it up?"},
    {"role": "assistant", "content": "", "calls": [{"name": "exec", "arguments": {"command": "ping"}}]},
    {"role": "tool", "content": "pong"},
]
TURN = {
    "calls": [],
    "e2e_ms": 1,
    "ttft_ms": None,
    "input_tokens": 1,
    "output_tokens": 1,
    "finish_reason": "stop",
}


def test_a_conversation_is_read_in_its_order(open_page: Opener, tmp_path: Path) -> None:
    """The earlier messages unfold above the prompt; what the user says is above the turn that answers it."""
    turns = ({**TURN, "text": "It is."}, {**TURN, "user": "Since when?", "text": "Since noon."})
    row = record(turns=turns, ended_by="answer", raw_output="It is.\n\nSince noon.")
    prompt = definition("P1", suite=row.suite, prompt="And now?", messages=MESSAGES, turns=["Since when?"])
    page = open_page(reported(store(tmp_path / "one", [row], prompts=[prompt])) / "report.html")

    page.locator("[role=gridcell]").first.click()
    page.locator("#panel summary", has_text="Before the prompt").click()
    page.locator("#panel pre", has_text="pong").wait_for()

    shown = page.locator("#panel").inner_text()
    order = [
        "Is it up?",
        "call exec",
        '{"command": "ping"}',
        "pong",
        "And now?",
        "It is.",
        "Since when?",
        "Since noon.",
    ]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)
