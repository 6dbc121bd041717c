"""Scripted exchanges that a fake CLI plays, with our real tool server."""

from __future__ import annotations

import json
import sys
from itertools import count

import pytest
from msgspec import structs

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.claude.stream import Stream
from pytest_openclaw.values.replies import Fault
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import Command, World
from pytest_openclaw.worlds.playing import answered_calls, final_state
from tests.providers.fake_claude import ask, environ_of
from tests.providers.fake_claude.cli import event, result

processes = pytest.mark.skipif(sys.platform == "win32", reason="the fake is named in POSIX quoting")

CATALOGUE = load_catalogue().tools
TOOLS = (CATALOGUE["read"], CATALOGUE["write"], CATALOGUE["exec"])
WORLD = World(
    files={"notes.md": "buy milk"},
    commands=(Command(pattern="date", output="Monday"), Command(pattern="false", exit_code=1)),
    steps=8,
)
READ = ["mcp__openclaw__read", '{"path": "notes.md"}']
WRITE = ["mcp__openclaw__write", '{"path": "done.md", "content": "milk"}']


def play(*turns, world=WORLD, **request):
    """Let the fake play these turns, each a text and its calls, in a world."""
    return ask(environ_of("plays", json.dumps(turns)), tools=TOOLS, world=world, **request)


@processes
def test_calls_are_answered_from_the_world_until_there_is_an_answer():
    """Each turn keeps its text, calls and results; the exchange has the sums and the last text."""
    reply = play(["Let me look.", [READ]], ["", [WRITE, READ]], ["Done.", []])

    assert [(turn.text, [call.name for call in turn.calls]) for turn in reply.turns] == [
        ("Let me look.", ["read"]),
        ("", ["write", "read"]),
        ("Done.", []),
    ]
    assert reply.turns[0].results == ("buy milk",)
    assert len(reply.turns[1].results) == 2
    assert "done.md" in reply.turns[1].results[0]
    assert (reply.text, reply.raw, reply.ended_by) == ("Done.", "Let me look.\n\nDone.", "answer")
    assert (reply.finish_reason, reply.turns[0].finish_reason) == ("end_turn", "tool_use")
    assert [call.name for call in reply.tool_calls] == ["read", "write", "read"]
    assert [(turn.input_tokens, turn.output_tokens) for turn in reply.turns] == [(18, 3)] * 3
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (54, 9, 15)
    state = final_state(WORLD, TOOLS, answered_calls(reply).values())
    assert state.files == {"notes.md": "buy milk", "done.md": "milk"}


@processes
def test_the_step_limit_ends_it():
    """A model that calls until the end uses up the world's steps."""
    turns = [[f"Step {n}.", [["mcp__openclaw__read", f'{{"path": "{n}"}}']]] for n in range(5)]
    reply = play(*turns, world=World(steps=3))

    assert (reply.ended_by, len(reply.turns), reply.text) == ("step_limit", 3, "Step 2.")
    assert len(reply.turns[-1].results) == 1


@processes
def test_a_call_that_is_no_json_ends_it():
    """OpenClaw ends a run there; no call of that turn is carried out."""
    reply = play(["", [READ]], ["Now.", [WRITE, ["mcp__openclaw__read", '{"path": ']]], ["Done.", []])

    assert (reply.ended_by, reply.text, len(reply.turns)) == ("malformed_call", "Now.", 2)
    assert reply.tool_calls[-1] == ToolCall(name="read", arguments='{"path": ', id="toolu_21")
    assert reply.turns[-1].results == ()
    assert tuple(answered_calls(reply).values()) == reply.turns[0].calls


HASTY = """
import runpy
from pytest_openclaw.util import bounded
bounded.PATTERN_TIMEOUT_S = 0.05
runpy.run_module("pytest_openclaw.providers.mcp_tools", run_name="__main__")
"""


@processes
def test_a_world_that_cannot_be_played_is_our_own_fault(monkeypatch):
    """A pattern of the suite that is not decided in time says nothing about the model."""
    monkeypatch.setattr("pytest_openclaw.providers.claude.command_line._SERVER", ("-c", HASTY))
    world = World(commands=(Command(pattern="(?:x|xx)+y"),))
    fault = play(["Now.", [["mcp__openclaw__exec", json.dumps({"command": "x" * 200})]]], world=world)

    assert (fault.failure_type, fault.status, fault.raw) == ("harness_error", "error", "Now.")
    assert fault.message.startswith(
        'claude_code_cli: the server of the tools: the pattern "(?:x|xx)+y" cannot be decided'
    )


# --- lines alone ----------------------------------------------------------------------------------

REQUESTING = {"type": "system", "subtype": "status", "status": "requesting"}


def message(text, *calls, usage=None):
    """The lines of one message: a text, and calls by id."""
    counts = {"input_tokens": 10} if usage is None else usage
    yield event("message_start", message={"id": f"m{text}", "model": "m1", "usage": counts})
    yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
    for index, call_id in enumerate(calls, 1):
        block = {"type": "tool_use", "id": call_id, "name": "mcp__openclaw__read", "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        yield event("content_block_stop", index=index)
    reason = {"stop_reason": "tool_use" if calls else "end_turn"}
    yield event("message_delta", delta=reason, usage={"output_tokens": 2} if usage is None else usage)
    yield event("message_stop")


def answered(call_id, content="r"):
    """The line of one result."""
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def read(*lines):
    """Read the lines with a clock that advances by one second at each reading."""
    ticks = count()

    def begin():
        return Answer(monotonic=lambda: float(next(ticks)), wall_ms=lambda moment: int(moment * 1000))

    stream = Stream(begin, offered={"mcp__openclaw__read": "read"}, is_exchange=True)
    for line in [{"type": "system", "subtype": "init", "tools": ["mcp__openclaw__read"]}, *lines]:
        stream.receive_line(json.dumps(line).encode())
    return stream


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "unannounced"])
def test_a_turn_is_timed_from_its_own_request(announced):
    """A turn's clock starts at the CLI's request; our server's time belongs only to the exchange."""
    again = [REQUESTING] if announced else []
    stream = read(REQUESTING, *message("a", "t1"), answered("t1"), *again, *message("b"), result())
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
        pytest.param(None, "", id="nothing"),
        pytest.param("\ud800", "\ufffd", id="lone-surrogate"),
    ],
)
def test_a_result_is_what_the_model_receives(content, text):
    """Results come as text or as blocks."""
    stream = read(*message("a", "t1"), answered("t1", content), REQUESTING, *message("b"), result())

    assert stream.reply().turns[0].results == (text,)


def test_of_a_turn_with_a_broken_call_no_result_counts():
    """The CLI may carry out a call before the message is complete; OpenClaw would not."""
    *lines, delta, stop = message("a", "t1", "t2")
    broken = event("content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": '{"pa'})
    reply = read(*lines, broken, answered("t1"), delta, stop, answered("t2"), result()).reply()

    assert (reply.ended_by, [call.arguments for call in reply.tool_calls]) == (
        "malformed_call",
        ["{}", '{"pa'],
    )
    assert reply.turns[0].results == ()


def test_what_the_cli_asks_after_an_answer_is_no_turn():
    """An answer without a call ends the exchange, whatever the CLI does by itself afterwards."""
    stream = read(
        *message("a", "t1"), answered("t1"), REQUESTING, *message("b"), REQUESTING, *message("c"), result()
    )

    assert stream.over
    assert [turn.text for turn in stream.reply().turns] == ["a", "b"]


# --- several messages of the user ---------------------------------------------------------------


@processes
def test_messages_of_the_user_are_sent_after_answers():
    """The CLI stays, and so does the world; each message is sent when the answer before it has come."""
    reply = play(
        ["", [WRITE]],
        ["Done.", []],
        ["", [["mcp__openclaw__read", '{"path": "done.md"}']]],
        ["Milk.", []],
        ["SAID", []],
        prompt="/go",
        turns=("What is in it?", "Bye."),
    )

    assert [(turn.user, turn.text) for turn in reply.turns] == [
        (None, ""),
        (None, "Done."),
        ("What is in it?", ""),
        (None, "Milk."),
        ("Bye.", "\n/go | What is in it? | Bye."),
    ]
    assert (reply.turns[2].results, reply.ended_by) == (("milk",), "answer")
    assert (reply.input_tokens, reply.output_tokens) == (90, 15)
    assert [call.name for call in reply.tool_calls] == ["write", "read"]
    assert reply.timing.ttft_ms == reply.turns[0].timing.ttft_ms


@processes
def test_the_steps_are_those_of_each_message():
    """With each message the CLI has as many turns again; where they are used up, it ends."""
    world = structs.replace(WORLD, steps=2)
    first, second = ["", [READ]], ["Milk.", []]

    enough = play(first, second, first, second, world=world, turns=("Again.",))
    used_up = play(first, second, first, ["", [WRITE]], world=world, turns=("Again.", "Bye."))

    assert (enough.ended_by, len(enough.turns)) == ("answer", 4)
    assert (used_up.ended_by, [turn.user for turn in used_up.turns]) == (
        "step_limit",
        [None, None, "Again.", None],
    )


@processes
def test_a_cli_that_goes_on_by_itself_is_no_failure_of_the_model():
    """After an answer that was cut off it sends a request of its own, and no message of the user."""
    fault = ask(environ_of("continued"), turns=("And now?",))

    assert isinstance(fault, Fault)
    assert (fault.failure_type, fault.raw) == ("cli_error", "Hello")
    assert "next message was not sent" in fault.message
