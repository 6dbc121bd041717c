"""From a suite's description to a validator, or to an error that gives a hint."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from pytest_openclaw.judging.combine import AllOf, AnyOf, Not, ToolInvocation
from pytest_openclaw.judging.registry import BUILTIN, build_validator
from pytest_openclaw.judging.text import Exact, JsonKeys, MaxWords, Noop, OneOf
from pytest_openclaw.values.protocols import Validator
from pytest_openclaw.values.replies import Verdict
from tests.builtin import REGISTRY

SEED = "noop exact one_of regex_fullmatch max_words max_sentences exact_bullets json_keys tool_invocation"


@dataclass(frozen=True)
class Ticket:
    type: ClassVar[str] = "ticket"
    number: str

    def check(self, reply):
        return Verdict(passed=self.number in reply.text)


@dataclass(frozen=True)
class Unless:
    """A plugin's composite."""

    type: ClassVar[str] = "unless"
    nested: ClassVar[tuple[str, ...]] = ("condition", "others")
    condition: Validator
    others: tuple[Validator, ...] = ()

    def check(self, reply):
        return Verdict(passed=not self.condition.check(reply).passed)


@dataclass(frozen=True)
class Late(Unless):
    type: ClassVar[str] = "late"
    condition: "OnlyForTypeCheckers"  # noqa: F821


@dataclass(frozen=True)
class AtLeast:
    type: ClassVar[str] = "at_least"
    words: int

    def __post_init__(self):
        if self.words < 1:
            raise ValueError("words is below 1. Write 1 or more.")

    def check(self, reply):
        return Verdict(passed=len(reply.text.split()) >= self.words)


WITH_PLUGINS = {**REGISTRY, "ticket": Ticket, "unless": Unless}


def test_a_plugins_own_error_is_of_its_type():
    """The author names the key; type and place are added."""
    registry = {"at_least": AtLeast, "not": Not}

    with pytest.raises(ValueError, match=r"^validator at_least: words is below 1\. Write 1 or more\.$"):
        build_validator({"type": "at_least", "words": 0}, registry)
    with pytest.raises(ValueError, match=r"^not\.validator: validator at_least: words is below 1"):
        build_validator({"type": "not", "validator": {"type": "at_least", "words": 0}}, registry)


def test_builtin_names():
    """The original harness's nine validators exist, under its names."""
    assert set(SEED.split()) <= {validator.type for validator in BUILTIN}


@pytest.mark.parametrize("spec", [None, {}, "", [], {"type": "noop"}], ids=repr)
def test_nothing_is_noop(spec):
    """A missing or empty validator is noop."""
    assert build_validator(spec, REGISTRY) == Noop()


@pytest.mark.parametrize(
    ("spec", "validator"),
    [
        pytest.param({"type": "exact", "value": "a\n"}, Exact(value="a\n"), id="exact"),
        pytest.param({"type": "max_words", "value": 0}, MaxWords(value=0), id="zero"),
        pytest.param({"type": "one_of", "values": []}, OneOf(values=()), id="an-empty-list"),
        pytest.param({"type": "one_of", "values": ["a", 1, 1.5]}, OneOf(values=("a", 1, 1.5)), id="numbers"),
        pytest.param({"type": "tool_invocation", "expected_tools": ["free -h"]}, ToolInvocation(expected_tools=("free -h",)), id="a-tool-with-a-blank"),
        pytest.param({"type": "json_keys", "required_keys": []}, JsonKeys(required_keys=(), key_rules={}), id="no-rules"),
        pytest.param({"type": "exact", "value": "a", "note": "why"}, Exact(value="a"), id="an-unknown-key"),
        pytest.param({"type": "all_of", "validators": [{"type": "exact", "value": "a"}, None]}, AllOf(validators=(Exact(value="a"), Noop())), id="all_of"),
        pytest.param({"type": "any_of", "validators": [{"type": "not", "validator": {"type": "max_words", "value": 1}}]}, AnyOf(validators=(Not(validator=MaxWords(value=1)),)), id="nested"),
        pytest.param({"type": "unless", "condition": {"type": "ticket", "number": "OC-12"}, "others": [{"type": "exact", "value": "a"}]}, Unless(Ticket("OC-12"), (Exact(value="a"),)), id="plugins-within-each-other"),
    ],
)  # fmt: skip
def test_build(spec, validator):
    """A description becomes the validator with these values."""
    assert build_validator(spec, WITH_PLUGINS) == validator


def test_keys_of_a_plugin():
    """They are read by their types, as for the built-ins."""
    with pytest.raises(ValueError, match="validator ticket: number is 3, not a text"):
        build_validator({"type": "ticket", "number": 3}, WITH_PLUGINS)


def test_a_plugin_with_annotations_for_type_checkers():
    """Annotations that cannot be resolved leave all values as they are, and nested validators are built."""
    spec = {"type": "late", "condition": {"type": "noop"}, "others": [{"type": "noop"}]}

    found = build_validator(spec, {**REGISTRY, "late": Late})

    assert (found.condition, found.others) == (Noop(), (Noop(),))
