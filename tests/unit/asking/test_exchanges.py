"""Scripted exchanges: turns until an answer, the last step, a fault; several messages of the user, and yields."""

import asyncio
import json
import threading
from dataclasses import replace

import pytest
from msgspec import structs

from pytest_openclaw.asking import sending
from pytest_openclaw.judging import judge
from pytest_openclaw.judging.world import WorldReached
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.util import bounded
from pytest_openclaw.values.replies import Fault, Reply, Timing, Turn
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import ScriptedAnswer, ScriptedCommand, World
from tests.unit.asking.asking import Fake, cell, open_room

TOOLS = load_catalogue().surface("direct")
WORLD = World(files={"a.txt": "one\n"}, commands=(ScriptedCommand(pattern="(?:x+x+)+y"),))


def calls(*made, **reply):
    return Reply(
        tool_calls=tuple(
            ToolCall(
                name=name,
                arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
                id=f"c{n}",
            )
            for n, (name, arguments) in enumerate(made)
        ),
        finish_reason="tool_calls",
        **reply,
    )


READ = ("read", {"path": "a.txt"})
WRITE = ("write", {"path": "b.txt", "content": "two"})
READ_B = ("read", {"path": "b.txt"})


class Script(Fake):
    takes_tools = True
    takes_messages = True

    def __init__(self, *steps):
        self.left = list(steps)
        super().__init__(self._step)

    async def _step(self, request):
        step = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(step, Exception):
            raise step
        return step


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    monkeypatch.setattr(sending, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(sending, "GRACE_S", 0.2)


def hold(provider, *, timeout_s=300.0, **prompt):
    with open_room(provider, timeout_s=timeout_s) as room:
        return room.ask(cell(**{"tools": TOOLS, "world": WORLD, **prompt}))


def played(provider, **prompt):
    result = hold(provider, **prompt).result
    assert isinstance(result, Reply), result
    return result


def fault_of(ending):
    assert isinstance(ending.result, Fault), ending.result
    return ending.result


def test_an_exchange_continues_until_an_answer():
    """Each turn gets the earlier texts and results; the reply has all of them."""
    provider = Script(
        calls(READ, text="Let me look."), calls(WRITE), Reply(text="Done.", finish_reason="stop")
    )

    reply = played(provider)

    assert (reply.ended_by, reply.text, reply.finish_reason) == ("answer", "Done.", "stop")
    assert [call.name for call in reply.tool_calls] == ["read", "write"]
    assert [turn.results for turn in reply.turns] == [
        ("one\n",),
        ("Successfully wrote 3 bytes to /workspace/b.txt",),
        (),
    ]
    assert reply.raw == "Let me look.\n\nDone."
    first, second, third = provider.asked
    assert first.history == ()
    assert second.history == reply.turns[:1]
    assert third.history == reply.turns[:2]
    assert {request.prompt for request in provider.asked} == {"P1"}


@pytest.mark.parametrize("tokens", [8192, 128_000])
def test_long_results_are_cut_for_the_context_of_the_provider(tokens):
    """A file of 100,000 characters is read in parts that fit."""

    class Sized(Script):
        def context_tokens(self, request):
            return tokens

    provider = Sized(calls(READ), Reply(text="Done."))
    world = World(files={"a.txt": "word " * 20_000})

    result = played(provider, world=world).turns[0].results[0]

    assert 0 <= min(tokens // 2, 32_000) - len(result) < 160


def timing(started, e2e, ttft=None):
    return Timing(
        started_at_ms=started, ended_at_ms=started + round(e2e), e2e_ms=e2e, ttft_ms=ttft, ttfo_ms=ttft
    )


def test_figures_are_those_of_the_whole():
    """Tokens are summed up; the first token and the reading speed are from the first turn."""
    counts = {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 1}
    first = calls(READ, timing=timing(1000, 100, 20), tokens_per_s=50.0, prompt_tokens_per_s=9.0, **counts)
    speeds = {"tokens_per_s": 25.0, "prompt_tokens_per_s": 18.0}
    second = Reply(text="one", timing=timing(9000, 50, 10), reasoning_tokens=2, **speeds, **counts)

    ending = hold(Script(first, second))
    reply = ending.result

    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (20, 10, 2)
    assert reply.reasoning_tokens is None, "one turn did not say"
    assert (reply.tokens_per_s, reply.prompt_tokens_per_s) == (33.3, 9.0)
    assert ending.timing == reply.timing
    assert (ending.timing.started_at_ms, ending.timing.ttft_ms, ending.timing.ttfo_ms) == (1000, 20, 20)
    assert (ending.timing.e2e_ms, ending.timing.ended_at_ms) == (150, 1150)
    assert [turn.timing for turn in reply.turns] == [first.timing, second.timing]


def test_each_turn_has_its_own_time():
    """A turn that takes too long is a timeout, with the earlier turns."""

    class Slow(Script):
        async def _step(self, request):
            if request.history:
                await asyncio.sleep(60)
            return await super()._step(request)

    ending = hold(Slow(calls(READ, text="Let me look.")), timeout_s=0.2)

    assert fault_of(ending).failure_type == "timeout"
    assert fault_of(ending).raw == "Let me look."


def test_a_world_that_cannot_be_played_is_our_fault(monkeypatch):
    """A runaway pattern of the suite fails only this cell, with the reason."""
    monkeypatch.setattr(bounded, "PATTERN_TIMEOUT_S", 0.05)
    provider = Script(calls(("exec", {"command": "x" * 5000}), text="Let me run it."))

    ending = hold(provider)

    assert fault_of(ending).failure_type == "harness_error"
    assert "cannot be decided" in fault_of(ending).message
    assert fault_of(ending).raw == "Let me run it."


def test_an_exchange_is_given_up_when_the_session_ends():
    """Closing ends it between two turns and within one."""
    goes_on = threading.Event()

    class Endless(Script):
        async def _step(self, request):
            await asyncio.sleep(0.01)
            if len(request.history) == 3:
                goes_on.set()
            return calls(("ls", {"limit": len(request.history) + 1}))

    provider = Endless(Reply())
    with open_room(provider) as room:
        room.plan(cell(tools=TOOLS, world=structs.replace(WORLD, steps=1_000_000)))
        assert goes_on.wait(60)
        assert room.asker.close() == []

    assert provider.now == 0


def test_a_message_begins_a_new_conversation():
    """The model receives nothing from before `/new`; the files of its world stay, and so do all turns."""
    provider = Script(
        calls(WRITE), Reply(text="Kept."), Reply(text="Hi."), calls(READ_B), Reply(text="It is two.")
    )

    reply = played(provider, turns=("Hello.", "/new What is in b.txt?"))

    assert reply.text == "It is two."
    assert [turn.user for turn in reply.turns] == [None, None, "Hello.", "/new What is in b.txt?", None]
    assert reply.turns[3].results == ("two",)
    assert [(one.prompt, len(one.history)) for one in provider.asked] == [
        *(("P1", 0), ("P1", 1), ("P1", 3)),
        *(("What is in b.txt?", 0), ("What is in b.txt?", 1)),
    ]


@pytest.mark.parametrize(
    ("turns", "most_turns"),
    [pytest.param((), 3, id="one-message"), pytest.param(("And?",), 6, id="two-messages")],
)
def test_a_provider_may_play_worlds_itself(turns, most_turns):
    """Then it gets one request with the world and all messages, and its reply is the whole exchange."""

    class Plays(Script):
        plays_worlds = True

    provider = Plays(calls(READ, text="done", ended_by="step_limit"))
    world = World(steps=3)

    reply = played(provider, world=world, turns=turns)

    (request,) = provider.asked
    assert (reply.text, reply.ended_by) == ("done", "step_limit")
    assert (request.world, request.turns, request.most_turns) == (world, turns, most_turns)


def test_only_the_models_words_are_judged():
    """What the user says, before and between, is not shown by the model; a later turn of the model is."""
    rule = WorldReached(never_shown=("4417",), forbidden=("exec",))
    past = Turn(text="4417", calls=(ToolCall(name="exec", arguments="{}"),), results=("4417",))
    given = {"messages": (Turn(user="4417"), past), "turns": ("It is 4417.", "And now?")}
    prompt = replace(cell(tools=TOOLS, world=WORLD).prompt, validator=rule, **given)

    kept = played(Script(Reply(text="Yes.")), **given)
    shown = played(Script(Reply(text="a"), Reply(text="4417"), Reply(text="c")), **given)
    called = played(Script(Reply(text="a"), calls(("exec", {"command": "ls"})), Reply(text="c")), **given)

    verdicts = [judge.judge(prompt, reply).verdict.passed for reply in (kept, shown, called)]
    assert verdicts == [True, False, False]


SPAWN, YIELD = ("sessions_spawn", {"task": "Count."}), ("sessions_yield", {})
PARENT = World(
    answers=(
        ScriptedAnswer(
            tool="sessions_spawn",
            matching={"properties": {"task": {"pattern": "^Count"}}},
            result='{"status": "accepted", "runId": "r"}',
        ),
        ScriptedAnswer(tool="sessions_spawn", result='{"status": "forbidden"}'),
    )
)
PARENTS_TOOLS = tuple(load_catalogue().tools[name] for name in ("sessions_spawn", "sessions_yield"))


def yielded(*steps, world=PARENT, **prompt):
    provider = Script(*steps)
    return played(provider, tools=PARENTS_TOOLS, world=world, **prompt), provider


def test_a_yield_ends_the_turn():
    """As in OpenClaw, the model is not asked again before the child's result, which is the next message."""
    reply, provider = yielded(calls(SPAWN), calls(YIELD), Reply(text="19 words."), turns=("The child: 19.",))

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
def test_a_yielding_model_receives_its_own_note(given, note):
    """As in OpenClaw, before the child's result and with the reason why the turn had ended."""
    wait = ("sessions_yield", given)
    _, provider = yielded(
        calls(SPAWN), calls(wait), Reply(text="19."), Reply(text="Yes."), turns=("The child: 19.", "Sure?")
    )

    *_, waiting, noted, message = provider.asked[2].history
    assert [call.name for call in waiting.calls] == ["sessions_yield"]
    assert noted.is_user_only
    assert (noted.user or "").split("\n\n")[0] == note
    assert "sessions_yield" in (noted.user or "").split("\n\n")[1]
    assert message == Turn(user="The child: 19.")
    assert provider.asked[3].history[: len(provider.asked[2].history)] == provider.asked[2].history
    assert provider.asked[3].history[-1] == Turn(user="Sure?")


def scripted(status):
    return World(answers=(ScriptedAnswer(tool="sessions_yield", result=json.dumps({"status": status})),))


@pytest.mark.parametrize(
    ("before", "world", "status"),
    [
        pytest.param([calls(SPAWN)], PARENT, "yielded", id="a-child"),
        pytest.param([], PARENT, "error", id="no-child"),
        pytest.param([calls(("sessions_spawn", {"task": "Dance."}))], PARENT, "error", id="a-refused-child"),
        pytest.param([calls((SPAWN[0], {**SPAWN[1], "collect": True}))], PARENT, "error", id="collected"),
        pytest.param([], scripted("yielded"), "yielded", id="scripted"),
        pytest.param([], scripted("already_pending"), "already_pending", id="scripted-without-an-end"),
    ],
)
def test_a_yield_without_a_further_message(before, world, status):
    """As in OpenClaw it is the model's last act; without a child it is an error, and the turn continues."""
    reply, provider = yielded(*before, calls(YIELD), Reply(text="Oh."), world=world)

    is_last = status == "yielded"
    assert (len(provider.asked), reply.text) == (
        len(before) + (1 if is_last else 2),
        "" if is_last else "Oh.",
    )
    assert reply.ended_by == "answer"
    assert json.loads(reply.turns[len(before)].results[0])["status"] == status
