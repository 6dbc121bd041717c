"""A real model's answers to the native suite, each with a careful reader's judgment.

The first fifty prompts, asked with Qwen2.5-Coder-0.5B-Instruct (Q4_K_M) by llama.cpp at temperature 0. The model writes
calls as JSON, which the server does not read as calls. Each answer was read by a person once.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.values.replies import Reply
from tests.suites.test_native_suites import SUITES

PROMPTS = {prompt.id: prompt for prompt in SUITES["native"].prompts}
LINES = Path(__file__).with_name("replies_real.jsonl").read_text("utf-8").splitlines()
READ = [pytest.param(read, id=read["prompt"]) for read in map(json.loads, LINES)]


@pytest.mark.parametrize("read", READ)
def test_an_answer_is_read_as_a_person_reads_it(read):
    """Its outcome, and whether the call in its text would have been right."""
    judgment = judge(PROMPTS[read["prompt"]], Reply(text=read["reply"], finish_reason="stop"))

    assert (judgment.tool_outcome, judgment.leaked_valid) == (read["outcome"], read["leaked_valid"])
    assert judgment.verdict.passed is (read["outcome"] == "restrained")
