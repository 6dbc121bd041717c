"""Calls written as text: every family's form is found, and an explanation of a call is not one."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.written_calls import asked_by
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.values.tool_calls import Tool
from tests.unit.judging.finding import find_written_calls

TOOLS = load_catalogue().surface("direct")
PATH = '{"path": "notes.md"}'
JSON = f'{{"name": "read", "arguments": {PATH}}}'
UNKNOWN = f'{{"name": "frobnicate", "arguments": {PATH}}}'
TEXTS = {
    group: {key: text.replace("⏎", "\n") for key, text in texts.items()}
    for group, texts in tomllib.loads(
        Path(__file__).with_name("written_calls.toml").read_text("utf-8")
    ).items()
}
NAMESPACE = "antml"
TEXTS["forms"]["anthropic-namespace"] = (
    TEXTS["forms"]["anthropic"]
    .replace("</", f"</{NAMESPACE}:")
    .replace("<i", f"<{NAMESPACE}:i")
    .replace("<p", f"<{NAMESPACE}:p")
)


def rows_of(group):
    return [pytest.param(text, id=key) for key, text in TEXTS[group].items()]


def names(text, **options):
    return [call.name for call in find_written_calls(strip_thinking(text), TOOLS, **options)]


@pytest.mark.parametrize("text", rows_of("found"))
def test_a_written_call_is_found(text):
    """Each family's form counts, with chatter, fences and half of its marks missing."""
    assert names(text)[:1] in (["read"], ["write"])


@pytest.mark.parametrize("text", rows_of("shown"))
def test_a_call_that_is_only_shown_is_not_made(text):
    """Prose about calls, examples, definitions, results, programs and thinking contain no call."""
    assert names(text) == []


@pytest.mark.parametrize("name", ["exec", "run_shell"])
@pytest.mark.parametrize("form", rows_of("forms"))
def test_a_call_is_read_with_its_arguments(form, name):
    """Each form is one call, whatever its name, and is read as a server's parser would read it."""
    (call,) = find_written_calls(form.replace("exec", name), TOOLS)

    read = call.as_call

    assert (read.name, json.loads(read.arguments)) == (name, {"command": "df -h"})


@pytest.mark.parametrize("text", rows_of("rule"))
def test_a_call_is_a_tools_name_and_arguments_that_fit_it(text):
    """With nothing but marks between them, in any wrapper, quotes, brackets and escapes."""
    calls = find_written_calls(text, TOOLS)

    assert [(call.name, call.as_call.arguments) for call in calls] == [("exec", '{"command": "df -h"}')]


PLACE = {"place": {"type": "string"}, "from_hour": {"type": "integer"}, "with_map": {"type": "boolean"}}
TIDES = Tool(
    name="find_next_tides", parameters={"type": "object", "required": ["place"], "properties": PLACE}
)
FERRIES = Tool(
    name="ferries",
    parameters={
        "type": "object",
        "required": ["place"],
        "properties": {"place": PLACE["place"], "from_hour": PLACE["from_hour"]},
    },
)
LISBON = {"place": "Lisbon", "from_hour": 6}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        pytest.param("find\\_next\\_tides(place='Lisbon', from\\_hour=6)", LISBON, id="escaped-underscores"),
        pytest.param('Action: Find next tides  \nAction Input: {"place": "Lisbon", "from_hour": 6}', LISBON, id="blanks-in-the-name"),
        pytest.param('find-next-tides {"place": "Lisbon", "from_hour": 6}', LISBON, id="dashes-in-the-name"),
        pytest.param("Tool: find_next_tides\nPlace: Lisbon\nfrom_hour: 6", LISBON, id="lines"),
        pytest.param("find_next_tides\n- place: Lisbon\n- from_hour: 6", LISBON, id="bullets"),
        pytest.param("<find_next_tides><place>Lisbon</place><from_hour>6</from_hour></find_next_tides>", LISBON, id="elements"),
        pytest.param("<|tool_call:start|>find_next_tides\n<|tool_arg:start|>place<|tool_arg:value|>Lisbon<|tool_arg:end|>\n<|tool_arg:start|>from_hour<|tool_arg:value|>6<|tool_arg:end|>\n<|tool_call:end|>", LISBON, id="tokens"),
        pytest.param('<invoke name="find_next_tides"><parameter name="place">Lisbon\n<parameter name="from_hour">6</parameter></invoke>', LISBON, id="a-tag-is-not-closed"),
        pytest.param("call:find_next_tides{place:Lisbon,from_hour:6}", LISBON, id="without-quotes"),
        pytest.param('{"place": "Lisbon", "with_map": true}', {"place": "Lisbon", "with_map": True}, id="of-the-only-tool-that-fits"),
        pytest.param('Let me use find_next_tides for that.\n{"place": "Lisbon"}', {"place": "Lisbon"}, id="named-in-the-sentence-before"),
    ],
)  # fmt: skip
def test_names_and_arguments_are_read_as_they_are_meant(text, arguments):
    """Blanks and dashes may be in place of underscores, and values get the types of the tool's schema."""
    calls = find_written_calls(text, (TIDES, FERRIES))

    assert [(call.name, call.value) for call in calls] == [("find_next_tides", arguments)]


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        pytest.param('{"place": "Lisbon"}', "Where are the tides?", id="two-tools-fit"),
        pytest.param('{"place": "Lisbon", "size": 3}', "Where are the tides?", id="another-key"),
        pytest.param(
            '{"place": "Lisbon", "with_map": true}', "Give me the place as JSON.", id="json-was-asked"
        ),
        pytest.param(
            'The place is {"place": "Lisbon", "with_map": true}.', "Where?", id="a-part-of-the-answer"
        ),
        pytest.param('ferries takes:\n{"place": "Lisbon"}', "What does it take?", id="a-description"),
    ],
)
def test_other_objects_are_not_arguments(text, prompt):
    """Bare arguments are a call only if they are the whole answer and fit one tool."""
    asked = asked_by((prompt,), may_show=False)

    assert find_written_calls(text, (TIDES, FERRIES), asked=asked) == ()


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        pytest.param("[tool: exec] df -h", {"command": "df -h"}, id="plain"),
        pytest.param("Let me look. [TOOL: exec] df -h", {"command": "df -h"}, id="plain-after-words"),
        pytest.param("Action: exec\nAction Input: df -h", {"command": "df -h"}, id="react-plain"),
        pytest.param('exec(command="df -h", background=true)', {"command": "df -h", "background": True}, id="true"),
        pytest.param("<function=exec><parameter=command>df -h</parameter><parameter=timeoutSeconds>9</parameter></function>", {"command": "df -h", "timeoutSeconds": 9}, id="typed-by-the-schema"),
        pytest.param("{'name': 'exec', 'arguments': {'command': 'df -h',}}", {"command": "df -h"}, id="python"),
        pytest.param("<exec><command>df -h</command></exec>", {"command": "df -h"}, id="element"),
    ],
)  # fmt: skip
def test_arguments_are_read_by_the_tools_schema(text, arguments):
    """Plain text and untyped values get their names and types from the offered tool."""
    (call,) = find_written_calls(text, TOOLS)

    assert json.loads(call.as_call.arguments) == arguments


@pytest.mark.parametrize("text", rows_of("cut_off"))
def test_a_call_that_is_cut_off_is_a_call(text):
    """Its arguments are not JSON, so that it would not have been right."""
    (call,) = find_written_calls(text, TOOLS)

    assert call.name in ("exec", "frobnicate")
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|Extra"):
        json.loads(call.as_call.arguments)


@pytest.mark.parametrize("text", rows_of("of_no_tool"))
def test_a_call_of_no_tool_is_a_call(text):
    """A name that no tool has makes a call no prose, if nothing else is there or the call is announced."""
    (call,) = find_written_calls(text, TOOLS)

    assert not call.is_known


@pytest.mark.parametrize(
    "text",
    [
        '{"tool_calls": [{"name": "read", "arguments": {"path": "a"}}, {"name": "exec", "arguments": {"command": "b"}}]}',
        '{"read": {"path": "a"}, "exec": {"command": "b"}}',
        '[read(path="a"), exec(command="b")]',
        '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>\n'
        '<tool_call>{"name": "bash", "arguments": {"command": "b"}}</tool_call>',
        "<tool_call>read<arg_key>path</arg_key><arg_value>a</arg_value></tool_call>"
        "<tool_call>exec<arg_key>command</arg_key><arg_value>b</arg_value></tool_call>",
    ],
    ids=["in-an-object", "keyed-by-tool", "code", "one-after-the-other", "tags"],
)
def test_each_call_of_several_is_read(text):
    """An object, a list or a text may have many."""
    calls = find_written_calls(text, TOOLS)

    assert [(call.name, call.value) for call in calls] == [
        ("read", {"path": "a"}),
        ("exec", {"command": "b"}),
    ]


def test_an_expected_tool_counts_that_was_not_offered():
    """A call of a tool that the prompt expects is known."""
    text = '{"name": "get_weather", "arguments": {"city": "Rome"}}'

    assert [call.is_known for call in find_written_calls(text, TOOLS, ["get_weather"])] == [True]


@pytest.mark.parametrize(
    ("text", "thinking", "found"),
    [
        pytest.param("", f"I should.\n<tool_call>\n{JSON}\n</tool_call>", ["read"], id="marked"),
        pytest.param("", f"I should.\n{JSON}", ["read"], id="json-at-the-end"),
        pytest.param("", f"I could write {JSON}, but I need not.", [], id="json-inside"),
        pytest.param("", f"I might call `{JSON}`", [], id="quoted"),
        pytest.param("On it.", f"<tool_call>\n{JSON}\n</tool_call>", ["read"], id="marked-next-to-an-answer"),
        pytest.param("It is 4.", f"<tool_call>{JSON}</tool_call>? No need.", [], id="marked-and-dropped"),
        pytest.param("It is 4.", JSON, [], id="json-next-to-an-answer"),
        pytest.param(f"<think>Hm.\n{JSON}", "", ["read"], id="unclosed"),
    ],
)
def test_calls_in_the_thinking(text, thinking, found):
    """Thinking that ends with a call made it; a draft within the thinking is not one."""
    calls = find_written_calls(text, TOOLS, thinking=thinking)

    assert [call.name for call in calls] == found


HERMES = f"<tool_call>{JSON}</tool_call>"


@pytest.mark.parametrize(
    ("prompt", "text", "found"),
    [
        pytest.param("How does a model write a call? Show an example.", f"```\n{JSON}\n```", [], id="format"),
        pytest.param("How does a model write a call? Show an example.", JSON, ["read"], id="format-bare"),
        pytest.param("Explain what df does.", f"```json\n{JSON}\n```", ["read"], id="explain-with-a-call"),
        pytest.param("Reply in JSON with the keys name and arguments.", UNKNOWN, [], id="json-keys"),
        pytest.param("Reply in JSON with the keys name and arguments.", JSON, [], id="json-keys-of-a-tool"),
        pytest.param("Reply in JSON with the key city.", UNKNOWN, ["frobnicate"], id="other-json-keys"),
        pytest.param("Reply in JSON with name and arguments.", HERMES, ["read"], id="json-keys-and-a-template"),
        pytest.param("Write a line of Python.", "plot(x=1)", [], id="code"),
        pytest.param("Write a script.", "```python\ndef read(path):\n    ...\n\nread(path='a.md')\n```", [], id="program"),
    ],
)  # fmt: skip
def test_a_call_that_the_prompt_asks_for_is_an_answer(prompt, text, found):
    """An example, JSON or code is the answer if the prompt asks for it."""
    calls = find_written_calls(text, TOOLS, asked=asked_by((prompt,), may_show=True))

    assert [call.name for call in calls] == found


PIECES = [*"{}[]()\"'\\`:<\n", "<tool_call>", "read", "```", '{"name": "read"']
OWN = (Tool(name="read", parameters={"type": "object", "properties": {"path": {"type": "string"}}}),)


@given(text=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=40).map("".join))
def test_every_text_is_searched(text):
    """Nothing is raised, whatever a model wrote; every finding is part of the text, in order."""
    calls = find_written_calls(text, OWN, thinking=text)

    assert all(0 <= call.start <= call.end <= len(text) for call in calls)
    assert list(calls) == sorted(calls, key=lambda call: call.start)
    assert all(call.as_call.name for call in calls)
