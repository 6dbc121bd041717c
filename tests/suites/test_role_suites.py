"""The suites of OpenClaw's other roles: right replies pass, wrong ones fail, and no rule is needless."""

from __future__ import annotations

import re
import tomllib
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_openclaw.judging.judge import affects_tier, judge
from pytest_openclaw.judging.registry import BUILTIN, build_registry, build_validator
from pytest_openclaw.stats.tool_use import PROVEN_PROMPTS
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.prompts import ModelRole
from pytest_openclaw.values.replies import Reply

pytestmark = pytest.mark.newest

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
REGISTRY = build_registry([("pytest-openclaw", validator) for validator in BUILTIN])
LETTERS: dict[ModelRole, str] = {"heartbeat": "H", "title": "L", "utility": "U", "decision": "D"}
ROLES = [*LETTERS]
"""Prompts whose replies are only texts."""
SUITES = {
    role: load_suite(
        BENCHMARKS / f"prompts_role_{role}.toml",
        name=f"benchmarks/prompts_role_{role}.toml",
        registry=REGISTRY,
    )
    for role in ROLES
}
REPLIES = {role: tomllib.loads((HERE / f"replies_role_{role}.toml").read_text("utf-8")) for role in ROLES}
PROMPTS = [pytest.param(prompt, id=prompt.id) for suite in SUITES.values() for prompt in suite.prompts]


def replies(kind):
    """Return a parameter for each right or wrong reply."""
    return [
        pytest.param(prompt, text, id=f"{prompt.id}-{number}")
        for role, suite in SUITES.items()
        for prompt in suite.prompts
        for number, text in enumerate(REPLIES[role][prompt.id][kind])
    ]


def verdict_of(prompt, text):
    """Judge a text as the answer to a prompt."""
    return judge(prompt, Reply(text=text, finish_reason="stop")).verdict


@pytest.mark.parametrize(("prompt", "text"), replies("right"))
def test_a_right_reply_passes(prompt, text):
    """What OpenClaw would make something sensible of is right."""
    verdict = verdict_of(prompt, text)

    assert (verdict.passed, verdict.violation) == (True, None)


@pytest.mark.parametrize(("prompt", "text"), replies("wrong"))
def test_a_wrong_reply_fails(prompt, text):
    """What OpenClaw would drop, cut off or post in vain is wrong."""
    assert verdict_of(prompt, text).passed is False


def _rules(spec, path=()):
    """Yield the path of each rule that can be dropped: optional keys, and items of lists that are rules."""
    lists = {"validators": 1, "about": 0, "never": 0}
    for key, value in spec.items():
        if key in lists and len(value) > lists[key]:
            yield from ((*path, key, place) for place in range(len(value)))
        if key == "validators":
            for place, one in enumerate(value):
                # The alternatives of `any_of` make it weaker, not stricter.
                if one["type"] != "any_of":
                    yield from _rules(one, (*path, key, place))
        elif key == "answer":
            yield from _rules(value, (*path, key))
        elif key == "questions":
            yield from ((*path, key, name, "expected") for name in value)
        elif key == "schema":
            yield from _keywords(value, (*path, key))
        elif key == "strict":
            yield (*path, key)


def _keywords(schema, path):
    for key, value in schema.items():
        if key == "properties":
            for name, inner in value.items():
                yield from _keywords(inner, (*path, key, name))
        elif key == "required":
            yield from ((*path, key, place) for place in range(len(value)))
        elif (key, path[-1]) != ("type", "schema"):
            yield (*path, key)


def _without(spec, path):
    changed = deepcopy(spec)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return changed


def _common(prompt):
    """Return the schema's keywords that every digest has: one prompt shows that they are needed."""
    return prompt.validator_spec.get("type") == "json_schema" and prompt.id != "U8"


@pytest.mark.parametrize("prompt", PROMPTS)
def test_every_rule_is_needed(prompt):
    """Without a rule some wrong reply would pass."""
    written = REPLIES[prompt.role][prompt.id]
    needless = []
    for path in _rules(prompt.validator_spec):
        if _common(prompt) and path[-1] != "enum":
            continue
        spec = _without(prompt.validator_spec, path)
        weaker = replace(prompt, validator=build_validator(spec, REGISTRY), validator_spec=spec)
        assert all(verdict_of(weaker, text).passed for text in written["right"])
        if not any(verdict_of(weaker, text).passed for text in written["wrong"]):
            needless.append(path)

    assert needless == []


@pytest.mark.parametrize("role", ROLES)
def test_every_prompt_has_its_replies(role):
    """No reply is left without a prompt, and ids count up behind the role's letter."""
    ids = [prompt.id for prompt in SUITES[role].prompts]

    assert [*REPLIES[role]] == ids == [f"{LETTERS[role]}{number}" for number in range(len(ids))]
    assert all(entry["right"] and entry["wrong"] for entry in REPLIES[role].values())


@pytest.mark.parametrize("role", ROLES)
def test_a_suite_is_large_enough_and_waits_to_be_named(role):
    """It can prove a role with two misses, and stays outside the sample that tiers are of."""
    suite = SUITES[role]

    assert suite.named_only
    assert {prompt.role for prompt in suite.prompts} == {role}
    assert len(suite.prompts) >= 4 * PROVEN_PROMPTS
    assert not any(affects_tier(prompt) for prompt in suite.prompts)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_is_sent_as_openclaw_sends_it(prompt):
    """Heartbeats are turns with tools and none of our instructions; all others have our instructions and no tools."""
    assert prompt.prompt == prompt.prompt.strip()
    assert re.fullmatch("[a-z][a-z0-9_]*", prompt.name)
    assert (prompt.tools is not None, prompt.system is None) == ((prompt.role == "heartbeat"),) * 2


def test_one_answer_for_everything_is_not_enough():
    """Half of the heartbeats have something due; no single choice, score or probability fits all decisions."""
    silent = [verdict_of(prompt, "NO_REPLY").passed for prompt in SUITES["heartbeat"].prompts]
    alerts = [verdict_of(prompt, "Something needs you.").passed for prompt in SUITES["heartbeat"].prompts]

    assert silent.count(True) * 2 == len(silent)
    assert not any(alerts)
