"""Scripted exchanges: turn by turn until an answer, the last step, a loop, a broken call or a fault."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from pytest_openclaw import CallFailed, Provider
from pytest_openclaw.asking import attempt, exchanges, sending
from pytest_openclaw.judging import judge
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.util import bounded_regex
from pytest_openclaw.values import faults
from pytest_openclaw.values.replies import CallResult, Fault, Reply, Timing
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import Command, World
from pytest_openclaw.worlds.playing import final_state
from tests.unit.asking.asking import Room, open_room
from tests.unit.asking.fake_providers import Handy, cell

TOOLS = load_catalogue().surface("direct")
WORLD = World(files={"a.txt": "one\n"}, commands=(Command(pattern="(?:x+x+)+y"),))
Step = Reply | Exception
Open = Callable[..., Room]


def calls(*made: tuple[str, dict[str, Any] | str], **reply: Any) -> Reply:
    """A turn that calls these tools."""
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


class Script(Handy):
    """Plays its steps one after the other; the last one is repeated."""

    def __init__(self, *steps: Step) -> None:
        self.left = list(steps)
        super().__init__(self._step)

    async def _step(self, request: Request) -> Reply:
        step = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(step, Exception):
            raise step
        return step


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens askers whose waits are short, and closes them."""
    monkeypatch.setattr(sending, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(attempt, "GRACE_S", 0.2)
    with ExitStack() as stack:

        def open_one(provider: Provider, **settings: Any) -> Room:
            return stack.enter_context(open_room(provider, **settings))

        yield open_one


def held(opened: Open, provider: Provider, world: World = WORLD, **settings: Any) -> CallResult:
    """The result of one exchange."""
    return opened(provider, **settings).ask(cell(tools=TOOLS, world=world))


def reply_of(ending: CallResult) -> Reply:
    """The reply of an exchange that ended with one."""
    assert isinstance(ending.result, Reply), ending.result
    return ending.result


def test_an_exchange_goes_on_until_an_answer(opened: Open) -> None:
    """Each turn gets the earlier texts and results; the reply has all of them."""
    provider = Script(
        calls(READ, text="Let me look."), calls(WRITE), Reply(text="Done.", finish_reason="stop")
    )

    reply = reply_of(held(opened, provider))

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
def test_long_results_are_cut_for_the_context_of_the_provider(opened: Open, tokens: int) -> None:
    """A file of 100,000 characters is read in parts that fit."""

    class Sized(Script):
        def context_tokens(self, request: Request) -> int:
            return tokens

    provider = Sized(calls(READ), Reply(text="Done."))
    world = World(files={"a.txt": "word " * 20_000})

    result = reply_of(held(opened, provider, world)).turns[0].results[0]

    assert 0 <= min(tokens // 2, 32_000) - len(result) < 160


def test_an_error_is_returned_and_can_be_fixed(opened: Open) -> None:
    """OpenClaw's refusal is returned as the call's result, and the exchange continues."""
    provider = Script(
        calls(("read", {"file_path": "a.txt"}), ("frobnicate", {}), ("read", {"path": "nope"})),
        calls(READ),
        Reply(text="one"),
    )

    reply = reply_of(held(opened, provider))

    refused, unknown, missing = reply.turns[0].results
    assert refused.startswith(
        'Validation failed for tool "read":\n  - path: must have required properties path'
    )
    assert unknown == "Tool frobnicate not found"
    assert json.loads(missing) == {
        "status": "error",
        "tool": "read",
        "error": "File not found: /workspace/nope.",
    }
    assert reply.turns[1].results == ("one\n",)
    assert reply.ended_by == "answer"


def test_a_written_call_that_openclaw_executes_is_played(opened: Open) -> None:
    """One local dialect counts as a call, so the exchange continues; any other text ends it."""
    written = '[read]\n{"path": "a.txt"}\n[END_TOOL_REQUEST]'
    provider = Script(Reply(text=written), Reply(text='```json\n{"name": "read"}\n```'))

    reply = reply_of(held(opened, provider))

    assert [turn.results for turn in reply.turns] == [("one\n",), ()]
    assert [call.name for call in reply.tool_calls] == ["read"]
    assert (reply.ended_by, reply.text[:7]) == ("answer", "```json")


def test_an_exchange_has_a_last_step(opened: Open) -> None:
    """After this many turns no more requests are sent; the calls of the last turn are still answered."""
    ahead = [calls(("ls", {"limit": n})) for n in range(1, 9)]
    provider = Script(*ahead)

    reply = reply_of(held(opened, provider, structs.replace(WORLD, steps=3)))

    assert reply.ended_by == "step_limit"
    assert len(provider.asked) == len(reply.turns) == 3
    assert len(reply.turns[-1].results) == 1


def test_a_model_may_find_out_of_a_loop(opened: Open) -> None:
    """As in OpenClaw, whose detection of loops is off, an exchange is not ended for it."""
    provider = Script(*[calls(READ)] * 6, Reply(text="Now I see."))

    reply = reply_of(held(opened, provider))

    assert (reply.ended_by, len(reply.turns), reply.text) == ("answer", 7, "Now I see.")


def test_a_loop_at_the_last_step_is_reported(opened: Open) -> None:
    """It is the same call with the same result a fourth time, in any notation."""
    other = ("READ", '{ "path":"a.txt" }')
    provider = Script(calls(READ), calls(other), calls(READ), calls(READ), Reply(text="never"))

    reply = reply_of(held(opened, provider, structs.replace(WORLD, steps=4)))

    assert (reply.ended_by, len(reply.turns), len(reply.turns[-1].results)) == ("loop", 4, 1)


def test_an_unknown_tool_ends_the_run_at_its_eleventh_turn(opened: Open) -> None:
    """OpenClaw gives up there, and no call of that turn is answered."""
    provider = Script(calls(("open", {"path": "a.txt"})))

    reply = reply_of(held(opened, provider, structs.replace(WORLD, steps=20)))

    assert (reply.ended_by, len(reply.turns)) == ("loop", 11)
    assert [len(turn.results) for turn in reply.turns] == [1] * 10 + [0]


BROKEN = ("read", '{"path": "a')


@pytest.mark.parametrize(
    ("before", "beside"),
    [
        pytest.param(calls(WRITE), "", id="after-a-tool-that-leaves-something"),
        pytest.param(calls(("read", {"path": "no.txt"})), "", id="after-an-error"),
        pytest.param(calls(("read", {})), "", id="after-a-refused-call"),
        pytest.param(calls(READ), "I look again.", id="beside-words"),
        pytest.param(calls(("open", {})), "", id="after-an-unknown-tool"),
    ],
)
def test_a_broken_call_ends_the_run(opened: Open, before: Reply, beside: str) -> None:
    """As in OpenClaw, if the turn has text too, a call was carried out, or the last call failed."""
    provider = Script(before, calls(WRITE, BROKEN, text=beside), Reply(text="never"))

    reply = reply_of(held(opened, provider))

    assert (reply.ended_by, len(provider.asked)) == ("malformed_call", 2)
    assert [len(turn.results) for turn in reply.turns] == [1, 0]
    assert [call.name for call in reply.tool_calls][1:] == ["write", "read"]


def test_a_model_is_asked_again_after_a_broken_call(opened: Open) -> None:
    """As in OpenClaw, if no call was carried out yet: the model gets nothing of that turn."""
    provider = Script(
        calls(READ, text="Let me look."), calls(WRITE, BROKEN), calls(WRITE), Reply(text="done")
    )

    reply = reply_of(held(opened, provider))

    assert (reply.ended_by, len(provider.asked)) == ("answer", 4)
    assert [len(turn.results) for turn in reply.turns] == [1, 0, 1, 0]
    assert provider.asked[2].history == provider.asked[1].history


def test_a_model_that_only_breaks_calls_is_not_asked_forever(opened: Open) -> None:
    """As in OpenClaw, the fourth broken call ends the run."""
    provider = Script(calls(BROKEN))

    reply = reply_of(held(opened, provider))

    assert (reply.ended_by, len(provider.asked)) == ("malformed_call", 4)


ERROR = ("read", {"path": "no.txt"})
SILENT = Reply(text="", finish_reason="stop")
CUT = Reply(text="", finish_reason="length")
CUT_CALLS = replace(calls(READ), finish_reason="length")


@pytest.mark.parametrize(
    ("steps", "asked"),
    [
        pytest.param([SILENT], [True, True], id="at-once"),
        pytest.param([Reply(text=" \n")], [True, True], id="blanks"),
        pytest.param([Reply(reasoning="Hm.")], [True, True], id="thinking-alone"),
        pytest.param([Reply(text="<think>Hm.</think>")], [True, True], id="thinking-in-the-text"),
        pytest.param([Reply(text="<tool_call>{}</tool_call>")], [True, True], id="a-call-as-text"),
        pytest.param([calls(READ), SILENT], [True, True, False, False], id="after-a-call"),
        pytest.param(
            [calls(WRITE), SILENT], [True, True, False, False], id="after-a-call-that-leaves-something"
        ),
        pytest.param([calls(ERROR), SILENT], [True, True, False, False], id="after-an-error"),
        pytest.param([CUT], [True], id="cut-off-at-once"),
        pytest.param([SILENT, CUT], [True, True], id="cut-off-when-asked-again"),
        pytest.param([calls(READ), CUT], [True, True, False], id="cut-off"),
        pytest.param([calls(READ), SILENT, CUT], [True, True, False], id="cut-off-at-last"),
        pytest.param([calls(READ), CUT, SILENT], [True, True, False, False], id="cut-off-then-empty"),
        pytest.param([calls(READ), CUT_CALLS, SILENT], [True, True, False, False], id="cut-off-calls"),
        pytest.param([calls(WRITE), CUT_CALLS, CUT], [True, True, False], id="cut-off-twice"),
    ],
)
def test_a_model_without_an_answer_is_asked_again(opened: Open, steps: list[Step], asked: list[bool]) -> None:
    """As in OpenClaw: after a call it is asked for text alone, without tools."""
    provider = Script(*steps)

    reply = reply_of(held(opened, provider))

    assert [bool(request.tools) for request in provider.asked] == asked
    assert (reply.ended_by, len(reply.turns)) == ("answer", len(asked))
    nudges = [turn.user for turn in provider.asked[-1].history if turn.user]
    assert len(nudges) == (len(asked) > 1 + bool(reply.tool_calls))


def test_a_call_is_refused_where_tools_are_gone(opened: Open) -> None:
    """As in OpenClaw: there is no tool of that name, nothing is done, and the model is asked again."""
    provider = Script(calls(READ), SILENT, calls(WRITE, READ), calls(READ), Reply(text="one"))

    ending = held(opened, provider)
    reply = reply_of(ending)

    assert [bool(request.tools) for request in provider.asked] == [True, True, False, False, False]
    assert [turn.results for turn in reply.turns[2:]] == [
        ("Tool write not found", "Tool read not found"),
        ("Tool read not found",),
        (),
    ]
    assert provider.asked[-1].history[-2].results == reply.turns[2].results
    assert (reply.ended_by, reply.text) == ("answer", "one")
    prompt = cell(tools=TOOLS, world=WORLD).prompt
    judged = judge.prepare(prompt, reply)
    assert [made.problem for made in judged.dispatched] == [None, *["unknown_tool"] * 3]
    assert judged.world == final_state(WORLD, TOOLS, reply.tool_calls[:1])


@pytest.mark.parametrize(
    ("after", "ended_by"),
    [
        pytest.param([calls(READ), SILENT], "answer", id="empty"),
        pytest.param([calls(READ), CUT], "answer", id="cut-off"),
        pytest.param([CUT_CALLS], "answer", id="cut-off-call"),
        pytest.param([calls(BROKEN)], "malformed_call", id="no-json"),
    ],
)
def test_a_useless_turn_ends_the_run_where_tools_are_gone(
    opened: Open, after: list[Step], ended_by: str
) -> None:
    """As in OpenClaw, which has asked for words alone."""
    provider = Script(calls(READ), SILENT, *after, Reply(text="never"))

    reply = reply_of(held(opened, provider))

    assert (reply.ended_by, len(provider.asked)) == (ended_by, 2 + len(after))


def test_a_turn_that_was_cut_off_is_not_carried_out(opened: Open) -> None:
    """As in OpenClaw, where calls at the output limit end the run."""
    provider = Script(replace(calls(WRITE), finish_reason="length"), Reply(text="never"))

    reply = reply_of(held(opened, provider))

    assert (reply.ended_by, len(provider.asked), reply.turns[0].results) == ("answer", 1, ())


@pytest.mark.parametrize("cut", [CUT, CUT_CALLS, replace(calls(BROKEN), finish_reason="length")])
def test_tools_are_gone_after_a_cut_off_turn(opened: Open, cut: Reply) -> None:
    """As in OpenClaw, a model whose calls were answered is asked for words, without tools and that turn."""
    provider = Script(calls(READ), cut, Reply(text="one"))

    reply = reply_of(held(opened, provider))

    assert [bool(request.tools) for request in provider.asked] == [True, True, False]
    read, asked = provider.asked[-1].history
    assert (read.results, asked.calls, "as plain text" in (asked.user or "")) == (("one\n",), (), True)
    assert (reply.text, reply.ended_by, len(reply.turns), reply.turns[1].results) == ("one", "answer", 3, ())


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(Reply(text="It says", finish_reason="length"), id="answer"),
        pytest.param(replace(CUT_CALLS, text="Let me look."), id="words-and-calls"),
    ],
)
def test_cut_off_words_are_an_answer(opened: Open, cut: Reply) -> None:
    """As in OpenClaw: a user can see them, so the run ends."""
    provider = Script(calls(READ), cut, Reply(text="never"))

    assert (reply_of(held(opened, provider)).ended_by, len(provider.asked)) == ("answer", 2)


def test_a_cut_off_call_that_is_not_json_is_not_repeated(opened: Open) -> None:
    """As in OpenClaw; without an answered call before it, the run ends."""
    provider = Script(replace(calls(BROKEN), finish_reason="length"), Reply(text="never"))

    assert (reply_of(held(opened, provider)).ended_by, len(provider.asked)) == ("malformed_call", 1)


def test_a_call_of_a_name_that_no_tool_can_have_is_not_repeated(opened: Open) -> None:
    """As in OpenClaw, call and result are left out of the next request."""
    odd = ("re ad", {"path": "a.txt"})
    provider = Script(calls(odd, READ), calls(odd), calls(odd, text="Once more."), Reply(text="done"))

    reply = reply_of(held(opened, provider))

    first, *others = provider.asked[-1].history
    assert ([call.name for call in first.calls], first.results) == (["read"], ("one\n",))
    assert [(turn.text, turn.calls) for turn in others] == [("Once more.", ())]
    assert [turn.results for turn in reply.turns] == [("", "one\n"), ("",), ("",), ()]


# --- figures -------------------------------------------------------------------------------------


def timing(started: int, e2e: float, ttft: float | None = None) -> Timing:
    """The times of a turn."""
    return Timing(
        started_at_ms=started, ended_at_ms=started + round(e2e), e2e_ms=e2e, ttft_ms=ttft, ttfo_ms=ttft
    )


def test_figures_are_those_of_the_whole(opened: Open) -> None:
    """Tokens are summed up, the time is that of the exchange, the first token that of the first turn."""
    counts = {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 1}
    first = calls(READ, timing=timing(1000, 100, 20), tokens_per_s=50.0, prompt_tokens_per_s=9.0, **counts)
    speeds = {"tokens_per_s": 25.0, "prompt_tokens_per_s": 18.0}
    second = Reply(text="one", timing=timing(9000, 50, 10), reasoning_tokens=2, **speeds, **counts)

    ending = held(opened, Script(first, second))
    reply = reply_of(ending)

    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (20, 10, 2)
    assert reply.reasoning_tokens is None, "one turn did not say"
    assert (reply.tokens_per_s, reply.prompt_tokens_per_s) == (33.3, 12.0)
    assert ending.timing == reply.timing
    assert (ending.timing.started_at_ms, ending.timing.ttft_ms, ending.timing.ttfo_ms) == (1000, 20, 20)
    assert (ending.timing.e2e_ms, ending.timing.ended_at_ms) == (150, 1150)
    assert [turn.timing for turn in reply.turns] == [first.timing, second.timing]


def test_a_retry_in_a_later_turn_counts_and_costs_no_latency(opened: Open) -> None:
    """Attempts and waits of all turns are summed up."""
    busy = CallFailed(faults.refused_by_server("fake", "m", faults.WireError(status=429), retry_after_s=0.5))
    provider = Script(calls(READ, timing=timing(0, 5)), busy, busy, Reply(text="one", timing=timing(0, 5)))

    ending = held(opened, provider)

    assert (ending.attempts, len(reply_of(ending).turns)) == (4, 2)
    assert ending.retry_wait_ms == pytest.approx(1000, abs=1)
    assert ending.timing.e2e_ms == 10
    assert ending.cold_start is True


# --- faults --------------------------------------------------------------------------------------


def fault_of(ending: CallResult) -> Fault:
    """The fault of an exchange."""
    assert isinstance(ending.result, Fault), ending.result
    return ending.result


def test_a_fault_in_a_later_turn_is_the_cells(opened: Open) -> None:
    """The earlier turns are kept."""
    broke = CallFailed(faults.stream_broken("fake", "reset", raw="I now wr"))
    provider = Script(calls(READ, text="Let me look.", raw="<think>hm</think>Let me look."), broke)

    ending = held(opened, provider)

    assert fault_of(ending).failure_type == "stream_error"
    assert fault_of(ending).raw == "<think>hm</think>Let me look.\n\nI now wr"
    (turn,) = fault_of(ending).turns
    assert (turn.text, turn.results) == ("Let me look.", ("one\n",))
    assert turn.timing is not None
    assert ending.attempts == 2


def test_a_fault_in_the_first_turn_is_as_ever(opened: Open) -> None:
    """A cell that was never asked has no attempt."""
    ending = held(opened, Script(CallFailed(faults.auth_missing("fake", "set FAKE_KEY"))))

    assert (fault_of(ending).failure_type, ending.attempts) == ("auth_missing", 0)


def test_each_turn_has_its_own_time(opened: Open) -> None:
    """A turn that takes too long is a timeout, with the earlier turns."""

    class Slow(Script):
        async def _step(self, request: Request) -> Reply:
            if request.history:
                await asyncio.sleep(60)
            return await super()._step(request)

    ending = held(opened, Slow(calls(READ, text="Let me look.")), timeout_s=0.2)

    assert fault_of(ending).failure_type == "timeout"
    assert fault_of(ending).raw == "Let me look."


def test_a_world_that_cannot_be_played_is_our_fault(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runaway pattern of the suite fails this cell alone, with the reason."""
    monkeypatch.setattr(bounded_regex, "PATTERN_TIMEOUT_S", 0.05)
    provider = Script(calls(("exec", {"command": "x" * 5000}), text="Let me run it."))

    ending = held(opened, provider)

    assert fault_of(ending).failure_type == "harness_error"
    assert "cannot be decided" in fault_of(ending).message
    assert fault_of(ending).raw == "Let me run it."


def test_a_world_that_hangs_is_given_up(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """No wait is unlimited."""
    monkeypatch.setattr(exchanges, "PLAYING_S", 0.01)
    monkeypatch.setattr(bounded_regex, "PATTERN_TIMEOUT_S", 0.5)

    ending = held(opened, Script(calls(("exec", {"command": "x" * 5000}))))

    assert "not answered within 0.01 s" in fault_of(ending).message


def test_an_exchange_is_given_up_when_the_session_ends(opened: Open) -> None:
    """Closing ends it between two turns and within one."""
    goes_on = threading.Event()

    class Endless(Script):
        async def _step(self, request: Request) -> Reply:
            await asyncio.sleep(0.01)
            if len(request.history) == 3:
                goes_on.set()
            return calls(("ls", {"limit": len(request.history) + 1}))

    provider = Endless(Reply())
    room = opened(provider)
    room.plan(cell(tools=TOOLS, world=structs.replace(WORLD, steps=1_000_000)))
    assert goes_on.wait(60)

    assert room.asker.close() == ([], 1)
    assert provider.now == 0


def test_a_provider_may_play_worlds_itself(opened: Open) -> None:
    """Then it gets one request, with the world, and its reply is the whole exchange."""

    class Plays(Script):
        plays_worlds = True

    provider = Plays(calls(READ, text="done", ended_by="step_limit"))

    reply = reply_of(held(opened, provider))

    assert (reply.text, reply.ended_by, len(provider.asked)) == ("done", "step_limit", 1)
    assert provider.asked[0].world == WORLD
