"""A tool's schema with alternatives at its root has the form that OpenClaw 2026.9.6 gives it."""

from typing import Any

import pytest

from pytest_openclaw.openclaw.catalog import flattened
from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.values.tool_calls import ToolCall

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
JOB = {
    "type": "object",
    "oneOf": [
        {
            "required": ["kind", "at"],
            "properties": {"kind": {"const": "once", "description": "One time"}, "at": TEXT},
        },
        {"required": ["kind", "every"], "properties": {"kind": {"const": "again"}, "every": WHOLE}},
    ],
}


THREAD_SENT = {"type": "object", "required": ["thread"], "additionalProperties": False}
THREAD = {
    **THREAD_SENT,
    "properties": {"thread": TEXT},
    "anyOf": [{"properties": {name: TEXT}, "required": [name]} for name in ("text", "file")],
}


# The right-hand sides were returned by `normalizeToolParameterSchema` of the released OpenClaw.
@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        pytest.param(THREAD, {**THREAD_SENT, "properties": {"thread": TEXT, "text": TEXT, "file": TEXT}}, id="next-to-properties"),
        pytest.param(
            JOB,
            {
                "type": "object",
                "properties": {
                    "kind": {"description": "One time", "type": "string", "enum": ["once", "again"]},
                    "at": TEXT,
                    "every": WHOLE,
                },
                "required": ["kind"],
                "additionalProperties": True,
            },
            id="one-of-with-a-kind",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "additionalProperties": True},
            id="either-is-required",
        ),
        pytest.param(
            {"type": "object", "title": "T", "description": "D", "anyOf": [{"properties": {"x": TEXT}}, {"properties": {"x": WHOLE}}, True]},
            {"type": "object", "title": "T", "description": "D", "properties": {"x": TEXT}, "additionalProperties": True},
            id="two-types",
        ),
        pytest.param({"type": "object", "anyOf": []}, {"type": "object", "properties": {}, "additionalProperties": True}, id="no-alternative"),
        pytest.param({"type": "object", "properties": {"a": TEXT}}, {"type": "object", "properties": {"a": TEXT}}, id="none"),
    ],
)  # fmt: skip
def test_alternatives_at_the_root_are_flattened(schema: dict[str, Any], sent: dict[str, Any]) -> None:
    """All properties are there, and those are required that each alternative requires."""
    assert flattened(schema) == sent


@pytest.mark.parametrize(
    ("arguments", "is_executed"),
    [
        pytest.param('{"kind": "once", "at": "8:00"}', True, id="one-alternative"),
        pytest.param('{"kind": "again", "at": "8:00"}', True, id="mixed-is-left-to-the-server"),
        pytest.param('{"at": "8:00"}', False, id="without-what-all-require"),
        pytest.param('{"kind": "never"}', False, id="another-kind"),
    ],
)
def test_a_call_is_checked_by_what_was_sent(arguments: str, is_executed: bool) -> None:
    """OpenClaw checks arguments by the schema that the model saw; the tool's server does the rest."""
    tools = read_tools([{"name": "planner__add", "parameters": JOB}])

    assert dispatch(ToolCall(name="planner__add", arguments=arguments), tools).is_executed is is_executed
