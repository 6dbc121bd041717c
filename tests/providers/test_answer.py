"""What is received during one attempt: tokens and their times, tool calls from fragments, the reply."""

from __future__ import annotations

import pytest

from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.values.replies import Timing


class Clock:
    """Seconds that advance only when a test says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        """Return the time."""
        return self.now


@pytest.fixture
def clock():
    """A clock that a test moves."""
    return Clock()


@pytest.fixture
def exchange(clock):
    """An exchange that started at 100 s by the clock, at 5 s of the day."""
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
        pytest.param(lambda e: e.receive_tool_call(name="a"), 2000, 2000, id="tool-call"),
        pytest.param(lambda e: e.receive_text("a", "reasoning"), 2000, None, id="reasoning"),
        pytest.param(lambda e: e.receive_text(""), None, None, id="empty-text"),
        pytest.param(lambda e: e.receive_tool_call(key=0), None, None, id="empty-tool-call"),
        pytest.param(lambda e: e.receive_model("m"), None, None, id="model"),
        pytest.param(lambda e: e.receive_usage(input_tokens=1), None, None, id="usage"),
    ],
)
def test_what_is_a_first_token(exchange, clock, receive, ttft_ms, ttfo_ms):
    """Only generated text, on any channel, is a token; empty deltas and counts are not."""
    clock.now = 102
    receive(exchange)
    clock.now = 103

    timing = exchange.timing()

    assert (timing.ttft_ms, timing.ttfo_ms, timing.e2e_ms) == (ttft_ms, ttfo_ms, 3000)


@pytest.mark.parametrize(
    ("reasoning", "text", "refusal", "raw"),
    [
        pytest.param("", "yes", "", "yes", id="text-alone"),
        pytest.param("hm", "yes", "", "<think>\nhm\n</think>\n\nyes", id="reasoning"),
        pytest.param("hm", "", "", "<think>\nhm\n</think>\n\n", id="reasoning-alone"),
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
