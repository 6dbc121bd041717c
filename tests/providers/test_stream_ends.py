"""The end of a stream: finish reasons end nothing; the end mark, the body's end or silence do."""

from __future__ import annotations

import json

import pytest

from tests.providers.servers.apis import (
    CHAT,
    GEMINI,
    MESSAGES,
    ask,
    block_delta,
    chat_chunk,
    event,
    gemini_answer,
)
from tests.providers.servers.misbehaving import Hang, Pause, Script, sse
from tests.providers.servers.ollama import answer, done, lines, native, said

STOP = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}
CALL = {"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}}


@pytest.fixture(autouse=True)
def _silence(monkeypatch):
    """Silence ends an answer sooner than for users."""
    monkeypatch.setattr("pytest_openclaw.providers.stream.SILENCE_S", 1.0)


@pytest.mark.parametrize(
    ("api", "steps"),
    [
        pytest.param(CHAT, [sse(chat_chunk({"content": piece}, "stop")) for piece in ("one", " two", " three")], id="chat-a-reason-in-each-chunk"),
        pytest.param(CHAT, [*(sse(chat_chunk({"content": piece}, "")) for piece in ("one", " two", " three")), sse(chat_chunk({}, "stop"))], id="chat-an-empty-reason-in-each-chunk"),
        pytest.param(CHAT, [sse(chat_chunk({}, "stop"), chat_chunk({"content": "one two three"})), Hang()], id="chat-a-reason-first-and-an-open-end"),
        pytest.param(MESSAGES, [event(STOP), block_delta("text_delta", text="one two three"), event({"type": "message_stop"})], id="messages-a-reason-first"),
        pytest.param(MESSAGES, [block_delta("text_delta", text="one two"), event(STOP), block_delta("text_delta", text=" three")], id="messages-no-message-stop"),
        pytest.param(GEMINI, [sse(gemini_answer(reason="stop")), sse(gemini_answer({"text": "one two"})), sse(gemini_answer({"text": " three"}, reason="stop"))], id="gemini-empty-stops-first"),
        pytest.param(GEMINI, [sse(gemini_answer({"text": "one two three"}, reason="stop")), sse("[DONE]"), Hang()], id="gemini-with-done"),
    ],
)  # fmt: skip
def test_tokens_after_a_finish_reason_count(server, api, steps):
    """The text is read to the end, with pauses between its pieces."""
    paused = [one for step in steps for one in (step, Pause(0.1))]
    server.enqueue(Script.stream(*paused))

    reply = ask(api.provider(server.url))

    assert (reply.text, reply.finish_reason) == ("one two three", "stop")
    assert reply.timing.ttft_ms <= reply.timing.e2e_ms


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [lines(said("one") | {"done_reason": "stop"}, said(" two"), done())], id="reason-in-all"
        ),
        pytest.param([lines(said("one"), said(" two") | {"done_reason": "stop"})], id="done-is-missing"),
        pytest.param([lines(said("one"), said(" two"), done()), Hang()], id="open-end"),
    ],
)
def test_ollama_ends_with_done(server, steps):
    """`done_reason` ends nothing, and `"done": true` ends at once."""
    server.enqueue(answer(*steps))

    assert ask(native(server.origin)).text == "one two"


def test_calls_after_a_finish_reason(server):
    """A `stop` may come before the calls; the later reason counts, and not a `stop` that repeats the end."""
    chunks = sse(
        chat_chunk({"content": "I look."}, "stop"),
        chat_chunk({"tool_calls": [CALL]}),
        chat_chunk({}, "tool_calls"),
        "[DONE]",
    )
    server.enqueue(Script.stream(chunks))

    reply = ask(CHAT.provider(server.url))

    assert (reply.text, [call.name for call in reply.tool_calls]) == ("I look.", ["ls"])
    assert reply.finish_reason == "tool_calls"


def test_silence_is_not_part_of_the_answer(server):
    """`e2e_ms` ends with the counts, and not with the silence after them."""
    counts = {"object": "chat.completion.chunk", "choices": [], "usage": {"completion_tokens": 7}}
    server.enqueue(
        Script.stream(sse(chat_chunk({"content": "Hi."}, "stop")), Pause(0.3), sse(counts), Hang())
    )

    reply = ask(CHAT.provider(server.url))

    assert (reply.text, reply.output_tokens) == ("Hi.", 7)
    assert reply.timing.e2e_ms >= 300


# --- bytes ----------------------------------------------------------------------------------------

HEARTBEATS = (": keepalive", "ping", "null", "2026-11-25 08:00:00.123", "{}", '""', '{"type": "ping"}', "0")


@pytest.mark.parametrize("beat", HEARTBEATS)
def test_heartbeats_are_no_answer(form, server, beat):
    """Data that is not an object, or an empty one, says nothing."""
    data = f"data: {beat}\n\nevent: ping\ndata: {beat}\n\n".encode()
    server.enqueue(Script.stream(data, form.text("Hel"), data, form.text("lo"), form.end(), data))

    reply = ask(form.provider(server.url))

    assert (reply.text, reply.output_tokens) == ("Hello", 7)


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/x-ndjson", "text/html", ""])
def test_events_under_any_type(form, stream, server, kind):
    """Events and lines are read as such, whatever they are called."""
    server.enqueue(Script.stream(form.text("Hel"), form.text("lo"), form.end(), content_type=kind))

    assert ask(form.provider(server.url), stream=stream).text == "Hello"


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain", "application/json", ""])
def test_whole_answers_under_any_type(form, stream, server, kind):
    """So is one text of JSON, which may have line feeds."""
    server.enqueue(answer(json.dumps(form.whole(), indent=1).encode(), content_type=kind))

    reply = ask(form.provider(server.url), stream=stream)

    assert (reply.text, reply.timing.ttft_ms) == ("Hi.", None)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda data: b"\xef\xbb\xbf" + data, id="byte-order-mark"),
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="crlf"),
        pytest.param(lambda data: data.rstrip(b"\n"), id="no-last-blank-line"),
        pytest.param(lambda data: data.replace(b"data: ", b"data:"), id="no-blanks"),
    ],
)
def test_events_in_odd_bytes(form, server, changed):
    """Line ends, marks and missing blank lines change nothing."""
    server.enqueue(Script.stream(changed(form.text("Hel") + form.text("lo") + form.end())))

    assert ask(form.provider(server.url)).text == "Hello"
