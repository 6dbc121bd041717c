"""Several messages of the user: each begins a run, and the world's state and the conversation go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from pytest_openclaw.asking import sending
from pytest_openclaw.judging import judge
from pytest_openclaw.judging.world import WorldReached
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.values.replies import CallResult, Reply, Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import Answer, World
from tests.unit.asking.asking import open_room
from tests.unit.asking.fake_providers import Conversing, cell
from tests.unit.asking.test_exchanges import TOOLS, WORLD, WRITE, Script, calls

Hold = Callable[..., CallResult]
READ_B = ("read", {"path": "b.txt"})


class Talker(Script):
    """Plays its steps; it takes conversations."""

    takes_messages: ClassVar[bool] = True


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hold]:
    """Asks a provider one cell, and returns its result."""
    monkeypatch.setattr(sending, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(sending, "GRACE_S", 0.2)
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
    """As in OpenClaw; the turn continues."""
    reply, provider = yielded(hold, *before, calls(YIELD), Reply(text="Oh."))

    assert (len(provider.asked), reply.text) == (len(before) + 2, "Oh.")
    assert json.loads(reply.turns[-2].results[0])["status"] == "error"


def test_a_scripted_yield_ends_the_turn_if_it_says_so(hold: Hold) -> None:
    """What counts is what the model receives."""
    for status, n_asked in (("yielded", 1), ("already_pending", 2)):
        answer = Answer(tool="sessions_yield", result=json.dumps({"status": status}))
        _, provider = yielded(hold, calls(YIELD), Reply(text="Oh."), world=World(answers=(answer,)))

        assert len(provider.asked) == n_asked
