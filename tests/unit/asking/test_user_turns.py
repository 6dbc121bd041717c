"""Several messages of the user: each begins a run, and the world's state and the conversation go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from msgspec import structs

from pytest_openclaw import CallFailed
from pytest_openclaw.asking import attempt, sending
from pytest_openclaw.judging import judge
from pytest_openclaw.judging.world import WorldReached
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.values import faults
from pytest_openclaw.values.replies import CallResult, Fault, Reply, Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import Answer, World
from pytest_openclaw.worlds.playing import final_state
from tests.unit.asking.asking import open_room
from tests.unit.asking.fake_providers import Conversing, cell
from tests.unit.asking.test_exchanges import READ, SILENT, TOOLS, WORLD, WRITE, Script, calls, timing

Hold = Callable[..., CallResult]
READ_B = ("read", {"path": "b.txt"})


class Talker(Script):
    """Plays its steps; it takes conversations."""

    takes_messages: ClassVar[bool] = True


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hold]:
    """Asks a provider one cell, and returns its result."""
    monkeypatch.setattr(sending, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(attempt, "GRACE_S", 0.2)
    with ExitStack() as stack:

        def hold_one(provider: Any, **prompt: Any) -> CallResult:
            room = stack.enter_context(open_room(provider))
            return room.ask(cell(**{"tools": TOOLS, "world": WORLD, **prompt}))

        yield hold_one


def reply_of(ending: CallResult) -> Reply:
    """The reply of an exchange that ended with one."""
    assert isinstance(ending.result, Reply), ending.result
    return ending.result


def test_a_message_follows_the_answer_to_the_one_before(hold: Hold) -> None:
    """The conversation grows; the row's turns say before which of them the user spoke."""
    provider = Talker(calls(WRITE), Reply(text="Done."), calls(READ_B), Reply(text="two"), Reply(text="Bye."))

    reply = reply_of(hold(provider, turns=("What is in b.txt?", "Thanks.")))

    assert (reply.text, reply.ended_by) == ("Bye.", "answer")
    assert [turn.user for turn in reply.turns] == [None, None, "What is in b.txt?", None, "Thanks."]
    assert reply.turns[2].results == ("two",), "the file of the first run is there"
    last = provider.asked[-1]
    assert [turn.user or turn.text or turn.calls[0].name for turn in last.conversation] == [
        "P1",
        "write",
        "Done.",
        "What is in b.txt?",
        "read",
        "two",
        "Thanks.",
    ]
    assert [len(request.history) for request in provider.asked] == [0, 1, 3, 4, 6]


def test_a_conversation_needs_neither_tools_nor_world(hold: Hold) -> None:
    """Each message has one answer."""
    provider = Talker(Reply(text="Hello, Ada."), Reply(text="Ada."))

    reply = reply_of(hold(provider, turns=("What is my name?",), tools=None, world=None))

    assert [(turn.user, turn.text) for turn in reply.turns] == [
        (None, "Hello, Ada."),
        ("What is my name?", "Ada."),
    ]
    assert (reply.text, reply.ended_by, reply.tool_calls) == ("Ada.", "answer", ())


def test_earlier_messages_and_turns_go_together(hold: Hold) -> None:
    """What a suite lets the model have said comes first, and is not among its turns."""
    before = (Turn(user="Hi."), Turn(calls=(ToolCall(name="read", arguments="{}"),), results=("one",)))
    provider = Talker(Reply(text="Yes."), Reply(text="No."))

    reply = reply_of(hold(provider, messages=before, turns=("Sure?",)))

    assert provider.asked[-1].conversation == (
        *before,
        Turn(user="P1"),
        replace(reply.turns[0], user=None),
        Turn(user="Sure?"),
    )
    assert (len(reply.turns), reply.tool_calls) == (2, ())


@pytest.mark.parametrize(
    ("steps", "ended_by", "n_turns"),
    [
        pytest.param([calls(READ)] * 2 + [Reply(text="a")] + [calls(READ)] * 9, "step_limit", 6, id="steps"),
        pytest.param(
            [Reply(text="a"), calls(("read", '{"path": "a.tx'), text="Now")], "malformed_call", 2, id="broken"
        ),
        pytest.param([Reply(text="a")] * 9, "answer", 3, id="answers"),
        pytest.param(
            [SILENT, Reply(text="a"), SILENT, Reply(text="b"), Reply(text="c")], "answer", 5, id="silent"
        ),
        pytest.param([SILENT], "answer", 6, id="always-silent"),
        pytest.param([Reply(text="a", finish_reason="length")] * 3, "answer", 3, id="cut-off"),
    ],
)
def test_steps_and_repetitions_begin_anew(hold: Hold, steps: list[Any], ended_by: str, n_turns: int) -> None:
    """With each message; what ends a run of OpenClaw ends the exchange."""
    world = structs.replace(WORLD, steps=3)

    reply = reply_of(hold(Talker(*steps), world=world, turns=("And?", "Then?")))

    assert (reply.ended_by, len(reply.turns)) == (ended_by, n_turns)


def test_a_loop_is_one_of_a_single_message(hold: Hold) -> None:
    """The same call once after each message is no loop; four times after one of them is."""
    world = structs.replace(WORLD, steps=4)
    once = [calls(READ), Reply(text="one")] * 4
    again = hold(Talker(*once), world=world, turns=("Again.",) * 3)
    circling = hold(Talker(Reply(text="one"), calls(READ)), world=world, turns=("Again.",))

    assert reply_of(again).ended_by == "answer"
    assert reply_of(circling).ended_by == "loop"


def test_tools_are_offered_again_with_the_next_message(hold: Hold) -> None:
    """Only the repetition after an empty answer is without them."""
    provider = Talker(calls(READ), SILENT, Reply(text="one"), Reply(text="Bye."))

    hold(provider, turns=("Thanks.",))

    assert [bool(request.tools) for request in provider.asked] == [True, True, False, True]


def test_figures_cover_all_messages(hold: Hold) -> None:
    """Tokens and times are the sums, the first token is that of the first turn."""
    counts = {"input_tokens": 10, "output_tokens": 5}
    steps = [Reply(text="a", timing=timing(0, 100, ttft), **counts) for ttft in (20, 30, 40)]

    ending = hold(Talker(*steps), turns=("And?", "Then?"))
    reply = reply_of(ending)

    assert (reply.input_tokens, reply.output_tokens, ending.attempts) == (30, 15, 3)
    assert (ending.timing.e2e_ms, ending.timing.ttft_ms) == (300, 20)


def test_a_fault_keeps_what_was_answered(hold: Hold) -> None:
    """The turns before it are those of the row."""
    lost = CallFailed(faults.stream_broken("fake", "reset", raw="I n"))

    ending = hold(Talker(calls(READ), Reply(text="one"), lost), turns=("And b?",))

    assert isinstance(ending.result, Fault)
    assert [turn.text for turn in ending.result.turns] == ["", "one"]
    assert ending.result.raw == "one\n\nI n"


def test_a_provider_without_conversations_is_not_asked(hold: Hold) -> None:
    """The second message would be without the first."""
    ending = hold(Script(Reply(text="a")), turns=("And?",))

    assert isinstance(ending.result, Fault)
    assert (ending.result.failure_type, ending.attempts) == ("not_installed", 0)
    assert "takes_messages = True" in ending.result.message


class Whole(Conversing):
    """Holds exchanges itself."""

    takes_tools: ClassVar[bool] = True
    plays_worlds: ClassVar[bool] = True


def test_a_provider_that_plays_worlds_gets_all_messages_at_once(hold: Hold) -> None:
    """It sends them itself, and has the time of all of their turns."""

    async def answer(request: Request) -> Reply:
        return Reply(text=f"{request.turns} {request.most_turns}", ended_by="answer")

    reply = reply_of(hold(Whole(answer), world=World(steps=3), turns=("And?",)))

    assert reply.text == "('And?',) 6"


def test_only_the_models_words_are_judged(hold: Hold) -> None:
    """What the user says, before and between, is not shown by the model; a later turn of the model is."""
    rule = WorldReached(never_shown=("4417",), forbidden=("exec",))
    past = Turn(text="4417", calls=(ToolCall(name="exec", arguments="{}"),), results=("4417",))
    given: dict[str, Any] = {"messages": (Turn(user="4417"), past), "turns": ("It is 4417.", "And now?")}
    prompt = replace(cell(tools=TOOLS, world=WORLD).prompt, validator=rule, **given)

    kept = reply_of(hold(Talker(Reply(text="Yes.")), **given))
    shown = reply_of(hold(Talker(Reply(text="a"), Reply(text="4417"), Reply(text="c")), **given))
    called = reply_of(
        hold(Talker(Reply(text="a"), calls(("exec", {"command": "ls"})), Reply(text="c")), **given)
    )

    verdicts = [judge.judge(prompt, reply).verdict.passed for reply in (kept, shown, called)]
    assert verdicts == [True, False, False]


def test_the_world_is_replayed_over_all_messages(hold: Hold) -> None:
    """A verdict rests on the state after the last of them."""
    reply = reply_of(
        hold(Talker(calls(WRITE), Reply(text="a"), calls(READ_B), Reply(text="b")), turns=("And?",))
    )

    assert final_state(WORLD, TOOLS, reply.tool_calls).files["b.txt"] == "two"
    prompt = cell(tools=TOOLS, world=WORLD, turns=("And?",)).prompt
    assert judge.prepare(prompt, reply).world == final_state(WORLD, TOOLS, reply.tool_calls)


# --- waiting for a child --------------------------------------------------------------------------

SPAWN, YIELD = ("sessions_spawn", {"task": "Count."}), ("sessions_yield", {})
PARENT = World(
    answers=(
        Answer(
            tool="sessions_spawn",
            matching={"properties": {"task": {"pattern": "^Count"}}},
            result='{"status": "accepted", "runId": "r"}',
        ),
        Answer(tool="sessions_spawn", result='{"status": "forbidden"}'),
    )
)
PARENTS_TOOLS = tuple(load_catalogue().tools[name] for name in ("sessions_spawn", "sessions_yield"))


def yielded(hold: Hold, *steps: Any, world: World = PARENT, **prompt: Any) -> tuple[Reply, Talker]:
    """Play a parent's turns; return the reply, and the provider with its requests."""
    provider = Talker(*steps)
    return reply_of(hold(provider, tools=PARENTS_TOOLS, world=world, **prompt)), provider


def test_a_yield_ends_the_turn(hold: Hold) -> None:
    """As in OpenClaw, the model is not asked again before the child's result, which is the next message."""
    reply, provider = yielded(
        hold, calls(SPAWN), calls(YIELD), Reply(text="19 words."), turns=("The child: 19.",)
    )

    assert (len(provider.asked), reply.ended_by, reply.text) == (3, "answer", "19 words.")
    assert provider.asked[-1].history[-1] == Turn(user="The child: 19.")
    assert [turn.user for turn in reply.turns] == [None, None, "The child: 19."]
    assert [json.loads(text)["status"] for turn in reply.turns for text in turn.results] == [
        "accepted",
        "yielded",
    ]


@pytest.mark.parametrize(
    ("given", "note"),
    [
        pytest.param({"message": "Write the number down."}, "Write the number down.", id="note"),
        pytest.param({"message": "  "}, "Turn yielded.", id="blank"),
        pytest.param({}, "Turn yielded.", id="none"),
    ],
)
def test_a_yielding_model_receives_its_own_note(hold: Hold, given: dict[str, str], note: str) -> None:
    """As in OpenClaw, before the child's result and with the reason why the turn had ended."""
    wait = ("sessions_yield", given)
    _, provider = yielded(
        hold,
        calls(SPAWN),
        calls(wait),
        Reply(text="19."),
        Reply(text="Yes."),
        turns=("The child: 19.", "Sure?"),
    )

    *_, waiting, noted, message = provider.asked[2].history
    assert [call.name for call in waiting.calls] == ["sessions_yield"]
    assert noted.is_users_alone
    assert (noted.user or "").split("\n\n")[0] == note
    assert "sessions_yield" in (noted.user or "").split("\n\n")[1]
    assert message == Turn(user="The child: 19.")
    assert provider.asked[3].history[: len(provider.asked[2].history)] == provider.asked[2].history
    assert provider.asked[3].history[-1] == Turn(user="Sure?")


def test_a_yield_without_a_further_message_ends_the_exchange(hold: Hold) -> None:
    """It is the model's last act; no answer is asked for."""
    reply, provider = yielded(hold, calls(SPAWN), calls(YIELD), Reply(text="never"))

    assert (len(provider.asked), reply.ended_by, reply.text) == (2, "answer", "")


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([], id="no-child"),
        pytest.param([calls(("sessions_spawn", {"task": "Dance."}))], id="a-refused-child"),
        pytest.param([calls(("sessions_spawn", {"task": "Count.", "collect": True}))], id="collected"),
    ],
)
def test_without_a_child_a_yield_is_an_error(hold: Hold, before: list[Any]) -> None:
    """As in OpenClaw; the turn goes on."""
    reply, provider = yielded(hold, *before, calls(YIELD), Reply(text="Oh."))

    assert (len(provider.asked), reply.text) == (len(before) + 2, "Oh.")
    assert json.loads(reply.turns[-2].results[0])["status"] == "error"


def test_a_child_of_an_earlier_message_cannot_be_waited_for(hold: Hold) -> None:
    """As in OpenClaw, neither after its result nor after another message."""
    steps = [calls(SPAWN), Reply(text="Started."), calls(YIELD), Reply(text="Oh.")]
    reply, provider = yielded(hold, *steps, turns=("And?",))

    assert (len(provider.asked), reply.text) == (4, "Oh.")
    assert json.loads(reply.turns[2].results[0])["status"] == "error"


def test_a_scripted_yield_ends_the_turn_if_it_says_so(hold: Hold) -> None:
    """What counts is what the model receives."""
    for status, n_asked in (("yielded", 1), ("already_pending", 2)):
        answer = Answer(tool="sessions_yield", result=json.dumps({"status": status}))
        _, provider = yielded(hold, calls(YIELD), Reply(text="Oh."), world=World(answers=(answer,)))

        assert len(provider.asked) == n_asked
