"""Ollama's own API: request bodies, every form of answer, and the server's description of itself."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.asking.links import runs_in_process
from pytest_openclaw.core.errors import TargetError
from pytest_openclaw.providers import fingerprint, limits
from pytest_openclaw.providers.exchange import Exchange
from pytest_openclaw.providers.ollama_native import OllamaNative, ollama_body, read_ollama
from pytest_openclaw.providers.ollama_openai import OllamaOpenAI
from pytest_openclaw.providers.stream import EventReader
from pytest_openclaw.types.faults import CallFailed
from pytest_openclaw.types.protocols import ProviderSetup
from pytest_openclaw.types.replies import Turn
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.tool_calls import Tool, ToolCall
from tests.providers.servers.apis import ask, described
from tests.providers.servers.misbehaving import (
    Close,
    Hang,
    Pause,
    Reset,
    Script,
    Wait,
    pieces,
    unused_port,
)
from tests.providers.servers.ollama import (
    COUNTS,
    NDJSON,
    SPEED,
    TEMPLATE,
    OllamaServer,
    answer,
    calling,
    done,
    lines,
    native,
    said,
)

READ = Tool(
    name="read",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


KEY = "ollama-very-secret-key-0123456789"


def still():
    """An exchange whose clock does not advance."""
    return Exchange(monotonic=lambda: 0.0, wall_ms=lambda moment: 0)


def read(*payloads):
    """The reply that results from these lines, or from one whole answer."""
    exchange = still()
    for payload in payloads:
        assert read_ollama(payload, exchange) is None
    return exchange.reply()


def working(provider, work):
    """Let a provider do something, in a separate loop."""

    async def doing():
        try:
            return await work(provider)
        finally:
            await provider.aclose()

    return asyncio.run(doing())


# --- what is sent -------------------------------------------------------------------------------


def test_body():
    """OpenClaw's fields, with the temperature and the room for an answer; nothing may be truncated."""
    assert ollama_body(Request(model="m", prompt="Hi")) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "think": False,
        "truncate": False,
        "shift": False,
        "options": {"temperature": 0.0, "num_predict": 1024},
    }


@pytest.mark.parametrize(
    ("request_", "asked", "part"),
    [
        pytest.param({"stream": False}, {}, {"stream": False}, id="whole"),
        pytest.param(
            {"max_output_tokens": 5, "temperature": 0.5},
            {},
            {"options": {"temperature": 0.5, "num_predict": 5}},
            id="options",
        ),
        pytest.param(
            {"seed": 2}, {}, {"options": {"temperature": 0.0, "num_predict": 1024, "seed": 2}}, id="seed"
        ),
        pytest.param(
            {},
            {"num_ctx": 32768},
            {"options": {"temperature": 0.0, "num_predict": 1024, "num_ctx": 32768}},
            id="num-ctx",
        ),
        pytest.param({}, {"keep_alive": "10m"}, {"keep_alive": "10m"}, id="keep-alive"),
        pytest.param({}, {"keep_alive": 0}, {"keep_alive": 0}, id="keep-alive-0"),
        pytest.param({"thinking_level": "low"}, {}, {"think": "low"}, id="low"),
        pytest.param({"thinking_level": "medium"}, {}, {"think": "medium"}, id="medium"),
        pytest.param({"thinking_level": "high"}, {}, {"think": "high"}, id="high"),
        pytest.param({"thinking_level": "xhigh"}, {}, {"think": "high"}, id="xhigh"),
        pytest.param(
            {"thinking_level": "low"}, {"with_level": False}, {"think": True}, id="thinks-without-levels"
        ),
        pytest.param({}, {"with_level": False}, {"think": False}, id="thinks-not"),
        pytest.param(
            {"system": "Be brief."},
            {},
            {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]},
            id="system",
        ),
        pytest.param(
            {"tools": (READ,)},
            {},
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {
                            "name": "read",
                            "description": "Read a file.",
                            "parameters": READ.parameters,
                        },
                    }
                ]
            },
            id="tools",
        ),
    ],
)
def test_body_of(request_, asked, part):
    """Each field of a request, and each setting of the ini, has its place in the body, and no other."""
    plain = ollama_body(Request(model="m", prompt="Hi"))

    assert ollama_body(Request(model="m", prompt="Hi", **request_), **asked) == plain | part


@pytest.mark.parametrize(
    ("turn", "messages"),
    [
        pytest.param(Turn(text="Yes."), [{"role": "assistant", "content": "Yes."}], id="text"),
        pytest.param(
            Turn(
                reasoning="Hm.",
                calls=(ToolCall(name="read", arguments='{"path": "ü"}'), ToolCall(name="ls", arguments="")),
                results=("text", "a b"),
            ),
            [
                {
                    "role": "assistant",
                    "content": "",
                    "thinking": "Hm.",
                    "tool_calls": [
                        {"type": "function", "function": {"name": "read", "arguments": {"path": "ü"}}},
                        {"type": "function", "function": {"name": "ls", "arguments": {}}},
                    ],
                },
                {"role": "tool", "tool_name": "read", "content": "text"},
                {"role": "tool", "tool_name": "ls", "content": "a b"},
            ],
            id="thought-and-two-calls",
        ),
        pytest.param(
            Turn(text="So:", calls=(ToolCall(name="ls", arguments="{}", id="call_1"),), results=("a",)),
            [
                {
                    "role": "assistant",
                    "content": "So:",
                    "tool_calls": [
                        {"type": "function", "function": {"name": "ls", "arguments": {}}, "id": "call_1"}
                    ],
                },
                {"role": "tool", "tool_name": "ls", "content": "a", "tool_call_id": "call_1"},
            ],
            id="with-an-id",
        ),
        pytest.param(
            Turn(calls=(ToolCall(name="ls", arguments="[1]"), ToolCall(name="ls", arguments="{oops"))),
            [
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [
                        {"type": "function", "function": {"name": "ls", "arguments": {}}},
                        {"type": "function", "function": {"name": "ls", "arguments": {}}},
                    ],
                }
            ],
            id="arguments-that-the-API-cannot-say-and-no-results",
        ),
    ],
)
def test_history(turn, messages):
    """The history follows the prompt: text, thinking and calls, and the result of each call."""
    body = ollama_body(Request(model="m", prompt="Hi", system="S", history=(turn, Turn(text="Then."))))

    first = [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}]
    assert body["messages"] == [*first, *messages, {"role": "assistant", "content": "Then."}]


@pytest.mark.parametrize(
    ("written", "sent"),
    [("10m", "10m"), ("-1", -1), ("600", 600), ("1.5", 1.5), ("-1m", "-1m"), ("0", 0)],
)
def test_keep_alive_is_sent_as_the_api_reads_it(server, written, sent):
    """A number is seconds, and the API takes it as a number only."""
    server.enqueue(answer(lines(done(content="Hi."))))

    ask(native(server.origin, options={"ollama_keep_alive": written, "ollama_num_ctx": "8192"}))

    body = server.requests[0].json
    assert (body["keep_alive"], type(body["keep_alive"])) == (sent, type(sent))
    assert body["options"]["num_ctx"] == 8192


@pytest.mark.parametrize(
    ("options", "fields", "context"),
    [
        pytest.param({}, {}, 128_000, id="unknown"),
        pytest.param({"ollama_num_ctx": "8192"}, {}, 8192, id="ini"),
        pytest.param({}, {"options": {"num_ctx": 16_384}}, 16_384, id="surface"),
        pytest.param(
            {"ollama_num_ctx": "8192"}, {"options": {"num_ctx": 16_384}}, 16_384, id="surface-first"
        ),
        pytest.param({"ollama_num_ctx": "8192"}, {"options": {"num_ctx": None}}, 128_000, id="removed"),
        pytest.param({"ollama_num_ctx": "8192"}, {"options": {"top_k": 1}}, 8192, id="other-options"),
    ],
)
def test_the_context_is_the_one_that_is_asked_for(server, options, fields, context):
    """It is the server's `num_ctx`; fields of the surface or the endpoint have precedence, as in the body."""
    request = Request(model="m", prompt="Hi", fields=fields)

    assert native(server.origin, options=options).context_tokens(request) == context


def test_the_request_on_the_wire(server):
    """The body goes to the route at the root, with the key in its header."""
    server.on("/api/chat", answer(lines(said("Hi."), done())))

    reply = ask(native(server.url, OLLAMA_API_KEY="a-key"), prompt="Grüße 🦞")

    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/api/chat")
    assert request.json["messages"] == [{"role": "user", "content": "Grüße 🦞"}]
    assert request.headers["authorization"] == "Bearer a-key"
    assert NDJSON in request.headers["accept"]
    assert reply.text == "Hi."


# --- how answers are read -----------------------------------------------------------------------


def test_a_stream_of_ollama():
    """Thoughts, text and a call, then the counts and the server's own timing."""
    reply = read(
        said(thinking="Hm"),
        said(thinking=", so."),
        said("It "),
        said("is."),
        said(tool_calls=calling(("read", {"path": "ü"}))),
        done(),
    )

    assert (reply.text, reply.reasoning) == ("It is.", "Hm, so.")
    assert reply.tool_calls == (ToolCall(name="read", arguments='{"path": "ü"}'),)
    assert (reply.finish_reason, reply.effective_model) == ("stop", "m-served")
    assert (reply.input_tokens, reply.output_tokens, reply.tokens_per_s) == (11, 7, SPEED)
    assert reply.prompt_tokens_per_s == pytest.approx(11 / 0.3)
    assert (reply.reasoning_tokens, reply.cached_tokens) == (None, None)


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        pytest.param({"content": "a"}, "a", "", id="text"),
        pytest.param({"content": "", "thinking": "b"}, "", "b", id="thinking"),
        pytest.param({"content": "a", "thinking": "b"}, "a", "b", id="both"),
        pytest.param({"content": None, "thinking": None}, "", "", id="null"),
        pytest.param({}, "", "", id="nothing"),
        pytest.param({"content": 5, "thinking": [], "tool_calls": "x"}, "", "", id="nonsense"),
    ],
)
def test_channels(message, text, reasoning):
    """Text and thinking are kept apart, streamed or whole."""
    for reply in (read(done(message=message)), read({"message": message, "done": False}, done())):
        assert (reply.text, reply.reasoning) == (text, reasoning)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param(calling(("read", {"p": "ü"})), [("read", '{"p": "ü"}', None)], id="one"),
        pytest.param(
            calling(("read", {"p": 1}), ("read", {"p": 1})),
            [("read", '{"p": 1}', None)] * 2,
            id="two-alike",
        ),
        pytest.param(calling(("ls", {})), [("ls", "{}", None)], id="empty-object"),
        pytest.param(calling(("ls", None)), [("ls", "", None)], id="null"),
        pytest.param([{"function": {"name": "ls"}}], [("ls", "", None)], id="no-arguments"),
        pytest.param(calling(("ls", '{"p": 1}')), [("ls", '{"p": 1}', None)], id="text"),
        pytest.param(calling(("ls", [1])), [("ls", "[1]", None)], id="a-list"),
        pytest.param(
            [
                {"id": "call_1", "function": {"index": 0, "name": "a", "arguments": {}}},
                {"id": "call_2", "function": {"index": 1, "name": "b", "arguments": {}}},
            ],
            [("a", "{}", "call_1"), ("b", "{}", "call_2")],
            id="ids-and-indexes",
        ),
        pytest.param(
            [
                {"function": {"index": 0, "name": "a", "arguments": {"x": 1}}},
                {"function": {"index": 0, "name": "b", "arguments": {"y": 2}}},
            ],
            [("a", '{"x": 1}', None), ("b", '{"y": 2}', None)],
            id="all-numbered-0",
        ),
        pytest.param(
            [*calling(("a", {"x": 1})), {"function": {"arguments": {"y": 2}}}],
            [("a", '{"x": 1}', None)],
            id="a-nameless-one-changes-no-other",
        ),
        pytest.param([{"function": None}, None, 5, {}], [], id="nonsense"),
    ],
)
def test_tool_calls(calls, expected):
    """Each call comes whole, its arguments as an object; a line may hold several."""
    tool_calls = tuple(ToolCall(name=name, arguments=text, id=id_) for name, text, id_ in expected)

    assert read(done(message={"tool_calls": calls})).tool_calls == tool_calls
    assert read(said(tool_calls=calls), done()).tool_calls == tool_calls
    assert read(*(said(tool_calls=[call]) for call in calls), done()).tool_calls == tool_calls


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param(COUNTS, (11, 7, SPEED), id="all"),
        pytest.param({**COUNTS, "prompt_eval_count": None}, (None, 7, SPEED), id="no-prompt"),
        pytest.param({**COUNTS, "eval_duration": 0}, (11, 7, None), id="no-time"),
        pytest.param({**COUNTS, "eval_duration": "long"}, (11, 7, None), id="no-number"),
        pytest.param({**COUNTS, "eval_count": 1}, (11, 1, None), id="one-token-has-no-speed"),
        pytest.param(
            {"prompt_eval_count": -1, "eval_count": 1.5, "eval_duration": 9},
            (None, None, None),
            id="no-counts",
        ),
        pytest.param({"prompt_eval_count": True, "eval_count": "7"}, (None, None, SPEED), id="no-integers"),
    ],
)
def test_counts(counts, expected):
    """A missing or invalid count is None and never 0."""
    expected = (*expected[:2], None) if expected[1] is None else expected

    reply = read(done(content="a", **counts))

    assert (reply.input_tokens, reply.output_tokens, reply.tokens_per_s) == expected


@pytest.mark.parametrize(
    "payload",
    [{}, {"message": None}, {"message": []}, {"model": 5}, {"done": "true"}, {"done": 1}, {"done": None}],
)
def test_odd_lines_say_nothing(payload):
    """A line of another form is no token, no error and no end."""
    exchange = still()

    assert read_ollama(payload, exchange) is None
    assert (exchange.has_tokens, exchange.ended) == (False, False)


# Of few characters: a model's own repetition, which is kept.
_TEXT = st.text("a🦞\n", max_size=12)
_ARGUMENTS = st.dictionaries(_TEXT, _TEXT | st.integers() | st.booleans(), max_size=3)
_CALLS = st.lists(st.tuples(st.sampled_from(["read", "exec"]), _ARGUMENTS), max_size=3)


@settings(deadline=None)
@given(
    texts=st.lists(_TEXT, max_size=5),
    thoughts=st.lists(_TEXT, max_size=3),
    calls=_CALLS,
    cuts=st.lists(st.integers(0, 2000), max_size=20),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_a_stream_reads_like_a_whole_answer(texts, thoughts, calls, cuts, end):
    """However a reply is divided into lines, and these into chunks, it equals the reply from one object."""
    streamed = lines(
        *(said(thinking=thought) for thought in thoughts),
        *(said(text) for text in texts),
        *(said(tool_calls=calling(call)) for call in calls),
        done(),
        end=end,
    ).removesuffix(end.encode())
    stream = EventReader()
    events = [event for chunk in pieces(streamed, cuts) for event in stream.feed(chunk)]

    reply = read(*(json.loads(event.data) for event in [*events, *stream.close()]))

    message = {"thinking": "".join(thoughts), "tool_calls": calling(*calls)}
    # Times come from the clock, which does not advance here; only a stream has a first token.
    whole = read(done(content="".join(texts), message=message))
    assert replace(reply, timing=None) == replace(whole, timing=None)


# --- streams as they arrive ---------------------------------------------------------------------

WHOLE = lines(said(thinking="Hü"), said("It's 🦞."), said(tool_calls=calling(("ls", {"p": "ü"}))), done())


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([WHOLE], id="at-once"),
        pytest.param([bytes([byte]) for byte in WHOLE], id="byte-by-byte"),
        pytest.param([WHOLE[:-1]], id="no-last-line-feed"),
        pytest.param([WHOLE.replace(b"\n", b"\r\n")], id="crlf"),
        pytest.param([b"\n\n", WHOLE.replace(b"\n", b"\n\n"), b"\n \n"], id="blank-lines"),
        pytest.param([b"\xef\xbb\xbf", WHOLE], id="byte-order-mark"),
        pytest.param([WHOLE, b"{oops\n"], id="garbage-after-the-end"),
        pytest.param([WHOLE, lines({"error": "late"})], id="an-error-after-the-end"),
        pytest.param([WHOLE, Reset()], id="reset-after-the-end"),
        pytest.param([WHOLE, Hang()], id="open-end"),
        pytest.param([lines(said()), Pause(0.01), WHOLE], id="an-empty-line-of-content-first"),
    ],
)
def test_streams(server, monkeypatch, chunks):
    """The end mark counts, wherever the bytes are cut and whatever follows it."""
    monkeypatch.setattr("pytest_openclaw.providers.http.LINGER_S", 0.1)
    server.enqueue(answer(*chunks))

    reply = ask(native(server.origin))

    assert (reply.text, reply.reasoning, reply.finish_reason) == ("It's 🦞.", "Hü", "stop")
    assert reply.tool_calls == (ToolCall(name="ls", arguments='{"p": "ü"}'),)
    assert (reply.input_tokens, reply.output_tokens, reply.tokens_per_s) == (11, 7, SPEED)


@pytest.mark.parametrize("kind", [NDJSON, "application/ndjson; charset=utf-8", "text/plain", ""])
def test_a_stream_by_any_name(server, kind):
    """A stream has one of several content types, or none; its first token always has its time."""
    server.enqueue(answer(WHOLE, content_type=kind))

    reply = ask(native(server.origin))

    assert (reply.text, reply.timing.ttft_ms is None) == ("It's 🦞.", False)


def test_a_stream_that_was_not_asked_for(server):
    """An unrequested stream is recognised by its content type."""
    server.enqueue(answer(WHOLE))

    assert ask(native(server.origin), stream=False).text == "It's 🦞."


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n\r\n"])
def test_a_stream_renamed_on_the_way(server, end):
    """Lines with the content type of one object are read, but the times of their tokens are unknown."""
    server.enqueue(Script.answer(WHOLE.strip() + end, content_type="application/json"))

    reply = ask(native(server.origin))

    assert (reply.text, reply.output_tokens) == ("It's 🦞.", 7)
    assert (reply.timing.ttft_ms, reply.timing.ttfo_ms) == (None, None)


def test_a_renamed_stream_without_its_end(server):
    """It is as broken as with its own content type."""
    data = lines(said("Hel"), said("lo"))
    server.enqueue(Script.answer(data, content_type="application/json"))

    why = 'ollama_native: the stream broke: it ended without "done": true.'
    assert described(ask(native(server.origin))) == ("stream_error", "error", why, "Hello")


@pytest.mark.parametrize("indent", [None, 2])
def test_a_whole_answer(server, stream, indent):
    """One object, requested or not, has an end and no first token."""
    server.enqueue(
        Script.answer(json.dumps(done(content="Hi."), indent=indent), content_type="application/json")
    )

    reply = ask(native(server.origin), stream=stream)

    assert (reply.text, reply.finish_reason, reply.output_tokens) == ("Hi.", "stop", 7)
    assert reply.timing.ttft_ms is None


LATE_S = 0.1


def one_by_one(monkeypatch, *parts):
    """An answer of which each part is sent when the previous one has been read, and some time later."""
    read = [threading.Event() for _ in parts]
    left, feed = iter(read), EventReader.feed

    def feed_and_signal(self, data):
        found = feed(self, data)
        time.sleep(LATE_S)
        next(left, read[-1]).set()
        return found

    monkeypatch.setattr(EventReader, "feed", feed_and_signal)
    first, *others = parts
    return answer(first, *(step for pair in zip(map(Wait, read), others, strict=False) for step in pair))


def test_the_first_token_is_a_thought(server, monkeypatch):
    """The first token counts on any channel; the first output token is text, not thinking."""
    server.enqueue(
        one_by_one(monkeypatch, lines(said()), lines(said(thinking="Hm")), lines(said("Hi.")), lines(done()))
    )

    timing = ask(native(server.origin)).timing

    assert timing.ttft_ms >= LATE_S * 1000
    assert timing.ttfo_ms - timing.ttft_ms >= LATE_S * 1000
    assert timing.e2e_ms - timing.ttfo_ms >= LATE_S * 1000


def test_a_call_is_the_answers_first_token(server, monkeypatch):
    """A model that only calls has its first output token there; empty content before it is none."""
    call = lines(said(tool_calls=calling(("ls", {}))))
    server.enqueue(one_by_one(monkeypatch, lines(said()), call, lines(done())))

    timing = ask(native(server.origin)).timing

    assert timing.ttft_ms == timing.ttfo_ms
    assert timing.ttfo_ms >= LATE_S * 1000
    assert timing.e2e_ms - timing.ttfo_ms >= LATE_S * 1000


# --- streams that break, and errors -------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunks", "why", "raw"),
    [
        pytest.param(
            [lines(said("Hel"))], 'the stream broke: it ended without "done": true.', "Hel", id="cut"
        ),
        pytest.param(
            [lines(said("Hel")), lines(said("lo"))[:-9]],
            'the stream broke: it ended without "done": true.',
            "Hel",
            id="cut-in-a-line",
        ),
        pytest.param([], 'the stream broke: it ended without "done": true.', "", id="empty"),
        pytest.param(
            [lines(said(thinking="Hm"), said("Hel")), Pause(0.1), Reset()],
            "the stream broke: the connection was lost in the middle of the answer.",
            "<think>\nHm\n</think>\n\nHel",
            id="reset",
        ),
        pytest.param(
            [lines(said("Hel")), Close()],
            "the stream broke: the connection was lost in the middle of the answer.",
            "Hel",
            id="closed",
        ),
        pytest.param(
            [lines(said("Hel"), {"error": "an error was encountered while running the model"})],
            "the stream broke: after the first tokens the server says: "
            "an error was encountered while running the model.",
            "Hel",
            id="an-error-after-tokens",
        ),
        pytest.param(
            [lines({"error": "llama runner process has terminated"})],
            "the stream broke: the server says: llama runner process has terminated.",
            "",
            id="an-error-before-tokens",
        ),
        pytest.param(
            [lines(said("Hel"), "{oops", said("lo"), done())],
            "the answer cannot be read: no JSON object: {oops.",
            "Hel",
            id="a-line-that-is-no-json",
        ),
        pytest.param(
            [b"data: " + lines(said("Hel"))],
            'the stream broke: it ended without "done": true.',
            "Hel",
            id="another-framing",
        ),
    ],
)
def test_broken_streams(server, chunks, why, raw):
    """The text so far is kept, and is no answer."""
    server.enqueue(answer(*chunks))

    fault = ask(native(server.origin))

    assert (fault.status, fault.message) == ("error", f"ollama_native: {why}")
    assert fault.failure_type == ("malformed_response" if "cannot be read" in why else "stream_error")
    assert raw is None or fault.raw == raw


def test_a_line_without_end(server, monkeypatch):
    """A line, as any body, has a longest length."""
    monkeypatch.setattr(limits, "MOST_EVENT_BYTES", 1 << 20)
    server.enqueue(answer(*[b"x" * 65536] * 32))

    fault = ask(native(server.origin))

    assert (fault.failure_type, fault.message) == (
        "malformed_response",
        "ollama_native: the answer cannot be read: an event of it is longer than 1 MiB.",
    )


ENGINE = json.dumps(
    {
        "error": {
            "code": 400,
            "message": "request (8889 tokens) exceeds the available context size (4096 tokens)",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 8889,
            "n_ctx": 4096,
        }
    }
)
LONGER = "the prompt is longer than m's context: "

ERRORS = [
    pytest.param(400, ENGINE, "context_overflow", "error", f"{LONGER}request (8889 tokens) exceeds the available context size (4096 tokens)", id="overflow-of-the-engine"),
    pytest.param(400, "the input length exceeds the context length", "context_overflow", "error", f"{LONGER}the input length exceeds the context length", id="overflow-of-old"),
    pytest.param(400, "the prompt is longer than the context length currently available to the model", "context_overflow", "error", f"{LONGER}the prompt is longer than the context length currently available to the model", id="overflow-without-shift"),
    pytest.param(400, "prompt too long; exceeded max context length by 12 tokens", "context_overflow", "error", f"{LONGER}prompt too long; exceeded max context length by 12 tokens", id="overflow-in-the-cloud"),
    pytest.param(404, "model 'm' not found", "model_not_found", "skipped_unavailable", "the server has no model 'm': model 'm' not found", id="no-model"),
    pytest.param(404, 'model "m" not found, try pulling it first', "model_not_found", "skipped_unavailable", "the server has no model 'm': model \"m\" not found, try pulling it first", id="no-model-of-old"),
    pytest.param(400, "registry.ollama.ai/library/m:latest does not support tools", "no_tools", "skipped_unavailable", "m cannot be offered these tools there: registry.ollama.ai/library/m:latest does not support tools", id="no-tools"),
    pytest.param(400, '"m" does not support thinking', "http_400", "skipped_unavailable", 'm has no thinking levels, so name it without one: "m" does not support thinking', id="no-thinking"),
    pytest.param(400, 'invalid think value: "x"', "http_400", "error", 'HTTP 400: invalid think value: "x"', id="another-400"),
    pytest.param(401, "unauthorized", "http_401", "auth_error", "HTTP 401: unauthorized", id="401"),
    pytest.param(429, "too many concurrent requests", "http_429", "rate_limited", "HTTP 429: too many concurrent requests", id="429"),
    pytest.param(500, "model requires more system memory (5.6 GiB) than is available (3.0 GiB)", "http_500", "error", "HTTP 500: model requires more system memory (5.6 GiB) than is available (3.0 GiB)", id="500"),
    pytest.param(503, "server busy, please try again. maximum pending requests exceeded", "http_503", "error", "HTTP 503: server busy, please try again. maximum pending requests exceeded", id="503"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "said_", "failure_type", "availability", "why"), ERRORS)
def test_errors(server, stream, status, said_, failure_type, availability, why):
    """An error before the answer is classified by its words, then by its status."""
    server.enqueue(Script.answer({"error": said_}, status=status))

    fault = ask(native(server.origin), stream=stream)

    assert described(fault) == (failure_type, availability, f"ollama_native: {why}", "")
    reach = {"no_model": "target", "model_not_found": "target", "http_401": "target"}.get(
        failure_type, "cell"
    )
    assert fault.scope == ("target" if "thinking levels" in why else reach)
    assert fault.retryable is (status in (429, 503))


IN_A_200 = [
    pytest.param(ENGINE, "context_overflow", "error", id="overflow-of-the-engine"),
    pytest.param("the input length exceeds the context length", "context_overflow", "error", id="overflow"),
    pytest.param("model 'm' not found", "model_not_found", "skipped_unavailable", id="no-model"),
    pytest.param("m:latest does not support tools", "no_tools", "skipped_unavailable", id="no-tools"),
    pytest.param("no route found in the model", "stream_error", "error", id="nothing-known"),
]


@pytest.mark.parametrize(("said_", "failure_type", "availability"), IN_A_200)
def test_an_error_inside_a_200(server, stream, said_, failure_type, availability):
    """An error in the place of an answer means the same, by its words alone."""
    error = {"error": said_}
    server.enqueue(answer(lines(error)) if stream else Script.answer(error))

    fault = ask(native(server.origin), stream=stream, model="m" if "route" not in said_ else "qwen3:8b")

    assert (fault.failure_type, fault.status, fault.raw) == (failure_type, availability, "")


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        pytest.param(b"", "application/json", "it is empty", id="empty"),
        pytest.param(b"{}", "application/json", "this holds no answer: {}", id="another-object"),
        pytest.param(
            lines(said("Hi.")).strip(),
            "application/json",
            f"this holds no answer: {lines(said('Hi.')).decode().strip()}",
            id="not-done",
        ),
        pytest.param(b"[1]", "application/json", "no JSON object: [1]", id="a-list"),
        pytest.param(
            b"Ollama is running", "application/json", "no JSON object: Ollama is running", id="text"
        ),
        pytest.param(
            b"<html>\n<title>Log in</title>", "text/html", "a web page, 'Log in'", id="captive-portal"
        ),
    ],
)
def test_malformed(server, stream, body, kind, why):
    """A 200 that is no answer is malformed."""
    server.enqueue(Script.answer(body, content_type=kind))

    fault = ask(native(server.origin), stream=stream)

    assert fault.failure_type == "malformed_response"
    if kind != "text/html":  # of a page only the first line may be quoted
        assert fault.message == f"ollama_native: the answer cannot be read: {why}."


def test_no_listener():
    """A refused connection marks the server, by its root."""
    with unused_port() as port:
        fault = ask(native(f"http://127.0.0.1:{port}"))

    why = f"ollama_native: nothing answers at http://127.0.0.1:{port} (connection refused)."
    assert described(fault) == ("connect_error", "skipped_unavailable", why, "")
    assert fault.scope == "endpoint"


def test_a_level_that_the_model_does_not_have():
    """If thinking is only on or off it is requested without a level, at once and from then on."""

    def chat(body):
        if isinstance(body["think"], str):
            why = f'think value "{body["think"]}" is not supported for this model'
            return Script.answer({"error": why}, status=400)
        return answer(lines(said(thinking="Hm", content="Hi."), done()))

    with OllamaServer(chat) as server:
        provider = native(server.origin)
        first = ask(provider, thinking_level="low")
        second = ask(provider, thinking_level="high")
        other = ask(provider, thinking_level="low", model="n")
        without = ask(provider)

    assert [reply.reasoning for reply in (first, second, other, without)] == ["Hm"] * 4
    assert [(body["model"], body["think"]) for body in server.chats] == [
        ("m", "low"),
        ("m", True),
        ("m", True),
        ("n", "low"),
        ("n", True),
        ("m", False),
    ]


def test_another_refusal_is_asked_once(server):
    """Only a refused level is retried without it."""
    server.on("/api/chat", Script.answer({"error": '"m" does not support thinking'}, status=400))

    ask(native(server.origin), thinking_level="low")

    assert server.total == 1


# --- where it is --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "base_url", "expected"),
    [
        pytest.param({}, None, "http://127.0.0.1:11434", id="default"),
        pytest.param({}, "http://ini:1", "http://ini:1", id="ini"),
        pytest.param({"OLLAMA_HOST": "box:1234"}, "http://ini:1", "http://box:1234", id="ollama-host"),
        pytest.param({"OLLAMA_HOST": "https://box/ollama/"}, None, "https://box/ollama", id="with-a-path"),
        pytest.param({"OLLAMA_HOST": " "}, None, "http://127.0.0.1:11434", id="empty"),
        pytest.param({"OLLAMA_HOST": "box/api"}, None, "http://box:11434", id="with-api"),
        pytest.param(
            {"OLLAMA_OPENAI_BASE": "http://vllm:8000/v1"}, None, "http://127.0.0.1:11434", id="not-its-own"
        ),
    ],
)
def test_address(environ, base_url, expected):
    """`OLLAMA_HOST` comes before the ini, and the ini before the default; the API begins at the root."""
    provider = OllamaNative(ProviderSetup(name="ollama_native", base_url=base_url, environ=environ))

    assert provider.address.base_url == expected
    assert (provider.is_local, provider.warms_up, provider.takes_tools) == (True, True, True)
    assert runs_in_process(provider)


@pytest.mark.parametrize("written", ["http://gpu:11434", "http://gpu:11434/v1", "http://gpu:11434/api/"])
def test_an_endpoint_has_its_own_address_only(written):
    """An ini line names the server with or without the beginning of an API, and no variable moves it."""
    setup = ProviderSetup(name="lab", base_url=written, environ={"OLLAMA_HOST": "box:1234"})

    provider = OllamaNative(setup)

    assert (provider.address.base_url, provider.is_local) == ("http://gpu:11434", False)


def test_an_endpoint_without_an_address():
    """A user's endpoint has no default address."""
    with pytest.raises(TargetError, match=r"\Alab: has no address\."):
        OllamaNative(ProviderSetup(name="lab"))


@pytest.mark.parametrize(
    ("host", "base"),
    [
        pytest.param("", "", id="defaults"),
        pytest.param("box:1234", "", id="ollama-host"),
        pytest.param("", "http://localhost:11434/v1", id="localhost"),
        pytest.param("https://box/ollama", "https://box/ollama/v1", id="with-a-path"),
    ],
)
def test_both_ways_to_one_server_share_its_endpoint(host, base):
    """A server gets one request at a time, whichever of its APIs is used."""
    environ = {"OLLAMA_HOST": host, "OLLAMA_OPENAI_BASE": base}
    one = OllamaNative(ProviderSetup(name="ollama_native", environ=environ))
    other = OllamaOpenAI(ProviderSetup(name="ollama_openai", environ=environ))

    assert one.endpoint == other.endpoint


@pytest.mark.parametrize("base", ["http://127.0.0.1:8000/v1", "http://127.0.0.2:11434/v1"])
def test_other_servers_have_their_own_endpoints(base):
    """Another port or host is another server."""
    one = OllamaNative(ProviderSetup(name="ollama_native"))
    other = OllamaOpenAI(ProviderSetup(name="ollama_openai", environ={"OLLAMA_OPENAI_BASE": base}))

    assert one.endpoint != other.endpoint


@pytest.mark.parametrize(
    ("name", "key_env", "sent"),
    [
        pytest.param("ollama_native", None, "Bearer ollama-key-987654", id="ollama"),
        pytest.param("lab", None, None, id="endpoint-without-key"),
        pytest.param("lab", "MY_KEY", "Bearer my-own-key-55555", id="endpoint-with-key"),
    ],
)
def test_a_key_goes_to_its_own_server(server, name, key_env, sent):
    """The environment has several keys; each server gets its own, or none."""
    server.on("*", Script.answer(status=500))
    keys = {"OLLAMA_API_KEY": "ollama-key-987654", "MY_KEY": "my-own-key-55555"}
    setup = ProviderSetup(
        name=name, base_url=server.origin, key_env=key_env, environ={**keys, "OLLAMA_HOST": server.origin}
    )

    ask(OllamaNative(setup))

    assert server.requests[0].headers.get("authorization") == sent


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(Script.answer({"error": f"no {KEY}"}, status=401), id="error"),
        pytest.param(answer(lines({"error": f"no {KEY}"})), id="error-in-a-stream"),
        pytest.param(answer(lines(said("Hi"), {"error": KEY})), id="error-after-tokens"),
        pytest.param(answer(lines(said(KEY), said(thinking=KEY))), id="said-in-a-broken-stream"),
        pytest.param(answer(lines(KEY)), id="a-line-that-is-no-json"),
        pytest.param(Script.answer(lines({"said": KEY}, {"said": KEY})), id="renamed-lines"),
    ],
)
def test_a_server_that_repeats_the_key(server, stream, script):
    """Whatever a server sends back, the key is not in the fault."""
    server.enqueue(script)

    fault = ask(native(server.origin, OLLAMA_API_KEY=KEY), stream=stream)

    assert fault.failure_type
    assert KEY not in repr(fault)


def test_what_it_says_of_itself(server):
    """`config.json` has the root, the route and what is sent to the server, and no key or password."""
    url = server.origin.replace("//", "//me:pass-word-123@")
    options = {"ollama_num_ctx": "8192", "ollama_keep_alive": "10m"}
    provider = native(url, OLLAMA_API_KEY="a-secret-key", options=options)

    assert provider.describe() == {
        "base_url": server.origin,
        "path": "/api/chat",
        "key_env": "OLLAMA_API_KEY",
        "num_ctx": 8192,
        "keep_alive": "10m",
    }
    assert {"a-secret-key", "pass-word-123"} <= set(provider.secrets)


# --- what the server says of itself -------------------------------------------------------------


def test_models():
    """The models that are installed; one that only embeds is left out."""
    models = {
        "qwen3:8b": ["completion", "tools", "thinking"],
        "nomic-embed-text:latest": ["embedding"],
        "old:1b": [],
    }

    with OllamaServer(models=models) as server:
        names = working(native(server.origin, OLLAMA_API_KEY="a-key"), lambda provider: provider.models())

    assert names == ("qwen3:8b", "old:1b")
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer a-key"}


def test_models_of_a_server_without_capabilities(server):
    """Without `/api/show`, every model counts."""
    server.on("/api/tags", Script.answer({"models": [{"name": "a"}, {"name": "b"}, {"name": 5}]}))

    assert working(native(server.origin), lambda provider: provider.models()) == ("a", "b")


@pytest.mark.parametrize(
    ("script", "names"),
    [
        pytest.param(Script.answer({"models": None}), (), id="none"),
        pytest.param(Script.answer({"models": []}), (), id="empty"),
    ],
)
def test_a_server_without_models(server, script, names):
    """A list may be empty."""
    server.on("/api/tags", script)

    assert working(native(server.origin), lambda provider: provider.models()) == names


def test_models_that_cannot_be_listed(server):
    """A wildcard cannot be resolved without a list."""
    server.on("/api/tags", Script.answer({"hello": 1}))

    with pytest.raises(CallFailed) as raised:
        working(native(server.origin), lambda provider: provider.models())

    assert str(raised.value) == "ollama_native: the answer cannot be read: its list of models has no list."


def test_fingerprint():
    """Version, digest, quantisation and capabilities; the context and the memory in use."""
    with OllamaServer() as server:
        found = working(native(server.origin), lambda provider: provider.fingerprint("m"))

    assert found == {
        "server": "ollama",
        "server_version": "0.33.3",
        "digest": "a" * 64,
        "quantisation": "Q4_K_M",
        "parameter_size": "3.2B",
        "family": "llama",
        "capabilities": ["completion", "tools"],
        "context_length": 4096,
        "context_length_trained": 131072,
        "size_bytes": 3_000_000_000,
        "vram_bytes": 1_000_000_000,
        "template_sha256": hashlib.sha256(TEMPLATE.encode()).hexdigest(),
        "template_shows_tools": True,
        "parameters": "num_ctx 4096",
    }
    assert [request.path for request in server.requests] == [
        "/api/version",
        "/api/show",
        "/api/tags",
        "/api/ps",
    ]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(Script.answer({"error": "not found"}, status=404), id="unknown-routes"),
        pytest.param(Script.answer([1, 2]), id="no-objects"),
        pytest.param(
            Script.answer({"models": {"a": 1}, "details": [], "capabilities": "tools", "version": 5}),
            id="nonsense",
        ),
        pytest.param(
            Script.answer(
                {"models": [{"name": "m", "size": -1, "size_vram": "1 GB", "context_length": "4k"}]}
            ),
            id="no-counts",
        ),
    ],
)
def test_a_server_that_does_not_say(server, script):
    """A fingerprint has the available facts, and is never a fault."""
    server.on("*", script)

    assert working(native(server.origin), lambda provider: provider.fingerprint("m")) == {}
    assert server.total == 4


def test_a_server_that_is_silent(server, monkeypatch):
    """After one unanswered request no further ones are sent."""
    monkeypatch.setattr(fingerprint, "QUESTION_TIMEOUT_S", 1.0)
    server.on("/api/version", Script.answer({"version": "0.33.3"}))
    server.on("/api/show", Script.of(Hang()))

    found = working(native(server.origin), lambda provider: provider.fingerprint("m"))

    assert found == {"server": "ollama", "server_version": "0.33.3"}
    assert server.total == 2


def test_a_nudge_is_the_users():
    """The nudge to a model without an answer comes last, as the user's text, and is the whole turn."""
    body = ollama_body(Request(model="m", prompt="Hi", history=(Turn(user="Go on."),)))

    assert body["messages"] == [{"role": "user", "content": "Hi"}, {"role": "user", "content": "Go on."}]
