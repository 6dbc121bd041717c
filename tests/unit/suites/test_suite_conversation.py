"""A prompt's `messages`: what is read, what is refused, and what `config.json` keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.suites import definition
from pytest_openclaw.suites.conversation import read_messages, written_messages
from pytest_openclaw.suites.prompt import read_prompt
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.tool_calls import ToolCall

USER = {"role": "user", "content": "What is the port?"}
SAYS = {"role": "assistant", "content": "Which server?"}
CALLS = {"role": "assistant", "content": "", "calls": [{"name": "read", "arguments": {"path": "ä.md"}}]}
RESULT = {"role": "tool", "content": "8080"}
TWO_CALLS = {"role": "assistant", "content": "Both.", "calls": [{"name": "read"}, {"name": "exec"}]}
OF_EXEC = {"role": "tool", "content": "", "name": "exec"}


def test_messages_become_turns() -> None:
    """Results belong to the calls before them, in their order; arguments are the JSON that is sent."""
    read = read_messages([USER, CALLS, RESULT, SAYS, USER, USER, TWO_CALLS, RESULT, OF_EXEC])

    assert read == (
        Turn(user="What is the port?"),
        Turn(calls=(ToolCall(name="read", arguments='{"path": "ä.md"}'),), results=("8080",)),
        Turn(text="Which server?"),
        Turn(user="What is the port?"),
        Turn(user="What is the port?"),
        Turn(
            text="Both.",
            calls=(ToolCall(name="read", arguments="{}"), ToolCall(name="exec", arguments="{}")),
            results=("8080", ""),
        ),
    )


_TO_ADD = 'Write { role = "tool", content = "…" } after it.'


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ("Hi", "messages are a string, not a list. Write tables with role and content."),
        ([], "messages are an empty list. Leave the key out, or write tables with role and content."),
        ([USER, "Hi"], "messages no. 2 is a string, not a table. Write role and content."),
        ([{"content": "Hi"}], "messages no. 1 has no role. Roles are user, assistant, tool."),
        (
            [{"role": "model", "content": "Hi"}],
            'messages no. 1 has the role "model". Roles are user, assistant, tool.',
        ),
        (
            [{"role": "system", "content": "Hi"}],
            "messages no. 1 has the role system. Write its text under the prompt's key system.",
        ),
        (
            [USER, {**SAYS, "tool_calls": []}],
            'messages no. 2 has "tool_calls". The keys of assistant are role, content, calls.',
        ),
        ([{"role": "user"}], "messages no. 1 has no content. Write a text in quotes."),
        ([{**USER, "content": 3}], "messages no. 1 has content that is a number. Write a text in quotes."),
        ([{**USER, "content": " \n"}], "messages no. 1 has a blank content. Write what was said."),
        ([USER, {**SAYS, "content": ""}], "messages no. 2 has a blank content. Write what was said."),
        ([SAYS], "messages no. 1 is the assistant's. Begin with a message of the user."),
        (
            [USER, SAYS, SAYS],
            "messages no. 3 is the assistant's, as the one before. Join them, or write the user's between.",
        ),
        (
            [USER, RESULT],
            "messages no. 2 is a tool's result, and no call before it lacks one. Write the call, or remove it.",
        ),
        (
            [USER, CALLS, RESULT, RESULT],
            "messages no. 4 is a tool's result, and no call before it lacks one. Write the call, or remove it.",
        ),
        (
            [USER, CALLS, RESULT, USER, RESULT],
            "messages no. 5 is a tool's result, and no call before it lacks one. Write the call, or remove it.",
        ),
        (
            [USER, TWO_CALLS, OF_EXEC],
            'messages no. 3 is a result of "exec", and the call that lacks one is of read.'
            " Write results in the order of the calls.",
        ),
        (
            [USER, CALLS, USER],
            f"messages no. 3 has the role user, and the call of read before it has no result. {_TO_ADD}",
        ),
        (
            [USER, TWO_CALLS, RESULT, SAYS],
            f"messages no. 4 has the role assistant, and the call of exec before it has no result. {_TO_ADD}",
        ),
        ([USER, CALLS], f"messages end with a call of read that has no result. {_TO_ADD}"),
        (
            [USER, {**CALLS, "calls": {"name": "read"}}],
            "messages no. 2 has calls that are an object, not a list. Write tables with name, arguments.",
        ),
        (
            [USER, {**CALLS, "calls": [{"arguments": {}}]}],
            'messages no. 2 has the call {"arguments": {}}, which names no tool. Write a table with name.',
        ),
        (
            [USER, {**CALLS, "calls": [{"name": "read", "result": "x"}]}],
            'messages no. 2 has a call with "result". Its keys are name, arguments.',
        ),
        (
            [USER, {**CALLS, "calls": [{"name": "read", "arguments": "{}"}]}],
            "messages no. 2 has a call whose arguments are a string. Write a table.",
        ),
    ],
)
def test_refused_messages(messages: Any, complaint: str, registry: Any) -> None:
    """A complaint names the message, what is wrong with it, and what to write."""
    prompt, complaints = read_prompt(
        {"prompt": "And now?", "tools": ["read"], "messages": messages}, "M1", suite="s", registry=registry
    )

    assert prompt is None
    assert complaints == [complaint]


@pytest.mark.parametrize(
    ("turns", "complaint"),
    [
        ("Hi", 'turns are a string, not a list. Write texts in brackets, such as ["And now?"].'),
        ([], 'turns are an empty list. Leave the key out. Write texts in brackets, such as ["And now?"].'),
        (["Hi", {}], 'turns no. 2 is an object, not a text. Write texts in brackets, such as ["And now?"].'),
        (["Hi", " \n"], "turns no. 2 is blank. Write what the user says."),
        (["Hi"] * 51, "turns are 51 messages. Write at most 50."),
    ],
)
def test_refused_turns(turns: Any, complaint: str, registry: Any) -> None:
    """A complaint names the text, what is wrong with it, and what to write."""
    _, complaints = read_prompt({"prompt": "Hi", "turns": turns}, "M1", suite="s", registry=registry)

    assert complaints == [complaint]


def test_turns_with_tools_need_a_world(registry: Any) -> None:
    """Without one, no call before the last message would have a result."""
    raw = {"prompt": "Hi", "tools": ["read"], "turns": ["And now?"]}

    _, complaints = read_prompt(raw, "M1", suite="s", registry=registry)
    prompt, _ = read_prompt({**raw, "world": {}}, "M1", suite="s", registry=registry)

    assert complaints == [
        'has turns and "tools", but no "world" that answers calls. Write world = { files = {} }.'
    ]
    assert prompt is not None
    assert prompt.turns == ("And now?",)
    assert definition(prompt)["turns"] == ["And now?"]


def test_calls_need_tools(registry: Any) -> None:
    """Some servers refuse past calls without tools, so no prompt has them."""
    raw = {"prompt": "And now?", "messages": [USER, CALLS, RESULT]}

    _, complaints = read_prompt(raw, "M1", suite="s", registry=registry)

    assert complaints == ['has messages with calls, but no "tools". Offer those that were called.']


def test_the_definition_has_them(registry: Any) -> None:
    """`config.json` keeps them as they can be read again; a prompt without them has no such key."""
    raw: dict[str, Any] = {
        "validator": {"type": "says", "word": "hello"},
        "prompt": "And now?",
        "tools": ["read", "exec"],
        "messages": [USER, TWO_CALLS, RESULT, OF_EXEC, SAYS],
    }
    prompt, _ = read_prompt(raw, "M1", suite="s", registry=registry)
    plain, _ = read_prompt({"prompt": "And now?"}, "M1", suite="s", registry=registry)

    assert prompt is not None
    assert plain is not None
    kept = json.loads(json.dumps(definition(prompt)))
    again, _ = read_prompt(kept, "M1", suite="s", registry=registry)
    assert again is not None
    assert again.messages == prompt.messages
    assert "messages" not in definition(plain)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
WORDS = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
CALL = st.fixed_dictionaries(
    {"name": WORDS, "arguments": st.dictionaries(st.text(max_size=3), VALUES, max_size=2)}
)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Messages in a possible order."""
    messages: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 3))):
        messages += [
            {"role": "user", "content": text} for text in draw(st.lists(WORDS, min_size=1, max_size=2))
        ]
        for calls in draw(st.lists(st.lists(CALL, min_size=1, max_size=2), max_size=2)):
            messages.append({"role": "assistant", "content": draw(st.text(max_size=3)), "calls": calls})
            messages += [{"role": "tool", "content": draw(st.text(max_size=3))} for _ in calls]
        if draw(st.booleans()):
            messages.append({"role": "assistant", "content": draw(WORDS)})
    return messages


@given(conversations())
def test_what_is_written_is_what_was_read(messages: list[dict[str, Any]]) -> None:
    """A conversation in a possible order is read, and written again as it was."""
    assert written_messages(read_messages(messages)) == messages
