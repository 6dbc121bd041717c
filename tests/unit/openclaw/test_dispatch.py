"""Calls are handled as OpenClaw 2026.9.6 handles them; each expected answer is the release's own."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.openclaw.catalog import flattened, load_catalogue
from pytest_openclaw.openclaw.dispatch import dispatch, is_forgotten, same_tool
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.tool_calls import Tool, ToolCall

CATALOGUE = load_catalogue()
DIRECT = CATALOGUE.surface("direct")
CODING = CATALOGUE.surface("coding")
MALFORMED = "Provider returned an incomplete or malformed tool call"


def _dispatch(name, arguments, tools=DIRECT):
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return dispatch(ToolCall(name=name, arguments=text), tools)


def _complaints(answer):
    head, *lines = answer.message.partition("\n\nReceived arguments:\n")[0].split("\n")
    assert head == f'Validation failed for tool "{answer.tool}":'
    return [line.removeprefix("  - ") for line in lines]


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        pytest.param("read", ["READ", " read "], id="case-and-blanks"),
        pytest.param("read", ["functions.read", "functions_read", "default_api.read"], id="namespace"),
        pytest.param("read", ["read_1", "read:0", "functions.read:0"], id="counter"),
        pytest.param("read", ['read" path="a"', "read<path"], id="rest-of-a-tag"),
        pytest.param("exec", ["bash", "Bash", "functions.bash", "tools/exec"], id="old-name"),
        pytest.param("apply_patch", ["apply-patch"], id="hyphen"),
    ],
)
def test_a_name_need_not_be_exact(tool, names):
    """The tool is reached anyway, with a note; an exact name has none."""
    for name in (tool, *names):
        answer = _dispatch(name, {"path": "notes.md", "command": "date", "input": "x", "id": "x"})

        assert (answer.tool, answer.is_executed) == (tool, True)
        assert answer.notes == (() if name == tool else (f"{name!r} was taken for {tool}",))


@pytest.mark.parametrize(
    "name",
    [
        "frobnicate", "read_file", "shell", "functions:read", "mcp__openclaw__read", "cron", "memory_search",
        "openclaw:core:session_status", "functions.1", "readx", "file.read.all",
    ],
)  # fmt: skip
def test_an_unknown_tool_is_reported_as_by_the_release(name):
    """A name that no rule maps to an offered tool is not found; deferred tools cannot be called directly."""
    answer = _dispatch(name, {"path": "notes.md"})

    assert (answer.problem, answer.tool, answer.message) == ("unknown_tool", None, f"Tool {name} not found")
    assert answer.arguments == {"path": "notes.md"}


@pytest.mark.parametrize(
    ("name", "forgotten"),
    [
        pytest.param("mcp__a:b.c-d", False, id="all-that-a-name-may-have"),
        pytest.param("re ad", True, id="a-blank"),
        pytest.param("r\u0435ad", True, id="a-foreign-letter"),
        pytest.param("a/b", True, id="a-slash"),
        pytest.param("x" * 64, False, id="the-longest"),
        pytest.param("x" * 65, True, id="too-long"),
        pytest.param("tools/read", False, id="taken-for-a-tool"),
    ],
)
def test_a_name_that_no_tool_can_have_is_forgotten(name, forgotten):
    """The model gets an error for an unknown tool only if its name has a valid form."""
    assert is_forgotten(_dispatch(name, {"path": "notes.md"})) is forgotten


@pytest.mark.parametrize(
    ("name", "other", "same"),
    [("functions.Read", "read", True), ("cron", "automations", True), ("calendar.read", "read", False)],
)
def test_same_tool(name, other, same):
    """Two names mean one tool if they differ only in case, spaces, an old name or a usual namespace."""
    assert same_tool(name, other) is same_tool(other, name) is same


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param('{"path":"notes.md",}', id="comma-at-the-end"),
        pytest.param('{"path":"notes.md\nx"}', id="newline-in-a-string"),
        pytest.param(r'{"path":"notes\.md"}', id="unknown-escape"),
        pytest.param('{"path":"notes.md","limit":NaN}', id="NaN"),
        pytest.param("", id="empty"),
        pytest.param('["notes.md"]', id="array"),
        pytest.param("null", id="null"),
        pytest.param('{"path":' + "[" * 50_000 + "]" * 50_000 + "}", id="nested-without-end"),
    ],
)
def test_arguments_that_are_not_a_json_object_end_the_run(arguments):
    """Not only broken JSON is fatal in OpenClaw: so are empty arguments and other JSON values."""
    answer = _dispatch("read", arguments)

    assert (answer.problem, answer.tool, answer.message) == ("malformed_json", "read", MALFORMED)


def test_arguments_longer_than_the_buffer_end_the_run():
    """OpenClaw keeps 256,000 bytes of arguments."""
    fits, too_long = (_dispatch("write", {"path": "a", "content": "x" * n}) for n in (255_000, 256_000))

    assert fits.is_executed
    assert too_long.problem == "malformed_json"
    assert too_long.message == "Exceeded tool-call argument buffer limit"


MANY = {"action": "x", "id": 5.5, "mode": "x", "a": 1, "b": 1, "c": 1, "definition": {}}


@pytest.mark.parametrize(
    ("name", "arguments", "complaints"),
    [
        ("write", {}, ["path: must have required properties path, content"]),
        ("process", {"action": "frob"}, ["action: must be equal to one of the allowed values"]),
        ("read", {"path": "a", "offset": 1.5}, ["offset: must be integer"]),
        ("read", {"path": "a", "offset": -3, "limit": "x", "cursor": -1}, ["offset: must be >= 1", "limit: must be number", "cursor: must be >= 0"]),
        ("read", {"path": "a", "optional": False}, ["optional: must be equal to constant"]),
        ("exec", {"command": "a", "background": "yes"}, ["background: must be boolean"]),
        ("exec", {"command": "a", "title": "t" * 130}, ["title: must not have more than 120 characters"]),
        ("exec", {"command": ["echo", "a"]}, ["command: must be string"]),
        ("exec", {"command": "a", "env": {"A": 1}}, ["env.A: must be string"]),
        ("exec", {"command": "a", "env": "x"}, ["env: must be object"]),
        ("edit", {"path": "a", "edits": {"oldText": "a", "newText": "b"}}, ["edits: must be array"]),
        ("tool_search", {"queries": [{}]}, ["queries.0.query: must have required properties query", "queries: must be null", "queries: must match a schema in anyOf"]),
        ("tool_search", {"limit": 0}, ["limit: must be >= 1", "limit: must be null", "limit: must match a schema in anyOf"]),
        ("memory_get", {"path": "a", "foo": 1}, ["foo: schema is false", "root: must not have additional properties"]),
        ("conversations_send", {"conversationRef": "x", "message": ""}, ['conversationRef: must match pattern "^conv_[a-f0-9]{32}$"', "message: must not have fewer than 1 characters"]),
        ("ask_user", {"questions": []}, ["questions: must not have fewer than 1 items"]),
        ("web_search", {"query": "a", "count": 11}, ["count: must be <= 10"]),
        ("secrets", {"action": "list", "allowedHosts": ["a", "a"]}, ["allowedHosts: must not have duplicate items"]),
        ("theme", MANY, ["a: schema is false", "b: schema is false", "c: schema is false", "root: must not have additional properties", "action: must be equal to one of the allowed values", "mode: must be equal to one of the allowed values", "mode: must be null", "mode: must match a schema in anyOf"]),
    ],
)  # fmt: skip
def test_misfits_in_arguments_are_reported(name, arguments, complaints):
    """The model gets the problems, in the release's words and order, eight at most."""
    answer = _dispatch(name, arguments, (*DIRECT, *CATALOGUE.deferred_tools()))

    assert answer.problem == "bad_arguments"
    assert _complaints(answer) == complaints


@pytest.mark.parametrize(
    ("name", "arguments", "given"),
    [
        ("read", {"path": "a", "offset": " 7 "}, {"path": "a", "offset": 7}),
        ("read", {"path": "a", "limit": ".5"}, {"path": "a", "limit": 0.5}),
        ("read", {"path": True}, {"path": "true"}),
        ("read", {"path": "a", "limit": None}, {"path": "a", "limit": 0}),
        ("read", {"path": "a", "limit": True}, {"path": "a", "limit": 1}),
        ("read", {"path": "a", "optional": "true"}, {"path": "a", "optional": True}),
        ("ls", {"path": None}, {"path": ""}),
        ("exec", {"command": "a", "background": "false"}, {"command": "a", "background": False}),
        ("exec", {"command": "a", "background": 0}, {"command": "a", "background": False}),
        ("exec", {"command": "a", "env": '{"A": "b"}'}, {"command": "a", "env": {"A": "b"}}),
        ("process", {"action": "send-keys", "keys": '["a"]'}, {"action": "send-keys", "keys": ["a"]}),
        ("tool_search", {"limit": "5", "query": 5}, {"limit": 5, "query": "5"}),
        # What fits is unchanged, and accepted if an open schema does not define it.
        ("read", {"path": "a", "limit": 1.0}, None),
        ("tool_search", {"query": None, "queries": [{"query": "a"}]}, None),
        ("write", {"path": "a", "content": "x", "extra": 1}, None),
        ("ls", {}, None),
        ("get_goal", {"foo": 1}, None),
    ],
)
def test_simple_types_are_converted(name, arguments, given):
    """Numbers, booleans, texts, null and JSON texts are converted to the schema's type, with a note."""
    answer = _dispatch(name, arguments, (*DIRECT, CATALOGUE.tools["get_goal"]))

    assert (answer.is_executed, answer.arguments) == (True, given or arguments)
    assert given is None or json.dumps(answer.arguments) == json.dumps(given)
    note = "arguments were converted to the types of the schema"
    assert answer.notes == ((note,) if given else ())


ONE_EDIT = {"path": "a", "edits": [{"oldText": "b", "newText": "c"}]}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"path": "a", "oldText": "b", "newText": "c"}, id="a-single-edit"),
        pytest.param({**ONE_EDIT, "edits": json.dumps(ONE_EDIT["edits"])}, id="edits-as-text"),
    ],
)
def test_older_forms_are_still_taken(arguments):
    """`edit` takes a single replacement, and edits as a text."""
    answer = _dispatch("edit", arguments, CODING)

    assert (answer.is_executed, answer.arguments) == (True, ONE_EDIT)
    assert answer.notes == ("arguments were put into the form that edit takes",)


@pytest.mark.parametrize(
    ("schema", "value", "given"),
    [
        ({"type": ["string", "integer"]}, 5, 5),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, None),
        ({"anyOf": [{"type": "boolean"}, {"const": "all", "type": "string"}]}, "all", "all"),
        ({"anyOf": [{"type": "boolean"}, {"const": "all", "type": "string"}]}, "true", True),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "5"}, {"a": 5}),
        ({"type": "array", "items": {"type": "string"}}, [1, 2.0, "c"], ["1", "2", "c"]),
    ],
)
def test_alternatives_keep_what_already_fits(schema, value, given):
    """Of several types, or schemas, the first that fits determines the conversion."""
    own = Tool(name="own", parameters={"type": "object", "properties": {"a": schema}})

    answer = _dispatch("own", {"a": value}, (own,))

    assert json.dumps(answer.arguments) == json.dumps({"a": given})
    assert answer.is_executed


def test_an_own_tool_is_not_taken_for_the_one_of_the_release():
    """A suite's own `edit` gets its arguments unchanged."""
    own = Tool(name="edit", parameters={"type": "object", "properties": {"oldText": {"type": "string"}}})

    given = {"oldText": "a", "newText": "b"}

    assert _dispatch("edit", given, (own,)).arguments == given


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("exec", {"command": "a", "timeout": 5}, 'exec parameter "timeout" is unsupported; use "timeoutSeconds" instead'),
        ("exec", {"command": None}, "Provide a command to start."),
        ("edit", {"path": "a", "edits": []}, "Missing required parameter: edits (received: path, edits=<array>). Supply correct parameters before retrying."),
    ],
)  # fmt: skip
def test_a_refusal_of_the_tool_itself_is_a_json_error(name, arguments, said):
    """The schema accepts it and the tool does not; the model gets the error as JSON."""
    answer = _dispatch(name, arguments)

    assert answer.problem == "bad_arguments"
    assert answer.message == json.dumps({"status": "error", "tool": name, "error": said}, indent=2)


DEEP = '{"a":' * 500 + "1" + "}" * 500
NESTED = Tool(
    name="own",
    parameters={
        "type": "object",
        "$defs": {"n": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/n"}}] * 3}},
        "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"type": "string", "pattern": "(a+)+$"}},
    },
)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param("exec", json.dumps({"command": "a", "env": DEEP}), id="deep-text"),
        pytest.param("edit", '{"path":"a","edits":[' + "0," * 100_000 + "0]}", id="many-wrong-items"),
        pytest.param("tool_search", '{"queries":[' + "{}," * 60_000 + "{}]}", id="many-wrong-alternatives"),
        pytest.param("read", '{"path":"a","offset":' + "9" * 100_000 + "}", id="long-integer"),
        pytest.param("read", '{"path":"a","limit":1e400}', id="huge-number"),
        pytest.param("own", json.dumps({"a": json.loads("[" * 40 + "1" + "]" * 40)}), id="recursive-schema"),
        pytest.param("own", json.dumps({"b": "a" * 5000 + "b"}), id="slow-pattern"),
    ],
)
@pytest.mark.newest
def test_hostile_arguments_are_refused_in_bounded_time(name, arguments):
    """Any call is answered soon, with a short text; no row has a value that it cannot hold."""
    began = time.process_time()
    answer = _dispatch(name, arguments, (*DIRECT, NESTED))

    assert answer.problem == "bad_arguments"
    assert time.process_time() - began < 30
    assert len(answer.message) < 20_000
    json.dumps(answer.arguments, allow_nan=False)


def test_a_check_that_takes_too_long_is_refused_and_noted(monkeypatch):
    """All parts of a check share one count of steps; beyond it, the row says why the call was refused."""
    monkeypatch.setattr("pytest_openclaw.openclaw.dispatch.CHECK_STEPS", 1)

    answer = _dispatch("read", {"path": "a"})

    assert _complaints(answer) == ["root: cannot be checked in bounded time"]
    assert answer.notes == ("the arguments could not be checked within 1 steps",)


def test_an_unusable_schema_is_reported():
    """A tool that refers outside its schema is the benchmark's fault, and named."""
    tool = Tool(name="own", parameters={"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}})

    with pytest.raises(OpenClawError, match=r"tool own: parameters has a \$ref"):
        _dispatch("own", {"a": 1}, (tool,))


@given(name=st.text('aE.:/1 "<\ud800'), arguments=st.text('{}[]":,1a\\ '))
def test_any_text_is_a_call_that_is_answered(name, arguments):
    """No text of a model raises an exception in the judge."""
    assert _dispatch(name, arguments).problem in ("malformed_json", "unknown_tool", "bad_arguments", None)


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
def test_alternatives_at_the_root_are_flattened(schema, sent):
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
def test_a_call_is_checked_by_what_was_sent(arguments, is_executed):
    """OpenClaw checks arguments by the schema that the model saw; the tool's server does the rest."""
    tools = read_tools([{"name": "planner__add", "parameters": JOB}])

    assert dispatch(ToolCall(name="planner__add", arguments=arguments), tools).is_executed is is_executed
