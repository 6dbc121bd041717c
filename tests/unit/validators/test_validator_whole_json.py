"""json_equals and json_schema."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.json_answers import JsonEquals, JsonSchema
from pytest_openclaw.util import json_schema
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.json_text import same
from pytest_openclaw.values.replies import Reply

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
    ("value", "text", "violation"),
    [
        pytest.param({"a": "x"}, '{"a":"y"}', '{"a": "y"} does not equal {"a": "x"}', id="other"),
        pytest.param([1], '{"a":1}', "the JSON is an object, an array expected", id="object-for-array"),
        pytest.param([1], "[1] and [2]", "2 JSON values found, exactly 1 array expected", id="two-arrays"),
        pytest.param([1], "one", "no JSON array found, exactly 1 expected", id="none"),
    ],
)
def test_json_equals_violation(value, text, violation):
    """The violation names both values, or what is wrong with the JSON."""
    verdict = JsonEquals(value=value).check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (False, violation)


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        pytest.param('{"route": "local", "n": 5}', None, id="valid"),
        pytest.param('```\n{"route": "local"}\n```', None, id="fence"),
        pytest.param("{}", "$: 'route' is a required property", id="missing"),
        pytest.param('{"route": "x"}', "$.route: 'x' is not one of ['local', 'premium']", id="enum"),
        pytest.param('{"route": "local", "n": 1.5}', "$.n: 1.5 is not of type 'integer'", id="fraction"),
        pytest.param('{"route": "local", "n": true}', "$.n: True is not of type 'integer'", id="boolean"),
        pytest.param(
            '{"route": "local", "n": 1e400}', "$.n: 1e400 is greater than the maximum of 5", id="huge"
        ),
        pytest.param("no", "no JSON object found, exactly 1 expected", id="no-object"),
    ],
)
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
        pytest.param({"properties": {"a": {"multipleOf": 0.1}}}, '{"a": 1e400}', '$.a: "1e400" is too large to be divided by 0.1', id="huge-multiple"),
        pytest.param({"properties": {"a": {"type": "integer"}}}, f'{{"a": {"9" * 400}}}', None, id="huge-integer"),
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
    monkeypatch.setattr(json_schema, "SCHEMA_TIMEOUT_S", 0.05)
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
    monkeypatch.setattr("pytest_openclaw.util.bounded_regex.PATTERN_TIMEOUT_S", 0.05)

    with pytest.raises(OpenClawError, match="cannot be decided on a reply of 3000 characters"):
        JsonSchema(schema=schema).check(Reply(text=json.dumps(value)))


SCALAR = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5, "", "1"])
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("a", max_size=1), inner)
)


@given(left=JSON, right=JSON)
def test_same_is_equality_of_json(left, right):
    """Two values are the same exactly if Python's equality says so and no boolean poses as a number."""

    def typed(value):
        if isinstance(value, list):
            return [typed(item) for item in value]
        if isinstance(value, dict):
            return {key: typed(item) for key, item in value.items()}
        return [isinstance(value, bool), value]

    assert same(left, right) is (typed(left) == typed(right))
