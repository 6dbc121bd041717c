"""Calls written as text: every family's form is found, and an explanation of a call is not one."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.tools.catalogue import load_catalogue
from pytest_openclaw.tools.leaks import find_leaks
from pytest_openclaw.tools.thinking import strip_thinking
from pytest_openclaw.types.tool_calls import Tool

TOOLS = load_catalogue().surface("direct")
PATH = '{"path": "notes.md"}'
JSON = f'{{"name": "read", "arguments": {PATH}}}'


def names(text: str, **options: bool) -> list[str]:
    """The tools that a text calls."""
    return [leak.name for leak in find_leaks(strip_thinking(text), TOOLS, **options)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"<tool_call>\n{JSON}\n</tool_call>", id="hermes"),
        pytest.param(f"<tool_call>\n{JSON}", id="hermes-unclosed"),
        pytest.param(f"Let me look.\n<tool_call>{JSON[:-1]}</tool_call>", id="hermes-a-brace-too-few"),
        pytest.param(
            '<tool_call>\n{"name": "write", "arguments": {"path": "a.md", "content": "Lo', id="cut-off"
        ),
        pytest.param(
            f"<tool_call>\n{JSON.replace(chr(34), chr(39))}\n</tool_call>", id="hermes-single-quotes"
        ),
        pytest.param(f"<tool_call>\n{JSON[:-2]},}}}}\n</tool_call>", id="hermes-trailing-comma"),
        pytest.param(f"<tools>{JSON}</tools>", id="tools-tag"),
        pytest.param(f'<|python_tag|>{{"name": "read", "parameters": {PATH}}}', id="llama-tag"),
        pytest.param(
            '<|python_tag|>read.call(path="notes.md")'.replace("read.call", "read"), id="llama-code"
        ),
        pytest.param(f'{{"name": "read", "parameters": {PATH}}}', id="llama-bare"),
        pytest.param(f'{{"type": "function", "name": "read", "parameters": {PATH}}}', id="llama-type"),
        pytest.param(f"<function=read>{PATH}</function>", id="llama-function"),
        pytest.param(f"[TOOL_CALLS][{JSON}]", id="mistral"),
        pytest.param(f"[TOOL_CALLS]read{PATH}", id="mistral-new"),
        pytest.param(f"[TOOL_CALLS]read[ARGS]{PATH}", id="mistral-args"),
        pytest.param(
            "<tool_call>\n<function=read>\n<parameter=path>\nnotes.md\n</parameter>\n</function>\n</tool_call>",
            id="qwen3-coder",
        ),
        pytest.param(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n"
            f"{PATH}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            id="deepseek",
        ),
        pytest.param(f"<｜tool▁call▁begin｜>read<｜tool▁sep｜>{PATH}<｜tool▁call▁end｜>", id="deepseek-v3.1"),
        pytest.param(f"<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{PATH}", id="kimi"),
        pytest.param('<｜DSML｜invoke name="read">\n<｜DSML｜parameter name="path">notes.md', id="dsml"),
        pytest.param('<invoke name="read"><parameter name="path">notes.md</parameter></invoke>', id="invoke"),
        pytest.param('```tool_code\nprint(default_api.read(path="notes.md"))\n```', id="gemma"),
        pytest.param('[read(path="notes.md")]', id="gemma-list"),
        pytest.param("<start_function_call>call:read{path:<escape>notes.md<escape>}", id="function-gemma"),
        pytest.param(
            "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>notes.md</arg_value>\n</tool_call>",
            id="glm",
        ),
        pytest.param(
            f"<|channel|>commentary to=functions.read <|constrain|>json<|message|>{PATH}<|call|>",
            id="gpt-oss",
        ),
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
        pytest.param('<read path="notes.md"/>', id="attributes"),
        pytest.param(f"[TOOL_REQUEST]{JSON}[END_TOOL_REQUEST]", id="tool-request"),
        pytest.param(f"Sure:\n[read]\n{PATH}\n[END_TOOL_REQUEST]", id="bracket-after-prose"),
        pytest.param(f"Sure! Here is the function call:\n```json\n{JSON}\n```", id="announced"),
        pytest.param(f"<think>Read it.</think>\n{JSON}", id="after-thinking"),
        pytest.param(f"<|from|>assistant\n<|recipient|>read\n<|content|>{PATH}<|stop|>", id="functionary-2"),
        pytest.param(
            '<\uff5cDSML\uff5c calls>\n<\uff5cDSML\uff5c invoke name="read">\n</\uff5cDSML\uff5c invoke>',
            id="deepseek-4.1",
        ),
        pytest.param(
            '<|open|>tools<|sep|><|open|>call tool="read" index="1"<|sep|><|close|>call<|sep|>', id="kimi-k3"
        ),
        pytest.param(
            'On it.\n<tool_call>\n{"name": "read", "arguments": {"path": "/path/to/notes.md"}}\n</tool_call>',
            id="a-placeholder-in-a-template",
        ),
        pytest.param(
            '<think>Hm.</think><tool_call>{"name": "read", "arguments": {"path": "a</think>b"}}</tool_call>',
            id="a-closing-tag-in-an-argument",
        ),
        pytest.param(f"Ich lese die Datei.\n{JSON}", id="german"),
    ],
)
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
        pytest.param(
            f"A Hermes model writes its calls like this:\n\n```\n<tool_call>{JSON}</tool_call>\n```",
            id="family",
        ),
        pytest.param(f"You can send this request yourself:\n```json\n{JSON}\n```", id="you-can"),
        pytest.param(
            'The call has the form `{"name": "read", "arguments": {"path": "…"}}`.', id="form-in-backticks"
        ),
        pytest.param(
            '```json\n{"name": "read", "arguments": {"path": "<file>"}}\n```\nReplace <file>.', id="template"
        ),
        pytest.param('{"name": "notes.md", "size": 12}', id="other-json"),
        pytest.param('{"name": "frobnicate", "arguments": {}}', id="no-tool-of-ours"),
        pytest.param(
            '{"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}',
            id="definition",
        ),
        pytest.param('{"status": "error", "tool": "read", "error": "File not found"}', id="result"),
        pytest.param("```bash\ncat notes.md\n```", id="shell"),
        pytest.param("```python\nwith open('notes.md') as f:\n    print(f.read())\n```", id="program"),
        pytest.param(f"<think>{JSON}</think>\nI cannot.", id="in-a-thought"),
        pytest.param(f"> {JSON}\n\nThat is what you sent.", id="cited"),
        pytest.param(f"The call:\n```json\n{JSON}\n```\nShall I make it?", id="permission-asked"),
        pytest.param(
            f"```json\n{JSON}\n```\nNothing was called; this is just a note.", id="denied-afterwards"
        ),
        pytest.param(
            f"```json\n{JSON}\n```\nThe runtime then parses it and answers.", id="explained-afterwards"
        ),
        pytest.param('Beispiel:\n```json\n{"tool": "read", "args": {"path": "x"}}\n```', id="german-example"),
    ],
)
def test_what_is_only_shown_is_none(text: str) -> None:
    """Prose about calls, examples, definitions, results, programs and thinking contain no call."""
    assert names(text) == []


def test_several_calls_come_in_order_with_their_arguments() -> None:
    """Each call is found once, with its arguments."""
    text = f'<tool_call>{JSON}</tool_call>\n<tool_call>{{"name": "bash", "arguments": {{}}}}</tool_call>'

    assert [(leak.name, leak.arguments) for leak in find_leaks(text, TOOLS)] == [
        ("read", PATH),
        ("exec", "{}"),
    ]


def test_an_expected_tool_counts_that_was_not_offered() -> None:
    """A call of a tool that the prompt expects is a call."""
    text = '{"name": "get_weather", "arguments": {"city": "Rome"}}'

    assert [leak.name for leak in find_leaks(text, TOOLS, ["get_weather"])] == ["get_weather"]
    assert find_leaks(text, TOOLS) == ()


def test_a_fence_that_the_prompt_asked_for_is_an_answer() -> None:
    """If the prompt asks how a call is written, a reply may show one in a fence; outside of it, it is a call."""
    assert names(f"```json\n{JSON}\n```", shown_on_request=True) == []
    assert names(JSON, shown_on_request=True) == ["read"]


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
    leaks = find_leaks(text, OWN)

    assert all(0 <= leak.start <= leak.end <= len(text) for leak in leaks)
    assert list(leaks) == sorted(leaks, key=lambda leak: leak.start)


@pytest.mark.parametrize(
    "piece",
    ['{"a":', '{"', "{'", '{"name": "read", ', "read(", 'read("', "<tool_call>", "[", "<read ", "\\", "`", "```\n", "\n",
     " ", "<function=", "to=", "action:\n", '"name": "read"', "[read]{", "<read><path>", '{"x":"\\"', "a.b.c.", "tool: ", f"{JSON} ", 'read(path="x")\n', "[read]\n{}[/read]\n", "<tool_call>read\n", "to=functions.read "],
)  # fmt: skip
@pytest.mark.newest
def test_hostile_texts_take_linear_time(piece: str) -> None:
    """A megabyte of the same half of a call, four times the judged length, is searched in a moment."""
    text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]

    started = time.perf_counter()
    find_leaks(text, OWN)

    assert time.perf_counter() - started < 30
