"""Streams: events, the first token and the end, odd bytes, texts sent again; a stream reads like a whole answer."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.anthropic_messages import read_messages
from pytest_openclaw.providers.chat_completions import read_chat
from pytest_openclaw.providers.gemini import read_gemini
from pytest_openclaw.providers.ollama_native import read_ollama
from pytest_openclaw.providers.openai_responses import read_responses
from pytest_openclaw.providers.stream import Event, EventReader
from pytest_openclaw.values.replies import Timing
from pytest_openclaw.values.tool_calls import ToolCall
from tests.providers.servers.apis import (
    CHAT,
    CHAT_USAGE,
    GEMINI,
    MESSAGES,
    RESPONSES,
    ask,
    block_delta,
    chat_chunk,
    chat_usage,
    delta,
    event,
    gemini_answer,
    reading,
)
from tests.providers.servers.messages import deltas, start, stop
from tests.providers.servers.misbehaving import Close, Hang, Pause, Script, pieces, sse
from tests.providers.servers.ollama import OLLAMA, answer, calling, done, lines, native, said


@pytest.fixture(autouse=True)
def _silence(monkeypatch):
    monkeypatch.setattr("pytest_openclaw.providers.stream.SILENCE_S", 1.0)


def read(*chunks):
    stream = EventReader()
    events = [event for chunk in chunks for event in stream.feed(chunk)]
    return [*events, *stream.close()]


@pytest.mark.parametrize(
    ("data", "events"),
    [
        pytest.param(b"data: a\n\ndata: b\n\n", ["a", "b"], id="lf"),
        pytest.param(b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"], id="crlf"),
        pytest.param(b"data: a\r\rdata: b\r\r", ["a", "b"], id="cr"),
        pytest.param(b"data: a\ndata: b\n\n", ["a\nb"], id="several-data-lines"),
        pytest.param(b"data:a\n\n", ["a"], id="no-blank-after-colon"),
        pytest.param(b"data:  a\n\n", [" a"], id="one-blank-belongs-to-the-field"),
        pytest.param(b": ping\n\n: ping\ndata: a\n\n", ["a"], id="comments"),
        pytest.param(b"id: 1\nretry: 9\ndata: a\nother: x\n\n", ["a"], id="other-fields"),
        pytest.param(b"event: x\n\ndata: a\n\n", ["a"], id="no-data"),
        pytest.param(b"data:\n\ndata\n\n", [], id="empty-data"),
        pytest.param(b"data: a\ndata:\n\n", ["a\n"], id="empty-second-line"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", ["a"], id="byte-order-mark"),
        pytest.param(b"data: \xef\xbb\xbfa\n\n", ["\ufeffa"], id="byte-order-mark-inside-is-text"),
        pytest.param("data: Grüße 🦞\n\n".encode(), ["Grüße 🦞"], id="utf-8"),
        pytest.param(b"data: a\xffb\n\n", ["a\ufffdb"], id="broken-bytes"),
        pytest.param(
            "data: a\u2028b\x0bc\x85d\n\n".encode(), ["a\u2028b\x0bc\x85d"], id="only-cr-and-lf-end-lines"
        ),
        pytest.param(b"\n\n\ndata: a\n\n\n\n", ["a"], id="blank-lines"),
        pytest.param(b"data: a\n\ndata: [DONE]", ["a", "[DONE]"], id="cut-before-its-line-end"),
        pytest.param(b"data: a\n\ndata: b\n", ["a", "b"], id="cut-before-its-blank-line"),
        pytest.param(b'{"error": 1}\n\n', ['{"error": 1}'], id="bare-json"),
        pytest.param(b'\xef\xbb\xbf{"a": 1}\r\n{"b": 2}', ['{"a": 1}', '{"b": 2}'], id="json-lines"),
        pytest.param(
            b'data: {"a": 1}\ndata: {"b": 2}\ndata: [DONE]\n\n',
            ['{"a": 1}', '{"b": 2}', "[DONE]"],
            id="one-line-feed",
        ),
        pytest.param(b'data: {\ndata: "a": 1}\n\n', ['{\n"a": 1}'], id="an-object-in-several-lines"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_data_of_events(data, events):
    """Lines end at LF or CRLF; data lines are joined; comments and events without data are none."""
    assert [event.data for event in read(data)] == events


@pytest.mark.parametrize(
    ("data", "events"),
    [
        pytest.param(b"event: x\ndata: a\n\ndata: b\n\n", [("x", "a"), ("message", "b")], id="for-one-event"),
        pytest.param(b'error: {"code": 1}\n\n', [("error", '{"code": 1}')], id="llama.cpp-s-field"),
    ],
)
def test_the_name_of_an_event(data, events):
    """An event is a message unless it is named."""
    assert read(data) == [Event(*event) for event in events]


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"], ids=["lf", "crlf"])
def test_an_event_is_given_with_its_last_byte(end):
    """No event waits for bytes after it, which would delay the first token."""
    assert EventReader().feed(b"data: a" + end) == [Event("message", "a")]


_LINES = st.sampled_from(["data: é🦞", "data: b", "data:", "event: x", ": c", '{"a": 1}', ""])
_ENDS = st.sampled_from(["\n", "\r\n"])


@settings(deadline=None)
@given(
    lines=st.lists(st.tuples(_LINES, _ENDS), max_size=12),
    rest=st.sampled_from(["", "data: é"]),
    cuts=st.lists(st.integers(0, 120)),
)
def test_chunked_reads_like_whole(lines, rest, cuts):
    """Wherever the bytes are cut, inside a character or between CR and LF, the events are the same."""
    data = ("".join(line + end for line, end in lines) + rest).encode()

    assert read(*pieces(data, cuts)) == read(data)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def exchange(clock):
    return Answer(monotonic=clock, wall_ms=lambda moment: 5000)


def test_times_of_a_thinking_reply(exchange, clock):
    """TTFT is the first token on any channel, TTFO the first of the answer, e2e the end mark."""
    exchange.receive_model("m")
    clock.now = 101
    exchange.receive_text("hm", "reasoning")
    clock.now = 103
    exchange.receive_text("yes")
    clock.now = 104.5
    exchange.receive_end("stop")
    clock.now = 109
    exchange.receive_end()

    assert exchange.reply().timing == Timing(
        started_at_ms=5000, ended_at_ms=9500, e2e_ms=4500, ttft_ms=1000, ttfo_ms=3000
    )


@pytest.mark.parametrize(
    ("receive", "ttft_ms", "ttfo_ms"),
    [
        pytest.param(lambda e: e.receive_text("a"), 2000, 2000, id="text"),
        pytest.param(lambda e: e.receive_text("a", "refusal"), 2000, 2000, id="refusal"),
        pytest.param(lambda e: e.receive_tool_call(ToolCall(name="a")), 2000, 2000, id="tool-call"),
        pytest.param(lambda e: e.receive_text("a", "reasoning"), 2000, None, id="reasoning"),
        pytest.param(lambda e: e.receive_text(""), None, None, id="empty-text"),
        pytest.param(
            lambda e: e.receive_tool_call(ToolCall(name=""), key=0), None, None, id="empty-tool-call"
        ),
        pytest.param(lambda e: e.receive_model("m"), None, None, id="model"),
        pytest.param(lambda e: e.receive_usage(input_tokens=1), None, None, id="usage"),
    ],
)
def test_the_first_token(exchange, clock, receive, ttft_ms, ttfo_ms):
    """Only generated text, on any channel, is a token; empty deltas and counts are not."""
    clock.now = 102
    receive(exchange)
    clock.now = 103

    timing = exchange.timing()

    assert (timing.ttft_ms, timing.ttfo_ms, timing.e2e_ms) == (ttft_ms, ttfo_ms, 3000)


@pytest.mark.parametrize(
    ("reasoning", "text", "refusal", "raw"),
    [
        pytest.param("", "yes", "", "yes", id="only-text"),
        pytest.param("hm", "yes", "", "<think>\nhm\n</think>\n\nyes", id="reasoning"),
        pytest.param("hm", "", "", "<think>\nhm\n</think>\n\n", id="only-reasoning"),
        pytest.param("", "<think>x</think>yes", "", "<think>x</think>yes", id="thinking-in-the-text"),
        pytest.param("", "", "No.", "No.", id="refusal"),
        pytest.param("", "", "", "", id="nothing"),
    ],
)
def test_raw_is_everything(exchange, reasoning, text, refusal, raw):
    """`raw` has each channel; a reasoning channel is in think tags before the answer."""
    exchange.receive_text(text)
    exchange.receive_text(reasoning, "reasoning")
    exchange.receive_text(refusal, "refusal")

    reply = exchange.reply()

    assert (reply.raw, reply.text, reply.reasoning, reply.refusal) == (raw, text, reasoning, refusal or None)


STOP = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}
THREE = ("one", " two", " three")


@pytest.mark.parametrize(
    ("api", "steps"),
    [
        pytest.param(CHAT, [sse(chat_chunk({"content": piece}, "stop")) for piece in THREE], id="chat-a-reason-in-each-chunk"),
        pytest.param(CHAT, [*(sse(chat_chunk({"content": piece}, "")) for piece in THREE), sse(chat_chunk({}, "stop"))], id="chat-an-empty-reason-in-each-chunk"),
        pytest.param(CHAT, [sse(chat_chunk({}, "stop"), chat_chunk({"content": "one two three"})), Hang()], id="chat-a-reason-first-and-an-open-end"),
        # Silence after a reason without content, longer than one that would end an answer.
        pytest.param(CHAT, [sse(chat_chunk({}, "stop")), Pause(1.5), sse(chat_chunk({"content": "one two three"}, "stop"))], id="chat-a-late-text"),
        pytest.param(MESSAGES, [event(STOP), block_delta("text_delta", text="one two three"), event({"type": "message_stop"})], id="messages-a-reason-first"),
        pytest.param(MESSAGES, [block_delta("text_delta", text="one two"), event(STOP), block_delta("text_delta", text=" three")], id="messages-no-message-stop"),
        pytest.param(GEMINI, [sse(gemini_answer(reason="stop")), sse(gemini_answer({"text": "one two"})), sse(gemini_answer({"text": " three"}, reason="stop"))], id="gemini-empty-stops-first"),
        pytest.param(GEMINI, [sse(gemini_answer({"text": "one two three"}, reason="stop")), sse("[DONE]"), Hang()], id="gemini-with-done"),
        pytest.param(OLLAMA, [lines(*(said(piece) | {"done_reason": "stop"} for piece in THREE), done())], id="ollama-a-reason-in-each-line"),
        pytest.param(OLLAMA, [lines(*map(said, THREE), said() | {"done_reason": "stop"})], id="ollama-no-done"),
        pytest.param(OLLAMA, [lines(*map(said, THREE), done()), Hang()], id="ollama-open-end"),
    ],
)  # fmt: skip
def test_tokens_after_a_finish_reason_count(server, api, steps):
    """The text is read to the end, with pauses between its pieces."""
    paused = [one for step in steps for one in (step, Pause(0.1))]
    server.enqueue(Script.stream(*paused))

    reply = ask(api.provider(server.url))

    assert (reply.text, reply.finish_reason) == ("one two three", "stop")
    assert reply.timing.ttft_ms <= reply.timing.e2e_ms


CALL = {"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}}


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


COUNTS = chat_usage(**CHAT_USAGE)
REASON = chat_chunk({}, "stop")


@pytest.mark.parametrize(
    ("ending", "output_tokens"),
    [
        pytest.param([sse(REASON, COUNTS, "[DONE]")], 7, id="in-order"),
        pytest.param([sse(REASON, COUNTS)], 7, id="no-done"),
        pytest.param([sse(COUNTS | {"choices": REASON["choices"]})], 7, id="all-in-one"),
        pytest.param([sse(COUNTS, REASON, "[DONE]")], 7, id="usage-first"),
        pytest.param([sse(REASON, COUNTS), b"data: [DONE]"], 7, id="done-without-line-end"),
        pytest.param([sse(REASON), b": ping\n\n", sse(COUNTS), Hang()], 7, id="open-end"),
        pytest.param([sse(REASON)], None, id="no-counts"),
        pytest.param([sse(REASON), Close()], None, id="no-counts-and-closed"),
        pytest.param([sse(REASON), Hang()], None, id="no-counts-and-an-open-end"),
    ],
)
def test_counts_at_the_end(server, ending, output_tokens):
    """Counts are read wherever a server puts them; a finish reason without them is enough."""
    server.enqueue(Script.stream(CHAT.text("Hi."), *ending))

    reply = ask(CHAT.provider(server.url))

    assert (reply.text, reply.finish_reason, reply.output_tokens) == ("Hi.", "stop", output_tokens)


def test_silence_is_not_part_of_the_answer(server):
    """`e2e_ms` ends with the counts, and not with the silence after them."""
    server.enqueue(Script.stream(CHAT.text("Hi."), sse(REASON), Pause(0.3), sse(COUNTS), Hang()))

    reply = ask(CHAT.provider(server.url))

    assert (reply.text, reply.output_tokens) == ("Hi.", 7)
    assert reply.timing.e2e_ms >= 300


HEARTBEATS = (": keepalive", "ping", "null", "2026-11-25 08:00:00.123", "{}", '""', '{"type": "ping"}', "0")


@pytest.mark.parametrize("beat", HEARTBEATS)
def test_heartbeats_are_ignored(form, server, beat):
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


ERROR = {"error": {"message": "The context size is exceeded", "code": 400}}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'error: {"code": 400, "message": "The context size is exceeded"}\n\n', id="field"),
        pytest.param(sse([ERROR]), id="in-an-array"),
        pytest.param(sse({"data": ERROR}), id="in-data"),
        pytest.param(sse({"code": "context_length_exceeded", "message": "no"}), id="an-object-of-its-own"),
        pytest.param(sse({"message": "context size exceeded", "code": 1}, event="error"), id="a-named-event"),
    ],
)  # fmt: skip
def test_an_error_in_any_place_is_not_an_answer(form, server, data):
    """It ends the stream, whatever end mark follows."""
    server.enqueue(Script.stream(data, form.end()))

    assert ask(form.provider(server.url)).failure_type == "context_overflow"


DISCONNECTED = {"error": {"code": 502, "message": "Provider disconnected"}}


@pytest.mark.parametrize(
    ("chunk", "failure_type"),
    [
        pytest.param(chat_chunk({"error": "boom"}), "stream_error", id="in-place-of-a-delta"),
        pytest.param(
            chat_chunk({"content": "", "error": {"message": "boom"}}), "stream_error", id="in-a-delta"
        ),
        pytest.param({**chat_chunk({"content": ""}, "error"), **DISCONNECTED}, "http_502", id="openrouter"),
        pytest.param({**chat_chunk({}), "x_groq": {"error": "over capacity"}}, "stream_error", id="groq"),
    ],
)
def test_an_error_in_a_chunk(server, chunk, failure_type):
    """The same, in chat completions; it is the server's, and is asked again."""
    server.enqueue(Script.stream(sse(chunk), CHAT.end()))

    fault = ask(CHAT.provider(server.url))

    assert (fault.failure_type, fault.retryable) == (failure_type, True)


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_in_place_of_events(server, indent):
    """Gemini's API sends one without `alt=sse`; the time of its first token is unknown."""
    said = [gemini_answer({"text": "Hel"}), gemini_answer({"text": "lo"}, reason="STOP")]
    server.enqueue(answer(json.dumps(said, indent=indent).encode()))

    reply = ask(GEMINI.provider(server.url))

    assert (reply.text, reply.finish_reason, reply.timing.ttft_ms) == ("Hello", "stop", None)


@pytest.mark.parametrize(
    "thought",
    [
        pytest.param({"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]}, id="details"),
        pytest.param({"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}]}, id="summary"),
        pytest.param({"content": [{"type": "reasoning", "summary": [{"text": "Hm."}]}]}, id="parts"),
        pytest.param({"reasoning_text": "Hm."}, id="reasoning-text"),
    ],
)
def test_thinking_under_other_names(server, thought):
    """It is thinking, and its first piece is the first token."""
    server.enqueue(Script.stream(sse(chat_chunk(thought)), Pause(0.1), CHAT.text("Hi."), CHAT.end()))

    reply = ask(CHAT.provider(server.url))

    assert (reply.text, reply.reasoning) == ("Hi.", "Hm.")
    assert reply.timing.ttft_ms < reply.timing.ttfo_ms


@pytest.mark.parametrize("api", [MESSAGES, RESPONSES], ids=["messages", "responses"])
def test_a_type_in_the_line_of_the_event_only(server, api):
    """Some gateways drop the type from the data."""
    whole = b"".join([api.text("Hi."), api.end()])
    server.enqueue(Script.stream(re.sub(rb'"type": "(?:response|content|message)[^"]*"(?:, )?', b"", whole)))

    assert ask(api.provider(server.url)).text == "Hi."


def test_a_silent_endpoint_is_waited_for_only_once(server, monkeypatch):
    """Only an endpoint that was silent for the longer time is given the shorter one."""
    monkeypatch.setattr("pytest_openclaw.providers.stream.KNOWN_SILENCE_S", 0.2)
    monkeypatch.setattr("pytest_openclaw.providers.stream.SILENCE_S", 1.0)
    late = (CHAT.text("Hel"), sse(REASON), Pause(0.6), CHAT.text("lo"), sse(REASON))
    server.on("*", lambda _: Script.stream(*late, Hang()))
    first, other = CHAT.provider(server.url), CHAT.provider(server.url)

    texts = [ask(first).text, ask(first).text, ask(other).text]

    assert texts == ["Hello", "Hel", "Hello"]


A, B = "one two three", " four five"
AB = A + B


def chunks(*pieces, last=None):
    reasons = [None] * (len(pieces) - 1) + [last]
    return [sse(chat_chunk({"content": p}, r)) for p, r in zip(pieces, reasons, strict=True)]


def message(text, kind="chat.completion", reason="stop"):
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return sse({"object": kind, "choices": [choice]})


def block(text, index=0):
    start = {"type": "text", "text": text}
    return event({"type": "content_block_start", "index": index, "content_block": start})


def part(kind, text, **more):
    of = {"output_index": 0, "content_index": 0, "item_id": "m", **more}
    return event(
        {"type": f"response.{kind}", "part": {"type": "output_text", "text": text}, "text": text, **of}
    )


def item(kind, text):
    content = [{"type": "output_text", "text": text}]
    message = {"type": "message", "id": "m", "content": content}
    return event({"type": f"response.output_item.{kind}", "output_index": 0, "item": message})


D = (block_delta("text_delta", text=A), block_delta("text_delta", text=B))
R = tuple(delta("output_text", p, output_index=0, content_index=0, item_id="m") for p in (A, B))
CHUNK = "chat.completion.chunk"
CASES = [
    pytest.param(CHAT, [*chunks(A, B), message(AB)], id="chat-completion-at-the-end"),
    pytest.param(CHAT, [*chunks(A, B), message(AB, CHUNK)], id="chat-message-at-the-end"),
    pytest.param(CHAT, [*chunks(A, B, last="stop"), message(AB), message(AB)], id="chat-twice"),
    pytest.param(CHAT, [*chunks(A, B), *chunks(AB, last="stop")], id="chat-delta-at-the-end"),
    pytest.param(CHAT, [*chunks(A), *chunks(AB, last="stop")], id="chat-delta-with-the-rest"),
    pytest.param(CHAT, chunks("one", "one two", A, AB), id="chat-cumulative"),
    pytest.param(CHAT, chunks(A, AB, AB), id="chat-cumulative-in-two"),
    pytest.param(CHAT, [message(A, CHUNK, None), message(AB, CHUNK, None)], id="chat-cumulative-messages"),
    pytest.param(CHAT, [message(A, CHUNK, None), message(B, CHUNK, None)], id="chat-messages-as-deltas"),
    pytest.param(CHAT, [message(AB)], id="chat-only-a-message"),
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


def test_a_response_whose_parts_are_only_in_its_last_event():
    """Thinking, text and a refusal are read from it, each in its channel."""
    parts = [{"type": "output_text", "text": "Hi"}, {"type": "refusal", "refusal": "No."}]
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    response = {
        "object": "response",
        "status": "completed",
        "output": [thought, {"type": "message", "content": parts}],
    }
    reply = reading(read_responses)({"type": "response.completed", "response": response})
    assert (reply.reasoning, reply.text, reply.refusal) == ("hm", "Hi", "No.")


@pytest.mark.parametrize(
    ("last", "names"),
    [
        pytest.param(
            done(content=AB, message={"thinking": AB, "tool_calls": calling(("ls", {}))}), ["ls"], id="all"
        ),
        pytest.param(done(message={"tool_calls": calling(("pwd", {}))}), ["ls", "pwd"], id="another-call"),
    ],
)
def test_the_last_line_of_ollama(server, last, names):
    """It may repeat all of the text, the thinking and the calls; another call is made."""
    pieces = (said(thinking=A), said(thinking=B), said(A), said(B), said(tool_calls=calling(("ls", {}))))
    server.enqueue(answer(lines(*pieces), lines(last)))

    reply = ask(native(server.origin))

    assert (reply.text, reply.reasoning) == (AB, AB)
    assert [call.name for call in reply.tool_calls] == names


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


# Of few characters: a model's own repetition, which is kept.
_TEXT = st.text("a🦞\n", max_size=12)
_CALLS = st.lists(st.tuples(st.sampled_from(["read", "exec"]), _TEXT), max_size=3)


def chat_call(n, name, first, rest):
    start = {"id": f"c{n}", "function": {"name": name, "arguments": first}}
    parts = (start, {"function": {"arguments": rest}})
    return sse(*(chat_chunk({"tool_calls": [{"index": n, **one}]}) for one in parts))


def responses_call(n, name, first, rest):
    item = {"type": "function_call", "id": f"fc{n}", "call_id": f"c{n}", "name": name, "arguments": ""}
    pieces = [delta("function_call_arguments", piece, item_id=f"fc{n}") for piece in (first, rest)]
    return b"".join([event({"type": "response.output_item.added", "item": item}), *pieces])


def messages_call(n, name, first, rest):
    written = json.dumps({"text": first + rest}, ensure_ascii=False)
    parts = deltas(n, "input_json_delta", "partial_json", written[: len(first)], written[len(first) :])
    return sse(start(n, "tool_use", id=f"c{n}", name=name, input={}), *parts, stop(n))


def gemini_call(n, name, first, rest):
    call = {"id": f"c{n}", "name": name, "args": {"text": first + rest}}
    return sse(gemini_answer({"functionCall": call}))


def ollama_call(n, name, first, rest):
    return lines(said(tool_calls=calling((name, {"text": first + rest}))))


@pytest.mark.parametrize(
    ("api", "reader", "call"),
    [
        pytest.param(CHAT, read_chat, chat_call, id="chat"),
        pytest.param(RESPONSES, read_responses, responses_call, id="responses"),
        pytest.param(MESSAGES, read_messages, messages_call, id="messages"),
        pytest.param(GEMINI, read_gemini, gemini_call, id="gemini"),
        pytest.param(OLLAMA, read_ollama, ollama_call, id="ollama"),
    ],
)
@settings(deadline=None)
@given(
    texts=st.lists(_TEXT, max_size=5),
    thoughts=st.lists(_TEXT, max_size=3),
    calls=_CALLS,
    cut=st.integers(0, 12),
)
def test_a_stream_reads_like_a_whole_answer(api, reader, call, texts, thoughts, calls, cut):
    """However a reply is cut into pieces, it equals the reply from one message."""
    fields = {"text": "".join(texts), "reasoning": "".join(thoughts), "calls": tuple(calls)}
    head = {"type": "message_start", "message": MESSAGES.whole(None) | {"stop_reason": None}}
    data = [sse(head)] if api is MESSAGES else []
    data += [*map(api.reasoning, thoughts), *map(api.text, texts)]
    data += [call(n, name, text[:cut], text[cut:]) for n, (name, text) in enumerate(calls)]
    events = [one.data for one in read(b"".join([*data, api.end(**fields)])) if one.data != "[DONE]"]

    streamed, whole = (
        reading(reader)(*payloads) for payloads in (map(json.loads, events), [api.whole(**fields)])
    )

    # Times come from the clock, which does not advance here; only a stream has a first token.
    assert replace(streamed, timing=None, carried=()) == replace(whole, timing=None, carried=())
