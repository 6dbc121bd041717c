"""Request bodies with tools, and with the history of a conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.providers.earlier_turns import with_ids
from pytest_openclaw.providers.llama_cpp.provider import LlamaCpp
from pytest_openclaw.providers.ollama_openai import OllamaOpenAI, chat_body
from pytest_openclaw.providers.openai_responses import OpenAIResponses, responses_body
from pytest_openclaw.types.replies import Turn
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.tool_calls import Tool, ToolCall
from tests.providers.servers.apis import APIS, ask, tools_in
from tests.providers.servers.misbehaving import Script

PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = Tool(name="read", description="Reads a file.", parameters=PARAMETERS)
STATUS = Tool(name="session_status")
READS = Turn(
    text="Let me look.",
    reasoning="I should read it.",
    calls=(
        ToolCall(name="read", arguments='{"path": "a.md"}', id="c1"),
        ToolCall(name="read", arguments='{"path": "b.md"}', id="c2"),
    ),
    results=("alpha", "beta"),
)
BODIES = [pytest.param(chat_body, id="chat"), pytest.param(responses_body, id="responses")]
Body = Callable[[Request], dict[str, Any]]


def request(**changes: Any) -> Request:
    """A minimal request."""
    return Request(**{"model": "m", "prompt": "What do they say?", **changes})


# --- tools --------------------------------------------------------------------------------------


def test_chat_offers_functions() -> None:
    """Chat completions get the tools in their own format, with the choice left to the model."""
    body = chat_body(request(tools=(READ, STATUS)))

    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "read", "description": "Reads a file.", "parameters": PARAMETERS},
        },
        {
            "type": "function",
            "function": {
                "name": "session_status",
                "description": "",
                "parameters": {"type": "object", "properties": {}},
            },
        },
    ]
    assert body["tool_choice"] == "auto"


def test_responses_offers_flat_functions() -> None:
    """The Responses API gets them flat, and not strict, which would be its default."""
    body = responses_body(request(tools=(READ,)))

    assert body["tools"] == [
        {
            "type": "function",
            "name": "read",
            "description": "Reads a file.",
            "parameters": PARAMETERS,
            "strict": False,
        }
    ]
    assert body.get("tool_choice", "auto") == "auto"
    assert body["input"] == "What do they say?"


@pytest.mark.parametrize(
    ("body", "bytes_"),
    [
        pytest.param(
            chat_body,
            '{"model": "m", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": '
            '"Hi"}], "temperature": 0.0, "max_tokens": 1024, "stream": true, "stream_options": '
            '{"include_usage": true}, "reasoning_effort": "low", "think": true}',
            id="chat",
        ),
        pytest.param(
            responses_body,
            '{"model": "m", "input": "Hi", "max_output_tokens": 1024, "stream": true, "store": false, '
            '"instructions": "Be brief.", "reasoning": {"effort": "low"}}',
            id="responses",
        ),
    ],
)
def test_a_text_prompt_is_sent_as_ever(body: Body, bytes_: str) -> None:
    """Without tools the same bytes are sent as before tools were supported."""
    asked = request(prompt="Hi", system="Be brief.", thinking_level="low")

    assert json.dumps(body(asked)) == bytes_


@pytest.mark.parametrize("kind", [OllamaOpenAI, OpenAIResponses, LlamaCpp])
def test_who_takes_tools(kind: Any) -> None:
    """The HTTP providers declare that they send the offered tools."""
    assert kind.takes_tools


# --- conversations ------------------------------------------------------------------------------


def test_chat_sends_the_conversation() -> None:
    """After the prompt: the model's text and calls, and a message for each result; thinking is left out."""
    body = chat_body(request(system="Be brief.", history=(READS,)))

    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What do they say?"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "a.md"}'},
                },
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "b.md"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "alpha"},
        {"role": "tool", "tool_call_id": "c2", "content": "beta"},
    ]


def test_responses_sends_the_conversation() -> None:
    """After the prompt: the model's text and calls as the original items, and an item for each result."""
    body = responses_body(request(system="Be brief.", history=(READS,)))

    assert body["instructions"] == "Be brief."
    assert body["input"] == [
        {"type": "message", "role": "user", "content": "What do they say?"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path": "a.md"}'},
        {"type": "function_call", "call_id": "c2", "name": "read", "arguments": '{"path": "b.md"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "alpha"},
        {"type": "function_call_output", "call_id": "c2", "output": "beta"},
    ]


@pytest.mark.parametrize(
    ("turn", "content"),
    [
        pytest.param(READS, "Let me look.", id="text-and-calls"),
        pytest.param(Turn(calls=READS.calls, results=READS.results), None, id="calls-alone"),
        pytest.param(Turn(text="Which file?"), "Which file?", id="text-alone"),
        pytest.param(Turn(), "", id="nothing"),
        pytest.param(Turn(text="<think>hm</think>\nYes."), "Yes.", id="thinking-in-the-text"),
    ],
)
def test_a_message_without_text(turn: Turn, content: str | None) -> None:
    """With calls, empty text is null; without calls, some servers would reject null."""
    (_, message, *_) = chat_body(request(history=(turn,)))["messages"]

    assert (message["role"], message["content"]) == ("assistant", content)
    assert ("tool_calls" in message) == bool(turn.calls)


@pytest.mark.parametrize(
    ("turn", "kinds"),
    [
        pytest.param(
            Turn(calls=READS.calls[:1], results=("alpha",)),
            ["function_call", "function_call_output"],
            id="calls-alone",
        ),
        pytest.param(Turn(text="Which file?"), ["message"], id="text-alone"),
        pytest.param(Turn(), [], id="nothing"),
    ],
)
def test_items_of_a_turn(turn: Turn, kinds: list[str]) -> None:
    """Missing parts make no item."""
    (_, *items) = responses_body(request(history=(turn,)))["input"]

    assert [item["type"] for item in items] == kinds


def calls(*ids: str | None) -> Turn:
    """A turn with calls of these ids, each answered."""
    made = tuple(ToolCall(name="read", arguments="{}", id=id_) for id_ in ids)
    return Turn(calls=made, results=("ok",) * len(made))


@pytest.mark.parametrize(
    ("history", "ids"),
    [
        pytest.param([calls("a", "b")], ["a", "b"], id="their-own"),
        pytest.param([calls(None, "")], ["call00001", "call00002"], id="made-up"),
        pytest.param([calls("call00001", None)], ["call00001", "call00002"], id="made-up-beside-another"),
        pytest.param([calls(None), calls("call00001")], ["call00002", "call00001"], id="made-up-before-it"),
        pytest.param([calls("a", "a"), calls("a")], ["a", "call00001", "call00002"], id="one-id-for-all"),
    ],
)
def test_ids(history: list[Turn], ids: list[str]) -> None:
    """A call keeps its id; a missing or repeated id is replaced by a unique one."""
    assert [call.id for turn in with_ids(history) for call in turn.calls] == ids


@pytest.mark.parametrize("body", BODIES)
def test_results_name_their_calls(body: Body) -> None:
    """A result refers to its own call, even if the ids are generated."""
    sent = json.dumps(body(request(history=(calls(None, None), calls(None)))))

    named = re.findall(r'"(?:id|call_id|tool_call_id)": "(call\d+)"', sent)
    assert named == ["call00001", "call00002"] * 2 + ["call00003"] * 2


@given(
    st.lists(
        st.lists(st.sampled_from([None, "", "a", "b", "call00001", "call00002"]), max_size=4), max_size=4
    )
)
def test_no_id_occurs_twice(ids: list[list[str | None]]) -> None:
    """Whatever ids a server gave, the conversation has a unique one for each call."""
    found = [call.id for turn in with_ids([calls(*of_turn) for of_turn in ids]) for call in turn.calls]

    assert len(set(found)) == len(found)
    assert all(found)


@pytest.mark.parametrize("body", BODIES)
def test_a_nudge_is_the_users(body: Body) -> None:
    """The nudge to a model without an answer comes last, as the user's text, and is the whole turn."""
    whole = body(request(history=(READS, Turn(user="Go on."))))
    sent = whole.get("messages") or whole["input"]

    assert (sent[-1]["role"], sent[-1]["content"]) == ("user", "Go on.")
    assert len(sent) == 1 + len(body(request(history=(READS,))).get("messages") or sent[:-1])


@pytest.mark.parametrize("arguments", ["", "  "])
@pytest.mark.parametrize("body", BODIES)
def test_a_call_without_arguments(body: Body, arguments: str) -> None:
    """An empty text is not JSON, and many servers refuse it."""
    turn = Turn(calls=(ToolCall(name="ls", arguments=arguments, id="c"),), results=("a.md",))

    assert [*arguments_in(body(request(history=(turn,))))] == ["{}"]


def arguments_in(value: Any) -> Iterator[str]:
    """Every `arguments` in a body."""
    if isinstance(value, dict):
        yield from (text for name, text in value.items() if name == "arguments")
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from arguments_in(inner)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.kind.name)
def test_the_conversation_on_the_wire(api: Any, server: Any, stream: bool) -> None:
    """Tools and conversation reach the server, and its next call is read with its id."""
    server.on(
        "*",
        Script.stream(api.end("stop", calls=(("read", '{"path": "c.md"}'),)))
        if stream and api.kind is OpenAIResponses
        else Script.answer(api.whole(None, "tool_calls", calls=(("read", '{"path": "c.md"}'),))),
    )

    reply = ask(api.provider(server.url), stream=stream, tools=(READ,), history=(READS,))

    (asked,) = server.requests
    assert tools_in(asked.json) == ["read"]
    assert "alpha" in asked.body.decode()
    assert "I should read it." not in asked.body.decode()
    assert reply.tool_calls == (ToolCall(name="read", arguments='{"path": "c.md"}', id="c0"),)
