"""Asking: retries, endpoints, times, and every kind of misbehavior of a provider."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw import CallFailed, OpenClawError, Provider
from pytest_openclaw.asking import attempt, links, retry
from pytest_openclaw.asking import client as client_module
from pytest_openclaw.asking.asker import ahead_of
from pytest_openclaw.asking.asker_server import AskerServer
from pytest_openclaw.asking.client import AskingClient
from pytest_openclaw.asking.fetching import Fetcher
from pytest_openclaw.asking.messages import JobResult, Left, Listed, RepeatDecision, Taken
from pytest_openclaw.core.errors import CellNotSent, HostDied
from pytest_openclaw.core.signals import interrupt_main_thread, interrupted_by_signals
from pytest_openclaw.types import faults
from pytest_openclaw.types.prompts import Cell
from pytest_openclaw.types.replies import CallResult, Fault, Reply, Timing, Turn
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.settings import Concurrency, Settings
from pytest_openclaw.types.targets import Target
from pytest_openclaw.types.tool_calls import Tool, ToolCall
from tests.e2e.processes import wait_until
from tests.unit.asking.asking import Room
from tests.unit.asking.fake_providers import Conversing, Fake, Handy, Warm, cell, raises, says, waits

Open = Callable[..., AskingClient]

BUSY = faults.refused_by_server("fake", "m", faults.WireError(status=429), retry_after_s=0.0)
LOST = faults.connection_lost("fake", "reset")
REFUSED = faults.unreachable("fake", "nowhere", "refused")
NO_MODEL = faults.refused_by_server("fake", "m", faults.WireError(status=404, message="model 'm' not found"))
NO_KEY = faults.auth_missing("fake", "set FAKE_KEY")
READ = Tool(name="read", description="Reads a file.")
BEFORE = (Turn(user="Hi."), Turn(text="Hello."))
FORBIDDEN = faults.refused_by_server("fake", "m", faults.WireError(status=403))


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens clients, whose waits are short, and closes them."""
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(attempt, "GRACE_S", 0.2)
    with ExitStack() as stack:

        def open_one(*providers: Provider, **settings: Any) -> AskingClient:
            named = (
                {"fake": providers[0]}
                if len(providers) == 1
                else {f"fake{n}": p for n, p in enumerate(providers)}
            )
            folder = tmp_path / f"shared-{next(tokens)}"
            folder.mkdir()
            return stack.enter_context(AskingClient(named, Settings(**settings), folder))

        yield open_one


tokens = map(str, itertools.count())


def take(client: AskingClient, token: str, one: Cell) -> CallResult:
    """Use the reply of a cell, as its test does."""
    try:
        return client.ask(token, one)
    finally:
        client.release(token)


def asked(client: AskingClient, **changes: Any) -> CallResult:
    """Ask a cell that is not in the plan."""
    return take(client, next(tokens), cell(**changes))


def plan(client: AskingClient, cells: Mapping[str, Cell]) -> None:
    """Announce the cells to the client."""
    client.plan([Listed(token, one) for token, one in cells.items()])


def asked_ahead(client: AskingClient, n: int, **changes: Any) -> list[CallResult]:
    """Ask `n` cells that were announced beforehand."""
    cells = {next(tokens): cell(f"P{number}", **changes) for number in range(n)}
    plan(client, cells)
    return [take(client, token, one) for token, one in cells.items()]


def fault_of(ending: CallResult) -> Fault:
    """The fault of a cell."""
    assert isinstance(ending.result, Fault)
    return ending.result


# --- answers ---


def test_an_answer_comes_with_its_times(opened: Open) -> None:
    """One attempt, timed from outside if the provider reports no times."""
    ending = asked(opened(Fake(waits(0.02))))

    assert isinstance(ending.result, Reply)
    assert (ending.attempts, ending.retry_wait_ms, ending.in_flight) == (1, 0.0, 1)
    assert ending.timing.e2e_ms >= 19
    assert ending.timing.ended_at_ms == ending.timing.started_at_ms + round(ending.timing.e2e_ms)
    assert ending.timing.ttft_ms is None
    assert ending.queue_ms is not None


def test_a_providers_own_times_go_first(opened: Open) -> None:
    """The provider knows best when its tokens arrived."""
    timing = Timing(started_at_ms=5, ended_at_ms=7, e2e_ms=2.0, ttft_ms=1.0)

    async def answer(request: Request) -> Reply:
        return Reply(text="hi", timing=timing)

    assert asked(opened(Fake(answer))).timing == timing


def test_the_request_is_what_prompt_and_run_say(opened: Open) -> None:
    """Model, prompt, system, limits and stream reach the provider; the prompt's own time takes precedence."""
    provider = Fake(says("hi"))
    client = opened(provider, timeout_s=7.0, stream=False)

    asked(client, system="Be brief.", max_output_tokens=5, timeout_s=3.0)
    asked(client)

    first, second = provider.asked
    assert (first.model, first.prompt, first.system, first.temperature) == ("m", "P1", "Be brief.", 0.0)
    assert (first.max_output_tokens, first.timeout_s, first.stream) == (5, 3.0, False)
    assert second.timeout_s == 7.0


def test_repeats_differ_in_their_seed(opened: Open) -> None:
    """A prompt that is asked once gets no seed, a repeated one that of its repeat."""
    provider = Fake(says("hi"))
    client = opened(provider)

    for n_repeats, repeat in ((1, 1), (3, 1), (3, 3)):
        take(client, next(tokens), replace(cell(), n_repeats=n_repeats, repeat=repeat))

    assert [request.seed for request in provider.asked] == [None, 1, 3]


def test_broken_texts_are_made_valid(opened: Open) -> None:
    """A plugin's half surrogate pairs become U+FFFD in every text, a fault's too."""

    async def answer(request: Request) -> Reply:
        call = ToolCall(name="a\ud800", arguments="\ud800", id="\ud800")
        return Reply(
            text="\ud800",
            reasoning="\ud800",
            refusal="\ud800",
            finish_reason="\ud800",
            effective_model="\ud800",
            tool_calls=(call,),
        )

    reply = asked(opened(Fake(answer))).result
    assert isinstance(reply, Reply)
    fault = fault_of(asked(opened(Fake(raises(CallFailed(faults.stream_broken("p", "\ud800", "\ud800")))))))

    repr((reply, fault)).encode()
    assert "\\ud800" not in repr((reply, fault))
    assert reply.raw == "\ufffd"


def test_only_the_first_request_is_cold(opened: Open) -> None:
    """Without a warm-up the first cell of each target is marked."""
    client = opened(Fake(says("hi")))

    assert [asked(client, model=model).cold_start for model in ("m", "m", "n")] == [True, False, True]


# --- retries ---


def test_a_fault_that_may_pass_is_asked_again(opened: Open) -> None:
    """The times are those of the attempt that counted; waits are recorded separately."""
    provider = Fake(raises(CallFailed(LOST), CallFailed(BUSY)))

    ending = asked(opened(provider))

    assert isinstance(ending.result, Reply)
    assert ending.attempts == len(provider.asked) == 3
    assert ending.retry_wait_ms > 0


@pytest.mark.parametrize(
    ("fault", "retries", "attempts"),
    [(BUSY, 2, 3), (LOST, 1, 2), (BUSY, 0, 1), (REFUSED, 5, 1), (FORBIDDEN, 5, 1)],
    ids=["429", "lost", "no-retries", "refused", "403"],
)
def test_retries_end(opened: Open, fault: Fault, retries: int, attempts: int) -> None:
    """After the last attempt the fault is final; a permanent one is not retried."""
    provider = Fake(raises(*[CallFailed(fault)] * 9))

    ending = asked(opened(provider, retries=retries))

    assert fault_of(ending).failure_type == fault.failure_type
    assert ending.attempts == len(provider.asked) == attempts


def test_a_cell_that_sent_nothing_was_not_asked(opened: Open) -> None:
    """Missing credentials end a cell without an attempt and without a time."""
    ending = asked(opened(Fake(raises(CallFailed(NO_KEY)))))

    assert (ending.attempts, ending.timing.e2e_ms, ending.timing.ttft_ms) == (0, 0.0, None)
    assert ending.timing.started_at_ms == ending.timing.ended_at_ms


@pytest.mark.parametrize(
    "fault",
    [
        NO_KEY,
        faults.not_installed("fake", "install it"),
        faults.engine_missing("fake", "no AVX2"),
        faults.context_too_small("fake", "m", 9000, 8192, exact=True),
    ],
    ids=lambda fault: fault.failure_type,
)
def test_which_faults_are_found_before_anything_is_sent(opened: Open, fault: Fault) -> None:
    """They do not count as attempts."""
    assert asked(opened(Fake(raises(CallFailed(fault))))).attempts == 0


def test_a_server_that_refuses_a_long_prompt_was_asked(opened: Open) -> None:
    """The same failure type is an attempt if the server reported it."""
    too_long = faults.refused_by_server("fake", "m", faults.WireError(code="context_length_exceeded"))

    ending = asked(opened(Fake(raises(CallFailed(too_long)))))

    assert (fault_of(ending).failure_type, ending.attempts) == ("context_overflow", 1)


# --- tools ---


def test_tools_reach_a_provider_that_takes_them(opened: Open) -> None:
    """The offered tools are in the request."""
    provider = Handy(says("hi"))

    asked(opened(provider), tools=(READ,))

    assert [request.tools for request in provider.asked] == [(READ,)]


def test_a_provider_without_tools_is_not_asked_what_needs_them(opened: Open) -> None:
    """A prompt without its tools would be another one; the target's text prompts are asked."""
    provider = Warm(says("hi"))
    client = opened(provider)

    fault = fault_of(handed := asked(client, tools=(READ,)))

    assert (handed.attempts, handed.timing.e2e_ms, len(provider.asked)) == (0, 0.0, 0)
    assert (fault.failure_type, fault.status, fault.scope) == ("not_installed", "skipped_unavailable", "cell")
    assert fault.message == (
        "fake: not asked: the prompt offers tools, which this provider does not send. "
        "Set takes_tools = True on the provider's class, and send request.tools and request.history."
    )
    assert isinstance(asked(client).result, Reply)


def test_messages_reach_a_provider_that_takes_them(opened: Open) -> None:
    """The conversation is in the request, and the prompt comes after it."""
    provider = Conversing(says("hi"))

    asked(opened(provider), messages=BEFORE)

    assert [request.conversation for request in provider.asked] == [(*BEFORE, Turn(user="P1"))]


def test_a_provider_without_messages_is_not_asked_what_follows_them(opened: Open) -> None:
    """A prompt without the messages before it would be another one; the target's other prompts are asked."""
    provider = Handy(says("hi"))
    client = opened(provider)

    fault = fault_of(handed := asked(client, messages=BEFORE))

    assert (handed.attempts, len(provider.asked)) == (0, 0)
    assert (fault.failure_type, fault.status, fault.scope) == ("not_installed", "skipped_unavailable", "cell")
    assert fault.message == (
        "fake: not asked: the prompt is part of a conversation, which this provider does not send. "
        "Set takes_messages = True on the provider's class, and send request.conversation."
    )
    assert isinstance(asked(client).result, Reply)


# --- who is not asked any more ---


@pytest.mark.parametrize(
    ("fault", "same_target", "same_endpoint"),
    [(REFUSED, 0, 0), (NO_KEY, 0, 1), (NO_MODEL, 0, 1), (FORBIDDEN, 1, 1), (BUSY, 1, 1)],
    ids=["no-server", "no-key", "no-model", "403", "429"],
)
def test_how_far_a_fault_reaches(opened: Open, fault: Fault, same_target: int, same_endpoint: int) -> None:
    """A dead server stops its endpoint, an unknown model or missing key its target, other faults one cell."""
    provider = Fake(raises(CallFailed(fault)))
    client = opened(provider, retries=0)

    asked(client)

    assert asked(client, prompt_id="P2").attempts == same_target
    assert asked(client, model="other").attempts == same_endpoint


def test_a_dead_endpoint_stops_its_other_providers(opened: Open) -> None:
    """Two providers at one address stop together; one at another address does not."""
    down, beside, elsewhere = (
        Fake(raises(CallFailed(REFUSED)), endpoint="a"),
        Fake(says("hi"), endpoint="a"),
        Fake(says("hi"), endpoint="b"),
    )
    client = opened(down, beside, elsewhere)

    endings = [asked(client, provider=f"fake{n}") for n in range(3)]

    assert [ending.attempts for ending in endings] == [1, 0, 1]
    assert fault_of(endings[1]).status == "skipped_unavailable"


def test_waiting_cells_get_the_fault_too(opened: Open) -> None:
    """Cells that wait for an endpoint are not sent to a server that was found dead meanwhile."""

    async def answer(request: Request) -> Reply:
        await asyncio.sleep(0.05)
        raise CallFailed(REFUSED)

    provider = Fake(answer)
    client = opened(provider, concurrency=Concurrency(everywhere=1))

    endings = asked_ahead(client, 5)

    assert [ending.attempts for ending in endings] == [1, 0, 0, 0, 0]
    assert len(provider.asked) == 1


# --- endpoints ---


class Meeting(Fake):
    """Answers no request until as many as allowed are in flight, and a moment longer."""

    def __init__(self, n: int) -> None:
        super().__init__(self._meet)
        self._n = n
        self._have_met = False

    async def _meet(self, request: Request) -> Reply:
        while not self._have_met and self.now < self._n:
            await asyncio.sleep(0.001)
        self._have_met = True
        await asyncio.sleep(0.02)
        return Reply(text="met")


class WarmMeeting(Meeting, Warm):
    """Gets a request for one token before."""

    async def _meet(self, request: Request) -> Reply:
        return Reply(text="warm") if request.max_output_tokens == 1 else await super()._meet(request)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_an_endpoint_keeps_its_limit(opened: Open, limit: int) -> None:
    """However many cells are announced, no more requests are in flight than the endpoint allows."""
    provider = Meeting(limit)
    client = opened(provider, concurrency=Concurrency(by_provider={"fake": limit}))

    endings = asked_ahead(client, 8)

    assert provider.most == limit
    assert max(ending.in_flight or 0 for ending in endings) == limit


@pytest.mark.parametrize("limits", [(1, 3), (3, 1)])
def test_two_providers_of_one_endpoint_keep_the_smaller_limit(opened: Open, limits: tuple[int, int]) -> None:
    """Whichever is used first, their server gets no more requests than either may send."""
    busy = Counter[str]()

    async def answer(request: Request) -> Reply:
        busy["now"] += 1
        busy["most"] = max(busy["most"], busy["now"])
        await asyncio.sleep(0.02)
        busy["now"] -= 1
        return Reply(text="hi")

    by_provider = {f"fake{n}": limit for n, limit in enumerate(limits)}
    client = opened(
        Fake(answer, endpoint="a"),
        Fake(answer, endpoint="a"),
        concurrency=Concurrency(by_provider=by_provider),
    )
    cells = {f"cell {n}": cell(f"P{n}", provider=f"fake{n % 2}") for n in range(6)}
    plan(client, cells)

    for token, one in cells.items():
        take(client, token, one)

    assert busy["most"] == 1


def test_endpoints_do_not_wait_for_each_other(opened: Open) -> None:
    """A cell on one endpoint is answered while an earlier one on another endpoint is in flight."""
    fast_ended = threading.Event()

    async def slow(request: Request) -> Reply:
        return Reply(text=str(await asyncio.to_thread(fast_ended.wait, 120)))

    async def fast(request: Request) -> Reply:
        fast_ended.set()
        return Reply()

    client = opened(Fake(slow, endpoint="a"), Fake(fast, endpoint="b"))
    cells = {"slow": cell(provider="fake0"), "fast": cell(provider="fake1")}
    plan(client, cells)

    ending = take(client, "slow", cells["slow"])

    assert isinstance(ending.result, Reply)
    assert ending.result.text == "True"


def test_a_warm_up_leaves_the_endpoints_limit(opened: Open) -> None:
    """After a warm-up as many requests may be in flight as the user allowed."""
    provider = WarmMeeting(3)

    asked_ahead(opened(provider, concurrency=Concurrency(everywhere=3)), 6)

    assert provider.most == 3


# --- ahead of the tests ---


@pytest.mark.parametrize("limit", [1, 4])
def test_cells_are_asked_ahead_in_their_order_and_no_further_than_allowed(opened: Open, limit: int) -> None:
    """While no test takes a reply, a limited number is fetched; for replies taken, as many more are sent."""
    provider = Fake(says("hi"))
    client = opened(provider, concurrency=Concurrency(everywhere=limit))
    cells = {str(number): cell(f"P{number}") for number in range(50)}
    plan(client, cells)

    for token in ("0", "1", "2", "3"):  # the asker learns of them at once, or of two at a time
        take(client, token, cells[token])
    assert wait_until(lambda: len(provider.asked) >= 4 + ahead_of(limit))
    time.sleep(0.05)  # more requests would be sent in this time

    asked = [int(request.prompt.removeprefix("P")) for request in provider.asked]
    assert sorted(asked) == [*range(4 + ahead_of(limit))]
    # Concurrent requests may reach the provider in any order.
    assert all(abs(number - place) < limit for place, number in enumerate(asked))
    assert len(client.close()) == ahead_of(limit)


def test_replies_that_have_arrived_take_one_message_for_several_tests(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message wakes the asker; a test whose reply is there needs none, and as many as the limit share one."""
    client = opened(Fake(says("hi")), concurrency=Concurrency(everywhere=4))
    cells = {str(number): cell(f"P{number}") for number in range(8)}
    plan(client, cells)
    side = client._sides[0]
    link = client._ready(side)

    def have_arrived() -> bool:
        while link.receive_arrived(partial(client._note, side)):
            pass
        return len(client._received) == len(cells)

    assert wait_until(have_arrived)
    sent: list[Any] = []
    monkeypatch.setattr(link, "send", lambda *messages: sent.extend(messages))
    for token, one in cells.items():
        take(client, token, one)

    assert sent == [Taken(tokens=["0", "1", "2", "3"]), Taken(tokens=["4", "5", "6", "7"])]


def test_what_may_not_be_asked_yet_holds_its_endpoint_up(opened: Open) -> None:
    """Later cells of its endpoint are not sent ahead until that is decided; another endpoint continues."""
    providers = [Fake(says("hi"), endpoint=endpoint) for endpoint in ("one", "two")]
    client = opened(*providers, until_conclusive=True)
    cells = {
        f"{prompt} r{repeat} {name}": replace(cell(prompt, provider=name), repeat=repeat, n_repeats=2)
        for name in ("fake0", "fake1")
        for repeat in (1, 2)
        for prompt in ("P1", "P2")
    }
    plan(client, cells)

    for token in ("P1 r1 fake0", "P2 r1 fake0", "P1 r1 fake1", "P2 r1 fake1"):
        take(client, token, cells[token])
    assert [len(provider.asked) for provider in providers] == [2, 2]

    client.decide(RepeatDecision(target="fake0/m", repeat=1, ends=None))
    client.decide(RepeatDecision(target="fake1/m", repeat=1, ends="it is settled"))
    assert isinstance(take(client, "P1 r2 fake0", cells["P1 r2 fake0"]).result, Reply)
    assert isinstance(take(client, "P2 r2 fake0", cells["P2 r2 fake0"]).result, Reply)
    with pytest.raises(CellNotSent, match="it is settled"):
        take(client, "P1 r2 fake1", cells["P1 r2 fake1"])

    assert [len(provider.asked) for provider in providers] == [4, 2]


def test_a_repeat_whose_test_is_under_way_waits_for_no_decision(opened: Open) -> None:
    """If one process runs all cells, no decision would come while it waits."""
    client = opened(Fake(says("hi")), until_conclusive=True)
    cells = {str(repeat): replace(cell(), repeat=repeat, n_repeats=2) for repeat in (1, 2)}
    plan(client, cells)

    assert isinstance(take(client, "2", cells["2"]).result, Reply)


def test_a_cell_out_of_order_waits_for_no_other_to_be_taken(opened: Open) -> None:
    """A test that runs out of order gets its reply."""
    client = opened(Fake(says("hi")), concurrency=Concurrency(everywhere=1))
    cells = {str(number): cell(f"P{number}") for number in range(50)}
    plan(client, cells)

    backwards = [take(client, token, cells[token]).attempts for token in reversed(cells)]

    assert backwards == [1] * 50


def test_a_test_that_is_run_again_is_asked_again(opened: Open) -> None:
    """Each time a separate request is sent."""
    provider = Fake(says("hi"))
    client = opened(provider)

    assert [take(client, "a", cell()).attempts for _ in range(2)] == [1, 1]
    assert len(provider.asked) == 2


def test_a_planned_test_that_is_run_again_is_asked_again(opened: Open) -> None:
    """The asker forgets a cell of a plain session with its test, and gets it from the client again."""
    provider = Fake(says("hi"))
    client = opened(provider, concurrency=Concurrency(everywhere=1))
    cells = {str(number): cell(f"P{number}") for number in range(9)}
    plan(client, cells)

    assert all(isinstance(take(client, token, one).result, Reply) for token, one in cells.items())
    assert isinstance(take(client, "0", cells["0"]).result, Reply)
    assert [request.prompt for request in provider.asked] == [*(f"P{n}" for n in range(9)), "P0"]


def test_what_was_answered_and_not_taken_is_handed_over_at_the_end(opened: Open) -> None:
    """Closing keeps the replies so far, in order, and abandons the rest."""
    came = threading.Event()

    async def answer(request: Request) -> Reply:
        if request.prompt == "P3":
            came.set()
            await asyncio.sleep(60)
        return Reply(text=request.prompt)

    client = opened(Fake(answer), concurrency=Concurrency(everywhere=1))
    cells = {str(number): cell(f"P{number}") for number in range(9)}
    plan(client, cells)
    take(client, "0", cells["0"])
    assert came.wait(120)
    client.forget("1")

    left = client.close()

    assert [one.prompt.id for one, _ in left] == ["P2"]
    assert isinstance(left[0][1].result, Reply)


def test_an_answer_is_kept_at_whatever_moment_the_run_ends(tmp_path: Path) -> None:
    """Whenever the run ends, a reply that the provider has given is kept."""

    async def left(after_passes: int) -> tuple[bool, Left]:
        provider = Fake(says("hi"))
        folder = tmp_path / str(after_passes)
        folder.mkdir()
        room = Room(provider, folder)
        client = room.join()
        room.plan(client, [cell()], is_claimed=True)
        for _ in range(after_passes):
            await asyncio.sleep(0)
        room.asker.leave(client)
        last = await room.asker.close()
        return bool(provider.asked), last

    was_answered = []
    # Asking, reading the fingerprint and delivering take about ten passes of the loop.
    for after_passes in range(40):
        is_answered, last = asyncio.run(left(after_passes))
        was_answered.append(is_answered)
        replies = [one.ending.result for one in last.results if one.ending]
        assert [type(reply) for reply in replies] == [Reply] * is_answered, f"after {after_passes} passes"
    assert set(was_answered) == {False, True}


def test_an_answer_is_kept_while_its_server_does_not_say_what_it_is(opened: Open) -> None:
    """A fingerprint that never ends loses no earlier reply of an interrupted run."""
    began = threading.Event()

    async def never() -> dict[str, Any]:
        began.set()
        await asyncio.sleep(60)
        return {}

    client = opened(Asked(never))
    plan(client, {"a": cell()})
    assert began.wait(120)

    ((_, ending),) = client.close()

    assert isinstance(ending.result, Reply)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_an_answer_that_comes_with_an_interruption_is_kept(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting test is interrupted just as the reply arrives: the reply is kept."""
    to_bytes = AskerServer.to_bytes

    def interrupting(server: AskerServer, messages: Any) -> bytes:
        if any(isinstance(message, JobResult) for message in messages):
            asyncio.get_running_loop().call_soon(interrupt_main_thread)  # when the messages have been sent
        return to_bytes(server, messages)

    def wait_for_both(client: AskingClient, taken: list[CallResult]) -> None:
        taken.append(asked(client))
        time.sleep(60)

    monkeypatch.setattr(AskerServer, "to_bytes", interrupting)
    for number in range(20):
        client = opened(Fake(says("hi")))
        taken: list[CallResult] = []
        with interrupted_by_signals(), pytest.raises(KeyboardInterrupt):
            wait_for_both(client, taken)

        assert len(taken) + len(client.close()) == 1, f"the answer of round {number} is lost"


# --- times ---


def test_a_provider_that_does_not_watch_the_time_is_cut_off(opened: Open) -> None:
    """The whole attempt is also limited from outside."""
    ending = asked(opened(Fake(waits(60)), timeout_s=0.05))

    assert fault_of(ending).failure_type == "timeout"
    assert ending.timing.e2e_ms < 30_000


def test_a_provider_that_never_ends_is_given_up(opened: Open) -> None:
    """One that cannot be cancelled fails its own cell, not the run."""
    release = asyncio.Event()

    async def stubborn(request: Request) -> Reply:
        while not release.is_set():
            try:
                await asyncio.sleep(0.5)
            except asyncio.CancelledError:
                continue
        return Reply()

    provider = Fake(stubborn)
    client = opened(provider, timeout_s=0.05)

    first = asked(client)
    release.set()
    second = asked(client, prompt_id="P2")

    assert fault_of(first).failure_type == "timeout"
    assert second.attempts == 1


def test_a_timeout_of_the_providers_own_is_one(opened: Open) -> None:
    """A plugin that raises a `TimeoutError` has timed out."""
    assert fault_of(asked(opened(Fake(raises(TimeoutError()))))).failure_type == "timeout"


# --- plugins that break ---


@pytest.mark.parametrize(
    ("error", "caught", "message"),
    [
        pytest.param(RuntimeError("broken"), RuntimeError, "broken", id="exception"),
        pytest.param(SystemExit(3), OpenClawError, r"called sys\.exit\(3\)", id="sys.exit"),
        pytest.param(asyncio.CancelledError(), OpenClawError, "cancelled its own work", id="cancelled-itself"),
        pytest.param(
            CallFailed(Fault(failure_type="bad_luck", status="error", message="x")), ValueError, "'bad_luck' is no failure type", id="failure-type"
        ),
        pytest.param(
            CallFailed(Fault(failure_type="timeout", status="late", message="x")),  # type: ignore[arg-type]
            ValueError, "'late' is no availability status", id="status",
        ),
    ],
)  # fmt: skip
def test_what_a_plugin_raises_is_raised_here_and_the_next_cell_is_asked(
    opened: Open, error: BaseException, caught: type[Exception], message: str
) -> None:
    """An exception in a provider fails one cell."""
    client = opened(Fake(raises(error)))

    with pytest.raises(caught, match=message):
        asked(client)

    assert isinstance(asked(client, prompt_id="P2").result, Reply)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "returns a Reply, not NoneType"),
        ("text", "returns a Reply, not str"),
        (Reply(output_tokens="7"), r"Reply\.output_tokens is a whole number or None, not '7'"),  # type: ignore[arg-type]
        (Reply(input_tokens=-1), r"Reply\.input_tokens is a whole number or None, not -1"),
        (Reply(cached_tokens=2**53 + 1), r"Reply\.cached_tokens is a whole number or None, not 90071"),
    ],
    ids=["none", "text", "count-as-text", "negative", "too-large-for-a-row"],
)
def test_what_is_no_reply_is_said(opened: Open, answer: Any, message: str) -> None:
    """The message to a plugin that returns something else says what a provider returns."""

    async def ask(request: Request) -> Any:
        return answer

    with pytest.raises(TypeError, match=message):
        asked(opened(Fake(ask)))


# --- ends ---


def test_closing_ends_what_is_under_way(tmp_path: Path) -> None:
    """A provider may clean up before it is closed."""
    began = threading.Event()
    cleaned: list[bool] = []

    async def answer(request: Request) -> Reply:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)  # for example to end a process
            cleaned.append(provider.closed)
        return Reply()

    provider = Fake(answer)
    with AskingClient({"fake": provider}, Settings(), tmp_path) as client:
        plan(client, {"a": cell()})
        assert began.wait(120)

    assert cleaned == [False]
    assert provider.closed


def test_what_closing_raises_is_not_passed_on(tmp_path: Path) -> None:
    """A provider that raises on closing prevents neither the summary nor another provider's closing."""

    class Broken(Fake):
        async def aclose(self) -> None:
            raise RuntimeError("cannot close")

    broken, other = Broken(says("hi")), Fake(says("hi"))
    with AskingClient({"a": broken, "b": other}, Settings(), tmp_path) as client:
        asked(client, provider="a")

    assert other.closed


def test_closing_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that never closes, or blocks the loop itself, is abandoned after a while."""
    monkeypatch.setattr(links, "CLOSING_S", 0.3)
    release = threading.Event()

    class Endless(Fake):
        async def aclose(self) -> None:
            release.wait(30)

    began = time.monotonic()
    with AskingClient({"fake": Endless(says("hi"))}, Settings(), tmp_path) as client:
        asked(client)
    waited = time.monotonic() - began
    release.set()

    assert waited < 20


def test_a_dead_thread_is_noticed(opened: Open) -> None:
    """If the loop itself ends, all waiting cells fail at once; the next ones get another loop."""

    async def answer(request: Request) -> Reply:
        if request.prompt == "P0":
            asyncio.get_running_loop().stop()
        await asyncio.sleep(60 if request.prompt in ("P0", "P1") else 0)
        return Reply()

    client = opened(Fake(answer), concurrency=Concurrency(everywhere=2))
    cells = {str(number): cell(f"P{number}") for number in range(2)}
    plan(client, cells)

    for token, one in cells.items():
        with pytest.raises(HostDied, match="the thread that asks has ended"):
            take(client, token, one)
    assert asked(client, prompt_id="P2").attempts == 1


def test_a_side_that_dies_again_and_again_is_left_alone(opened: Open) -> None:
    """After three deaths no more requests are sent."""

    async def answer(request: Request) -> Reply:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(60)
        return Reply()

    provider = Fake(answer)
    client = opened(provider)

    for _ in range(5):
        with pytest.raises(HostDied):
            asked(client)

    assert len(provider.asked) == 3


def test_a_side_that_says_nothing_is_given_up(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that blocks its loop for longer than any attempt may take is abandoned."""
    monkeypatch.setattr(client_module, "SILENCE_S", 0.2)
    monkeypatch.setattr(links, "CLOSING_S", 0.2)
    release = threading.Event()

    async def blocking(request: Request) -> Reply:
        release.wait(60)
        return Reply()

    client = opened(Fake(blocking), timeout_s=0.1)
    try:
        with pytest.raises(HostDied, match="said nothing"):
            asked(client)
    finally:
        release.set()


def test_nothing_is_asked_after_the_end(tmp_path: Path) -> None:
    """A closed client says that it is closed, and its thread is gone."""
    others = set(threading.enumerate())  # threads of other tests may still be ending

    def own_has_ended() -> bool:
        return "openclaw-asking" not in {thread.name for thread in set(threading.enumerate()) - others}

    with AskingClient({"fake": Fake(says("hi"))}, Settings(), tmp_path) as client:
        asked(client)

    with pytest.raises(OpenClawError, match="no more cells are asked"):
        asked(client)
    assert wait_until(own_has_ended)  # closing waits for it for a limited time


# --- beside the cells ---

TARGET = Target(provider="fake", model="m")


def test_a_warm_up_is_made_once(opened: Open) -> None:
    """It comes before the first cell, and no cell is cold after it."""
    provider = Warm(says("hi"))
    client = opened(provider)

    cold = [asked(client).cold_start, asked(client).cold_start]

    assert client.notes[TARGET]["serving"]["warm_up"]["ok"] is True
    assert [request.max_output_tokens for request in provider.asked].count(1) == 1
    assert provider.asked[0].max_output_tokens == 1
    assert cold == [False, False]


@pytest.mark.parametrize(
    ("error", "message"),
    [(CallFailed(REFUSED), "nothing answers"), (RuntimeError("bug"), "RuntimeError: bug")],
    ids=["fault", "bug"],
)
def test_a_failed_warm_up_is_only_reported(opened: Open, error: Exception, message: str) -> None:
    """Its failure has no row: the cells are asked regardless, and the first is cold."""
    client = opened(Warm(raises(error)))

    ending = asked(client)

    warm_up = client.notes[TARGET]["serving"]["warm_up"]
    assert warm_up["ok"] is False
    assert message in warm_up["message"]
    assert (ending.attempts, ending.cold_start) == (1, True)


def test_what_needs_no_warm_up_gets_none(opened: Open) -> None:
    """Cloud targets get no requests except for their cells."""
    provider = Fake(says("hi"))
    client = opened(provider)

    asked(client)

    assert len(provider.asked) == 1
    assert "warm_up" not in client.notes[TARGET]["serving"]


def test_the_machine_is_looked_at_once_before_a_target(opened: Open) -> None:
    """The snapshot comes with the first cell of each target."""
    client = opened(Fake(says("hi")))

    asked(client)
    first = client.notes.pop(TARGET)
    asked(client)

    assert first["before"]["memory_total_bytes"] > 0
    assert TARGET not in client.notes


class Asked(Fake):
    """Has a fingerprint."""

    def __init__(self, fingerprint: Callable[[], Any]) -> None:
        super().__init__(says("hi"))
        self._fingerprint = fingerprint

    async def fingerprint(self, model: str) -> dict[str, Any]:
        found = self._fingerprint()
        return await found if asyncio.iscoroutine(found) else found

    async def models(self) -> tuple[str, ...]:
        return await self.fingerprint("")  # type: ignore[return-value]


def _boom() -> Mapping[str, Any]:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("found", "reported"),
    [
        pytest.param(lambda: {"version": "1"}, {"version": "1"}, id="found"),
        pytest.param(_boom, {"error": "RuntimeError: boom"}, id="breaks"),
        pytest.param(lambda: asyncio.sleep(60), {"error": "TimeoutError: "}, id="never-ends"),
        pytest.param(
            lambda: {"a": {1}},
            {"error": "TypeError: Object of type set is not JSON serializable"},
            id="no-json",
        ),
    ],
)
def test_a_fingerprint_never_costs_a_cell(
    opened: Open, found: Callable[[], Any], reported: dict[str, str]
) -> None:
    """The server's own description is reported; if the request fails, its failure is."""
    client = opened(Asked(found), timeout_s=0.05)

    ending = asked(client)

    assert isinstance(ending.result, Reply)
    assert client.notes[TARGET]["serving"]["server"] == reported


def test_what_a_server_says_of_itself_holds_no_secret(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fingerprints and warm-ups are written into files of the run."""
    token = "dt_h7Kp2Vx9Qs4Wm1Z"
    monkeypatch.setenv("DEPLOY_TOKEN", token)

    async def refused(_: Request) -> Reply:
        raise CallFailed(faults.unreachable("fake", "nowhere", f"refused {token}"))

    for provider in (Asked(lambda: {"version": token}), Warm(refused)):
        client = opened(provider, retries=0)
        asked(client)
        text = repr(client.notes[TARGET]["serving"])
        assert "[secret]" in text
        assert token not in text


def test_the_models_served_are_asked_within_the_time(tmp_path: Path) -> None:
    """A provider that never lists its models is a timeout, before any cell."""

    def served(answer: Callable[[], Any]) -> tuple[str, ...]:
        fetcher = Fetcher({"fake": Asked(answer)}, Settings(timeout_s=0.05))
        return asyncio.run(fetcher.served(Target(provider="fake", model="*")))

    assert served(lambda: ("a", "b")) == ("a", "b")
    with pytest.raises(CallFailed, match="no complete answer"):
        served(lambda: asyncio.sleep(60))


@pytest.mark.parametrize(
    ("served", "ending"),
    [
        pytest.param(("a:1b", "mm"), "model 'm' not found. It has mm, a:1b.", id="nearest-first"),
        pytest.param((), "model 'm' not found", id="no-list"),
        pytest.param(tuple(f"x{n}" for n in range(20)), "x7 and 12 more.", id="many"),
        pytest.param(OSError("closed"), "model 'm' not found", id="broken-list"),
    ],
)
def test_a_missing_model_is_answered_with_those_there_are(
    opened: Open, served: tuple[str, ...] | Exception, ending: str
) -> None:
    """The fault names models of the server, if it lists any."""

    class Listing(Fake):
        async def models(self) -> tuple[str, ...]:
            if isinstance(served, Exception):
                raise served
            return served

    fault = asked(opened(Listing(raises(CallFailed(NO_MODEL))))).result

    assert isinstance(fault, Fault)
    assert fault.message.endswith(ending)
