"""The arguments of a wanted call: alternatives at any depth, optional ones, and texts compared loosely."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.calls import WantedCall
from pytest_openclaw.judging.judge import judge
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import Dispatched, Tool, ToolCall
from tests.builtin import build

CITY = {"city": {"any_of": ["Oslo", "Oslo, Norway"]}}
UNIT = {"unit": {"any_of": ["celsius", ""], "optional": True}}
ROOM = {"room": {"floor": {"any_of": [2, 3]}, "view": {"any_of": ["sea"], "optional": True}}}
PARTY = {"party": [{"name": {"any_of": ["Ann", "Anna"]}}, {"name": "Bo"}]}
LOOSE = {"ignore_case": True, "ignore_punctuation": True}


def complaint(given, arguments, **more):
    made = Dispatched(call=ToolCall(name="x", arguments=""), tool="x", arguments=given)
    found = WantedCall(name="x", arguments=arguments, **more).complaint(made)
    return found and found.removeprefix("x has ")


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        pytest.param(CITY, {"city": "Oslo"}, None, id="first"),
        pytest.param(CITY, {"city": " Oslo, Norway\n", "days": 3}, None, id="second-and-another"),
        pytest.param(UNIT, {}, None, id="absent"),
        pytest.param(UNIT, {"unit": "celsius"}, None, id="optional-given"),
        pytest.param(UNIT, {"unit": ""}, None, id="optional-empty"),
        pytest.param({"n": {"any_of": [5, "five"]}}, {"n": 5.0}, None, id="number"),
        pytest.param({"n": {"any_of": [None, True]}}, {"n": None}, None, id="null"),
        pytest.param(ROOM, {"room": {"floor": 3}}, None, id="in-an-object"),
        pytest.param(ROOM, {"room": {"floor": 2, "view": "sea"}}, None, id="optional-key"),
        pytest.param(PARTY, {"party": [{"name": "Anna"}, {"name": "Bo"}]}, None, id="in-a-list"),
        pytest.param({"tags": {"any_of": [["a", "b"], ["b", "a"]]}}, {"tags": ["b", "a"]}, None, id="of-lists"),
        pytest.param({"at": {"any_of": [{"day": {"any_of": [1, 2]}}, "now"]}}, {"at": {"day": 2}}, None, id="within-another"),
        pytest.param({"path": {"any_of": ["a.md", "notes/a.md"]}}, {"path": "./notes//a.md"}, None, id="path"),
        pytest.param(CITY, {"city": "Bergen"}, 'city "Bergen", not any of "Oslo", "Oslo, Norway"', id="another"),
        pytest.param(CITY, {}, 'no city, which should be any of "Oslo", "Oslo, Norway"', id="absent-fails"),
        pytest.param(CITY, {"city": "oslo"}, 'city "oslo", not any of "Oslo", "Oslo, Norway"', id="case"),
        pytest.param({"unit": {"any_of": ["c"], "optional": True}}, {"unit": "k"}, 'unit "k", not "c"', id="optional"),
        pytest.param({"n": {"any_of": [1]}}, {"n": True}, "n true, not 1", id="true-is-not-a-number"),
        pytest.param(ROOM, {"room": {"floor": 4}}, 'room {"floor": 4}, not {"floor": {"any_of": [2, 3]}, "view":...', id="in-an-object-fails"),
        pytest.param(ROOM, {"room": {"view": "sea"}}, 'room {"view": "sea"}, not ', id="key-missing"),
        pytest.param(ROOM, {"room": {"floor": 2, "bed": 1}}, 'room {"floor": 2, "bed": 1}, not ', id="key-too-many"),
        pytest.param(PARTY, {"party": [{"name": "Ann"}]}, 'party [{"name": "Ann"}], not ', id="too-short"),
        pytest.param(PARTY, {"party": [{"name": "Bo"}, {"name": "Ann"}]}, "party ", id="another-order"),
        pytest.param({"tags": ["a "]}, {"tags": ["a"]}, 'tags ["a"], not ["a "]', id="blanks-inside"),
    ],
)  # fmt: skip
def test_arguments_fit(arguments, given, said):
    """Any of the values fits, at any depth, and an optional one may be absent; another value is named."""
    found = complaint(given, arguments)

    assert (found is None) is (said is None)
    assert (found or "").startswith((said or "").removesuffix("..."))


@pytest.mark.parametrize(
    ("wanted", "given", "flags", "fits"),
    [
        pytest.param("Berkeley, CA", "berkeley,ca", LOOSE, True, id="both"),
        pytest.param("Berkeley, CA", "berkeley, ca", {"ignore_case": True}, True, id="case"),
        pytest.param("Berkeley, CA", "berkeley,ca", {"ignore_case": True}, False, id="only-case"),
        pytest.param("April 1, 2024", "April 1 2024.", {"ignore_punctuation": True}, True, id="punctuation"),
        pytest.param("April 1, 2024", "april 1 2024", {"ignore_punctuation": True}, False, id="only-punctuation"),
        pytest.param("+", "-", LOOSE, False, id="nothing-but-punctuation"),
        pytest.param("", "-", LOOSE, False, id="empty"),
        pytest.param("STRASSE", "straße", LOOSE, True, id="folded"),
        pytest.param("x^2", "y^2", LOOSE, False, id="another-letter"),
    ],
)  # fmt: skip
def test_how_texts_compare(wanted, given, flags, fits):
    """With both flags only letters and digits count, in any case, at any depth."""
    for arguments, made in (
        ({"a": wanted}, {"a": given}),
        ({"a": {"any_of": ["?", wanted]}}, {"a": given}),
        ({"a": {"b": [wanted]}}, {"a": {"b": [given]}}),
    ):
        assert (complaint(made, arguments, **flags) is None) is fits


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda key: key != "any_of"), inner),
    max_leaves=8,
)


@given(value=json_values, other=json_values)
def test_an_alternative_is_the_value_itself(value, other):
    """A value fits where it is one of several, and fits no list that lacks it unless it is equal by itself."""
    assert complaint({"a": value}, {"a": {"any_of": [other, value]}}) is None
    plain, listed = (complaint({"a": value}, {"a": one}) for one in (other, {"any_of": [other]}))
    assert plain == listed


@pytest.mark.parametrize("key", ["calls", "forbidden"])
def test_wanted_and_forbidden_calls_take_the_same(key):
    """A call that is wanted, or forbidden, by alternatives is recognized as such."""
    rule = {"name": "pay", "arguments": {"to": {"any_of": ["Ann", "Anna"]}}, "ignore_case": True}
    validator = build("tool_call", **{"calls": [{"name": "pay"}], key: [rule]})
    prompt = Prompt(
        id="P", name="pay", prompt="Pay.", suite="s", tools=(Tool(name="pay"),), validator=validator
    )

    calls = [ToolCall(name="pay", arguments=json.dumps({"to": name})) for name in ("anna", "Bo")]
    passed = [judge(prompt, Reply(tool_calls=(call,))).verdict.passed for call in calls]

    assert passed == [key == "calls", key == "forbidden"]
