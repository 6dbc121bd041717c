"""Ollama's own API: request bodies, every form of answer, and the server's description of itself."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.ollama import ollama_body, read_ollama
from pytest_openclaw.providers.stream import EventReader
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from tests.providers.servers.apis import reading
from tests.providers.servers.misbehaving import pieces
from tests.providers.servers.ollama import (
    COUNTS,
    SPEED,
    TEMPLATE,
    OllamaServer,
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


read = reading(read_ollama)


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
    ("request_", "refused", "part"),
    [
        pytest.param({"stream": False}, (), {"stream": False}, id="whole"),
        pytest.param({"max_output_tokens": 5, "temperature": 0.5}, (), {"options": {"temperature": 0.5, "num_predict": 5}}, id="options"),
        pytest.param({"seed": 2}, (), {"options": {"temperature": 0.0, "num_predict": 1024, "seed": 2}}, id="seed"),
        pytest.param({"thinking_level": "low"}, (), {"think": "low"}, id="low"),
        pytest.param({"thinking_level": "medium"}, (), {"think": "medium"}, id="medium"),
        pytest.param({"thinking_level": "high"}, (), {"think": "high"}, id="high"),
        pytest.param({"thinking_level": "xhigh"}, (), {"think": "high"}, id="xhigh"),
        pytest.param({"thinking_level": "low"}, ("level",), {"think": True}, id="thinks-without-levels"),
        pytest.param({}, ("level",), {"think": False}, id="thinks-not"),
        pytest.param({"system": "Be brief."}, (), {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}, id="system"),
        pytest.param({"tools": (READ,)}, (), {"tools": [{"type": "function", "function": {"name": "read", "description": "Read a file.", "parameters": READ.parameters}}]}, id="tools"),
    ],
)  # fmt: skip
def test_body_of(request_, refused, part):
    """Each field of a request has its place in the body, and no other."""
    plain = ollama_body(Request(model="m", prompt="Hi"))

    assert ollama_body(Request(model="m", prompt="Hi", **request_), refused) == plain | part


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
    assert (reply.reasoning_tokens, reply.cached_tokens) == (None, None)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param(calling(("read", {"p": "ü"})), [("read", '{"p": "ü"}', None)], id="one"),
        pytest.param(calling(("read", {"p": 1}), ("read", {"p": 1})), [("read", '{"p": 1}', None)] * 2, id="two-alike"),
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
        pytest.param([*calling(("a", {"x": 1})), {"function": {"arguments": {"y": 2}}}], [("a", '{"x": 1}', None)], id="a-nameless-one-changes-no-other"),
        pytest.param([{"function": None}, None, 5, {}], [], id="nonsense"),
    ],
)  # fmt: skip
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
        pytest.param({"prompt_eval_count": -1, "eval_count": 1.5, "eval_duration": 9}, (None, None, None), id="no-counts"),
        pytest.param({"prompt_eval_count": True, "eval_count": "7"}, (None, None, SPEED), id="no-integers"),
    ],
)  # fmt: skip
def test_counts(counts, expected):
    """A missing or invalid count is None and never 0."""
    expected = (*expected[:2], None) if expected[1] is None else expected

    reply = read(done(content="a", **counts))

    assert (reply.input_tokens, reply.output_tokens, reply.tokens_per_s) == expected


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

# --- where it is --------------------------------------------------------------------------------


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


def test_fingerprint():
    """Version, digest, quantisation, template and the context in use."""
    with OllamaServer() as server:
        found = working(native(server.origin), lambda provider: provider.fingerprint("m"))

    assert found == {
        "server": "ollama",
        "server_version": "0.33.3",
        "digest": "a" * 64,
        "quantisation": "Q4_K_M",
        "context_length": 4096,
        "template_sha256": hashlib.sha256(TEMPLATE.encode()).hexdigest(),
        "template_shows_tools": True,
        "parameters": "num_ctx 4096",
    }
    assert [request.path for request in server.requests] == [
        "/api/version",
        "/api/show",
        "/api/ps",
    ]
