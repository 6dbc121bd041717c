"""Servers that send a text more than once: it is read once, and a model's own repetition is kept."""

from __future__ import annotations

import pytest

from tests.providers.servers.apis import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    ask,
    block_delta,
    chat_chunk,
    delta,
    event,
    gemini_answer,
)
from tests.providers.servers.misbehaving import Script, sse
from tests.providers.servers.ollama import answer, done, lines, native, said

A, B = "one two three", " four five"
AB = A + B


def chunks(*pieces: str, last: str | None = None) -> list[bytes]:
    """Chunks of text; the last one with a finish reason."""
    reasons = [None] * (len(pieces) - 1) + [last]
    return [sse(chat_chunk({"content": p}, r)) for p, r in zip(pieces, reasons, strict=True)]


def whole(text: str, kind: str = "chat.completion", reason: str | None = "stop") -> bytes:
    """A chunk with a message instead of a delta."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return sse({"object": kind, "choices": [choice]})


def block(text: str, index: int = 0) -> bytes:
    """The start of a block that has its text already."""
    start = {"type": "text", "text": text}
    return event({"type": "content_block_start", "index": index, "content_block": start})


def part(kind: str, text: str, **more: object) -> bytes:
    """An event of a part of a response."""
    of = {"output_index": 0, "content_index": 0, "item_id": "m", **more}
    return event(
        {"type": f"response.{kind}", "part": {"type": "output_text", "text": text}, "text": text, **of}
    )


def item(kind: str, text: str) -> bytes:
    """An event of an item of a response."""
    content = [{"type": "output_text", "text": text}]
    message = {"type": "message", "id": "m", "content": content}
    return event({"type": f"response.output_item.{kind}", "output_index": 0, "item": message})


D = (block_delta("text_delta", text=A), block_delta("text_delta", text=B))
R = tuple(delta("output_text", p, output_index=0, content_index=0, item_id="m") for p in (A, B))
CHUNK = "chat.completion.chunk"
CASES = [
    pytest.param(CHAT, [*chunks(A, B), whole(AB)], id="chat-completion-at-the-end"),
    pytest.param(CHAT, [*chunks(A, B), whole(AB, CHUNK)], id="chat-message-at-the-end"),
    pytest.param(CHAT, [*chunks(A, B, last="stop"), whole(AB), whole(AB)], id="chat-twice"),
    pytest.param(CHAT, [*chunks(A, B), *chunks(AB, last="stop")], id="chat-delta-at-the-end"),
    pytest.param(CHAT, [*chunks(A), *chunks(AB, last="stop")], id="chat-delta-with-the-rest"),
    pytest.param(CHAT, chunks("one", "one two", A, AB), id="chat-cumulative"),
    pytest.param(CHAT, chunks(A, AB, AB), id="chat-cumulative-in-two"),
    pytest.param(CHAT, [whole(A, CHUNK, None), whole(AB, CHUNK, None)], id="chat-cumulative-messages"),
    pytest.param(CHAT, [whole(A, CHUNK, None), whole(B, CHUNK, None)], id="chat-messages-as-deltas"),
    pytest.param(CHAT, [whole(AB)], id="chat-only-a-message"),
    pytest.param(MESSAGES, [block(AB), *D], id="messages-start-before"),
    pytest.param(MESSAGES, [*D, block(AB)], id="messages-start-after"),
    pytest.param(MESSAGES, [block(A), D[1]], id="messages-start-is-the-first-piece"),
    pytest.param(MESSAGES, [block(AB)], id="messages-start-only"),
    pytest.param(MESSAGES, [*D, event(MESSAGES.whole(AB))], id="messages-message-at-the-end"),
    pytest.param(RESPONSES, [*R, part("output_text.done", AB), item("done", AB)], id="responses-done"),
    pytest.param(RESPONSES, [part("output_text.done", AB), part("content_part.done", AB)], id="responses-no-deltas"),
    pytest.param(RESPONSES, [item("done", AB)], id="responses-items-only"),
    pytest.param(RESPONSES, [item("added", AB), part("content_part.added", AB), *R], id="responses-start-whole"),
    pytest.param(RESPONSES, [*R, part("output_text.done", A)], id="responses-done-too-early"),
    pytest.param(GEMINI, [sse(gemini_answer({"text": t})) for t in ("one", A, AB)], id="gemini-cumulative"),
    pytest.param(GEMINI, [sse(gemini_answer({"text": t})) for t in (A, B)] + [sse(gemini_answer({"text": AB}, reason="stop"))], id="gemini-at-the-end"),
]  # fmt: skip


@pytest.mark.parametrize(("api", "events"), CASES)
def test_a_text_sent_again_is_read_once(server, api, events):
    """The whole text may come before, between, after or instead of its pieces."""
    server.enqueue(Script.stream(*events, api.end(text=None)))

    assert ask(api.provider(server.url)).text == AB


def test_thinking_sent_again_is_read_once(server, api):
    """The rule holds for thinking."""
    events = [api.reasoning(A), api.reasoning(B), api.reasoning(AB), api.text("Hi.")]
    server.enqueue(Script.stream(*events, api.end()))

    assert ask(api.provider(server.url)).reasoning == AB


def test_ollama_sends_all_at_the_end(server):
    """The last line may have all of the text, the thinking and the calls."""
    calls = [{"function": {"name": "ls", "arguments": {"p": "a"}}}]
    message = {"thinking": AB, "tool_calls": calls}
    server.enqueue(
        answer(
            lines(said(thinking=A), said(thinking=B), said(A), said(B), said(tool_calls=calls)),
            lines(done(content=AB, message=message)),
        )
    )

    reply = ask(native(server.origin))

    assert (reply.text, reply.reasoning, len(reply.tool_calls)) == (AB, AB, 1)


def test_another_call_at_the_end_is_made(server):
    """It repeats no earlier one."""
    at_the_end = done(message={"tool_calls": [{"function": {"name": "pwd", "arguments": {}}}]})
    server.enqueue(
        answer(lines(said(tool_calls=[{"function": {"name": "ls", "arguments": {}}}]), at_the_end))
    )

    assert [call.name for call in ask(native(server.origin)).tool_calls] == ["ls", "pwd"]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(("ha", " ha", " ha"), id="words"),
        pytest.param(("ha", "ha", "ha"), id="equal"),
        pytest.param(("ha ha ", "ha ha ha"), id="growing"),
        pytest.param(("\n", "\n\n", "Hi."), id="line-feeds"),
        pytest.param(("a", "and"), id="prefix"),
        pytest.param(("It is. ", "It is. ", "It is. "), id="sentences"),
        pytest.param(("1", "10", " 100"), id="numbers"),
    ],
)
def test_a_models_own_repetition_is_kept(api, server, pieces):
    """Equal and growing pieces are tokens, unless a model cannot have repeated them by chance."""
    server.enqueue(Script.stream(*map(api.text, pieces), api.end()))

    assert ask(api.provider(server.url)).text == "".join(pieces)
