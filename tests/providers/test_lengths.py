"""Bounds for the tokens of a request, which hold for every tokenizer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.providers.bodies import TEMPLATE_BYTES, fewest_tokens, most_tokens
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool, ToolCall

CALL = ToolCall(name="read", arguments='{"path": "a b c"}')


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param({"prompt": ""}, 0, id="nothing"),
        pytest.param({"prompt": "is\tit\nup  now"}, 4, id="prompt"),
        pytest.param({"prompt": "a b", "system": "c d e"}, 5, id="system"),
        pytest.param({"history": (Turn(calls=(CALL,), results=("c d e",)),)}, 3, id="results"),
        pytest.param({"history": (Turn(text="a b"),)}, 2, id="what-was-said"),
        pytest.param({"messages": (Turn(user="a b"), Turn(text="c"))}, 3, id="messages"),
        pytest.param(
            {"history": (Turn(text="a b", calls=(CALL,), results=("c",)),)}, 1, id="said-beside-a-call"
        ),
        pytest.param({"history": (Turn(text="<think>a b</think>c", reasoning="d e"),)}, 1, id="thinking"),
        pytest.param({"tools": (Tool(name="read", description="a b c"),)}, 0, id="tools"),
    ],
)
def test_fewest_tokens_are_the_words_that_a_model_is_sure_to_see(more: dict[str, Any], words: int) -> None:
    """Text that a template may omit is no evidence of a truncation."""
    assert fewest_tokens(Request(**{"model": "m", "prompt": "", **more})) == words


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"prompt": "x" * 100}, id="prompt"),
        pytest.param({"system": "ü" * 50}, id="system"),
        pytest.param({"tools": (Tool(name="read", description="x" * 100),)}, id="tools"),
        pytest.param({"history": (Turn(text="x" * 100),)}, id="what-was-said"),
        pytest.param({"messages": (Turn(user="x" * 100),)}, id="messages"),
        pytest.param({"history": (Turn(calls=(CALL,), results=("x" * 100,)),)}, id="results"),
        pytest.param({"history": (Turn(calls=(ToolCall(name="ls", arguments="x" * 100),)),)}, id="calls"),
        pytest.param({"prompt": "\ud800" * 100}, id="half-characters"),
    ],
)
def test_most_tokens_count_every_byte(more: dict[str, Any]) -> None:
    """Every byte may be a token, and the template's own words are added."""
    assert most_tokens(Request(**{"model": "m", "prompt": "", **more})) >= TEMPLATE_BYTES + 100


@given(prompt=st.text(), system=st.text(), result=st.text())
def test_the_bounds_are_in_order(prompt: str, system: str, result: str) -> None:
    """No request has more words than bytes."""
    request = Request(
        model="m", prompt=prompt, system=system, history=(Turn(calls=(CALL,), results=(result,)),)
    )

    assert fewest_tokens(request) <= most_tokens(request) - TEMPLATE_BYTES
