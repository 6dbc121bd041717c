"""The conversation before a prompt as OpenClaw's session has to contain it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_openclaw.providers.openclaw.disk import Disk
from pytest_openclaw.providers.openclaw.past import past_runs, why_not_sent
from pytest_openclaw.types.replies import Turn
from pytest_openclaw.types.tool_calls import ToolCall

READ = Turn(
    text="I look.", calls=(ToolCall(name="read", arguments='{"path": "/workspace/a"}'),), results=("A\n",)
)
PAST = (Turn(user="Read a."), READ, Turn(text="A."), Turn(user="Read it again."), READ)
FIRST = [("user", "[10:00] Read a."), ("assistant", "I look."), ("tool", "A"), ("assistant", "A.")]
SECOND = [("user", "Read it again."), ("assistant", "I look."), ("tool", "A\n")]


def _runs():
    return past_runs(PAST, Disk(Path("/real/workspace")))


def test_each_message_of_the_user_begins_a_run():
    """Calls have the real path, and ids of their own."""
    first, second = _runs()

    assert (first.user, len(first.answers), first.ends_in_text) == ("Read a.", 2, True)
    assert (second.user, len(second.answers), second.ends_in_text) == ("Read it again.", 1, False)
    calls = [turn.calls[0] for turn in (first.answers[0], second.answers[0])]
    assert [call.arguments for call in calls] == ['{"path": "/real/workspace/a"}'] * 2
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize(
    ("results", "words"),
    [
        pytest.param((), "sends 0 results of 1 calls", id="none"),
        pytest.param(("A", "B"), "sends 2 results of 1 calls", id="two"),
        pytest.param(("B",), "state another result of read", id="another"),
    ],
)
def test_other_results_end_a_run(results, words):
    """Results have to be the stated ones, except for white space at their ends."""
    run, _ = _runs()
    run.next(())

    with pytest.raises(ValueError, match=words):
        run.next(results)
    assert run.next(("A",)) is run.answers[1]


def test_a_request_after_the_last_answer_ends_a_run():
    """OpenClaw may repeat a request, or find a call in a text."""
    run, _ = _runs()
    run.next(())
    run.next(("A",))

    with pytest.raises(ValueError, match="does not take the last answer"):
        run.next(())


@pytest.mark.parametrize(
    ("sent", "lacks"),
    [
        pytest.param([*FIRST, *SECOND, ("user", "Go on.")], "", id="whole"),
        pytest.param([("system", "s"), *FIRST, ("user", "more"), *SECOND], "", id="and-more"),
        pytest.param([*FIRST[:-1], *SECOND], "assistant: 'A.'", id="no-answer"),
        pytest.param([*SECOND, *FIRST], "user: 'Read it again.'", id="another-order"),
        pytest.param([*FIRST, ("user", "Read it again."), *SECOND[1:2]], "tool: 'A'", id="no-result"),
        pytest.param(
            [*FIRST, ("assistant", "Read it again."), *SECOND[1:]], "user: 'Read", id="another-role"
        ),
        pytest.param([], "user: 'Read a.'", id="nothing"),
    ],
)
def test_a_request_that_lacks_something_is_noticed(sent, lacks):
    """Each message and result must be there, in order and in its role; OpenClaw may add words."""
    why = why_not_sent(_runs(), sent)

    assert why.startswith(f"OpenClaw's session lacks this of its messages: {lacks}") if lacks else why == ""


def test_a_blank_text_may_be_left_out():
    """In Responses a call without a text has no message of the assistant."""
    runs = past_runs((PAST[0], replace(READ, text="")), Disk(Path("/real/workspace")))

    assert why_not_sent(runs, [("user", "Read a."), ("", ""), ("tool", "A")]) == ""
    assert why_not_sent(runs, [("user", "Read a."), ("", "")]) != ""


def test_joined_messages_of_the_user_are_there():
    """OpenClaw sends messages without an answer between them as one."""
    runs = past_runs((Turn(user="One."), Turn(user="Two."), Turn(text="A.")), Disk(Path("/real/workspace")))

    assert why_not_sent(runs, [("user", "Queued: One.\n\nTwo."), ("assistant", "A.")]) == ""
    assert why_not_sent(runs, [("user", "Queued: Two.\n\nOne."), ("assistant", "A.")]) != ""
