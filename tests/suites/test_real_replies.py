"""A real model's answers to the native suite, each with a careful reader's judgment.

The first fifty prompts, asked with Qwen2.5-Coder-0.5B-Instruct (Q4_K_M) by llama.cpp at temperature 0. The model writes
calls as JSON, which the server does not read as calls. Each answer was read by a person once.
"""

from __future__ import annotations

import json
from pathlib import Path

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.values.replies import Reply
from tests.suites.shipped import prompts_of

PROMPTS = {prompt.id: prompt for prompt in prompts_of("native")}
LINES = Path(__file__).with_name("replies_real.jsonl").read_text("utf-8").splitlines()


def test_answers_are_read_as_a_person_reads_them():
    """The outcome, whether the call in the text would have been right, and the verdict."""
    read = [json.loads(line) for line in LINES]
    found = {}
    for one in read:
        judgment = judge(PROMPTS[one["prompt"]], Reply(text=one["reply"], finish_reason="stop"))
        found[one["prompt"]] = (judgment.tool_outcome, judgment.leaked_valid, judgment.verdict.passed)

    assert found == {
        one["prompt"]: (one["outcome"], one["leaked_valid"], one["outcome"] == "restrained") for one in read
    }
