"""Finding the one JSON object of a reply, and json_keys."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.text import JsonEquals, JsonKeys, JsonSchema
from pytest_openclaw.util import bounded
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.json_text import find_json, same
from pytest_openclaw.values.replies import Reply
from tests.unit.judging.conftest import build

OBJECT = '{"route": "local", "reason": "cheap"}'
VALUE = {"route": "local", "reason": "cheap"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(OBJECT, id="bare"),
        pytest.param(f"```json\n{OBJECT}\n```", id="fence"),
        pytest.param(f"Sure! Here it is:\n\n{OBJECT}\n\nAnything else?", id="prose"),
        pytest.param(f"Fill {{name}} and [1] and {{ 'a': 1 }}: {OBJECT}", id="braces-in-prose"),
        pytest.param(f"[see this] {{ {OBJECT}", id="stray-brackets"),
        pytest.param(f'The disk is 5" wide. {OBJECT} "', id="stray-quotes"),
        pytest.param(f"[1, 2] {OBJECT} []", id="arrays-without-objects-are-prose"),
    ],
)
def test_find_object(text):
    """One object is found bare, in a fence and in prose."""
    found = find_json(text)

    assert (found.value, found.parsed, found.problem) == (VALUE, VALUE, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("local", "no JSON object found, exactly 1 expected", id="none"),
        pytest.param("", "no JSON object found, exactly 1 expected", id="empty"),
        pytest.param("42", "no JSON object found, exactly 1 expected", id="scalar"),
        pytest.param("[1, 2]", "no JSON object found, exactly 1 expected", id="array"),
        pytest.param("{'a': 1}", "no JSON object found, exactly 1 expected", id="single-quotes"),
        pytest.param(f'"{OBJECT}"'.replace('"', '\\"'), "no JSON object found, exactly 1 expected", id="escaped"),
        pytest.param(OBJECT * 2, "2 JSON values found, exactly 1 object expected", id="two"),
        pytest.param(f"{OBJECT} or {{}}", "2 JSON values found, exactly 1 object expected", id="one-empty"),
        pytest.param(f"[{OBJECT}]", "the JSON is an array, an object expected", id="array-of-one"),
        pytest.param(f"So: [1, [{OBJECT}]]", "the JSON is an array, an object expected", id="array-in-prose"),
        pytest.param('{"a": 1;}', "the JSON is broken at line 1, column 8", id="semicolon"),
        pytest.param('{\n  "a": NaN\n}', "the JSON is broken at line 2, column 8", id="nan"),
        pytest.param('{"a": -Infinity}', "the JSON is broken at line 1, column 7", id="infinity"),
        pytest.param('{"a": 01}', "the JSON is broken at line 1, column 8", id="leading-zero"),
        pytest.param('{"a": "x\ny"}', "the JSON is broken at line 1, column 9", id="newline-in-a-string"),
        pytest.param('{"a": [1}', "the JSON is broken at line 1, column 9", id="wrong-bracket"),
        pytest.param('{"a": {"b": 1}', "the JSON is broken off before its end", id="cut-off"),
        pytest.param(f'{{"a": oops, "b": {OBJECT}}}', "the JSON is broken at line 1, column 7", id="broken-outside"),
        pytest.param('{"a":' * 65 + "1" + "}" * 65, "the JSON is nested more than 64 levels deep", id="deep"),
    ],
)  # fmt: skip
def test_find_object_problem(text, problem):
    """Anything but exactly one whole object has its own problem."""
    assert find_json(text).problem == problem


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        pytest.param(OBJECT, True, id="bare"),
        pytest.param(f"```json\n{OBJECT}\n```", False, id="fence"),
        pytest.param(f"{OBJECT}.", False, id="prose"),
    ],
)
def test_strict(text, alone):
    """With `strict` the object is the whole answer; spaces around it do not count."""
    verdict = JsonKeys(required_keys=("route",), strict=True).check(Reply(text=f" {text}\n"))

    assert verdict.passed is alone
    assert verdict.violation == (
        None if alone else "text or a fence around the JSON object, but only the JSON is allowed"
    )


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        pytest.param("1e400", "1e400", id="beyond-a-double"),
        pytest.param("9" * 5000, "9" * 5000, id="beyond-the-digits-python-reads"),
        pytest.param("9" * 308, int("9" * 308), id="long-integer"),
        pytest.param("1.5", 1.5, id="fraction"),
        pytest.param("1E2", 100.0, id="exponent"),
        pytest.param("-0", 0, id="minus-zero"),
    ],
)
def test_numbers(written, kept):
    """One that JSON writers cannot write is a text."""
    rules = {} if isinstance(kept, str) else {"n": {"type": "number"}}
    verdict = build("json_keys", required_keys=["n"], key_rules=rules).check(
        Reply(text=f'{{"n": {written}}}')
    )

    assert (verdict.passed, verdict.parsed) == (True, {"n": kept})
    json.dumps(verdict.parsed, allow_nan=False)


@pytest.mark.parametrize(
    ("written", "violation"),
    [
        pytest.param('"16"', 'n: "16" is not a number', id="text"),
        pytest.param("true", "n: true is not a number", id="boolean"),
        pytest.param("null", "n: null is not a number", id="null"),
        pytest.param("[1]", "n: [1] is not a number", id="array"),
    ],
)
def test_no_number(written, violation):
    """Text that only looks like a number is none."""
    rules = {"n": {"type": "number"}}
    verdict = build("json_keys", required_keys=["n"], key_rules=rules).check(
        Reply(text=f'{{"n": {written}}}')
    )

    assert (verdict.passed, verdict.violation) == (False, violation)


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        pytest.param(OBJECT, None, id="all-there"),
        pytest.param('{"route": "local"}', '"reason" is missing, the keys are "route"', id="one-missing"),
        pytest.param("{}", '"route" is missing, the keys are none', id="no-keys"),
        pytest.param('{"route": null, "reason": ""}', None, id="empty-values-are-there"),
    ],
)
def test_required_keys(text, violation):
    """Every required key must exist, with any value."""
    verdict = JsonKeys(required_keys=("route", "reason")).check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (violation is None, violation)
    assert verdict.parsed == json.loads(text)


@pytest.mark.parametrize(
    ("values", "written", "violation"),
    [
        pytest.param(["local", "premium"], '"local"', None, id="allowed"),
        pytest.param(["local", "premium"], '"Local"', 'k: "Local" is not one of "local", "premium"', id="other-case"),
        pytest.param([1], "1", None, id="number"),
        pytest.param([1], "1.0", None, id="equal-number"),
        pytest.param([1], '"1"', 'k: "1" is not one of 1', id="a-text-is-no-number"),
        pytest.param([1], "true", "k: true is not one of 1", id="a-boolean-is-no-number"),
        pytest.param([True], "1", "k: 1 is not one of True", id="a-number-is-no-boolean"),
        pytest.param([], '"x"', 'k: "x" is not one of nothing', id="nothing-allowed"),
        pytest.param([[1, {"a": None}]], '[1, {"a": null}]', None, id="nested"),
        pytest.param(["x"], "1e400", 'k: "1e400" is not one of "x"', id="huge"),
    ],
)  # fmt: skip
def test_one_of_rule(values, written, violation):
    """A one_of rule compares as JSON does: neither a boolean nor a text is a number."""
    rules = {"k": {"type": "one_of", "values": values}}
    verdict = build("json_keys", required_keys=[], key_rules=rules).check(Reply(text=f'{{"k": {written}}}'))

    assert (verdict.passed, verdict.violation) == (violation is None, violation)


def test_rule_for_a_missing_key():
    """A rule judges its key if it exists; only required_keys must exist."""
    validator = build("json_keys", required_keys=[], key_rules={"n": {"type": "number"}})

    assert validator.check(Reply(text="{}")).passed is True


def test_surrogates_in_parsed():
    r"""A lone \ud800 in the JSON becomes U+FFFD, in keys and values, and a pair its character."""
    verdict = JsonKeys(required_keys=()).check(Reply(text=r'{"\ud800": ["\udfff", "\ud83d\ude00"]}'))

    assert verdict.parsed == {"\ufffd": ["\ufffd", "😀"]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(value=st.dictionaries(st.text(), JSON, max_size=4), indent=st.none() | st.integers(0, 3))
def test_every_object_is_found_as_json_reads_it(value, indent):
    """Any object, with prose around it, is found, and has the value that `json` gives."""
    text = json.dumps(value, indent=indent)

    assert same(find_json(f"So: {text}, then.").value, json.loads(text))


@given(text=st.text(alphabet='{}[]":,\\ u0a1-eE.tn\n'))
def test_bare_json_is_found_exactly_if_json_accepts_it(text):
    """A text is one bare object exactly if `json` reads it as one."""
    stripped = text.strip(" \t\r\n")
    try:
        expected = json.loads(
            stripped, parse_constant=lambda _: pytest.fail("no constant is in the alphabet")
        )
    except ValueError:
        expected = None
    found = find_json(stripped, strict=True)

    assert (found.problem is None) is isinstance(expected, dict)


ROUTE = {
    "type": "object",
    "required": ["route"],
    "properties": {"route": {"enum": ["local", "premium"]}, "n": {"type": "integer", "maximum": 5}},
}


@pytest.mark.parametrize(
    ("value", "text", "passed"),
    [
        pytest.param({"a": 1, "b": [1, 2]}, '{"b": [1, 2], "a": 1}', True, id="order-of-keys"),
        pytest.param({"b": [1, 2]}, '{"b": [2, 1]}', False, id="order-of-items"),
        pytest.param({"a": 1}, '{"a": 1.0}', True, id="equal-numbers"),
        pytest.param({"a": 1}, '{"a": true}', False, id="a-boolean-is-no-number"),
        pytest.param({"a": None}, "{}", False, id="null-is-there"),
        pytest.param({"a": 1}, '{"a": 1, "b": 2}', False, id="a-key-more"),
        pytest.param({"a": 1}, '{"a": 1e400}', False, id="huge"),
        pytest.param(["a", "b"], '["a", "b"]', True, id="array"),
        pytest.param(["a", "b"], 'So:\n```json\n["a", "b"]\n```', True, id="array-in-a-fence"),
        pytest.param(["a", "b"], '["b", "a"]', False, id="array-in-another-order"),
        pytest.param([], "[]", True, id="empty-array"),
    ],
)
def test_json_equals(value, text, passed):
    """json_equals compares the one object, or array, as JSON."""
    assert JsonEquals(value=value).check(Reply(text=text)).passed is passed


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        pytest.param('{"route": "local", "n": 5}', None, id="valid"),
        pytest.param('```\n{"route": "local"}\n```', None, id="fence"),
        pytest.param("{}", "$: 'route' is a required property", id="missing"),
        pytest.param('{"route": "x"}', "$.route: 'x' is not one of ['local', 'premium']", id="enum"),
        pytest.param('{"route": "local", "n": 1.5}', "$.n: 1.5 is not of type 'integer'", id="fraction"),
        pytest.param('{"route": "local", "n": true}', "$.n: True is not of type 'integer'", id="boolean"),
        pytest.param('{"route": "local", "n": 1e400}', "$.n: '1e400' is not of type 'integer'", id="huge"),
        pytest.param("no", "no JSON object found, exactly 1 expected", id="no-object"),
    ],
)  # fmt: skip
def test_json_schema(text, violation):
    """json_schema names the place and the reason of the first violation."""
    verdict = JsonSchema(schema=ROUTE).check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (violation is None, violation)


@pytest.mark.parametrize(
    ("schema", "value", "violation"),
    [
        pytest.param({"pattern": "^a+$"}, "b", '$.x: "b" does not match "^a+$"', id="pattern"),
        pytest.param({"pattern": "a"}, "bab", None, id="pattern-searches"),
        pytest.param({"pattern": "^[[q]$"}, "[", None, id="pattern-that-re-warns-of"),
        pytest.param({"pattern": "a"}, 5, None, id="pattern-for-texts-only"),
        pytest.param({"patternProperties": {"^n_": {"type": "number"}}}, {"n_a": "1", "m": "1"}, "$.x.n_a: '1' is not of type 'number'", id="pattern-properties"),
        pytest.param({"patternProperties": {"^n_": False}}, [1], None, id="pattern-properties-for-objects-only"),
        pytest.param(
            {"properties": {"a": {}}, "patternProperties": {"^n_": {}}, "additionalProperties": False},
            {"a": 1, "n_a": 1, "b": 1},
            '$.x: the key "b" is not allowed',
            id="no-additional-properties",
        ),
        pytest.param({"additionalProperties": False}, "text", None, id="additional-for-objects-only"),
        pytest.param({"additionalProperties": {"type": "string"}}, {"b": 1}, "$.x.b: 1 is not of type 'string'", id="additional-schema"),
        pytest.param({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1, "b": 1}, "$.x: Unevaluated properties are not allowed ('b' was unexpected)", id="unevaluated-properties"),
        pytest.param({"uniqueItems": True}, [1, 1.0], "$.x: an item is more than once in the array", id="repeated"),
        pytest.param({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}], None, id="unique"),
        pytest.param({"uniqueItems": False}, [1, 1], None, id="need-not-be-unique"),
        pytest.param({"multipleOf": 2}, 5, "$.x: 5 is not a multiple of 2", id="multiple-of"),
        pytest.param({"format": "date"}, "no date", None, id="format-is-not-judged"),
        pytest.param({"$ref": "#/$defs/short"}, "long", "$.x: 'long' is too long", id="ref-within"),
    ],
)  # fmt: skip
def test_schema_keywords(schema, value, violation):
    """The bounded keywords have their meaning in Draft 2020-12."""
    whole = {"properties": {"x": schema}, "$defs": {"short": {"maxLength": 2}}}
    verdict = JsonSchema(schema=whole).check(Reply(text=json.dumps({"x": value})))

    assert (verdict.passed, verdict.violation) == (violation is None, violation)


@pytest.mark.parametrize(
    ("schema", "text", "violation"),
    [
        pytest.param({"type": "array", "minItems": 1}, "[1]", None, id="array"),
        pytest.param({"type": "array", "minItems": 1}, "[]", "$: [] should be non-empty", id="empty-array"),
        pytest.param({"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/a", "$defs": {"a": {}}}, "{}", None, id="dialect-named"),
    ],
)  # fmt: skip
def test_schema_of_the_whole(schema, text, violation):
    """A schema of type array looks for an array; huge numbers reach a verdict."""
    verdict = JsonSchema(schema=schema).check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (violation is None, violation)


def test_parsed_array():
    """An array is under `array`, because parsed_output is an object."""
    assert JsonSchema(schema={"type": "array"}).check(Reply(text="[1]")).parsed == {"array": [1]}


DEEP = '{"a": ' * 60 + '{"b": 1}' + "}" * 60


def test_recursive_schema_on_a_deep_reply():
    """A schema that recurses with the reply reaches any depth that a reply may have."""
    schema = {"properties": {"a": {"$ref": "#"}, "b": {"type": "integer"}}}

    assert JsonSchema(schema=schema).check(Reply(text=DEEP)).passed is True


def test_endless_alternatives_are_a_fault(monkeypatch):
    """Alternatives that double at every level stop after their time, and are not the model's failure."""
    monkeypatch.setattr(bounded, "SCHEMA_TIMEOUT_S", 0.05)
    schema = {"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, "b": {"type": "string"}}}

    with pytest.raises(OpenClawError) as caught:
        JsonSchema(schema=schema).check(Reply(text=DEEP))

    assert str(caught.value) == (
        "the schema of a json_schema validator cannot be decided within 0.05 s on this reply."
        " Write a simpler schema, or allow fewer max_output_tokens."
    )


def test_endless_reference_is_a_fault():
    """A reference that returns to itself for some replies only is the suite's fault."""
    schema = {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"allOf": [{"$ref": "#/$defs/x"}]}}}
    validator = JsonSchema(schema=schema)

    with pytest.raises(OpenClawError) as caught:
        validator.check(Reply(text='{"a": 1}'))

    assert str(caught.value) == (
        "the schema of a json_schema validator refers to itself without end. Look at its $ref."
    )


RUNAWAY = "^(x+x+)+y$"
LONG = "x" * 3000


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"properties": {"a": {"pattern": RUNAWAY}}}, {"a": LONG}, id="pattern"),
        pytest.param({"propertyNames": {"pattern": RUNAWAY}}, {LONG: 1}, id="property-names"),
        pytest.param({"patternProperties": {RUNAWAY: {}}}, {LONG: 1}, id="pattern-properties"),
        pytest.param({"patternProperties": {RUNAWAY: {}}, "additionalProperties": False}, {LONG: 1}, id="additional-properties"),
    ],
)  # fmt: skip
def test_runaway_patterns_in_a_schema_are_a_fault(monkeypatch, schema, value):
    """A pattern in a schema is limited like one in regex_fullmatch."""
    monkeypatch.setattr("pytest_openclaw.util.bounded.PATTERN_TIMEOUT_S", 0.05)

    with pytest.raises(OpenClawError, match="cannot be decided on a reply of 3000 characters"):
        JsonSchema(schema=schema).check(Reply(text=json.dumps(value)))


SCALAR = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5, "", "1"])
VALUES = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("a", max_size=1), inner)
)


@given(left=VALUES, right=VALUES)
def test_same_is_equality_of_json(left, right):
    """Two values are the same exactly if Python's equality says so and no boolean poses as a number."""

    def typed(value):
        if isinstance(value, list):
            return [typed(item) for item in value]
        if isinstance(value, dict):
            return {key: typed(item) for key, item in value.items()}
        return [isinstance(value, bool), value]

    assert same(left, right) is (typed(left) == typed(right))
