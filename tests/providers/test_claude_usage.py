"""The charged tokens of the Claude CLI's requests, read from its lines."""

from __future__ import annotations

import pytest

from pytest_openclaw.providers.claude.stream_json import Stream, read_line
from pytest_openclaw.providers.claude.usage import charged
from pytest_openclaw.providers.exchange import Exchange
from pytest_openclaw.types.replies import Usage

RECEIVED = Usage(
    model="claude-opus-4-5-20251101",
    input_tokens=100,
    output_tokens=10,
    cached_tokens=20,
    cache_write_tokens=30,
)


def counts(n_input, n_output, n_cached=0, n_written=0):
    """The counts of a model on the CLI's last line, which lists cached input separately."""
    return {
        "inputTokens": n_input,
        "outputTokens": n_output,
        "cacheReadInputTokens": n_cached,
        "cacheCreationInputTokens": n_written,
        "costUSD": 99.0,
    }


@pytest.mark.parametrize(
    ("models", "more"),
    [
        pytest.param(None, [], id="no-last-line"),
        pytest.param({}, [], id="empty"),
        pytest.param({"claude-opus-4-5-20251101": counts(50, 10, 20, 30)}, [], id="the-same"),
        pytest.param({"claude-opus-4-5": counts(50, 10, 20, 30)}, [], id="by-the-name-that-was-asked"),
        pytest.param({"claude-opus-4-5-20251101[1m]": counts(50, 10, 20, 30)}, [], id="by-a-name-of-its-own"),
        pytest.param(
            {"claude-opus-4-5-20251101": counts(150, 40, 20, 30)},
            [Usage(model="claude-opus-4-5-20251101", input_tokens=100, output_tokens=30, cached_tokens=0, cache_write_tokens=0)],
            id="it-asked-again-by-itself",
        ),
        pytest.param(
            {"claude-opus-4-5-20251101": counts(50, 10, 20, 30), "claude-haiku-4-5": counts(7, 3)},
            [Usage(model="claude-haiku-4-5", input_tokens=7, output_tokens=3, cached_tokens=0, cache_write_tokens=0)],
            id="a-smaller-model-beside",
        ),
        pytest.param({"claude-opus-4-5-20251101": "none"}, [], id="no-counts"),
    ],
)  # fmt: skip
def test_the_last_line_adds_what_is_missing(models, more):
    """Each message received counts, and the rest of each model's total once; the CLI's price never."""
    result = None if models is None else {"modelUsage": models, "total_cost_usd": 99.0}

    assert list(charged((RECEIVED,), result)) == [RECEIVED, *more]


def test_cached_input_is_counted_separately():
    """Input includes all tokens read; tokens written into a cache, for minutes or an hour, are separate."""
    stream = Stream(Exchange())
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 10,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 6},
    }
    started = {"type": "message_start", "message": {"model": "claude-opus-4-5", "usage": usage}}
    ended = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}}
    for event in (started, ended):
        read_line(stream, {"type": "stream_event", "event": event})

    assert stream.reply().usage == (
        Usage(
            model="claude-opus-4-5",
            input_tokens=18,
            output_tokens=7,
            cached_tokens=5,
            cache_write_tokens=10,
            cache_write_1h_tokens=6,
        ),
    )
