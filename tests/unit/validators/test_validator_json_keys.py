"""Finding the one JSON object of a reply, and json_keys."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.json_answers import JsonKeys
from pytest_openclaw.util.json_text import find_json, same
from pytest_openclaw.values.replies import Reply

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
        pytest.param('{"a": 1,}', "the JSON is broken at line 1, column 9", id="trailing-comma"),
        pytest.param('{\n  "a": NaN\n}', "the JSON is broken at line 2, column 7", id="nan"),
        pytest.param('{"a": -Infinity}', "the JSON is broken at line 1, column 6", id="infinity"),
        pytest.param('{"a": 01}', "the JSON is broken at line 1, column 8", id="leading-zero"),
        pytest.param('{"a": "x\ny"}', "the JSON is broken at line 1, column 6", id="newline-in-a-string"),
        pytest.param('{"a": [1}', "the JSON is broken at line 1, column 9", id="wrong-bracket"),
        pytest.param('{"a": {"b": 1}', "the JSON is broken off before its end", id="cut-off"),
        pytest.param(f'{{"a": oops, "b": {OBJECT}}}', "the JSON is broken at line 1, column 6", id="broken-outside"),
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
        None if alone else "text or a fence around the JSON object, which must be alone"
    )


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        pytest.param("1e400", "1e400", id="beyond-a-double"),
        pytest.param("-1e400", "-1e400", id="beyond-a-double-below"),
        pytest.param("9" * 5000, "9" * 5000, id="beyond-the-digits-python-reads"),
        pytest.param("9" * 308, int("9" * 308), id="long-integer"),
        pytest.param("1.5", 1.5, id="fraction"),
        pytest.param("1E2", 100.0, id="exponent"),
        pytest.param("-0", 0, id="minus-zero"),
    ],
)
def test_numbers(written, kept):
    """Every JSON number is a number; one that JSON writers cannot write is kept as text."""
    rules = {"n": {"type": "number"}}
    verdict = JsonKeys(required_keys=("n",), key_rules=rules).check(Reply(text=f'{{"n": {written}}}'))

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
    verdict = JsonKeys(required_keys=("n",), key_rules=rules).check(Reply(text=f'{{"n": {written}}}'))

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
        pytest.param(
            ["local", "premium"], '"Local"', 'k: "Local" is not one of "local", "premium"', id="other-case"
        ),
        pytest.param([1], "1", None, id="number"),
        pytest.param([1], "1.0", None, id="equal-number"),
        pytest.param([1], '"1"', 'k: "1" is not one of 1', id="a-text-is-no-number"),
        pytest.param([1], "true", "k: true is not one of 1", id="a-boolean-is-no-number"),
        pytest.param([True], "1", "k: 1 is not one of True", id="a-number-is-no-boolean"),
        pytest.param([], '"x"', 'k: "x" is not one of nothing', id="nothing-allowed"),
        pytest.param([[1, {"a": None}]], '[1, {"a": null}]', None, id="nested"),
        pytest.param(["x"], "1e400", 'k: 1e400 is not one of "x"', id="huge"),
    ],
)
def test_one_of_rule(values, written, violation):
    """A one_of rule compares as JSON does: a boolean is no number, a text is no number."""
    rules = {"k": {"type": "one_of", "values": values}}
    verdict = JsonKeys(required_keys=(), key_rules=rules).check(Reply(text=f'{{"k": {written}}}'))

    assert (verdict.passed, verdict.violation) == (violation is None, violation)


def test_rule_for_a_missing_key():
    """A rule judges its key if it exists; only required_keys must exist."""
    validator = JsonKeys(required_keys=(), key_rules={"n": {"type": "number"}})

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
