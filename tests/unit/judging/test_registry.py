"""From a suite's description to a validator, or to an error that gives a hint."""

from dataclasses import dataclass
from datetime import date
from typing import ClassVar

import pytest

from pytest_openclaw.judging.combine import AllOf, AnyOf, Not, ToolInvocation
from pytest_openclaw.judging.json_answers import JsonKeys
from pytest_openclaw.judging.registry import BUILTIN, build_registry, build_validator
from pytest_openclaw.judging.text import Exact, MaxWords, Noop, OneOf
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.values.protocols import Validator
from pytest_openclaw.values.replies import Reply, Verdict

SEED = "noop exact one_of regex_fullmatch max_words max_sentences exact_bullets json_keys tool_invocation"
KNOWN = ", ".join(sorted(validator.type for validator in BUILTIN))


@dataclass(frozen=True)
class Ticket:
    """A plugin's rule, written as the hook's documentation shows."""

    type: ClassVar[str] = "ticket"
    number: str

    def check(self, reply: Reply) -> Verdict:
        """Search for the ticket."""
        return Verdict(passed=self.number in reply.text)


@dataclass(frozen=True)
class Unless:
    """A plugin's composite."""

    type: ClassVar[str] = "unless"
    nested: ClassVar[tuple[str, ...]] = ("condition", "others")
    condition: Validator
    others: tuple[Validator, ...] = ()

    def check(self, reply: Reply) -> Verdict:
        """Turn the first round."""
        return Verdict(passed=not self.condition.check(reply).passed)


def test_builtin_names():
    """The original harness's nine validators exist, under its names."""
    assert set(SEED.split()) <= {validator.type for validator in BUILTIN}


@pytest.mark.parametrize("spec", [None, {}, "", [], {"type": "noop"}], ids=repr)
def test_nothing_is_noop(spec, registry):
    """A missing or empty validator is noop."""
    assert build_validator(spec, registry) == Noop()


@pytest.mark.parametrize(
    ("spec", "validator"),
    [
        pytest.param({"type": "exact", "value": "a\n"}, Exact(value="a"), id="exact"),
        pytest.param({"type": "max_words", "value": "8"}, MaxWords(value=8), id="a-text-of-digits"),
        pytest.param({"type": "max_words", "value": 8.0}, MaxWords(value=8), id="a-whole-float"),
        pytest.param({"type": "max_words", "value": 0}, MaxWords(value=0), id="zero"),
        pytest.param({"type": "one_of", "values": []}, OneOf(values=()), id="an-empty-list"),
        pytest.param({"type": "one_of", "values": ["a", 1, 1.5]}, OneOf(values=("a", 1, 1.5)), id="numbers"),
        pytest.param({"type": "tool_invocation", "expected_tools": ["free -h"]}, ToolInvocation(expected_tools=("free -h",)), id="a-tool-with-a-blank"),
        pytest.param({"type": "json_keys", "required_keys": []}, JsonKeys(required_keys=(), key_rules={}), id="no-rules"),
        pytest.param({"type": "exact", "value": "a", "note": "why"}, Exact(value="a"), id="an-unknown-key"),
        pytest.param({"type": "all_of", "validators": [{"type": "exact", "value": "a"}, None]}, AllOf(validators=(Exact(value="a"), Noop())), id="all_of"),
        pytest.param({"type": "any_of", "validators": [{"type": "not", "validator": {"type": "max_words", "value": 1}}]}, AnyOf(validators=(Not(validator=MaxWords(value=1)),)), id="nested"),
    ],
)  # fmt: skip
def test_build(spec, validator, registry):
    """A description becomes the validator with these values."""
    assert build_validator(spec, registry) == validator


ERRORS = [
    ("no-object", 3, 'the validator is 3. Write an object, for example {"type": "noop"}.'),
    ("a-text", "noop", 'the validator is the text "noop". Write an object, for example {"type": "noop"}.'),
    ("false", False, 'the validator is false. Write an object, for example {"type": "noop"}.'),
    ("no-type", {"value": 3}, f'the validator has no "type". Known types: {KNOWN}.'),
    ("type-no-text", {"type": 3}, f'the validator\'s "type" is 3. Known types: {KNOWN}.'),
    ("unknown-type-close", {"type": "max_word"}, f'there is no validator type "max_word". Did you mean "max_words"? Known types: {KNOWN}.'),
    ("unknown-type", {"type": "zzz"}, f'there is no validator type "zzz". Known types: {KNOWN}.'),
    (
        "missing-required_keys",
        {"type": "json_keys"},
        'validator json_keys has no "required_keys".'
        ' List the keys a reply must have, for example "required_keys": ["route"].',
    ),
    ("missing-value", {"type": "exact"}, 'validator exact has no "value". Write the answer wanted, for example "value": "HEARTBEAT_OK".'),
    ("missing-limit", {"type": "max_sentences"}, 'validator max_sentences has no "value". Write a whole number, for example "value": 3.'),
    (
        "missing-tools",
        {"type": "tool_invocation"},
        'validator tool_invocation has no "expected_tools".'
        ' List the tools of which one must be invoked, for example "expected_tools": ["free"].',
    ),
    ("close-key", {"type": "one_of", "value": ["a"]}, 'validator one_of has "value". Did you mean "values"?'),
    ("close-key-beside", {"type": "json_keys", "required_keys": [], "Strict": True}, 'validator json_keys has "Strict". Did you mean "strict"?'),
    ("exact-number", {"type": "exact", "value": 42}, 'validator exact: "value" is 42. Write a text in quotes.'),
    ("text-for-list", {"type": "one_of", "values": "yes"}, 'validator one_of: "values" is the text "yes". Write a list, for example "values": ["yes"].'),
    ("null-for-list", {"type": "one_of", "values": None}, 'validator one_of: "values" is null. Write a list.'),
    ("boolean-in-list", {"type": "one_of", "values": [True]}, 'validator one_of: "values" holds true. Write texts in quotes.'),
    ("tools-no-text", {"type": "tool_invocation", "expected_tools": [{}]}, 'validator tool_invocation: "expected_tools" holds an object. Write texts in quotes.'),
    ("limit-negative", {"type": "max_words", "value": -1}, 'validator max_words: "value" is -1. Write a whole number of 0 or more.'),
    ("limit-fraction", {"type": "max_sentences", "value": 1.5}, 'validator max_sentences: "value" is 1.5. Write a whole number of 0 or more.'),
    ("limit-boolean", {"type": "exact_bullets", "value": True}, 'validator exact_bullets: "value" is true. Write a whole number of 0 or more.'),
    ("limit-text", {"type": "max_words", "value": "-8"}, 'validator max_words: "value" is the text "-8". Write a whole number of 0 or more.'),
    ("limit-infinite", {"type": "max_words", "value": float("inf")}, 'validator max_words: "value" is inf. Write a whole number of 0 or more.'),
    ("limit-date", {"type": "max_words", "value": date(2026, 2, 13)}, 'validator max_words: "value" is a date. Write a whole number of 0 or more.'),
    (
        "pattern",
        {"type": "regex_fullmatch", "pattern": "[0-9"},
        'validator regex_fullmatch: "pattern" is no regular expression'
        ' (unterminated character set at position 0): "[0-9". Fix it, or use another validator.',
    ),
    ("contains-empty", {"type": "contains", "value": ""}, 'validator contains: "value" is empty, which every reply contains.'),
    ("flag", {"type": "contains", "value": "a", "ignore_case": "yes"}, 'validator contains: "ignore_case" is the text "yes". Write true or false.'),
    ("rules-no-object", {"type": "json_keys", "required_keys": [], "key_rules": []}, 'validator json_keys: "key_rules" is a list. Write an object.'),
    (
        "rule-no-object",
        {"type": "json_keys", "required_keys": [], "key_rules": {"n": "number"}},
        'validator json_keys: the rule for "n" is the text "number".'
        ' Write an object, for example {"type": "number"}.',
    ),
    ("rule-without-type", {"type": "json_keys", "required_keys": [], "key_rules": {"n": {}}}, 'validator json_keys: the rule for "n" has no "type". Known are "number" and "one_of".'),
    (
        "rule-type",
        {"type": "json_keys", "required_keys": [], "key_rules": {"n": {"type": "string"}}},
        'validator json_keys: the rule for "n" has the unknown type "string".'
        ' Known are "number" and "one_of".',
    ),
    (
        "rule-without-values",
        {"type": "json_keys", "required_keys": [], "key_rules": {"n": {"type": "one_of"}}},
        'validator json_keys: the rule for "n" has no "values".'
        ' List what is allowed, for example "values": ["yes", "no"].',
    ),
    (
        "rule-values",
        {"type": "json_keys", "required_keys": [], "key_rules": {"n": {"type": "one_of", "values": "yes"}}},
        'validator json_keys: the rule for "n": "values" is the text "yes".'
        ' Write a list, for example "values": ["yes"].',
    ),
    (
        "equals-text",
        {"type": "json_equals", "value": "a"},
        'validator json_equals: "value" is the text "a".'
        " Write an object or an array, or use the validator exact.",
    ),
    ("equals-no-json", {"type": "json_equals", "value": {"a": date(2026, 2, 13)}}, 'validator json_equals: "value" is no JSON: Object of type date is not JSON serializable.'),
    ("equals-nan", {"type": "json_equals", "value": [float("inf")]}, 'validator json_equals: "value" is no JSON: NaN, infinity and endless nesting cannot be written.'),
    ("schema-text", {"type": "json_schema", "schema": "object"}, 'validator json_schema: "schema" is the text "object". Write an object.'),
    (
        "schema-type",
        {"type": "json_schema", "schema": {"properties": {"a": {"type": "strin"}}}},
        'validator json_schema: "schema" is no JSON Schema: $.properties.a.type:'
        " 'strin' is not valid under any of the given schemas. Fix it by Draft 2020-12.",
    ),
    (
        "schema-remote",
        {"type": "json_schema", "schema": {"items": {"$ref": "http://localhost:1/x"}}},
        'validator json_schema: "schema" has a $ref to "http://localhost:1/x", which is not in the schema.'
        " Put it under $defs; nothing is fetched.",
    ),
    (
        "schema-ref",
        {"type": "json_schema", "schema": {"items": {"$ref": "#/$defs/x"}}},
        'validator json_schema: "schema" has a $ref to "#/$defs/x", which is not in the schema.'
        " Put it under $defs; nothing is fetched.",
    ),
    ("schema-endless", {"type": "json_schema", "schema": {"$ref": "#"}}, 'validator json_schema: "schema" refers to itself without end. Look at its $ref.'),
    (
        "schema-dialect",
        {"type": "json_schema", "schema": {"$schema": "http://json-schema.org/draft-07/schema#"}},
        'validator json_schema: "schema" has another dialect, "http://json-schema.org/draft-07/schema#".'
        " Write it in Draft 2020-12.",
    ),
    (
        "schema-pattern",
        {"type": "json_schema", "schema": {"patternProperties": {"[": {}}}},
        'validator json_schema: "schema" is no JSON Schema: $.patternProperties:'
        " '[' is not a 'regex'. Fix it by Draft 2020-12.",
    ),
    (
        "schema-pattern-too-large",
        {"type": "json_schema", "schema": {"pattern": "a{99999999999}"}},
        'validator json_schema: "schema" is no JSON Schema that can be judged:'
        " the repetition number is too large.",
    ),
    (
        "nested",
        {"type": "all_of", "validators": [{"type": "noop"}, {"type": "not", "validator": {"type": "exact"}}]},
        'all_of.validators[1]: not.validator: validator exact has no "value".'
        ' Write the answer wanted, for example "value": "HEARTBEAT_OK".',
    ),
    (
        "nested-no-list",
        {"type": "all_of", "validators": {"type": "noop"}},
        'validator all_of: "validators" is an object.'
        ' List validators, for example "validators": [{"type": "max_words", "value": 8}].',
    ),
    ("nested-list", {"type": "not", "validator": [{"type": "noop"}]}, 'validator not: "validator" is a list. Write one validator, for example {"type": "noop"}.'),
    ("plugin-missing", {"type": "ticket"}, 'validator ticket has no "number". Add it.'),
]  # fmt: skip


@pytest.fixture(scope="session")
def with_plugins():
    """The built-in validators and two plugins."""
    plugins = [("conftest.py", Ticket), ("conftest.py", Unless)]
    return build_registry([*(("pytest-openclaw", validator) for validator in BUILTIN), *plugins])


@pytest.mark.parametrize(("spec", "text"), [pytest.param(*error[1:], id=error[0]) for error in ERRORS])
def test_errors(spec, text, with_plugins):
    """A wrong description is a ValueError that says where and what to write."""
    known = ", ".join(sorted([*KNOWN.split(", "), "ticket", "unless"]))
    with pytest.raises(ValueError, match="validator") as caught:
        build_validator(spec, with_plugins)

    assert str(caught.value) == text.replace(KNOWN, known)


def test_plugins(with_plugins):
    """Plugins are built as the built-ins are, also within each other."""
    spec = {
        "type": "unless",
        "condition": {"type": "ticket", "number": "OC-12"},
        "others": [{"type": "exact", "value": "a"}],
    }

    assert build_validator(spec, with_plugins) == Unless(Ticket("OC-12"), (Exact(value="a"),))


def test_a_plugin_that_refuses_its_keys():
    """A TypeError from a plugin's own checks is reported as the suite's error."""

    @dataclass(frozen=True)
    class Sized(Ticket):
        type: ClassVar[str] = "sized"

        def __post_init__(self) -> None:
            len(self.number)

    with pytest.raises(ValueError, match="validator sized does not accept its keys: object of type 'int'"):
        build_validator({"type": "sized", "number": 3}, build_registry([("conftest.py", Sized)]))


def test_a_type_claimed_twice():
    """A type claimed twice is an error that names both claimants."""
    with pytest.raises(SuiteError) as caught:
        build_registry([("pytest-openclaw", Exact), ("conftest.py", Exact)])

    assert str(caught.value) == (
        'the validator type "exact" is claimed twice, by pytest-openclaw and by conftest.py.'
        " Rename one of them."
    )


@pytest.mark.parametrize(
    "plugin",
    [
        pytest.param(
            type("Plain", (), {"type": "plain", "check": lambda self, reply: None}), id="no-dataclass"
        ),
        pytest.param(dataclass(type("Plain", (), {"check": lambda self, reply: None})), id="no-type"),
        pytest.param(dataclass(type("Plain", (), {"type": "plain"})), id="no-check"),
    ],
)
def test_a_plugin_that_is_no_validator(plugin):
    """A class that is no validator is refused with the form to write."""
    with pytest.raises(SuiteError) as caught:
        build_registry([("conftest.py", plugin)])

    assert str(caught.value) == (
        "conftest.py brings 'Plain' as a validator, which is none."
        ' Write a frozen dataclass with `type: ClassVar[str] = "my_rule"` and a method check(reply).'
    )
