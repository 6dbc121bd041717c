"""`benchmarks/prompts_conversations.toml`: scripted models are asked as any other; right ones pass, wrong ones fail."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.asking.exchanges import hold_exchange
from pytest_openclaw.asking.sending import request_for
from pytest_openclaw.judging.judge import Judgment, judge
from pytest_openclaw.judging.registry import BUILTIN, build_registry
from pytest_openclaw.providers.ollama import chat_body
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.replies import CallResult, Reply, Timing
from pytest_openclaw.values.requests import Request, Target
from pytest_openclaw.values.settings import Settings
from pytest_openclaw.values.tool_calls import ToolCall

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parents[2]
NAME = "prompts_conversations.toml"
REGISTRY = build_registry([("pytest-openclaw", validator) for validator in BUILTIN])
PROMPTS = load_suite(ROOT / "benchmarks" / NAME, name=f"benchmarks/{NAME}", registry=REGISTRY).prompts
REPLIES = tomllib.loads((ROOT / "tests/suites/replies_conversations.toml").read_text("utf-8"))
TIMING = Timing(started_at_ms=0, ended_at_ms=1, e2e_ms=1.0)
Script = list[Any]


def scripts(verdict: str) -> list[Any]:
    """A parameter for each script that must come to this verdict, right or wrong."""
    return [
        pytest.param(prompt, script if isinstance(script, list) else [script], id=f"{prompt.id}-{number}")
        for prompt in PROMPTS
        for entry in [REPLIES[prompt.id]]
        for number, script in enumerate([entry[verdict], *entry.get(f"also_{verdict}", [])])
    ]


def said(step: Any) -> Reply:
    """A turn of a script as a provider returns it."""
    if isinstance(step, str):
        return Reply(text=step, finish_reason="stop")
    calls = (ToolCall(name=call["name"], arguments=json.dumps(call["arguments"])) for call in step)
    return Reply(tool_calls=tuple(calls), finish_reason="tool_calls")


def request_of(prompt: Prompt) -> Request:
    """What any model is asked."""
    return request_for(Cell(prompt=prompt, target=Target(provider="p", model="m")), Settings())


def held(prompt: Prompt, script: Script) -> tuple[Reply, list[Request]]:
    """The exchange with a model that plays a script, and its requests."""
    asked: list[Request] = []

    async def answer(request: Request) -> CallResult:
        asked.append(request)
        return CallResult(result=said(script[len(asked) - 1]), timing=TIMING)

    result = asyncio.run(hold_exchange(request_of(prompt), answer)).result
    assert isinstance(result, Reply)
    assert (len(asked), result.ended_by) == (len(script), "answer"), "the script is played to its end"
    return result, asked


def judged(prompt: Prompt, script: Script) -> Judgment:
    """The judgment of a script."""
    return judge(prompt, held(prompt, script)[0])


@pytest.mark.parametrize(("prompt", "script"), scripts("right"))
def test_a_right_model_passes(prompt: Prompt, script: Script) -> None:
    """What a careful reader would accept, the validator accepts; the use of tools agrees."""
    judgment = judged(prompt, script)

    assert (judgment.verdict.passed, judgment.verdict.violation) == (True, None)
    assert judgment.tool_outcome in ("valid", "restrained", None)


@pytest.mark.parametrize(("prompt", "script"), scripts("wrong"))
def test_a_wrong_model_fails(prompt: Prompt, script: Script) -> None:
    """Forgetting, claiming, doing it twice or against the user's word all fail."""
    assert judged(prompt, script).verdict.passed is False


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.id)
def test_the_conversation_decides(prompt: Prompt) -> None:
    """Every prompt has messages or turns, and no other place has their facts."""
    assert prompt.messages or prompt.turns
    assert not (prompt.messages and prompt.turns)
    assert REPLIES[prompt.id].keys() >= {"right", "wrong"}


def test_the_suite_covers_its_subjects() -> None:
    """Every prompt has replies; there are compactions, a promise, corrections, a denial and a long session."""
    assert [prompt.id for prompt in PROMPTS] == [*REPLIES]
    assert {prompt.category for prompt in PROMPTS} == {
        "inherited",
        "correction",
        "memory",
        "denial",
        "patience",
    }
    assert sum(bool(prompt.turns) for prompt in PROMPTS) >= 5
    long = next(prompt for prompt in PROMPTS if prompt.id == "C4")
    sent = [message["content"] or "" for message in chat_body(request_of(long))["messages"]]
    assert sum(map(len, sent)) > 10_000
    assert sum(bool(re.search(r"\b214\b", text)) for text in sent) == 1, "the fact is said once"


def test_the_last_request_has_the_whole_conversation() -> None:
    """The model that is asked which code it was given has been given it."""
    prompt = next(prompt for prompt in PROMPTS if prompt.id == "C2")

    _, asked = held(prompt, REPLIES["C2"]["right"])

    said_by_user = [turn.user for turn in asked[-1].conversation if turn.user]
    assert said_by_user == [prompt.prompt, *prompt.turns]
