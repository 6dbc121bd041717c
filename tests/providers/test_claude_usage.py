"""The charged tokens of the Claude CLI's requests, read from its lines."""

from __future__ import annotations

import pytest

from pytest_openclaw.providers.claude.stream import charged
from pytest_openclaw.values.replies import Usage

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
