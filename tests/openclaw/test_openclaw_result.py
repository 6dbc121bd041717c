"""The JSON object that `openclaw agent --json` prints is found and parsed."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.openclaw.call import find_envelope, read_envelope
from pytest_openclaw.providers.openclaw_agent import RelayedRequest, reply_of
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import World

# As OpenClaw 2026.9.6 printed it, with a scripted model server, without the parts that are not read.
ANSWER = {
    "payloads": [{"text": "Done.", "mediaUrl": None}],
    "meta": {
        "agentMeta": {"model": "fake", "provider": "local"},
        "aborted": False,
        "finalAssistantVisibleText": "Done.",
        "stopReason": "stop",
    },
}
PRINTED = json.dumps(ANSWER, indent=2)


def read(envelope):
    asked = Request(model="local/fake", prompt="Hi.", timeout_s=60)
    return read_envelope(envelope, asked, name="openclaw_agent")


def _failed(kind, message, **meta):
    return {"payloads": [], "meta": {"error": {"message": message, "kind": kind}, **meta}}


@pytest.mark.parametrize(
    "stdout",
    [
        pytest.param(PRINTED, id="clean"),
        pytest.param(f"[tools] read failed: no {{such}} file\n{PRINTED}", id="lines-before"),
        pytest.param(f"{PRINTED}\n(node:7) Warning: {{x}}\n", id="lines-behind"),
        pytest.param(f'{{"ok": true, "status"\n{PRINTED}', id="a-broken-one-before"),
        pytest.param(json.dumps(ANSWER), id="on-one-line"),
    ],
)
def test_the_object_is_found_among_other_lines(stdout):
    """The first complete object of the command's form is taken, whatever else was printed."""
    assert find_envelope(stdout) == ANSWER


def test_many_beginnings_of_an_object_take_no_time():
    """A command that prints them does not stop the requests to other servers."""
    began = time.process_time()

    assert find_envelope('{"ok":[\n' * 100_000) is None

    assert time.process_time() - began < 5


@given(text=st.text())
def test_a_quoted_object_in_an_answer_is_part_of_it(text):
    """An answer with an object of the same form is part of the enclosing object."""
    real = {**ANSWER, "payloads": [{"text": text + PRINTED}]}

    assert find_envelope(json.dumps(real, indent=2)) == real


def test_a_success_is_parsed():
    """Answer and model are read."""
    assert read(ANSWER) == Reply(text="Done.", raw="Done.", effective_model="fake")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        pytest.param("incomplete_turn", "Whatever.", id="by-its-kind"),
        pytest.param("fallback_exhausted", "Agent couldn't generate a response.", id="no-answer"),
        pytest.param("x", "Provider returned an incomplete or malformed tool call", id="broken-calls"),
    ],
)
def test_a_model_without_an_answer_is_not_a_fault(kind, message):
    """OpenClaw has already retried; the result is an empty answer of the model."""
    result = read(_failed(kind, message))

    assert result.text == ""


@pytest.mark.parametrize(
    ("envelope", "failure_type"),
    [
        # Errors of the server are not among them: the relay has received them.
        pytest.param(_failed("context_overflow", "400 request"), "context_overflow", id="too-long"),
        pytest.param(_failed("exception", "Config invalid"), "cli_error", id="an-exception"),
        pytest.param(_failed("x", "Timed out", stopReason="timeout"), "timeout", id="timeout"),
        pytest.param({"ok": False, "error": {"message": "No"}}, "cli_error", id="of-the-command"),
        pytest.param({"meta": {"aborted": True}}, "cli_error", id="aborted"),
        pytest.param({"payloads": [{"text": "No.", "isError": True}]}, "cli_error", id="without-a-reason"),
    ],
)
def test_an_error_has_its_failure_type(envelope, failure_type):
    """One of the agent, a timeout, one of the command, and an end without an error."""
    fault = read(envelope)

    assert (fault.failure_type, fault.status) == (failure_type, "error")


def test_calls_without_offered_tools_are_marked():
    """OpenClaw answers them like calls of an unknown tool, and makes no call of a text there."""
    steps = []
    for text, is_call, offers, results in (
        ("", True, True, ("one",)),
        ("", False, True, ()),
        ("", True, False, ("Tool read not found",)),
        ('[read]\n{"path": "a.txt"}\n[/read]', False, False, ()),
        ("Done.", False, False, None),
    ):
        exchange = Answer(streaming=True)
        exchange.receive_text(text)
        if is_call:
            exchange.receive_tool_call(ToolCall(name="read", arguments='{"path": "a.txt"}'))
        exchange.receive_end("stop")
        steps.append(RelayedRequest(exchange, offers, results))
    request = Request(model="m", prompt="p", tools=load_catalogue().surface("direct"), world=World())

    reply = reply_of(steps, None, request)

    calls = [[(call.name, call.unoffered) for call in turn.calls] for turn in reply.turns]
    assert calls == [[("read", False)], [], [("read", True)], [], []]
    assert [call.unoffered for call in reply.tool_calls] == [False, True]
    assert reply.turns[2].results == ("Tool read not found",)
