"""Tool calls in the forms of gateways become exactly the calls that were made."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.servers.apis import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    ask,
    chat_chunk,
    event,
    gemini_answer,
)
from tests.providers.servers.misbehaving import Script, sse

OSLO, ROME = '{"city": "Oslo"}', '{"city": "Rome"}'
BOTH = [("get", OSLO), ("get", ROME)]


def entry(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A fragment of a call; None is left out."""
    function = {"name": name, "arguments": arguments}
    return {**more, "function": {key: value for key, value in function.items() if value is not None}}


A, B = entry("get", OSLO, index=0, id="a"), entry("get", ROME, index=1, id="b")
FORMS = {
    "closing-entries": ([[A], [B], [entry("get", "", index=0, id="a")], [entry("get", "", index=0, id="b")]], BOTH),
    "closing-entries-of-null": ([[A], [B], [entry(index=0, id="a") | {"function": None}]], BOTH),
    "a-summary": ([[A], [B], [A, B]], BOTH),
    "a-summary-without-ids-at-0": ([[A], [B], [entry("get", OSLO, index=0), entry("get", ROME, index=0)]], BOTH),
    "a-summary-with-new-ids": ([[A], [B], [entry("get", OSLO, index=0, id="x"), entry("get", ROME, index=1, id="y")]], BOTH),
    "an-empty-twin-before": ([[entry("get", "", index=0, id="a")], [entry("get", OSLO, index=1, id="a")]], BOTH[:1]),
    "an-empty-twin-after": ([[A], [entry("get", "{}", index=1, id="a")]], BOTH[:1]),
    "a-nameless-twin": ([[A], [entry("", "", index=1, id="a")]], BOTH[:1]),
    "a-name-in-pieces": ([[entry("g", "", index=0, id="a")], [entry("et", index=0)], [entry(None, OSLO, index=0)]], BOTH[:1]),
    "a-growing-name": ([[entry("g", index=0)], [entry("get", index=0)], [entry(None, OSLO, index=0)]], BOTH[:1]),
    "a-name-in-each-piece": ([[entry("get", OSLO[:5], index=0, id="a")], [entry("get", OSLO[5:], index=0, id="a")]], BOTH[:1]),
    "all-at-0-interleaved": (
        [
            [entry("get", OSLO[:5], index=0, id="a"), entry("get", ROME[:5], index=0, id="b")],
            [entry(None, OSLO[5:], index=0, id="a"), entry(None, ROME[5:], index=0, id="b")],
        ],
        BOTH,
    ),
    "growing-arguments": ([[entry("get", OSLO[:1], index=0, id="a")], [entry(None, OSLO[:9], index=0)], [entry(None, OSLO, index=0)]], BOTH[:1]),
    "objects-and-nulls": ([[entry("get", index=None, id=None) | {"function": {"name": "get", "arguments": {"city": "Oslo"}}}]], BOTH[:1]),
    "null-arguments-first": ([[{"index": 0, "id": "a", "function": {"name": "get", "arguments": None}}], [entry(None, OSLO, index=0)]], BOTH[:1]),
    "pieces-of-blanks-and-braces": ([[entry("get", piece, index=0, id="a")] for piece in ('{"a": ', "{}", ",", " ", '"b": 1', "}")], [("get", '{"a": {}, "b": 1}')]),
}  # fmt: skip


def calls_of(reply: Any) -> list[tuple[str, str]]:
    """Names and arguments of the calls."""
    return [(call.name, call.arguments) for call in reply.tool_calls]


@pytest.mark.parametrize("form", FORMS)
def test_deltas_of_gateways(server, form):
    """No call is lost, made twice or malformed."""
    deltas, expected = FORMS[form]
    server.enqueue(
        Script.stream(sse(*(chat_chunk({"tool_calls": one}) for one in deltas)), CHAT.end("tool_calls"))
    )

    assert calls_of(ask(CHAT.provider(server.url))) == expected


def test_the_older_form(server):
    """`function_call` is read, in pieces too."""
    pieces = ({"name": "get", "arguments": ""}, {"arguments": OSLO[:5]}, {"arguments": OSLO[5:]})
    deltas = [chat_chunk({"function_call": piece, "tool_calls": None}) for piece in pieces]
    server.enqueue(Script.stream(sse(*deltas), CHAT.end("function_call")))

    assert calls_of(ask(CHAT.provider(server.url))) == BOTH[:1]


def test_calls_in_later_choices(server, stream):
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


def test_a_text_in_later_choices_is_an_alternative(server):
    """Of several texts the first is read."""
    chunk = {
        "choices": [{"index": n, "delta": {"content": text}} for n, text in enumerate(("Hi.", "Hello."))]
    }
    server.enqueue(Script.stream(sse(chunk), CHAT.end()))

    assert ask(CHAT.provider(server.url)).text == "Hi."


def _function(kind: str, **more: Any) -> bytes:
    item = {"type": "function_call", "name": "get", "call_id": "a", "arguments": "", **more}
    return event({"type": f"response.output_item.{kind}", "output_index": 0, "item": item})


@pytest.mark.parametrize(
    ("api", "events"),
    [
        pytest.param(
            MESSAGES,
            [
                event({"type": "content_block_start", "index": 0, "content_block": tool}),
                event(MESSAGES.whole(None) | {"content": [tool]}),
            ],
            id="messages-whole-at-the-start-and-the-end",
        )
        for tool in [{"type": "tool_use", "id": "a", "name": "get", "input": {"city": "Oslo"}}]
    ]
    + [
        pytest.param(
            RESPONSES,
            [_function("added", id="1"), _function("done", id="2", arguments=OSLO)],
            id="responses-other-item-ids",
        ),
        pytest.param(
            GEMINI,
            [
                sse(gemini_answer({"functionCall": {"id": "a", "name": "get", "args": {"city": "Oslo"}}})),
                sse(gemini_answer({"functionCall": {"id": "a", "name": "get", "args": {"city": "Oslo"}}})),
            ],
            id="gemini-the-same-id-again",
        ),
    ],
)
def test_a_call_sent_again_is_made_once(server, api, events):
    """The other APIs' gateways repeat calls too."""
    server.enqueue(Script.stream(*events, api.end("tool_calls", text=None)))

    assert calls_of(ask(api.provider(server.url))) == BOTH[:1]
