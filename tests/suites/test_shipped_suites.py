"""The suites in `benchmarks/`: right replies pass, wrong ones and echoes fail, and the bench stays short."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from pytest_openclaw.judging.calls import demands_of
from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import BUILTIN, build_registry
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.replies import Reply

pytestmark = pytest.mark.newest

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
REGISTRY = build_registry([("pytest-openclaw", validator) for validator in BUILTIN])
TEXT_SUITES = ("core", "tools")  # the others offer tools: test_native_suites.py
SUITES = {
    name: load_suite(path, name=f"benchmarks/{path.name}", registry=REGISTRY)
    for name in TEXT_SUITES
    if (path := BENCHMARKS / f"prompts_{name}.toml")
}
REPLIES = {suite: tomllib.loads((HERE / f"replies_{suite}.toml").read_text("utf-8")) for suite in SUITES}
PROMPTS = {prompt.id: prompt for suite in SUITES.values() for prompt in suite.prompts}
EVERY_PROMPT = [pytest.param(prompt, id=prompt.id) for prompt in PROMPTS.values()]

CORE_CATEGORIES = {
    "exact",
    "json",
    "extraction",
    "dates_units",
    "rewriting",
    "logs",
    "triage",
    "planning",
    "ambiguity",
}
TOOL_CATEGORIES = {"shell", "tool_choice", "restraint"}


def replies(verdict):
    """Return a parameter for each reply of the tables that must come to this verdict, right or wrong."""
    return [
        pytest.param(PROMPTS[prompt_id], text, id=f"{prompt_id}-{number}")
        for table in REPLIES.values()
        for prompt_id, entry in table.items()
        for number, text in enumerate([entry[verdict], *entry.get(f"also_{verdict}", [])])
    ]


def passed(prompt, text):
    """Return the verdict of the prompt's validator on a reply."""
    return judge(prompt, Reply(text=text)).verdict.passed


def is_tool_prompt(prompt):
    """Return whether the prompt counts for the tier: some tool is asked for, and none is forbidden."""
    return judge(prompt, Reply(text="Hm.")).tool_outcome == "no_call"


@pytest.mark.parametrize(("prompt", "text"), replies("right"))
def test_a_right_reply_passes(prompt, text):
    """What a careful reader would accept, the validator accepts."""
    verdict = judge(prompt, Reply(text=text)).verdict

    assert (verdict.passed, verdict.violation) == (True, None)


@pytest.mark.parametrize(("prompt", "text"), replies("wrong"))
def test_a_wrong_reply_fails(prompt, text):
    """A wrong answer in the right form fails, and so does the right answer in a wrong form."""
    assert passed(prompt, text) is False


@pytest.mark.parametrize("prompt", EVERY_PROMPT)
def test_an_echo_fails(prompt):
    """Neither the whole prompt sent back, nor one of its lines or sentences, is a right reply."""
    pieces = re.split(r"\n+|(?<=[.!?:]) ", prompt.prompt.strip())

    assert [text for text in [prompt.prompt, *pieces] if passed(prompt, text) is not False] == []


@pytest.mark.parametrize(
    "prompt", [pytest.param(prompt, id=prompt.id) for prompt in PROMPTS.values() if is_tool_prompt(prompt)]
)
def test_a_right_tool_reply_counts_for_the_tier(prompt):
    """A right reply to a tool prompt is a successful tool use."""
    judgment = judge(prompt, Reply(text=REPLIES["tools"][prompt.id]["right"]))

    assert (judgment.tool_use_success, judgment.tool_outcome) == (True, "valid")


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param(prompt, id=prompt.id)
        for prompt in PROMPTS.values()
        if demands_of(prompt.validator).restrains
    ],
)
def test_restraint_differs_from_a_needless_call(prompt):
    """The right reply to a restraint prompt is restrained; its echo, which shows a command, is not."""
    right = judge(prompt, Reply(text=REPLIES["tools"][prompt.id]["right"]))
    echo = judge(prompt, Reply(text=prompt.prompt))

    assert (right.tool_outcome, echo.tool_outcome) == ("restrained", "called_needlessly")


@pytest.mark.parametrize("suite", SUITES)
def test_every_prompt_has_its_replies(suite):
    """Each prompt of a suite has a right and a wrong reply, and no reply is left without a prompt."""
    assert list(REPLIES[suite]) == [prompt.id for prompt in SUITES[suite].prompts]
    assert all({"right", "wrong"} <= entry.keys() for entry in REPLIES[suite].values())


def test_the_core_suite_covers_what_an_assistant_is_asked():
    """Every category has at least four prompts, and P0 and P1 are the well-known ones."""
    prompts = SUITES["core"].prompts
    categories = [prompt.category for prompt in prompts]

    assert len(prompts) >= 30
    assert set(categories) == CORE_CATEGORIES
    assert {name: count for name in CORE_CATEGORIES if (count := categories.count(name)) < 4} == {}
    assert [prompt.name for prompt in prompts[:2]] == ["sanity_heartbeat", "router_json"]


def test_the_tools_suite_can_settle_a_tier():
    """There are at least the 16 tool prompts that make Tier 1 conclusive, and four restraint prompts."""
    prompts = SUITES["tools"].prompts

    assert {prompt.category for prompt in prompts} == TOOL_CATEGORIES
    assert sum(map(is_tool_prompt, prompts)) >= 16
    assert sum(demands_of(prompt.validator).restrains for prompt in prompts) >= 4
