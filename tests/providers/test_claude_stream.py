"""Parsing stream-json lines, without a process."""

from __future__ import annotations

import json
from itertools import count

import pytest

from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.claude.stream import Stream
from pytest_openclaw.values.tool_calls import ToolCall
from tests.providers.fake_claude.cli import assistant, event, result, synthetic

REQUESTING = {"type": "system", "subtype": "status", "status": "requesting"}
USAGE = {
    "input_tokens": 11,
    "cache_read_input_tokens": 5,
    "cache_creation_input_tokens": 2,
    "output_tokens": 1,
}
START = event("message_start", message={"id": "m", "model": "m1", "usage": USAGE})
STOP = event("message_stop")


def text(piece):
    """A piece of text."""
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})


def thinking(piece):
    """A piece of thinking."""
    return event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": piece})


def arguments(piece, index=0):
    """A piece of a tool call's input."""
    delta = {"type": "input_json_delta", "partial_json": piece}
    return event("content_block_delta", index=index, delta=delta)


def tool(name, index=0, given=None, tool_id="t1"):
    """The beginning of a tool call."""
    block = {"type": "tool_use", "id": tool_id, "name": name, "input": given or {}}
    return event("content_block_start", index=index, content_block=block)


def end(stop_reason="end_turn", **usage):
    """The end of a message."""
    return event("message_delta", delta={"stop_reason": stop_reason}, usage=usage or {"output_tokens": 3})


def read(*lines, offered=None):
    """Read the lines with a clock that advances by one second at each reading."""
    ticks = count()
    answer = Answer(monotonic=lambda: float(next(ticks)), wall_ms=lambda moment: 0)
    stream = Stream(lambda: answer, offered=offered)
    for line in lines:
        stream.receive_line(json.dumps(line).encode())
    return stream


def test_an_answer_is_read_with_its_counts():
    """Text, model, finish reason and counts come from the stream; the input includes cached tokens."""
    reply = read(START, text("Hel"), text("lo"), end(), STOP, result()).reply()

    assert (reply.text, reply.effective_model, reply.finish_reason) == ("Hello", "m1", "end_turn")
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens) == (18, 5, 3)


def test_the_first_token_may_be_a_thought():
    """TTFT is at the first thinking, the first output at the first text; message_start is not a token."""
    reply = read(START, thinking("Let me"), thinking(" see."), text("Four"), end(), STOP, result()).reply()

    assert (reply.text, reply.reasoning) == ("Four", "Let me see.")
    assert (reply.timing.ttft_ms, reply.timing.ttfo_ms, reply.timing.e2e_ms) == (1000.0, 2000.0, 3000.0)


@pytest.mark.parametrize(
    ("lines", "calls"),
    [
        pytest.param([tool("Bash"), arguments('{"command": "echo '), arguments('hi"}')], [ToolCall(name="Bash", id="t1", arguments='{"command": "echo hi"}')], id="in-pieces"),
        pytest.param([tool("Bash", given={"command": "ls"})], [ToolCall(name="Bash", id="t1", arguments='{"command": "ls"}')], id="whole-at-the-start"),
        pytest.param(
            [
                tool("Bash"),
                arguments('{"a":  1}'),
                assistant([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"a": 1}}]),
            ],
            [ToolCall(name="Bash", id="t1", arguments='{"a":  1}')],
            id="the-wire-text-beats-the-assistant-line",
        ),
        pytest.param(
            [tool("Bash"), assistant([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}])],
            [ToolCall(name="Bash", id="t1", arguments="{}")],
            id="without-pieces-the-assistant-line-counts",
        ),
        pytest.param(
            [tool("read"), tool("exec", index=1, tool_id="t2"), arguments("{}", index=1), arguments('{"a": 1}')],
            [ToolCall(name="read", id="t1", arguments='{"a": 1}'), ToolCall(name="exec", id="t2", arguments="{}")],
            id="two-interleaved",
        ),
    ],
)  # fmt: skip
def test_tool_calls_are_joined(lines, calls):
    """A tool call keeps its name, id and the JSON text of its input, once, in every form of lines."""
    assert list(read(*lines, end("tool_use"), STOP, result()).reply().tool_calls) == calls


@pytest.mark.parametrize(
    ("called", "name"),
    [
        pytest.param("mcp__openclaw__read", "read", id="offered"),
        pytest.param("mcp__openclaw__home_light", "home.light", id="spelled-for-the-wire"),
        pytest.param("mcp__openclaw__frobnicate", "frobnicate", id="not-offered"),
        pytest.param("read", "read", id="without-the-prefix"),
        pytest.param("Bash", "Bash", id="the-clis-own"),
        pytest.param("mcp__other__read", "mcp__other__read", id="of-another-server"),
    ],
)
def test_a_call_has_the_tools_own_name(called, name):
    """The CLI's prefix of a name is removed, in pieces and in whole lines."""
    offered = {"mcp__openclaw__read": "read", "mcp__openclaw__home_light": "home.light"}
    whole = assistant([{"type": "tool_use", "id": "t1", "name": called, "input": {}}])
    for lines in ([tool(called), arguments("{}")], [tool(called), whole]):
        reply = read(*lines, end("tool_use"), STOP, offered=offered).reply()

        assert reply.tool_calls == (ToolCall(name=name, id="t1", arguments="{}"),)


@pytest.mark.parametrize(
    ("init", "lacking"),
    [
        pytest.param({"tools": ["mcp__openclaw__read", "mcp__openclaw__exec"]}, (), id="all"),
        pytest.param({"tools": ["mcp__openclaw__exec"]}, ("read",), id="one-missing"),
        pytest.param({"tools": []}, ("read", "exec"), id="none"),
        pytest.param({}, ("read", "exec"), id="not-said"),
        pytest.param({"tools": 7, "mcp_servers": 7}, ("read", "exec"), id="nonsense"),
    ],
)
def test_tools_that_are_not_offered_end_the_stream(init, lacking):
    """At its start the CLI lists its tools; without our tools the rest is not an answer."""
    offered = {"mcp__openclaw__read": "read", "mcp__openclaw__exec": "exec"}
    stream = read({"type": "system", "subtype": "init", **init}, START, text("Hi"), offered=offered)

    assert (stream.lacking, stream.over) == (lacking, bool(lacking))
    assert stream.answer.has_tokens == (not lacking)


@pytest.mark.parametrize(
    "second", [pytest.param([REQUESTING], id="announced"), pytest.param([START], id="unannounced")]
)
@pytest.mark.parametrize(
    ("stop_reason", "finish_reason"),
    [
        pytest.param("max_tokens", "length", id="cut"),
        pytest.param("model_context_window_exceeded", "length", id="window"),
        pytest.param("end_turn", "end_turn", id="ended"),
    ],
)
def test_a_second_request_is_no_part_of_the_answer(stop_reason, finish_reason, second):
    """The answer is the first message; the CLI's own further requests are ignored."""
    stream = read(START, text("one"), end(stop_reason), STOP, *second, text("two"), end("end_turn"), result())
    reply = stream.reply()

    assert stream.over
    assert (reply.text, reply.finish_reason, reply.output_tokens) == ("one", finish_reason, 3)


def test_a_synthetic_line_is_not_the_models():
    """Text that the CLI writes in the model's place is not an answer, and its error word is kept."""
    stream = read(synthetic("Credit balance is too low", error="billing_error"), result(is_error=True))

    assert (stream.answer.has_tokens, stream.error) == (False, "billing_error")


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"npm warn", id="words"),
        pytest.param(b"[1]", id="array"),
        pytest.param(b'{"type": 7}', id="type-is-a-number"),
        pytest.param(b'{"type": ["system"]}', id="type-is-a-list"),
        pytest.param(b"\xff\xfe", id="no-text"),
        pytest.param(b"{" * 100_000, id="open-braces"),
        pytest.param(b'{"type":' + b"[" * 100_000, id="too-deep"),
    ],
)
def test_lines_of_another_kind_are_skipped(raw):
    """Lines outside the format are not part of the answer."""
    stream = Stream(Answer)
    stream.receive_line(raw)

    assert (stream.answer.has_tokens, stream.over) == (False, False)
