"""Replies of real models to the shipped suites, each with what a careful reader says of it.

Qwen2.5-Coder-Instruct 0.5B and 1.5B (Q4_K_M) and SmolLM2-135M, asked by llama.cpp at temperature 0. Qwen writes its calls as
JSON in a fence, which llama.cpp does not read as calls; behind a server that reads them (`proxied`) it makes them.
`ended_by` and `turns` belong to exchanges.
"""

import json
from pathlib import Path

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.openclaw.catalog import substitute_surface
from pytest_openclaw.suites.offered import on_surface
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.tool_calls import ToolCall
from tests.suites.shipped import prompts_of

READ = [
    json.loads(line)
    for line in Path(__file__).with_name("replies_real.jsonl").read_text("utf-8").splitlines()
]
VERDICT = ("outcome", "passed", "leaked_valid", "harm")


@pytest.mark.parametrize("suite", dict.fromkeys(one["suite"] for one in READ))
def test_replies_are_read_as_a_person_reads_them(suite):
    """The outcome, the verdict, whether calls in the text would have been right, and harm."""
    prompts = {prompt.id: prompt for prompt in prompts_of(suite)}
    wanted, found = [], []
    for one in READ:
        if one["suite"] == suite:
            judgment = judge(_asked(prompts[one["prompt"]], one["surface"]), _reply(one))
            said = (judgment.tool_outcome, judgment.verdict.passed, judgment.leaked_valid, judgment.harm)
            which = (one["model"], one["prompt"], one["surface"])
            wanted.append((*which, *(one[name] for name in VERDICT)))
            found.append((*which, *said))

    assert found == wanted


def _asked(prompt, surface):
    return on_surface(prompt, substitute_surface()) if surface == "openclaw" else prompt


def _reply(one):
    turns = tuple(
        Turn(
            user=turn.get("user"),
            text=turn["text"],
            calls=tuple(map(_call, turn.get("calls", ()))),
            results=tuple(call["result"] for call in turn.get("calls", ()) if "result" in call),
        )
        for turn in one.get("turns", ())
    )
    return Reply(
        text=turns[-1].text if turns else one["reply"],
        tool_calls=tuple(call for turn in turns for call in turn.calls),
        turns=turns,
        ended_by=one.get("ended_by"),
        finish_reason=one["finish"],
    )


def _call(call):
    return ToolCall(name=call["name"], arguments=call["arguments"])
