"""Scripted exchanges: turn by turn until an answer, the last step, a loop, a broken call or a fault."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from msgspec import structs

from pytest_openclaw import CallFailed, Provider
from pytest_openclaw.asking import sending
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.util import bounded
from pytest_openclaw.values import faults
from pytest_openclaw.values.replies import CallResult, Fault, Reply, Timing
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import Command, World
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
    monkeypatch.setattr(sending, "GRACE_S", 0.2)
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


def test_an_exchange_has_a_last_step(opened: Open) -> None:
    """After this many turns no more requests are sent; the calls of the last turn are still answered."""
    ahead = [calls(("ls", {"limit": n})) for n in range(1, 9)]
    provider = Script(*ahead)

    reply = reply_of(held(opened, provider, structs.replace(WORLD, steps=3)))

    assert reply.ended_by == "step_limit"
    assert len(provider.asked) == len(reply.turns) == 3
    assert len(reply.turns[-1].results) == 1


# --- figures -------------------------------------------------------------------------------------


def timing(started: int, e2e: float, ttft: float | None = None) -> Timing:
    """The times of a turn."""
    return Timing(
        started_at_ms=started, ended_at_ms=started + round(e2e), e2e_ms=e2e, ttft_ms=ttft, ttfo_ms=ttft
    )


def test_figures_are_those_of_the_whole(opened: Open) -> None:
    """Tokens are summed up, the time is that of the exchange, the first token and the reading speed those of the first turn."""
    counts = {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 1}
    first = calls(READ, timing=timing(1000, 100, 20), tokens_per_s=50.0, prompt_tokens_per_s=9.0, **counts)
    speeds = {"tokens_per_s": 25.0, "prompt_tokens_per_s": 18.0}
    second = Reply(text="one", timing=timing(9000, 50, 10), reasoning_tokens=2, **speeds, **counts)

    ending = held(opened, Script(first, second))
    reply = reply_of(ending)

    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (20, 10, 2)
    assert reply.reasoning_tokens is None, "one turn did not say"
    assert (reply.tokens_per_s, reply.prompt_tokens_per_s) == (33.3, 9.0)
    assert ending.timing == reply.timing
    assert (ending.timing.started_at_ms, ending.timing.ttft_ms, ending.timing.ttfo_ms) == (1000, 20, 20)
    assert (ending.timing.e2e_ms, ending.timing.ended_at_ms) == (150, 1150)
    assert [turn.timing for turn in reply.turns] == [first.timing, second.timing]


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
    """A runaway pattern of the suite fails only this cell, with the reason."""
    monkeypatch.setattr(bounded, "PATTERN_TIMEOUT_S", 0.05)
    provider = Script(calls(("exec", {"command": "x" * 5000}), text="Let me run it."))

    ending = held(opened, provider)

    assert fault_of(ending).failure_type == "harness_error"
    assert "cannot be decided" in fault_of(ending).message
    assert fault_of(ending).raw == "Let me run it."


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

    assert room.asker.close() == []
    assert provider.now == 0


def test_a_provider_may_play_worlds_itself(opened: Open) -> None:
    """Then it gets one request, with the world, and its reply is the whole exchange."""

    class Plays(Script):
        plays_worlds = True

    provider = Plays(calls(READ, text="done", ended_by="step_limit"))

    reply = reply_of(held(opened, provider))

    assert (reply.text, reply.ended_by, len(provider.asked)) == ("done", "step_limit", 1)
    assert provider.asked[0].world == WORLD
