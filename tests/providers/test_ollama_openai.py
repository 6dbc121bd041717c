"""Chat completions: request bodies, and every form of answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.ollama import chat_body, read_chat
from pytest_openclaw.values.requests import Request
from tests.providers.servers.apis import CHAT, CHAT_USAGE, ask, chat_chunk, chat_usage, reading
from tests.providers.servers.misbehaving import Close, Hang, Script, sse

read = reading(read_chat)


def whole(message, finish_reason="stop", **more):
    """A whole completion."""
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}], **more}


# --- what is sent -------------------------------------------------------------------------------


def test_body():
    """The minimal body, with the counts requested at the stream's end."""
    assert chat_body(Request(model="m", prompt="Hi")) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "temperature": 0.0,
        "max_tokens": 1024,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        pytest.param({"stream": False}, {"stream": False}, id="whole"),
        pytest.param({"max_output_tokens": 5}, {"max_tokens": 5}, id="max-tokens"),
        pytest.param({"temperature": 0.5}, {"temperature": 0.5}, id="temperature"),
        pytest.param({"seed": 2}, {"seed": 2}, id="seed"),
        pytest.param({"thinking_level": "high"}, {"reasoning_effort": "high", "think": True, "temperature": 0.0}, id="thinking"),
        pytest.param({"system": "Be brief."}, {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}, id="system"),
    ],
)  # fmt: skip
def test_body_of(request_, part):
    """Each field of a request has its place in the body."""
    body = chat_body(Request(model="m", prompt="Hi", **request_))

    assert body | part == body


# --- how answers are read -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "text", "reasoning", "refusal"),
    [
        pytest.param({"content": "a"}, "a", "", None, id="text"),
        pytest.param({"content": None}, "", "", None, id="null"),
        pytest.param({"content": "a", "reasoning_content": "b"}, "a", "b", None, id="reasoning_content"),
        pytest.param({"content": "a", "reasoning": "b"}, "a", "b", None, id="reasoning"),
        pytest.param({"content": "a", "thinking": "b"}, "a", "b", None, id="thinking"),
        pytest.param({"reasoning": "b", "reasoning_content": "b"}, "", "b", None, id="one-thought-under-two-names"),
        pytest.param({"content": None, "refusal": "No."}, "", "", "No.", id="refusal"),
        pytest.param({"content": [{"type": "text", "text": "a"}, "b"]}, "ab", "", None, id="parts"),
        pytest.param({"content": [{"type": "refusal", "refusal": "No."}]}, "", "", "No.", id="refusal-part"),
        pytest.param({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "b"}]}, {"type": "text", "text": "a"}]}, "a", "b", None, id="thinking-part"),
        pytest.param({"content": [{"type": "thinking", "thinking": "b"}]}, "", "b", None, id="thinking-part-of-text"),
        pytest.param({"content": 5, "tool_calls": "x", "refusal": {}}, "", "", None, id="nonsense"),
    ],
)  # fmt: skip
def test_channels(message, text, reasoning, refusal):
    """Text, reasoning and refusal are kept apart, by whatever names, streamed or whole."""
    for reply in (read(whole(message)), read(chat_chunk(message), chat_chunk({}, "stop"))):
        assert (reply.text, reply.reasoning, reply.refusal) == (text, reasoning, refusal)


@pytest.mark.parametrize(
    ("timings", "speed"),
    [
        pytest.param({"predicted_n": 20, "predicted_per_second": 104.25}, 104.25, id="llama.cpp"),
        pytest.param({"predicted_n": 1, "predicted_per_second": 1e6}, None, id="of-one-token"),
        pytest.param({"predicted_n": 20, "predicted_per_second": float("inf")}, None, id="infinite"),
        pytest.param({"predicted_n": 20, "predicted_per_second": "fast"}, None, id="no-number"),
        pytest.param([1], None, id="no-object"),
    ],
)
def test_the_servers_own_timing_of_its_speed(timings, speed):
    """The server's own measurement takes precedence over our clock; nonsense is ignored."""
    assert read(whole({"content": "a"}, timings=timings)).tokens_per_s == speed


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": "11", "completion_tokens": True},
        {"prompt_tokens": -1, "completion_tokens": 1.5},
        {"prompt_tokens": 2**53 + 1, "completion_tokens": 10**30},
    ],
    ids=["null", "empty", "no-numbers", "no-counts", "too-large-for-a-row"],
)
def test_counts_that_are_none(usage):
    """A missing or invalid count is None and never 0."""
    reply = read(whole({"content": "a"}, usage=usage))

    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (None, None, None)


# --- streams as servers end them ----------------------------------------------------------------


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param([sse(chat_chunk({}, "stop"), chat_usage(**CHAT_USAGE), "[DONE]")], id="in-order"),
        pytest.param([sse(chat_chunk({}, "stop"), chat_usage(**CHAT_USAGE))], id="no-done"),
        pytest.param([sse(chat_chunk({}, "stop") | chat_usage(**CHAT_USAGE) | {"choices": chat_chunk({}, "stop")["choices"]})], id="all-in-one"),
        pytest.param([sse(chat_usage(**CHAT_USAGE), chat_chunk({}, "stop"), "[DONE]")], id="usage-first"),
        pytest.param([sse(chat_chunk({}, "stop"), chat_usage(**CHAT_USAGE)), b"data: [DONE]"], id="done-without-line-end"),
        pytest.param([sse(chat_chunk({}, "stop")), b": ping\n\n", sse(chat_usage(**CHAT_USAGE)), Hang()], id="open-end"),
    ],
)  # fmt: skip
def test_counts_after_the_end_mark(server, ending, monkeypatch):
    """The counts are read wherever a server puts them."""
    monkeypatch.setattr("pytest_openclaw.providers.stream.SILENCE_S", 0.5)
    server.enqueue(Script.stream(CHAT.text("Hi."), *ending))

    reply = ask(CHAT.provider(server.url))

    assert (reply.text, reply.finish_reason, reply.output_tokens) == ("Hi.", "stop", 7)


@pytest.mark.parametrize("end", [(), (Close(),), (Hang(),)], ids=["in-order", "closed", "open"])
def test_a_finish_reason_is_enough(server, monkeypatch, end):
    """Without counts and `[DONE]` a reply is complete; the counts are waited for, but not long."""
    monkeypatch.setattr("pytest_openclaw.providers.stream.SILENCE_S", 0.1)
    server.enqueue(Script.stream(sse(chat_chunk({"content": "Hi."}, "stop")), *end))

    reply = ask(CHAT.provider(server.url))

    assert (reply.text, reply.finish_reason, reply.output_tokens) == ("Hi.", "stop", None)


# Of few characters: a model's own repetition, which is kept.
_TEXT = st.text("a🦞\n", max_size=12)
_CALLS = st.lists(st.tuples(st.sampled_from(["read", "exec"]), _TEXT), max_size=3)


@settings(deadline=None)
@given(texts=st.lists(_TEXT, max_size=5), thoughts=st.lists(_TEXT, max_size=3), calls=_CALLS, data=st.data())
def test_a_stream_reads_like_a_whole_answer(texts, thoughts, calls, data):
    """However a reply is cut into deltas, it equals the reply from one message."""
    deltas = [{"reasoning_content": thought} for thought in thoughts] + [{"content": text} for text in texts]
    for index, (name, arguments) in enumerate(calls):
        cut = data.draw(st.integers(0, len(arguments)))
        start = {"name": name, "arguments": arguments[:cut]}
        deltas.append({"tool_calls": [{"index": index, "id": f"c{index}", "function": start}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": arguments[cut:]}}]})

    streamed = read(*map(chat_chunk, deltas), chat_chunk({}, "stop"), chat_usage(**CHAT_USAGE))

    at_once = read(CHAT.whole("".join(texts), "stop", "".join(thoughts), tuple(calls)))
    # Times come from the clock, which does not advance here; only a stream has a first token.
    assert replace(streamed, timing=None) == replace(at_once, timing=None)
