"""What the bodies of all APIs share: fields, tools, turns sent again, and bounds of a request's tokens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.providers.anthropic_messages import messages_body
from pytest_openclaw.providers.gemini import gemini_body
from pytest_openclaw.providers.ollama import chat_body, ollama_body
from pytest_openclaw.providers.openai_responses import responses_body
from pytest_openclaw.providers.wire import TEMPLATE_BYTES, fewest_tokens, most_tokens, with_fields, with_ids
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


# --- fields -------------------------------------------------------------------------------------

BODIES: dict[str, Any] = {
    "chat": chat_body,
    "responses": responses_body,
    "anthropic": messages_body,
    "gemini": lambda request: gemini_body(request)["generationConfig"],
    "ollama": lambda request: ollama_body(request)["options"],
}


@pytest.mark.parametrize("api", BODIES)
def test_without_a_choice_the_server_decides(api: str) -> None:
    """No temperature is sent where none was chosen."""
    none = BODIES[api](Request(model="m", prompt="p", temperature=None))
    both = BODIES[api](Request(model="m", prompt="p", temperature=0.5))

    assert not {"temperature", "seed"} & none.keys()
    assert both["temperature"] == 0.5


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"a": 1, "options": {"n": 1}}),
        ({"b": 2}, {"a": 1, "b": 2, "options": {"n": 1}}),
        ({"options": {"k": 2}}, {"a": 1, "options": {"n": 1, "k": 2}}),
        ({"a": None, "options": {"n": None}}, {"options": {}}),
    ],
)
def test_further_fields_are_merged(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """Objects key by key; null removes a field; the body itself is not changed."""
    body = {"a": 1, "options": {"n": 1}}

    assert with_fields(body, fields) == expected
    assert body == {"a": 1, "options": {"n": 1}}


# --- lengths ------------------------------------------------------------------------------------

CALL = ToolCall(name="read", arguments='{"path": "a b c"}')


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param({"prompt": ""}, 0, id="nothing"),
        pytest.param({"prompt": "is\tit\nup  now"}, 4, id="prompt"),
        pytest.param({"prompt": "a b", "system": "c d e"}, 5, id="system"),
        pytest.param({"history": (Turn(calls=(CALL,), results=("c d e",)),)}, 3, id="results"),
        pytest.param({"history": (Turn(text="a b"),)}, 2, id="what-was-said"),
        pytest.param({"messages": (Turn(user="a b"), Turn(text="c"))}, 3, id="messages"),
        pytest.param({"history": (Turn(text="a b", calls=(CALL,), results=("c",)),)}, 1, id="said-beside-a-call"),
        pytest.param({"history": (Turn(text="<think>a b</think>c", reasoning="d e"),)}, 1, id="thinking"),
        pytest.param({"tools": (Tool(name="read", description="a b c"),)}, 0, id="tools"),
    ],
)  # fmt: skip
def test_fewest_tokens_are_the_words_that_a_model_is_sure_to_see(more: dict[str, Any], words: int) -> None:
    """Text that a template may omit is not evidence of a truncation."""
    assert fewest_tokens(Request(**{"model": "m", "prompt": "", **more})) == words


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"prompt": "x" * 100}, id="prompt"),
        pytest.param({"system": "ü" * 50}, id="system"),
        pytest.param({"tools": (Tool(name="read", description="x" * 100),)}, id="tools"),
        pytest.param({"history": (Turn(text="x" * 100),)}, id="what-was-said"),
        pytest.param({"messages": (Turn(user="x" * 100),)}, id="messages"),
        pytest.param({"history": (Turn(calls=(CALL,), results=("x" * 100,)),)}, id="results"),
        pytest.param({"history": (Turn(calls=(ToolCall(name="ls", arguments="x" * 100),)),)}, id="calls"),
        pytest.param({"prompt": "\ud800" * 100}, id="half-characters"),
    ],
)
def test_most_tokens_count_every_byte(more: dict[str, Any]) -> None:
    """Every byte may be a token, and the template's own words are added."""
    assert most_tokens(Request(**{"model": "m", "prompt": "", **more})) >= TEMPLATE_BYTES + 100
