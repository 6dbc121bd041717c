"""When a model repeats itself, and when OpenClaw gives up."""

from functools import partial

import pytest

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.openclaw.recovery import MOST_UNKNOWN, at_last_step, call_key, is_given_up, is_looping
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.tool_calls import ToolCall

TOOLS = load_catalogue().surface("direct")
A, B, C = ("a", "1"), ("b", "2"), ("c", "3")


def turn(*steps):
    calls = tuple(ToolCall(name=name, arguments="{}") for name, _ in steps)
    return Turn(calls=calls, results=tuple(result for _, result in steps))


def rounds(n):
    return [step for k in range(n) for step in (("a", str(k)), ("b", str(k)))]


@pytest.mark.parametrize(
    ("steps", "loops"),
    [
        pytest.param([], False, id="nothing"),
        pytest.param([A, A, A], False, id="three-times"),
        pytest.param([A, A, A, A], True, id="four-times"),
        pytest.param([A, B, A, C, A, B, A], True, id="four-times-with-others-between"),
        pytest.param([A, A, A, A, B], False, id="found-out"),
        pytest.param([("a", str(n)) for n in range(9)], False, id="other-results"),
        pytest.param([("message", str(n)) for n in range(4)], True, id="the-same-message"),
        pytest.param(rounds(4), True, id="in-turn"),
        pytest.param(rounds(3), False, id="three-rounds"),
        pytest.param([("c", "0"), *rounds(4)], True, id="in-turn-later"),
        pytest.param([*rounds(2), ("c", "0"), *rounds(2)], False, id="in-turn-and-another"),
    ],
)
def test_loops_are_recognized(steps, loops):
    """Four times the same call and result, or the same message, or two alternating calls for four rounds."""
    assert is_looping([turn(step) for step in steps]) is loops
    assert at_last_step([turn(step) for step in steps]) == ("loop" if loops else "step_limit")


def test_equal_calls_of_one_turn_are_not_a_loop():
    """Neither are unanswered ones."""
    assert not is_looping([turn(A, A, A, A, A)])
    assert not is_looping([turn(A), turn(A), turn(A), Turn(calls=turn(A).calls)])
    assert is_looping([turn(A, B)] * 4)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param('{"a": 1, "b": 2}', '{"b":2,"a":1}', True, id="order"),
        pytest.param("", "{}", True, id="nothing"),
        pytest.param('{"a": 1}', '{"a": 2}', False, id="values"),
        pytest.param("{", "{ ", False, id="broken"),
    ],
)
def test_when_calls_are_the_same(one, other, same):
    """Their meaning counts, not their notation."""
    left, right = (call_key(ToolCall(name="read", arguments=text)) for text in (one, other))

    assert (left == right) is same


TEN = [["open"]] * MOST_UNKNOWN


@pytest.mark.parametrize(
    ("names", "given_up"),
    [
        pytest.param([*TEN, ["open"]], True, id="eleventh"),
        pytest.param(TEN, False, id="tenth"),
        pytest.param([*TEN, [" Open", "open"]], True, id="however-it-is-written"),
        pytest.param([["read"], *TEN, ["open"]], True, id="after-another"),
        pytest.param([*TEN, ["view"]], False, id="another-unknown-one"),
        pytest.param([*TEN, ["open", "view"]], False, id="two-unknown-ones"),
        pytest.param([*TEN, ["open", "read"]], False, id="next-to-a-known-one"),
        pytest.param([*TEN, [], ["open"]], False, id="words-between"),
        pytest.param([[" "]] * 11, False, id="blank"),
    ],
)
def test_when_openclaw_gives_up(names, given_up):
    """At the eleventh turn in a row that calls one unknown tool and nothing else."""
    calls = [[ToolCall(name=name, arguments="{}") for name in made] for made in names]

    assert is_given_up(calls, partial(dispatch, tools=TOOLS)) is given_up


def test_calls_where_no_tool_is_offered_are_not_counted():
    """OpenClaw answers each of them, to the last step."""
    one = ToolCall(name="open", arguments="{}", unoffered=True)

    assert not is_given_up([[one]] * (MOST_UNKNOWN + 1), partial(dispatch, tools=TOOLS))
