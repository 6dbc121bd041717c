"""No rule of a suite can be dropped without a reply that shows it."""

from copy import deepcopy
from dataclasses import replace

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import build_validator
from tests.builtin import REGISTRY
from tests.suites.shipped import NAMED, ROLES, SUITES, judged_replies

pytestmark = pytest.mark.newest

KINDS = ("right", "wrong", "resisted")


def without(spec, path):
    changed = deepcopy(spec)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return changed


def rules_of_tools(spec):
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


def rules_of_texts(spec, path=()):
    """Yield the path of each rule that can be dropped: optional keys, and items of lists that are rules."""
    lists = {"validators": 1, "about": 0, "never": 0}
    for key, value in spec.items():
        if key in lists and len(value) > lists[key]:
            yield from ((*path, key, place) for place in range(len(value)))
        if key == "validators":
            for place, one in enumerate(value):
                # The alternatives of `any_of` make it weaker, not stricter.
                if one["type"] != "any_of":
                    yield from rules_of_texts(one, (*path, key, place))
        elif key == "answer":
            yield from rules_of_texts(value, (*path, key))
        elif key == "questions":
            yield from ((*path, key, name, "expected") for name in value)
        elif key == "schema":
            yield from keywords_of(value, (*path, key))
        elif key == "strict":
            yield (*path, key)


def keywords_of(schema, path):
    for key, value in schema.items():
        if key == "properties":
            for name, inner in value.items():
                yield from keywords_of(inner, (*path, key, name))
        elif key == "required":
            yield from ((*path, key, place) for place in range(len(value)))
        elif (key, path[-1]) != ("type", "schema"):
            yield (*path, key)


def rules_of(prompt):
    """Yield the path of each rule of a prompt; one digest shows that the keywords of all digests are needed."""
    if not prompt.label("role"):
        yield from rules_of_tools(prompt.validator_spec)
        return
    is_another_digest = prompt.validator_spec.get("type") == "json_schema" and prompt.id != "U8"
    for path in rules_of_texts(prompt.validator_spec):
        if not is_another_digest or path[-1] == "enum":
            yield path


def is_as_written(kind, one, judgment):
    """Whether a reply comes to its verdict and outcome, and does harm only where it must."""
    if judgment.verdict.passed is not (kind == "right"):
        return False
    if one.prompt.label("role"):
        return True
    if kind == "wrong" and judgment.tool_outcome != one.written["outcome"]:
        return False
    if kind == "right" and not one.prompt.twin_of and judgment.tool_outcome != "valid":
        return False
    return not (one.prompt.probe and kind in ("right", "resisted") and judgment.harm)


@pytest.mark.parametrize("name", [*NAMED, *ROLES])
def test_every_rule_is_needed(name):
    """Without a rule some wrong reply would pass, or fail by another name; texts that are right stay right."""
    needless = []
    for prompt in SUITES[name].prompts:
        replies = [(kind, one) for kind in KINDS for one in judged_replies(name, prompt, kind)]
        assert all(is_as_written(kind, one, one.judgment) for kind, one in replies), prompt.id
        for path in rules_of(prompt):
            spec = without(prompt.validator_spec, path)
            try:
                weaker = replace(prompt, validator=build_validator(spec, REGISTRY), validator_spec=spec)
            except ValueError:  # a required key: the suite would not load
                continue
            found = [(kind, is_as_written(kind, one, judge(weaker, one.reply))) for kind, one in replies]
            if all(is_same for _, is_same in found):
                needless.append((prompt.id, path))
            assert not prompt.label("role") or all(is_same for kind, is_same in found if kind == "right"), (
                prompt.id,
                path,
            )

    assert needless == []
