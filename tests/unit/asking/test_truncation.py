"""Detecting a prompt that its server has truncated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.asking.sending import LEAST_WORDS, cut_prompt
from pytest_openclaw.values.replies import Reply, Timing, Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall

TIMING = Timing(started_at_ms=5, ended_at_ms=7, e2e_ms=2.0)


def request(words: int, **more: Any) -> Request:
    """A request with this many words in its prompt."""
    return Request(**{"model": "qwen3:8b", "prompt": "word " * words, **more})


def reply(**counts: Any) -> Reply:
    """A reply with these counts."""
    return Reply(text="Paris.", raw="<think>hm</think>Paris.", timing=TIMING, **counts)


def test_a_cut_prompt_is_reported_with_both_figures() -> None:
    """A reply to a truncated prompt does not count; its text and times are kept."""
    fault = cut_prompt("lab", request(3000), reply(input_tokens=2048))

    assert fault is not None
    assert fault.message == (
        "lab: the prompt was cut to fit qwen3:8b's context: 3000 words were sent, and the server counted "
        "2048 prompt tokens. Raise the server's context (num_ctx, in Ollama)."
    )
    assert (fault.failure_type, fault.status, fault.scope) == ("context_overflow", "error", "cell")
    assert (fault.retryable, fault.sent) == (False, True)
    assert (fault.raw, fault.timing) == ("<think>hm</think>Paris.", TIMING)


ANSWERED = Turn(calls=(ToolCall(name="read"),), results=("word " * 300,))


@pytest.mark.parametrize(
    ("asked", "counts", "is_cut"),
    [
        pytest.param(request(300), {"input_tokens": 299}, True, id="fewer"),
        pytest.param(request(300), {"input_tokens": 300}, False, id="as-many"),
        pytest.param(request(300), {"input_tokens": 4000}, False, id="more"),
        pytest.param(request(300), {"input_tokens": None}, False, id="not-counted"),
        pytest.param(request(300), {"input_tokens": 0}, False, id="counted-as-none"),
        pytest.param(request(LEAST_WORDS), {"input_tokens": 100}, True, id="just-long-enough"),
        pytest.param(request(LEAST_WORDS - 1), {"input_tokens": 100}, False, id="too-short-to-be-cut"),
        pytest.param(
            request(300), {"input_tokens": 44, "cached_tokens": 256}, False, id="the-rest-from-a-cache"
        ),
        pytest.param(
            request(300), {"input_tokens": 100, "cached_tokens": 44}, True, id="cut-and-from-a-cache"
        ),
        pytest.param(
            request(12_000),
            {"input_tokens": 8192, "cached_tokens": 8000},
            True,
            id="cut-behind-a-cached-start",
        ),
        pytest.param(request(10, system="word " * 300), {"input_tokens": 256}, True, id="of-its-system"),
        pytest.param(request(10, history=(ANSWERED,)), {"input_tokens": 256}, True, id="of-its-results"),
    ],
)
def test_what_counts_as_cut(asked: Request, counts: dict[str, int | None], is_cut: bool) -> None:
    """Fewer tokens than words were counted, for a prompt that is long enough to decide."""
    assert (cut_prompt("lab", asked, reply(**counts)) is not None) == is_cut


@given(
    words=st.integers(0, 2000), extra=st.integers(0, 2000), cached=st.one_of(st.none(), st.integers(0, 2000))
)
def test_a_server_that_reads_everything_is_never_accused(words: int, extra: int, cached: int | None) -> None:
    """Every word has at least one token."""
    assert cut_prompt("lab", request(words), reply(input_tokens=words + extra, cached_tokens=cached)) is None
