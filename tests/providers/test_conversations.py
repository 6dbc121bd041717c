"""A conversation before the prompt and after it, in the form of each API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_openclaw.providers.anthropic_messages import messages_body
from pytest_openclaw.providers.gemini import gemini_body
from pytest_openclaw.providers.ollama import chat_body, ollama_body
from pytest_openclaw.providers.openai_responses import responses_body
from pytest_openclaw.suites.conversation import MESSAGES as KEY
from pytest_openclaw.suites.wording import read_key
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool, ToolCall

READ = Tool(name="read")
MESSAGES = read_key(
    "messages",
    [
        {"role": "user", "content": "The conversation so far was summed up: the port is in a.md."},
        {"role": "user", "content": "Which port?"},
        {
            "role": "assistant",
            "content": "One moment.",
            "calls": [{"name": "read", "arguments": {"path": "a.md"}}],
        },
        {"role": "tool", "content": "port 8080"},
        {"role": "assistant", "content": "It is 8080."},
    ],
    KEY,
)
HISTORY = (
    Turn(
        text="<think>hm</think>\nLet me look.",
        reasoning="Hm.",
        calls=(
            ToolCall(name="read", arguments='{"path": "ü.md"}', id="c1"),
            ToolCall(name="ls", arguments=" "),
        ),
        results=("alpha", ""),
    ),
    Turn(user="Go on."),
)
REQUEST = Request(
    model="m", system="Be brief.", prompt="And the host?", messages=MESSAGES, history=HISTORY, tools=(READ,)
)
SUMMARY, WHICH, PORT, AND = (
    "The conversation so far was summed up: the port is in a.md.",
    "Which port?",
    "It is 8080.",
    "And the host?",
)


def test_chat() -> None:
    """Chat completions get one list, the system text first; thinking is left out."""

    def call(id_: str, name: str, arguments: str) -> dict[str, Any]:
        return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}

    assert chat_body(REQUEST)["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": SUMMARY},
        {"role": "user", "content": WHICH},
        {
            "role": "assistant",
            "content": "One moment.",
            "tool_calls": [call("call00001", "read", '{"path": "a.md"}')],
        },
        {"role": "tool", "tool_call_id": "call00001", "content": "port 8080"},
        {"role": "assistant", "content": PORT},
        {"role": "user", "content": AND},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [call("c1", "read", '{"path": "ü.md"}'), call("call00002", "ls", "{}")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "alpha"},
        {"role": "tool", "tool_call_id": "call00002", "content": ""},
        {"role": "user", "content": "Go on."},
    ]


def test_ollama() -> None:
    """Ollama's own API has thinking, arguments as an object, the tool's name next to its result, and ids if there are any."""

    def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name, "arguments": arguments}}

    assert ollama_body(REQUEST)["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": SUMMARY},
        {"role": "user", "content": WHICH},
        {"role": "assistant", "content": "One moment.", "tool_calls": [call("read", {"path": "a.md"})]},
        {"role": "tool", "tool_name": "read", "content": "port 8080"},
        {"role": "assistant", "content": PORT},
        {"role": "user", "content": AND},
        {
            "role": "assistant",
            "content": "Let me look.",
            "thinking": "Hm.",
            "tool_calls": [{**call("read", {"path": "ü.md"}), "id": "c1"}, call("ls", {})],
        },
        {"role": "tool", "tool_name": "read", "content": "alpha", "tool_call_id": "c1"},
        {"role": "tool", "tool_name": "ls", "content": ""},
        {"role": "user", "content": "Go on."},
    ]


def test_responses() -> None:
    """Responses have items, each call and each result one of its own."""
    body = responses_body(REQUEST)

    def said(number: int, text: str) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }

    assert body["instructions"] == "Be brief."
    assert body["input"] == [
        {"type": "message", "role": "user", "content": SUMMARY},
        {"type": "message", "role": "user", "content": WHICH},
        said(2, "One moment."),
        {"type": "function_call", "call_id": "call00001", "name": "read", "arguments": '{"path": "a.md"}'},
        {"type": "function_call_output", "call_id": "call00001", "output": "port 8080"},
        said(3, PORT),
        {"type": "message", "role": "user", "content": AND},
        said(5, "Let me look."),
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path": "ü.md"}'},
        {"type": "function_call", "call_id": "call00002", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "alpha"},
        {"type": "function_call_output", "call_id": "call00002", "output": ""},
        {"type": "message", "role": "user", "content": "Go on."},
    ]


def test_messages() -> None:
    """Anthropic's API has calls and results as blocks of the two speakers' messages."""
    body = messages_body(REQUEST)

    assert body["system"] == "Be brief."
    assert body["messages"] == [
        {"role": "user", "content": SUMMARY},
        {"role": "user", "content": WHICH},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "call00001", "name": "read", "input": {"path": "a.md"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "call00001", "content": "port 8080"}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": PORT}]},
        {"role": "user", "content": AND},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "ü.md"}},
                {"type": "tool_use", "id": "call00002", "name": "ls", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "alpha"},
                {"type": "tool_result", "tool_use_id": "call00002", "content": ""},
            ],
        },
        {"role": "user", "content": "Go on."},
    ]


def test_gemini() -> None:
    """Gemini's API has contents of two roles; earlier calls need no signature."""
    body = gemini_body(REQUEST)

    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": SUMMARY}]},
        {"role": "user", "parts": [{"text": WHICH}]},
        {
            "role": "model",
            "parts": [{"text": "One moment."}, {"functionCall": {"name": "read", "args": {"path": "a.md"}}}],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "read", "response": {"output": "port 8080"}}}],
        },
        {"role": "model", "parts": [{"text": PORT}]},
        {"role": "user", "parts": [{"text": AND}]},
        {
            "role": "model",
            "parts": [
                {"text": "Let me look."},
                {"functionCall": {"id": "c1", "name": "read", "args": {"path": "ü.md"}}},
                {"functionCall": {"name": "ls", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "alpha"}}},
                {"functionResponse": {"name": "ls", "response": {"output": ""}}},
            ],
        },
        {"role": "user", "parts": [{"text": "Go on."}]},
    ]


@pytest.mark.parametrize("turn", [Turn(), Turn(text=" \n")], ids=["nothing", "blanks"])
@pytest.mark.parametrize("body", [messages_body, gemini_body])
def test_an_empty_turn_is_no_message(body: Callable[[Request], dict[str, Any]], turn: Turn) -> None:
    """These APIs refuse a message without content."""
    sent = body(Request(model="m", prompt="Hi", history=(turn,)))

    assert len(sent.get("messages") or sent["contents"]) == 1


@pytest.mark.parametrize("arguments", ["[1]", '{"pa'])
@pytest.mark.parametrize(
    ("body", "name"), [(messages_body, "input"), (gemini_body, "args"), (ollama_body, "arguments")]
)
def test_arguments_that_are_no_object(body: Any, name: str, arguments: str) -> None:
    """These APIs have arguments as an object only."""
    turn = Turn(calls=(ToolCall(name="read", arguments=arguments, id="c1"),))

    sent = body(Request(model="m", prompt="Hi", history=(turn,)))

    assert f"'name': 'read', '{name}': {{}}" in str(sent)
