"""Request bodies with tools, and with the history of a conversation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.providers.bodies import with_ids
from pytest_openclaw.providers.ollama_openai import chat_body
from pytest_openclaw.providers.openai_responses import responses_body
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool, ToolCall

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


# --- conversations ------------------------------------------------------------------------------


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
        pytest.param(Turn(calls=READS.calls[:1], results=("alpha",)), ["function_call", "function_call_output"], id="calls-alone"),
        pytest.param(Turn(text="Which file?"), ["message"], id="text-alone"),
        pytest.param(Turn(), [], id="nothing"),
    ],
)  # fmt: skip
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
