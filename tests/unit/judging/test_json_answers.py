"""Finding the one JSON object of a reply, and schemas of any form: laws, and what cannot be decided."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.text import JsonSchema
from pytest_openclaw.util import bounded
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.json_text import find_json, same
from pytest_openclaw.values.replies import Reply

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
