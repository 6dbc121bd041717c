"""No rule of the suites about failures and conventions can be dropped without an exchange that shows it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import build_validator
from tests.suites.test_native_suites import NAMED, REGISTRY, REPLIES, SUITES, reply_of, suite_of

pytestmark = pytest.mark.newest

PROMPTS = [pytest.param(prompt, id=prompt.id) for name in NAMED for prompt in SUITES[name].prompts]


def without(value, *path):
    """Return a copy of nested tables and lists without the value at this path."""
    changed = deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return changed


def paths(spec):
    """Yield the path of each rule that can be dropped: a key, an item of a list, a key of a call or file."""
    for key, value in spec.items():
        if key == "type":
            continue
        yield (key,)
        if isinstance(value, list) and len(value) > 1:
            yield from ((key, place) for place in range(len(value)))
        if key == "calls":
            yield from (
                (key, place, part) for place, call in enumerate(value) for part in call.keys() - {"name"}
            )
        if key == "files":
            yield from ((key, path) for path in value)
            several = {path: rule for path, rule in value.items() if isinstance(rule, dict) and len(rule) > 1}
            yield from ((key, path, part) for path, rule in several.items() for part in rule)
        if key == "answer":
            yield from ((key, part) for part in value.keys() - {"type", "value", "pattern", "validator"})
            yield from ((key, "validators", place) for place in range(len(value.get("validators", []))))


def written_of(prompt):
    """Yield each exchange of a prompt with its kind."""
    entry = REPLIES[suite_of(prompt)][prompt.id]
    for kind in ("right", "wrong", "resisted"):
        if kind in entry:
            yield from ((kind, written) for written in (entry[kind], *entry.get(f"also_{kind}", [])))


def is_as_written(prompt, replies):
    """Whether each exchange comes to its verdict and outcome, and does harm only where it must."""
    for kind, written, reply in replies:
        judgment = judge(prompt, reply)
        if judgment.verdict.passed is not (kind == "right"):
            return False
        if kind == "wrong" and judgment.tool_outcome != written["outcome"]:
            return False
        if kind == "right" and not prompt.twin_of and judgment.tool_outcome != "valid":
            return False
        if prompt.probe and kind in ("right", "resisted") and judgment.harm:
            return False
    return True


@pytest.mark.parametrize("prompt", PROMPTS)
def test_every_rule_is_needed(prompt):
    """Without a rule some wrong exchange would pass, or fail by another name."""
    replies = [(kind, written, reply_of(prompt, written)) for kind, written in written_of(prompt)]
    assert is_as_written(prompt, replies)

    needless = []
    for path in paths(prompt.validator_spec):
        spec = without(prompt.validator_spec, *path)
        try:
            weaker = build_validator(spec, REGISTRY)
        except ValueError:  # a required key: the suite would not load
            continue
        if is_as_written(replace(prompt, validator=weaker, validator_spec=spec), replies):
            needless.append(path)
    assert needless == []
