"""Calls written as text: every family's form is found, and an explanation of a call is not one."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.written_calls import Asked, as_call, asked_by, find_written_calls
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.util.text import MAX_ANSWER_BYTES
from pytest_openclaw.values.tool_calls import Tool

TOOLS = load_catalogue().surface("direct")
PATH = '{"path": "notes.md"}'
JSON = f'{{"name": "read", "arguments": {PATH}}}'
UNKNOWN = f'{{"name": "frobnicate", "arguments": {PATH}}}'
NAMESPACE = "antml"
DF = '{"command": "df -h"}'
CALL = f'{{"name": "exec", "arguments": {DF}}}'
INVOKE = '<invoke name="exec">\n<parameter name="command">df -h</parameter>\n</invoke>'


def names(text: str, **options: Asked) -> list[str]:
    """The tools that a text calls."""
    return [call.name for call in find_written_calls(strip_thinking(text), TOOLS, **options)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"<tool_call>\n{JSON}\n</tool_call>", id="hermes"),
        pytest.param(f"<tool_call>\n{JSON}", id="hermes-unclosed"),
        pytest.param(f"Let me look.\n<tool_call>{JSON[:-1]}</tool_call>", id="hermes-a-brace-too-few"),
        pytest.param('<tool_call>\n{"name": "write", "arguments": {"path": "a.md", "content": "Lo', id="cut-off"),
        pytest.param(f"<tool_call>\n{JSON.replace(chr(34), chr(39))}\n</tool_call>", id="hermes-single-quotes"),
        pytest.param(f"<tool_call>\n{JSON[:-2]},}}}}\n</tool_call>", id="hermes-trailing-comma"),
        pytest.param(f"<tools>{JSON}</tools>", id="tools-tag"),
        pytest.param(f'<|python_tag|>{{"name": "read", "parameters": {PATH}}}', id="llama-tag"),
        pytest.param('<|python_tag|>read.call(path="notes.md")'.replace("read.call", "read"), id="llama-code"),
        pytest.param(f'{{"name": "read", "parameters": {PATH}}}', id="llama-bare"),
        pytest.param(f'{{"type": "function", "name": "read", "parameters": {PATH}}}', id="llama-type"),
        pytest.param(f"<function=read>{PATH}</function>", id="llama-function"),
        pytest.param(f"[TOOL_CALLS][{JSON}]", id="mistral"),
        pytest.param(f"[TOOL_CALLS]read{PATH}", id="mistral-new"),
        pytest.param(f"[TOOL_CALLS]read[ARGS]{PATH}", id="mistral-args"),
        pytest.param("<tool_call>\n<function=read>\n<parameter=path>\nnotes.md\n</parameter>\n</function>\n</tool_call>", id="qwen3-coder"),
        pytest.param("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n" f"{PATH}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", id="deepseek"),
        pytest.param(f"<｜tool▁call▁begin｜>read<｜tool▁sep｜>{PATH}<｜tool▁call▁end｜>", id="deepseek-v3.1"),
        pytest.param(f"<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{PATH}", id="kimi"),
        pytest.param('<｜DSML｜invoke name="read">\n<｜DSML｜parameter name="path">notes.md', id="dsml"),
        pytest.param('<invoke name="read"><parameter name="path">notes.md</parameter></invoke>', id="invoke"),
        pytest.param('```tool_code\nprint(default_api.read(path="notes.md"))\n```', id="gemma"),
        pytest.param('[read(path="notes.md")]', id="gemma-list"),
        pytest.param("<start_function_call>call:read{path:<escape>notes.md<escape>}", id="function-gemma"),
        pytest.param("<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>notes.md</arg_value>\n</tool_call>", id="glm"),
        pytest.param(f"<|channel|>commentary to=functions.read <|constrain|>json<|message|>{PATH}<|call|>", id="gpt-oss"),
        pytest.param(f"commentary to=functions.read json{PATH}", id="gpt-oss-stripped"),
        pytest.param(f'```json\n{{"tool": "read", "args": {PATH}}}\n```', id="fence"),
        pytest.param(f'```json\n{{"tool_name": "read", "input": {PATH}}}\n```', id="tool-name"),
        pytest.param(f'{{"action": "read", "action_input": {PATH}}}', id="action"),
        pytest.param(f'{{"function": "read", "parameters": {PATH}}}', id="function-key"),
        pytest.param('{"tool": "read", "path": "notes.md"}', id="flat"),
        pytest.param(f'{{"read": {PATH}}}', id="keyed-by-tool"),
        pytest.param(f'{{"tool_calls": [{{"function": {JSON}}}]}}', id="tool-calls"),
        pytest.param(f"Action: read\nAction Input: {PATH}", id="react"),
        pytest.param(f"I'll read it.\n\nread\n{PATH}", id="name-then-arguments"),
        pytest.param('read(path="notes.md")', id="call"),
        pytest.param('Let me read it.\n\nread("notes.md")', id="call-positional"),
        pytest.param('```python\nread(path="notes.md")\n```', id="call-in-a-fence"),
        pytest.param("functions.read({path: 'notes.md'})", id="call-with-an-object"),
        pytest.param("<read><path>notes.md</path></read>", id="element"),
        pytest.param(f"[TOOL_REQUEST]{JSON}[END_TOOL_REQUEST]", id="tool-request"),
        pytest.param(f"Sure:\n[read]\n{PATH}\n[END_TOOL_REQUEST]", id="bracket-after-prose"),
        pytest.param(f"Sure! Here is the function call:\n```json\n{JSON}\n```", id="announced"),
        pytest.param(f"<think>Read it.</think>\n{JSON}", id="after-thinking"),
        pytest.param(f"<|from|>assistant\n<|recipient|>read\n<|content|>{PATH}<|stop|>", id="functionary-2"),
        pytest.param('<\uff5cDSML\uff5c calls>\n<\uff5cDSML\uff5c invoke name="read">\n</\uff5cDSML\uff5c invoke>', id="deepseek-4.1"),
        pytest.param('<|open|>tools<|sep|><|open|>call tool="read" index="1"<|sep|><|close|>call<|sep|>', id="kimi-k3"),
        pytest.param('On it.\n<tool_call>\n{"name": "read", "arguments": {"path": "/path/to/notes.md"}}\n</tool_call>', id="a-placeholder-in-a-template"),
        pytest.param('<think>Hm.</think><tool_call>{"name": "read", "arguments": {"path": "a</think>b"}}</tool_call>', id="a-closing-tag-in-an-argument"),
        pytest.param(f"Ich lese die Datei.\n{JSON}", id="german"),
    ],
)  # fmt: skip
def test_a_written_call_is_found(text: str) -> None:
    """Each family's form counts, with chatter, fences and half of its marks missing."""
    assert names(text)[:1] in (["read"], ["write"])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param('I would call read(path="notes.md") for that.', id="in-a-sentence"),
        pytest.param('I would call `read(path="notes.md")`.', id="in-backticks"),
        pytest.param(f"For example:\n```json\n{JSON}\n```", id="example"),
        pytest.param(f"A Hermes model writes its calls like this:\n\n```\n<tool_call>{JSON}</tool_call>\n```", id="family"),
        pytest.param(f"You can send this request yourself:\n```json\n{JSON}\n```", id="you-can"),
        pytest.param('The call has the form `{"name": "read", "arguments": {"path": "…"}}`.', id="form-in-backticks"),
        pytest.param('```json\n{"name": "read", "arguments": {"path": "<file>"}}\n```\nReplace <file>.', id="template"),
        pytest.param('{"name": "notes.md", "size": 12}', id="other-json"),
        pytest.param('{"name": "frobnicate", "path": "notes.md"}', id="no-tool-of-ours-and-no-arguments"),
        pytest.param(f"The model wrote {UNKNOWN} there.", id="an-unknown-name-in-prose"),
        pytest.param(f"```json\n{UNKNOWN}\n```\nA call would have this form.", id="an-unknown-name-explained"),
        pytest.param('{"tools": [{"name": "frobnicate", "inputs": {}}], "n": 1}', id="an-unknown-name-inside"),
        pytest.param('json\n{"city": "Oslo"}', id="json-without-its-fence"),
        pytest.param('print("hello", end="")', id="code-of-a-builtin"),
        pytest.param("json.dumps(obj=1)", id="code-of-a-module"),
        pytest.param("The marker [tool: read] is a form of its own.", id="a-marker-in-a-sentence"),
        pytest.param(f"<|channel|>final<|message|>{JSON}", id="the-channel-for-the-user"),
        pytest.param('{"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}', id="definition"),
        pytest.param('{"status": "error", "tool": "read", "error": "File not found"}', id="result"),
        pytest.param("```bash\ncat notes.md\n```", id="shell"),
        pytest.param("```python\nwith open('notes.md') as f:\n    print(f.read())\n```", id="program"),
        pytest.param(f"<think>{JSON}</think>\nI cannot.", id="in-a-thought"),
        pytest.param(f"> {JSON}\n\nThat is what you sent.", id="cited"),
        pytest.param(f"The call:\n```json\n{JSON}\n```\nShall I make it?", id="permission-asked"),
        pytest.param(f"```json\n{JSON}\n```\nNothing was called; this is just a note.", id="denied-afterwards"),
        pytest.param(f"```json\n{JSON}\n```\nThe runtime then parses it and answers.", id="explained-afterwards"),
        pytest.param('Beispiel:\n```json\n{"tool": "read", "args": {"path": "x"}}\n```', id="german-example"),
    ],
)  # fmt: skip
def test_what_is_only_shown_is_none(text: str) -> None:
    """Prose about calls, examples, definitions, results, programs and thinking contain no call."""
    assert names(text) == []


FORMS = [
    pytest.param('[Tool Call: exec (ID: exec_17)] Arguments: { "command": "df -h" }', id="openclaw"),
    pytest.param(f"[Tool Call: exec (ID: toolu_1)]\nArguments: {DF}\nDone.", id="openclaw-and-words"),
    pytest.param(f"[Tool Call: exec]\nArguments: {DF}", id="openclaw-without-id"),
    pytest.param(
        f'[Historical context: a different model called tool "exec" with arguments: {DF}. Do not mimic this.]',
        id="openclaw-history",
    ),
    pytest.param(
        "<longcat_tool_call>exec <longcat_arg_key>command</longcat_arg_key>"
        " <longcat_arg_value>df -h</longcat_arg_value> </longcat_tool_call>",
        id="longcat",
    ),
    pytest.param('<longcat_tool_call>functions.exec({command: "df -h"})', id="longcat-code"),
    pytest.param(f"<longcat_tool_call>functions.exec\n<longcat_arg_key>{DF} </longcat", id="longcat-json"),
    pytest.param(f"<longcat_tool_call>\n{CALL}\n</longcat_tool_call>", id="longcat-hermes"),
    pytest.param(
        '<xai:function_call name="exec">\n<parameter name="command">df -h</parameter>\n</xai:function_call>',
        id="xai",
    ),
    pytest.param(f'<xai:function_call name="exec">{DF}</xai:function_call>', id="xai-json"),
    pytest.param(f"[tool: exec] {DF}", id="tool-bracket-json"),
    pytest.param(f"[Tool call: exec({DF})]", id="tool-call-bracket"),
    pytest.param('[Tool call: exec(command="df -h")]', id="tool-call-bracket-code"),
    pytest.param('[Tool call: exec({command: "df -h"})]', id="tool-call-bracket-javascript"),
    pytest.param(f"[Calling tool: exec {DF}]", id="calling-tool"),
    pytest.param(f'[TOOL_CALL]{{tool => "exec", args => {DF}}}[/TOOL_CALL]', id="minimax-arrows-json"),
    pytest.param(f"<minimax:tool_call>\n{INVOKE}\n</minimax:tool_call>", id="minimax"),
    pytest.param(
        "<tool_call>exec\n<arg_key>command</arg_key>\n<arg_value>df -h</arg_value>\n</tool_call>", id="glm"
    ),
    pytest.param(
        f"<|tool_call_begin|>functions.exec:0<|tool_call_argument_begin|>{DF}<|tool_call_end|>", id="kimi"
    ),
    pytest.param(f"functions.exec:0{DF}", id="kimi-stripped"),
    pytest.param(
        '<\uff5cDSML\uff5cinvoke name="exec">\n<\uff5cDSML\uff5cparameter name="command" string="true">df -h'
        "</\uff5cDSML\uff5cparameter>\n</\uff5cDSML\uff5cinvoke>",
        id="deepseek-dsml",
    ),
    pytest.param(
        "<tool_call>\n<function=exec>\n<parameter=command>\ndf -h\n</parameter>\n</function>\n</tool_call>",
        id="qwen3-coder",
    ),
    pytest.param(
        "<seed:tool_call><function=exec><parameter=command>df -h</parameter></function></seed:tool_call>",
        id="seed-oss",
    ),
    pytest.param(
        "<\uff5ctool_call_begin\uff5c>function<\uff5ctool_sep\uff5c>"
        '<steptml:invoke name="exec"><steptml:parameter name="command">df -h</steptml:parameter></steptml:invoke>',
        id="step3",
    ),
    pytest.param('[exec(command="df -h")]', id="llama-pythonic"),
    pytest.param('<|tool_call_start|>[exec(command="df -h")]<|tool_call_end|>', id="lfm2"),
    pytest.param('<function_calls>\nexec(command="df -h")\n</function_calls>', id="olmo3"),
    pytest.param('```tool_code\nprint(default_api.exec(command="df -h"))\n```', id="gemma-tool-code"),
    pytest.param('<|tool_call>call:exec{command:<|"|>df -h<|"|>}<tool_call|>', id="gemma4"),
    pytest.param(
        "<start_function_call>call:exec{command:<escape>df -h<escape>}<end_function_call>",
        id="function-gemma",
    ),
    pytest.param(f"<tool_call>\n{CALL}\n</tool_call>", id="hermes"),
    pytest.param(f"<function=exec>{DF}</function>", id="llama-function"),
    pytest.param(f"<|recipient|>exec\n<|content|>{DF}<|stop|>", id="functionary"),
    pytest.param(f"[TOOL_CALLS]exec[ARGS]{DF}", id="mistral"),
    pytest.param(f"[TOOL_CALLS] [{CALL}]", id="mistral-list"),
    pytest.param(f"<|tool_call|>[{CALL}]", id="granite"),
    pytest.param(f"<function_call> {CALL}", id="granite-20b"),
    pytest.param(f'Action: ```json\n[{{"tool_name": "exec", "parameters": {DF}}}]```', id="cohere"),
    pytest.param(
        f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "exec", "parameters": {DF}}}]<|END_ACTION|>',
        id="command-a",
    ),
    pytest.param(f"<TOOLCALL>[{CALL}]</TOOLCALL>", id="nemotron"),
    pytest.param(f"functools[{CALL}]", id="phi"),
    pytest.param(f'<|tools_prefix|>[{{"exec": {DF}}}]<|tools_suffix|>', id="apertus"),
    pytest.param(f"function call<|role_sep|>\n{CALL}", id="gigachat"),
    pytest.param(f"<tool_calls>[{CALL}]</tool_calls>", id="hunyuan"),
    pytest.param(
        f"<|start|>assistant<|channel|>commentary to=functions.exec <|constrain|>json<|message|>{DF}<|call|>",
        id="gpt-oss",
    ),
    pytest.param(f"assistant to=functions.execcommentary json{DF}", id="gpt-oss-stripped"),
    pytest.param(f"<function_calls>\n{INVOKE}\n</function_calls>", id="anthropic"),
    pytest.param(
        INVOKE.replace("</", f"</{NAMESPACE}:")
        .replace("<i", f"<{NAMESPACE}:i")
        .replace("<p", f"<{NAMESPACE}:p"),
        id="anthropic-namespace",
    ),
    pytest.param(f"Thought: I need the disks.\nAction: exec\nAction Input: {DF}", id="react"),
    pytest.param(f"```json\n{CALL}\n```", id="json-in-a-fence"),
    pytest.param(f'{{"tool_calls": [{{"type": "function", "function": {CALL}}}]}}', id="openai"),
    pytest.param(f'{{"type": "tool_use", "id": "toolu_1", "name": "exec", "input": {DF}}}', id="tool-use"),
    pytest.param(f'{{"functionCall": {{"name": "exec", "args": {DF}}}}}', id="gemini"),
    pytest.param(f"exec{DF}", id="name-and-object"),
    pytest.param(f"name: exec\narguments: {DF}", id="lines"),
    pytest.param(f"<tool_name>exec</tool_name>\n<parameters>{DF}</parameters>", id="tags"),
]


@pytest.mark.parametrize("name", ["exec", "run_shell"])
@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_read_with_its_arguments(form: str, name: str) -> None:
    """Each form is one call, whatever its name, and is read as a server's parser would read it."""
    (call,) = find_written_calls(form.replace("exec", name), TOOLS)

    read = as_call(call)

    assert (read.name, json.loads(read.arguments)) == (name, {"command": "df -h"})


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
def test_arguments_are_read_by_the_tool_s_schema(text: str, arguments: dict[str, object]) -> None:
    """Plain text and untyped values get their names and types from the offered tool."""
    (call,) = find_written_calls(text, TOOLS)

    assert json.loads(as_call(call).arguments) == arguments


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"name": "exec", "arguments": {"command": "df', id="json"),
        pytest.param('```json\n{\n  "name": "frobnicate",\n  "arguments": {\n    "message": "Noth', id="unknown"),
        pytest.param('{"name": "exec", "arg', id="in-the-key-of-the-arguments"),
        pytest.param('<tool_call>\n{"name": "frobnicate", "parameters"', id="after-the-key-of-the-arguments"),
        pytest.param("<tool_call>\n<function=exec>\n<parameter=command>\ndf", id="xml"),
        pytest.param("<tool_call>frobnicate\n<arg_key>command</arg_key>\n<arg_val", id="glm"),
        pytest.param('[exec(command="df', id="code"),
        pytest.param('[Tool Call: exec (ID: exec_17)] Arguments: {"comm', id="openclaw"),
        pytest.param('[TOOL_CALLS]exec[ARGS]{"comm', id="mistral"),
    ],
)  # fmt: skip
def test_a_call_that_is_cut_off_is_a_call(text: str) -> None:
    """Its arguments are not JSON, so that it would not have been right."""
    (call,) = find_written_calls(text, TOOLS)

    assert call.name in ("exec", "frobnicate")
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|Extra"):
        json.loads(as_call(call).arguments)


def test_several_calls_come_in_order_with_their_arguments() -> None:
    """Each call is found once, with its arguments."""
    text = f'<tool_call>{JSON}</tool_call>\n<tool_call>{{"name": "bash", "arguments": {{}}}}</tool_call>'

    assert [(call.name, call.arguments) for call in find_written_calls(text, TOOLS)] == [
        ("read", PATH),
        ("exec", "{}"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(UNKNOWN, id="json"),
        pytest.param(f"```json\n{UNKNOWN}\n```", id="in-a-fence"),
        pytest.param(f"I'll do that now.\n{UNKNOWN}", id="announced"),
        pytest.param(f"You can use `free`. Here's a JSON object with the function name and arguments:\n{UNKNOWN}", id="announced-in-a-template-s-words"),
        pytest.param('frobnicate(path="notes.md")', id="code"),
        pytest.param("[tool: frobnicate] notes.md", id="bracket"),
    ],
)  # fmt: skip
def test_a_call_of_no_tool_is_a_call(text: str) -> None:
    """A name that no tool has makes a call no prose, if nothing else is there or the call is announced."""
    (call,) = find_written_calls(text, TOOLS)

    assert not call.is_known


def test_an_expected_tool_counts_that_was_not_offered() -> None:
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
        pytest.param("On it.", f"<tool_call>\n{JSON}\n</tool_call>", ["read"], id="marked-beside-an-answer"),
        pytest.param("It is 4.", f"<tool_call>{JSON}</tool_call>? No need.", [], id="marked-and-dropped"),
        pytest.param("It is 4.", JSON, [], id="json-beside-an-answer"),
        pytest.param(f"<think>Hm.\n{JSON}", "", ["read"], id="unclosed"),
    ],
)
def test_calls_in_the_thinking(text: str, thinking: str, found: list[str]) -> None:
    """Thinking that ends with a call made it; a draft within the thinking is none."""
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
def test_what_a_prompt_asks_for_is_no_call(prompt: str, text: str, found: list[str]) -> None:
    """An example, JSON or code is the answer if the prompt asks for it."""
    calls = find_written_calls(text, TOOLS, asked=asked_by((prompt,), may_show=True))

    assert [call.name for call in calls] == found


PIECES = [
    "{",
    "}",
    '"',
    "'",
    "\\",
    "<tool_call>",
    "[",
    "]",
    "(",
    ")",
    "read",
    "`",
    "```",
    "\n",
    ":",
    '{"name": "read"',
    "<",
]
OWN = (Tool(name="read", parameters={"type": "object", "properties": {"path": {"type": "string"}}}),)


@given(text=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=40).map("".join))
def test_every_text_is_searched(text: str) -> None:
    """Nothing is raised, whatever a model wrote; every finding is part of the text, in order."""
    calls = find_written_calls(text, OWN, thinking=text)

    assert all(0 <= call.start <= call.end <= len(text) for call in calls)
    assert list(calls) == sorted(calls, key=lambda call: call.start)
    assert all(as_call(call).name for call in calls)


@pytest.mark.parametrize(
    "piece",
    ['{"a":', '{"', "{'", '{"name": "read", ', "read(", 'read("', "<tool_call>", "[", "<read ", "\\", "`", "```\n", "\n",
     " ", "<function=", "to=", "action:\n", '"name": "read"', "[read]{", "<read><path>", '{"x":"\\"', "a.b.c.", "tool: ", f"{JSON} ", 'read(path="x")\n', "[read]\n{}[/read]\n", "<tool_call>read\n", "to=functions.read "],
)  # fmt: skip
@pytest.mark.newest
def test_hostile_texts_take_linear_time(piece: str) -> None:
    """As much of the same half of a call as is judged is searched in a moment."""
    text = (piece * (MAX_ANSWER_BYTES // len(piece) + 1))[:MAX_ANSWER_BYTES]

    started = time.perf_counter()
    find_written_calls(text, OWN)

    assert time.perf_counter() - started < 10
