"""Laws of all validators: always a verdict, whatever a model replies, in bounded time."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.registry import build_validator
from pytest_openclaw.judging.text import count_sentences
from pytest_openclaw.values.replies import Reply
from tests.builtin import REGISTRY
from tests.searching import examples

SPECS = [
    {"type": "noop"},
    {"type": "exact", "value": "up"},
    {"type": "one_of", "values": ["yes", "no", 1]},
    {"type": "regex_fullmatch", "pattern": r"(?i)[\w\s]+|\{.*\}"},
    {"type": "contains", "value": "a", "ignore_case": True},
    {"type": "max_words", "value": 4},
    {"type": "max_sentences", "value": 1},
    {"type": "exact_bullets", "value": 3},
    {"type": "json_keys", "required_keys": ["a"], "key_rules": {"a": {"type": "number"}}},
    {"type": "json_keys", "required_keys": [], "key_rules": {"a": {"type": "one_of", "values": [1]}}},
    {"type": "json_keys", "required_keys": [], "strict": True},
    {"type": "json_equals", "value": {"a": 1}},
    {"type": "json_equals", "value": [1]},
    {"type": "json_schema", "schema": {"properties": {"a": {"type": "number", "multipleOf": 0.1}}}},
    {"type": "json_schema", "schema": {"type": "array", "uniqueItems": True}},
    {"type": "tool_invocation", "expected_tools": ["free"]},
    {"type": "openclaw_ack"},
    {"type": "reports_failure", "invented": ["[0-9]+"]},
    {"type": "world", "files": {"a": {"json": {}}}, "sent": [{}], "answer": {"type": "max_words", "value": 1}},
]  # fmt: skip
SPECS += [
    {"type": "all_of", "validators": SPECS[:]},
    {"type": "any_of", "validators": SPECS[:]},
    {"type": "not", "validator": {"type": "tool_invocation", "expected_tools": []}},
]
VALIDATORS = [build_validator(spec, REGISTRY) for spec in SPECS]

ANY_CHARACTER = st.characters(codec=None, categories=None)
WORDS = '{"a": 1e400 "\\ud800" } [ ] , {} NaN ``` - HEARTBEAT_OK NO_REPLY `free -h` e.g. 。 ؟'
OTHERS = ("9" * 400, "```json\n", "\n", " ", "$ du", "\x00", "\x1b[31m", "\ud800", "\u2028")
TEXTS = st.text(alphabet=ANY_CHARACTER) | st.lists(
    st.sampled_from([*WORDS.split(), *OTHERS]) | st.text(alphabet=ANY_CHARACTER, max_size=3)
).map("".join)


@pytest.mark.parametrize("validator", VALIDATORS, ids=[spec["type"] for spec in SPECS])
@examples(30)
@given(text=TEXTS)
def test_always_a_verdict(validator, text):
    """Whatever a model replies, a verdict is reached, and it can be written as JSON in UTF-8."""
    verdict = validator.check(Reply(text=text))

    assert verdict.passed in (True, False, None)
    assert (verdict.violation is not None) is (verdict.passed is False)
    assert verdict.parsed is None or isinstance(verdict.parsed, dict)
    json.dumps([verdict.violation, verdict.parsed], allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize("validator", VALIDATORS, ids=[spec["type"] for spec in SPECS])
@examples(10)
@given(
    text=TEXTS, before=st.text(alphabet=" \t\r\n", max_size=3), after=st.text(alphabet=" \t\r\n", max_size=3)
)
def test_blanks_around_do_not_count(validator, text, before, after):
    """The four kinds of white space around a reply change no verdict."""
    plain = text.strip(" \t\r\n")

    assert (
        validator.check(Reply(text=before + plain + after)).passed
        is validator.check(Reply(text=plain)).passed
    )


@given(texts=st.lists(st.text(alphabet="ab 。.!\n", min_size=1), max_size=5))
def test_sentences_only_grow(texts):
    """A text with more behind it, after white space, never has fewer sentences."""
    counts = [count_sentences(" ".join(texts[:end])) for end in range(len(texts) + 1)]

    assert counts == sorted(counts)
