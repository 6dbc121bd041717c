"""Native calls as servers stream them: each shape was observed, or is documented by its maker."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.providers.ollama import read_chat
from pytest_openclaw.values.tool_calls import ToolCall
from tests.providers.servers.apis import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    Api,
    ask,
    chat_chunk,
    event,
    gemini_answer,
    reading,
)
from tests.providers.servers.misbehaving import Script, sse

ARGUMENTS = '{"path": "notes.md", "limit": 5}'


read = reading(read_chat)


def function(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A fragment of a call; None is left out."""
    said = {"name": name, "arguments": arguments}
    return {**more, "function": {key: value for key, value in said.items() if value is not None}}


def one(*fragments: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """A chunk for each fragment."""
    return [[fragment] for fragment in fragments]


READ_NOTES = ("read", ARGUMENTS)
SHAPES = {
    "openai-parallel": (
        one(
            function("read", "", index=0, id="a", type="function"),
            function(None, '{"path": "notes', index=0),
            function(None, '.md", "limit": 5}', index=0),
            function("ls", "", index=1, id="b", type="function"),
            function(None, "{}", index=1),
        ),
        [(*READ_NOTES, "a"), ("ls", "{}", "b")],
    ),
    "llama.cpp": (one(function("read", "{", index=0, id="a", type="function"), *(function(None, piece, index=0) for piece in ('"', "path", '": "notes.md", "limit": ', "5}"))), [(*READ_NOTES, "a")]),
    "vllm-of-old-an-id-for-each-fragment": (
        one(
            function("read", "", index=0, id="chatcmpl-tool-a"),
            function(None, ARGUMENTS[:9], index=0, id="chatcmpl-tool-b"),
            function(None, ARGUMENTS[9:], index=0, id="chatcmpl-tool-c"),
        ),
        [(*READ_NOTES, "chatcmpl-tool-a")],
    ),
    "vllm-all-of-it-once-more-in-other-words": (
        one(
            function("read", "", index=0, id="a"),
            function(None, '{"path":"notes.md"', index=0),
            function(None, ',"limit":5}', index=0),
            function(None, ARGUMENTS, index=0),
        ),
        [("read", '{"path":"notes.md","limit":5}', "a")],
    ),
    "vllm-glm-the-rest-with-id-and-name-again": (
        one(
            function("read", '{"path": "notes.md", ', index=0, id="a", type="function"),
            function("read", '"limit": 5}', index=0, id="a", type="function"),
        ),
        [(*READ_NOTES, "a")],
    ),
    "the-whole-call-twice": (one(function("read", ARGUMENTS, index=0, id="a"), function("read", ARGUMENTS, index=0, id="a")), [(*READ_NOTES, "a")]),
    "the-whole-call-twice-without-ids": (one(function("read", ARGUMENTS, index=0), function("read", ARGUMENTS, index=0)), [(*READ_NOTES, None)]),
    "sglang-the-id-in-each-fragment": (
        one(
            function("read", "", index=0, id="0"),
            function(None, ARGUMENTS, index=0, id="0"),
            function("ls", "", index=0, id="1"),
            function(None, "{}", index=0, id="1"),
        ),
        [(*READ_NOTES, "0"), ("ls", "{}", "1")],
    ),
    "gemini-all-numbered-0-with-ids": (
        [
            [
                function("read", ARGUMENTS, index=0, id="function-call-1", type="function"),
                function("read", '{"path": "b.md"}', index=0, id="function-call-2", type="function"),
            ]
        ],
        [(*READ_NOTES, "function-call-1"), ("read", '{"path": "b.md"}', "function-call-2")],
    ),
    "gemini-all-numbered-0-without-ids": (
        one(
            function("read", ARGUMENTS, index=0, id=""),
            function("read", '{"path": "b.md"}', index=0, id=""),
            function("ls", "{}", index=0, id=""),
            function("session_status", "{}", index=0, id=""),
        ),
        [
            (*READ_NOTES, None),
            ("read", '{"path": "b.md"}', None),
            ("ls", "{}", None),
            ("session_status", "{}", None),
        ],
    ),
    "a-gateways-empty-object-before-the-arguments": (
        one(
            function("read", "{}", index=0, id="a"),
            function(None, ARGUMENTS[:9], index=0),
            function(None, ARGUMENTS[9:], index=0),
        ),
        [(*READ_NOTES, "a")],
    ),
    "ollama-v1-of-old-no-index": ([[function("read", ARGUMENTS, id="call_a"), function("ls", "{}", id="call_b")]], [(*READ_NOTES, "call_a"), ("ls", "{}", "call_b")]),
    "ollama-v1-of-old-all-numbered-0": (one(function("read", ARGUMENTS, index=0, id="call_a"), function("ls", "{}", index=0, id="call_b")), [(*READ_NOTES, "call_a"), ("ls", "{}", "call_b")]),
    "an-object-in-place-of-its-text": (
        one(
            function("read", {"path": "notes.md", "limit": 5}, index=0),
            function("read", {"path": "b.md"}, index=0),
        ),
        [(*READ_NOTES, None), ("read", '{"path": "b.md"}', None)],
    ),
    "an-index-that-is-none": (
        one(
            function("read", ARGUMENTS[:9], index=None, id="a"), function(None, ARGUMENTS[9:], index="0"),
            function("ls", "{}", index=-1, id="b"),
        ),
        [(*READ_NOTES, "a"), ("ls", "{}", "b")],
    ),
    "one-id-two-numbers": (one(function("read", ARGUMENTS, index=0, id="call"), function("ls", "{}", index=1, id="call")), [(*READ_NOTES, "call"), ("ls", "{}", "call")]),
    "broken-arguments-stay-broken": (one(function("read", '{"path": ', index=0, id="a"), function("ls", "{}}", index=1, id="b")), [("read", '{"path": ', "a"), ("ls", "{}}", "b")]),
    "objects-inside": (
        one(
            function("edit", '{"edits": [', index=0, id="a"),
            function(None, '{"oldText": "a", "newText": "b"}', index=0),
            function(None, ", ", index=0),
            function(None, '{"oldText": "a", "newText": "b"}', index=0),
            function(None, "]}", index=0),
        ),
        [
            (
                "edit",
                '{"edits": [{"oldText": "a", "newText": "b"}, {"oldText": "a", "newText": "b"}]}',
                "a",
            )
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_streams_as_servers_send_them(shape: str) -> None:
    """Each server's fragments give the calls that the model made, in order."""
    chunks, expected = SHAPES[shape]

    reply = read(*(chat_chunk({"tool_calls": calls}) for calls in chunks), chat_chunk({}, "tool_calls"))

    assert reply.tool_calls == tuple(ToolCall(name=name, arguments=a, id=id_) for name, a, id_ in expected)


def whole(*calls: dict[str, Any]) -> dict[str, Any]:
    """A whole completion with these calls."""
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param([{"id": "a"}, {"id": "b"}], id="ids"),
        pytest.param([{}, {}], id="no-ids"),
        pytest.param([{"id": "x"}, {"id": "x"}], id="one-id"),
        pytest.param([{"index": 0, "id": ""}, {"index": 0, "id": ""}], id="one-index"),
        pytest.param([{"index": 1}, {"index": 0}], id="another-order"),
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(('{"path": "a"}', '{"path": "b"}'), id="different"),
        pytest.param(('{"path": "a"}', '{"path": "a"}'), id="equal"),
        pytest.param(('{"path": ', '{"path": "a"}'), id="broken"),
        pytest.param(("", ""), id="none"),
    ],
)
def test_each_entry_of_a_whole_message_is_a_call(more: list[Any], arguments: tuple[str, str]) -> None:
    """Whole calls are not joined, whatever numbers and ids they have."""
    entries = [function("read", text, **rest) for text, rest in zip(arguments, more, strict=True)]

    reply = read(whole(*entries))

    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("read", text) for text in arguments
    ]


# --- in the forms of gateways -------------------------------------------------------------------

OSLO, ROME = '{"city": "Oslo"}', '{"city": "Rome"}'
BOTH = [("get", OSLO), ("get", ROME)]


A, B = function("get", OSLO, index=0, id="a"), function("get", ROME, index=1, id="b")
FORMS = {
    "closing-entries": ([[A], [B], [function("get", "", index=0, id="a")], [function("get", "", index=0, id="b")]], BOTH),
    "closing-entries-of-null": ([[A], [B], [function(index=0, id="a") | {"function": None}]], BOTH),
    "a-summary": ([[A], [B], [A, B]], BOTH),
    "a-summary-without-ids-at-0": ([[A], [B], [function("get", OSLO, index=0), function("get", ROME, index=0)]], BOTH),
    "a-summary-with-new-ids": ([[A], [B], [function("get", OSLO, index=0, id="x"), function("get", ROME, index=1, id="y")]], BOTH),
    "an-empty-twin-before": ([[function("get", "", index=0, id="a")], [function("get", OSLO, index=1, id="a")]], BOTH[:1]),
    "an-empty-twin-after": ([[A], [function("get", "{}", index=1, id="a")]], BOTH[:1]),
    "a-nameless-twin": ([[A], [function("", "", index=1, id="a")]], BOTH[:1]),
    "a-name-in-pieces": ([[function("g", "", index=0, id="a")], [function("et", index=0)], [function(None, OSLO, index=0)]], BOTH[:1]),
    "a-growing-name": ([[function("g", index=0)], [function("get", index=0)], [function(None, OSLO, index=0)]], BOTH[:1]),
    "a-name-in-each-piece": ([[function("get", OSLO[:5], index=0, id="a")], [function("get", OSLO[5:], index=0, id="a")]], BOTH[:1]),
    "all-at-0-interleaved": (
        [
            [function("get", OSLO[:5], index=0, id="a"), function("get", ROME[:5], index=0, id="b")],
            [function(None, OSLO[5:], index=0, id="a"), function(None, ROME[5:], index=0, id="b")],
        ],
        BOTH,
    ),
    "growing-arguments": ([[function("get", OSLO[:1], index=0, id="a")], [function(None, OSLO[:9], index=0)], [function(None, OSLO, index=0)]], BOTH[:1]),
    "objects-and-nulls": ([[function("get", index=None, id=None) | {"function": {"name": "get", "arguments": {"city": "Oslo"}}}]], BOTH[:1]),
    "null-arguments-first": ([[{"index": 0, "id": "a", "function": {"name": "get", "arguments": None}}], [function(None, OSLO, index=0)]], BOTH[:1]),
    "pieces-of-blanks-and-braces": ([[function("get", piece, index=0, id="a")] for piece in ('{"a": ', "{}", ",", " ", '"b": 1', "}")], [("get", '{"a": {}, "b": 1}')]),
}  # fmt: skip


def calls_of(reply: Any) -> list[tuple[str, str]]:
    """Names and arguments of the calls."""
    return [(call.name, call.arguments) for call in reply.tool_calls]


@pytest.mark.parametrize("form", FORMS)
def test_deltas_of_gateways(form: str) -> None:
    """No call is lost, made twice or malformed."""
    deltas, expected = FORMS[form]

    assert calls_of(read(*(chat_chunk({"tool_calls": calls}) for calls in deltas))) == expected


def test_the_older_form() -> None:
    """`function_call` is read, in pieces too."""
    parts = ({"name": "get", "arguments": ""}, {"arguments": OSLO[:5]}, {"arguments": OSLO[5:]})
    deltas = [chat_chunk({"function_call": part, "tool_calls": None}) for part in parts]

    assert calls_of(read(*deltas)) == BOTH[:1]


def test_calls_in_later_choices(server: Any, stream: bool) -> None:
    """Copilot sends the text as the first choice, and each call as a further one."""
    messages = [{"content": "I look."}, *({"tool_calls": [{**one, "index": 0}]} for one in (A, B))]
    kind = "delta" if stream else "message"
    choices = [{"index": n, kind: one, "finish_reason": "tool_calls"} for n, one in enumerate(messages)]
    one_each = [{"object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    server.enqueue(
        Script.stream(sse(*one_each, "[DONE]"))
        if stream
        else Script.answer({"object": "chat.completion", "choices": choices})
    )

    reply = ask(CHAT.provider(server.url), stream=stream)

    assert (reply.text, calls_of(reply)) == ("I look.", BOTH)


TOOL = {"type": "tool_use", "id": "a", "name": "get", "input": {"city": "Oslo"}}
STARTED = event({"type": "content_block_start", "index": 0, "content_block": TOOL})
PART = sse(gemini_answer({"functionCall": {"id": "a", "name": "get", "args": {"city": "Oslo"}}}))


def _function(kind: str, **more: Any) -> bytes:
    item = {"type": "function_call", "name": "get", "call_id": "a", "arguments": "", **more}
    return event({"type": f"response.output_item.{kind}", "output_index": 0, "item": item})


@pytest.mark.parametrize(
    ("api", "events"),
    [
        pytest.param(MESSAGES, [STARTED, event(MESSAGES.whole(None) | {"content": [TOOL]})], id="messages-whole-at-the-start-and-the-end"),
        pytest.param(RESPONSES, [_function("added", id="1"), _function("done", id="2", arguments=OSLO)], id="responses-other-item-ids"),
        pytest.param(GEMINI, [PART, PART], id="gemini-the-same-id-again"),
    ],
)  # fmt: skip
def test_a_call_sent_again_is_made_once(server: Any, api: Api, events: list[bytes]) -> None:
    """The other APIs' gateways repeat calls too."""
    server.enqueue(Script.stream(*events, api.end("tool_calls", text=None)))

    assert calls_of(ask(api.provider(server.url))) == BOTH[:1]
