"""Parsing stream-json lines, without a process."""

import json
import time
from itertools import count

import pytest

from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.claude_stream import Stream
from pytest_openclaw.values.tool_calls import ToolCall
from tests.providers.fake_claude.cli import USAGE, assistant, event, result, synthetic

REQUESTING = {"type": "system", "subtype": "status", "status": "requesting"}
START = event("message_start", message={"id": "m", "model": "m1", "usage": USAGE})
STOP = event("message_stop")


def text(piece):
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})


def thinking(piece):
    return event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": piece})


def arguments(piece, index=0):
    delta = {"type": "input_json_delta", "partial_json": piece}
    return event("content_block_delta", index=index, delta=delta)


def tool(name, index=0, given=None, tool_id="t1"):
    block = {"type": "tool_use", "id": tool_id, "name": name, "input": given or {}}
    return event("content_block_start", index=index, content_block=block)


def end(stop_reason="end_turn", **usage):
    return event("message_delta", delta={"stop_reason": stop_reason}, usage=usage or {"output_tokens": 3})


def read(*lines, offered=None, is_exchange=False):
    ticks = count()

    def begin():
        return Answer(monotonic=lambda: float(next(ticks)), wall_ms=lambda moment: int(moment * 1000))

    stream = Stream(begin, offered=offered, is_exchange=is_exchange)
    for line in lines:
        stream.receive_line(json.dumps(line).encode())
    return stream


def test_an_answer():
    """Texts, times and counts; message_start is not a token, and the input includes cached tokens."""
    pieces = [thinking("Let me"), thinking(" see."), text("Fo"), text("ur")]
    reply = read(START, *pieces, end(), STOP, result()).reply()

    assert (reply.text, reply.reasoning) == ("Four", "Let me see.")
    assert (reply.effective_model, reply.finish_reason) == ("m1", "end_turn")
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens) == (18, 5, 3)
    assert (reply.timing.ttft_ms, reply.timing.ttfo_ms, reply.timing.e2e_ms) == (1000.0, 2000.0, 3000.0)


@pytest.mark.parametrize(
    ("lines", "given"),
    [
        pytest.param([arguments('{"a":'), arguments(" 1}")], '{"a": 1}', id="in-pieces"),
        pytest.param(
            [
                arguments('{"a":  1}'),
                assistant([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"a": 1}}]),
            ],
            '{"a":  1}',
            id="the-pieces-before-the-assistant-line",
        ),
        pytest.param(
            [assistant([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}])],
            "{}",
            id="the-assistant-line-without-pieces",
        ),
    ],
)
def test_a_tool_call(lines, given):
    """A tool call keeps its name, id and the JSON text of its input, once, in every form of lines."""
    reply = read(START, tool("Bash"), *lines, end("tool_use"), STOP, result()).reply()

    assert reply.tool_calls == (ToolCall(name="Bash", id="t1", arguments=given),)


def test_interleaved_tool_calls():
    """Pieces belong to the call with their index."""
    lines = [
        tool("read"),
        tool("exec", index=1, tool_id="t2"),
        arguments("{}", index=1),
        arguments('{"a": 1}'),
    ]
    reply = read(*lines, end("tool_use"), STOP, result()).reply()

    assert [(call.name, call.id, call.arguments) for call in reply.tool_calls] == [
        ("read", "t1", '{"a": 1}'),
        ("exec", "t2", "{}"),
    ]


@pytest.mark.parametrize(
    ("called", "name"),
    [
        pytest.param("mcp__openclaw__read", "read", id="offered"),
        pytest.param("mcp__openclaw__home_light", "home.light", id="in-other-characters"),
        pytest.param("mcp__openclaw__frobnicate", "frobnicate", id="not-offered"),
        pytest.param("read", "read", id="without-the-prefix"),
        pytest.param("Bash", "Bash", id="of-the-cli"),
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
        pytest.param({}, ("read", "exec"), id="no-list"),
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
def test_a_second_request_is_not_part_of_the_answer(stop_reason, finish_reason, second):
    """The answer is the first message; the CLI's own further requests are ignored."""
    stream = read(START, text("one"), end(stop_reason), STOP, *second, text("two"), end("end_turn"), result())
    reply = stream.reply()

    assert stream.over
    assert (reply.text, reply.finish_reason, reply.output_tokens) == ("one", finish_reason, 3)


def test_a_synthetic_line_is_not_the_models():
    """Text that the CLI writes itself is not an answer, and its error word is kept."""
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


def test_a_result_is_an_answer_without_events():
    """An older CLI, or a wrapper, prints only the result."""
    stream = read(result(result="Four", usage={"output_tokens": 2}))

    reply = stream.outcome("claude", "m", where="", login="")

    assert (reply.text, reply.output_tokens, reply.timing.ttft_ms) == ("Four", 2, None)


@pytest.mark.parametrize(
    ("words", "failure_type"),
    [
        ("Invalid API key · Fix external API key", "http_401"),
        ("Claude AI usage limit reached|1796083200", "quota_exhausted"),
        ("5-hour limit reached ∙ resets 3pm", "quota_exhausted"),
        ("Claude Opus is not available with the Claude Pro plan.", "model_not_found"),
        ("API Error: 429 Too Many Requests", "http_429"),
        ("Login expired · Please run /login", "auth_missing"),
        ("Bad things", "cli_error"),
    ],
)
def test_an_error_in_words_only(words, failure_type):
    """An older CLI has neither a status nor an error word."""
    stream = read(result(result=words, is_error=True))

    assert stream.outcome("claude", "m", where="", login="").failure_type == failure_type


def test_an_end_of_another_kind_is_named_in_short():
    """Whatever the CLI has in place of the word for its end, the message has its beginning and its end."""
    stream = read(result(subtype=["x" * 100_000], is_error=True))

    assert len(stream.outcome("claude", "m", where="", login="").message) < 1000


def test_messages_without_events():
    """Each block has a line; the results of calls begin another message."""
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}
    lines = [assistant([{"type": "text", "text": "I look."}]), assistant([call]), answered("t1")]
    stream = read(
        *lines, assistant([{"type": "text", "text": "plum"}]), result(result="plum"), is_exchange=True
    )

    reply = stream.outcome("claude", "m", where="", login="")

    assert [(turn.text, len(turn.calls), len(turn.results)) for turn in reply.turns] == [
        ("I look.", 1, 1),
        ("plum", 0, 0),
    ]


OFFERED = {"mcp__openclaw__read": "read"}
INIT = {"type": "system", "subtype": "init", "tools": [*OFFERED]}


def message(said, *calls):
    yield event("message_start", message={"id": f"m{said}", "model": "m1", "usage": {"input_tokens": 10}})
    yield text(said)
    for index, call_id in enumerate(calls, 1):
        yield tool("mcp__openclaw__read", index, tool_id=call_id)
        yield event("content_block_stop", index=index)
    yield end("tool_use" if calls else "end_turn")
    yield STOP


def answered(call_id, content="r"):
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def played(*lines):
    return read(INIT, *lines, offered=OFFERED, is_exchange=True)


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "unannounced"])
def test_a_turn_is_timed_from_its_own_request(announced):
    """A turn's clock starts at the CLI's request; our server's time belongs only to the exchange."""
    again = [REQUESTING] if announced else []
    stream = played(REQUESTING, *message("a", "t1"), answered("t1"), *again, *message("b"), result())
    reply = stream.reply()
    first, second = (turn.timing for turn in reply.turns)

    assert (first.started_at_ms, first.ttft_ms, first.ttfo_ms, first.e2e_ms) == (0, 1000.0, 1000.0, 2000.0)
    assert (second.started_at_ms, second.ttft_ms, second.e2e_ms) == (3000, 1000.0, 2000.0)
    assert (reply.timing.e2e_ms, reply.timing.ttft_ms, reply.timing.ended_at_ms) == (5000.0, 1000.0, 5000)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("plain", "plain", id="text"),
        pytest.param([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb", id="blocks"),
        pytest.param([], "", id="no-blocks"),
        pytest.param(None, "", id="null"),
        pytest.param("\ud800", "\ufffd", id="lone-surrogate"),
    ],
)
def test_the_result_of_a_call(content, text):
    """Results come as text or as blocks."""
    stream = played(*message("a", "t1"), answered("t1", content), REQUESTING, *message("b"), result())

    assert stream.reply().turns[0].results == (text,)


def test_ends_and_results_sent_again_take_no_time():
    """A long message is read once, not for each end and each result that a server or the CLI sends."""
    began = time.process_time()
    lines = [*([text("x" * 100)] * 10_000), *([STOP] * 5_000), *([answered("t2")] * 5_000)]

    reply = played(START, *lines, result()).reply()

    assert (len(reply.text), len(reply.turns)) == (1_000_000, 1)
    assert time.process_time() - began < 5


def test_a_turn_with_a_broken_call_has_no_results():
    """The CLI may carry out a call before the message is complete; OpenClaw would not."""
    *lines, delta, stop = message("a", "t1", "t2")
    broken = arguments('{"pa', index=2)
    reply = played(*lines, broken, answered("t1"), delta, stop, answered("t2"), result()).reply()

    assert (reply.ended_by, [call.arguments for call in reply.tool_calls]) == (
        "malformed_call",
        ["{}", '{"pa'],
    )
    assert reply.turns[0].results == ()


def test_requests_of_the_cli_after_an_answer_are_not_turns():
    """An answer without a call ends the exchange, whatever the CLI does by itself afterwards."""
    stream = played(
        *message("a", "t1"), answered("t1"), REQUESTING, *message("b"), REQUESTING, *message("c"), result()
    )

    assert stream.over
    assert [turn.text for turn in stream.reply().turns] == ["a", "b"]
