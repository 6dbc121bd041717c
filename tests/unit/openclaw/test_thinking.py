"""Thinking at the start of a reply is not its answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.openclaw.thinking import split_thinking, strip_thinking, without_thinking

WORDS = st.text(alphabet=st.characters(exclude_characters="<`"))
TAGS = ("think", "thinking", "thought", "antthinking", "mm:think", "antml:thinking")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("OK", "OK", id="none"),
        pytest.param("  OK\n", "  OK\n", id="blanks-of-the-answer-stay"),
        pytest.param("<think>\nhm\n\nhm\n</think>\n\nOK\n", "OK\n", id="closed-over-lines"),
        pytest.param(" \t\r\n<think>hm</think> OK", "OK", id="blanks-before"),
        pytest.param("<think></think>\n\nOK", "OK", id="closed-empty"),
        pytest.param("<think>a</think><think>b</think>\n<think>c</think>OK", "OK", id="several"),
        pytest.param("<THINK>hm</Think>OK", "OK", id="any-case"),
        pytest.param("<think>hm</think>", "", id="nothing-after"),
        pytest.param("<think>a <think> b</think>OK", "OK", id="opened-twice"),
        pytest.param("<think>a</think>\n</think>\nOK", "OK", id="closed-twice"),
        pytest.param("<think>say `</think>` or so</think>OK", "OK", id="tag-in-backticks-inside"),
        pytest.param("<think>try `ls`</think>`du`", "`du`", id="code-on-both-sides"),
        pytest.param("hm, hm\n</think>\n\nOK", "OK", id="orphan"),
        pytest.param("</think>OK", "OK", id="orphan-first"),
        pytest.param("hm</think>", "", id="orphan-last"),
        pytest.param("<think>hm, hm. OK", "<think>hm, hm. OK", id="never-closed"),
        pytest.param("<think>hm</thinking>OK", "<think>hm</thinking>OK", id="closed-by-another"),
        pytest.param("OK <think>hm</think>", "OK <think>hm</think>", id="later"),
        pytest.param("<think>a</think>Use </think> so", "Use </think> so", id="tag-in-the-answer"),
        pytest.param("It ends with `</think>`.", "It ends with `</think>`.", id="orphan-in-backticks"),
        pytest.param("`</think>`", "`</think>`", id="only-an-orphan-in-backticks"),
        pytest.param("<reasoning>a</reasoning>OK", "<reasoning>a</reasoning>OK", id="reasoning-is-an-answer"),
        pytest.param("<thİnk>a</thınK>b", "<thİnk>a</thınK>b", id="foreign-letters"),
        pytest.param("<b>a</b>", "<b>a</b>", id="other-tag"),
        pytest.param("\xa0<think>a</think>b", "\xa0<think>a</think>b", id="no-break-space-is-text"),
    ],
)
def test_strip_thinking(text, answer):
    """The answer follows the closed thinking at the start; text that is not surely thinking stays."""
    assert strip_thinking(text) == answer


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("a <think>b</think> c", "a \n c", id="in-the-answer"),
        pytest.param("a <think>b</think> c <thought>d</thought>", "a \n c \n", id="two"),
        pytest.param("<think>b", "", id="never-closed"),
        pytest.param("<think>a</think> <think>b", "", id="second-never-closed"),
        pytest.param("a <think> b <think>c", "a <think> b <think>c", id="later-never-closed"),
        pytest.param("a <thought> b <think>c</think>", "a <thought> b \n", id="one-of-two-closed"),
        pytest.param("a", "a", id="none"),
    ],
)
def test_without_thinking(text, left):
    """For tools, thinking is removed anywhere, and a reply that never stopped thinking has no answer."""
    assert without_thinking(text) == left


@given(thought=WORDS, answer=WORDS, tag=st.sampled_from(TAGS))
def test_a_thought_leaves_no_trace(thought, answer, tag):
    """Whatever the thinking was, the answer is the text after it, without the spaces between."""
    assert strip_thinking(f"<{tag}>{thought}</{tag}>{answer}") == answer.lstrip(" \t\r\n")


@pytest.mark.parametrize(
    ("raw", "thinking", "answer"),
    [
        pytest.param("yes", "", "yes", id="no-thinking"),
        pytest.param("<think>\nhm\n</think>\n\nyes", "hm", "yes", id="a-channel-of-its-own"),
        pytest.param("<think>hm</think> yes", "<think>hm</think> ", "yes", id="in-the-text"),
        pytest.param("<think>\nhm", "", "<think>\nhm", id="never-closed"),
    ],
)
def test_a_row_has_its_thinking_before_the_answer(raw, thinking, answer):
    """The validators separate them by the same rule."""
    assert split_thinking(raw) == (thinking, answer)
