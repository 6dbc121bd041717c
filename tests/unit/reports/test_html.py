"""The HTML page: rows become columns and details, and no text can end the element that holds its data."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.reports.html import (
    FAULT,
    MISSED,
    PASSED,
    SILENT,
    UNAVAILABLE,
    UNJUDGED,
    Shown,
    cell_data,
    change_of,
    element,
    fill,
    verdict_of,
)
from pytest_openclaw.util.text import valid_value
from tests.unit.reports.summaries import TARGET, fault, missed, record
from tests.unit.runs.stored_runs import definition

SILENCE = {"success": False, "objective_pass": None, "failure_type": "empty_response"}


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        pytest.param(record(), PASSED, id="passed"),
        pytest.param(missed(), MISSED, id="missed"),
        pytest.param(record(objective_pass=None), UNJUDGED, id="no-validator"),
        pytest.param(record(**SILENCE), SILENT, id="silent"),
        pytest.param(fault(availability_status="error", failure_type="timeout"), FAULT, id="fault"),
        pytest.param(fault(), UNAVAILABLE, id="unavailable"),
    ],
)
def test_a_cell_ends_in_one_way(row, verdict):
    """A fault of the network is not a miss of the model."""
    assert verdict_of(row) == verdict


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        pytest.param(missed(), record(), 1, id="better"),
        pytest.param(record(), missed(), -1, id="worse"),
        pytest.param(record(), record(), 0, id="the-same"),
        pytest.param(record(), record(**SILENCE), -1, id="silence-is-a-miss"),
        pytest.param(record(), fault(), None, id="no-answer-now"),
        pytest.param(fault(), record(), None, id="no-answer-before"),
        pytest.param(record(objective_pass=None), record(), None, id="not-judged-before"),
    ],
)
def test_a_cell_changes(before, after, change):
    """Only cells that were judged both times are better or worse."""
    assert change_of(before, after) == change


def _data(*shown):
    return cell_data(shown, [definition("P1", suite="s", prompt="the question")], [TARGET])


def test_fields_of_later_versions_are_shown():
    """A row may have more fields than this version knows."""
    data = _data(Shown(record=record(extra={"known_failure": "a bug"})))

    row = dict(zip(data[0]["fields"], data[1][0]["row"], strict=True))
    assert row["known failure"] == "a bug"
    assert row["output tokens"] == "9"


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        pytest.param('{"path": "a", "limit":  2}', None, id="as-sent"),
        pytest.param('{"path": "a", "limit": "2"}', '{\n  "limit": 2,\n  "path": "a"\n}', id="converted"),
        pytest.param("{", None, id="no-json"),
    ],
)
def test_converted_arguments_are_shown(arguments, given):
    """The arguments that the tool gets are next to those that were sent, if they differ."""
    row = record(tool_call_details=({"name": "read", "arguments": arguments},))
    tools = load_catalogue().surface("direct")
    (call,) = _data(Shown(record=row, tools=tools))[1][0]["turns"][0]["calls"]

    assert call["given"] == given


def test_a_conversation_is_part_of_the_page():
    """The messages before a prompt, labeled, and the user's between the turns."""
    messages = [
        {"role": "user", "content": "Is it up?"},
        {"role": "assistant", "content": "", "calls": [{"name": "exec", "arguments": {"command": "ping"}}]},
        {"role": "tool", "content": ""},
    ]
    turns = ({"text": "Yes.", "calls": []}, {"user": "And now?", "text": "No.", "calls": []})
    defined = definition("P1", suite="s", prompt="the question", messages=messages)
    data = cell_data([Shown(record=missed(turns=turns))], [defined], [TARGET])

    assert data[0]["prompts"][0]["messages"] == [
        ["user", "Is it up?"],
        ["call exec", '{"command": "ping"}'],
        ["result", ""],
    ]
    assert [turn.get("user") for turn in data[1][0]["turns"]] == [None, "And now?"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(value=VALUES)
def test_an_island_is_the_value_and_no_markup(value):
    """Whatever it contains: no tag, no entity, no invisible character; JSON gives it back."""
    written = element("page", value).partition(">")[2].removesuffix("</script>")

    assert not re.search("[<>&\x00-\x1f\x7f-\x9f\u2028\u2029\u202e]", written)
    assert json.loads(written) == valid_value(value)


def test_values_in_a_template_are_not_templates():
    """A style that contains the name of another placeholder stays unchanged."""
    assert fill({"a": "{{b}}", "b": "x{{a}}"}, "{{a}} {{b}}") == "{{b}} x{{a}}"
