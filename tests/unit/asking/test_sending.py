"""Sending: which faults are retried and after what wait, the budget, and prompts that a server has cut."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.asking import sending
from pytest_openclaw.asking.sending import LEAST_WORDS, Sender, ask_once, cut_prompt, wait_before_retry
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed, WireError, refused_by_server
from pytest_openclaw.values.replies import Fault, Reply, Timing, Turn, Usage
from pytest_openclaw.values.requests import Request, Target
from pytest_openclaw.values.settings import OwnPrice, Settings
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from pytest_openclaw.values.worlds import World
from tests.unit.asking.asking import Fake, Handy, Warm, cell, open_room, raises

BUSY = refused_by_server("p", "m", WireError(status=429))


def _wait(fault, **changes):
    return wait_before_retry(
        fault, **{"attempt": 1, "retries": 5, "elapsed_s": 0.0, "timeout_s": 300.0, **changes}
    )


@pytest.fixture(autouse=True)
def _no_jitter(monkeypatch):
    monkeypatch.setattr(sending.random, "uniform", lambda _, most: most)


ASKED = refused_by_server("p", "m", WireError(status=503), retry_after_s=7.0)


@pytest.mark.parametrize(
    ("fault", "changes", "wait_s"),
    [
        # Full jitter draws up to 1, 2, 4 … and at most 60 s.
        *(
            (BUSY, {"attempt": n, "retries": 100}, s)
            for n, s in ((1, 1.0), (2, 2.0), (3, 4.0), (7, 60.0), (50, 60.0))
        ),
        (BUSY, {"attempt": 5}, 16.0),
        (BUSY, {"attempt": 6}, None),
        # A server's wait counts if the next attempt begins within the cell's timeout.
        (ASKED, {}, 7.0),
        (ASKED, {"elapsed_s": 295.0}, None),
        (ASKED, {"timeout_s": 5.0}, None),
    ],
)
def test_the_wait_before_a_retry(fault, changes, wait_s):
    """The back-off doubles to a minute, unless the server asks for a wait; after `retries` retries there is none."""
    assert _wait(fault, **changes) == wait_s


REFUSED = faults.unreachable("p", "u", "refused")
NO_KEY = faults.auth_missing("p", "set a key")


@pytest.mark.parametrize(
    ("fault", "asked"),
    [
        pytest.param(REFUSED, ["a"], id="an-endpoint-is-down-for-all-its-targets"),
        pytest.param(NO_KEY, ["a", "b"], id="a-target-is-down-by-itself"),
        pytest.param(faults.timed_out("p", 1.0), ["a", "a", "b"], id="a-cell's-own-fault-marks-nothing"),
    ],
)
def test_an_unavailable_target_is_not_asked_again(fault, asked):
    """Two cells of model a, then one of b on the same endpoint: which of them are sent."""
    provider = Fake(raises(CallFailed(fault)))
    with open_room(provider) as room:
        for number, model in enumerate(["a", "a", "b"]):
            room.ask(cell(f"P{number}", model=model))

    assert [request.model for request in provider.asked] == asked


SLOW = faults.timed_out("p", 300.0)
TOKEN = Timing(started_at_ms=0, ended_at_ms=9, e2e_ms=9.0, ttft_ms=4.0)
LONG = refused_by_server("p", "m", WireError(status=400, message="maximum context length exceeded"))
OK = Reply(text="hi")


@pytest.mark.parametrize(
    ("cells", "is_down"),
    [
        pytest.param([BUSY, BUSY, replace(BUSY, raw="half", timing=TOKEN)], True, id="three"),
        pytest.param([BUSY, BUSY], False, id="two"),
        pytest.param([BUSY, BUSY, OK, BUSY], False, id="an-answer-between"),
        pytest.param([BUSY, BUSY, ASKED, BUSY], False, id="another-fault-between"),
        pytest.param([ASKED, BUSY, BUSY, BUSY], True, id="the-last-three"),
        pytest.param([BUSY, BUSY, LONG, BUSY], False, id="a-fault-of-a-prompt-between"),
        pytest.param([LONG] * 4, False, id="faults-of-prompts"),
        pytest.param([faults.connection_lost("p", "reset")] * 3, True, id="lost"),
        pytest.param([SLOW] * 3, True, id="timeouts"),
        pytest.param([replace(SLOW, raw="Once")] * 4, False, id="slow-answers"),
        pytest.param([replace(SLOW, timing=TOKEN)] * 4, False, id="slow-calls"),
        pytest.param([(SLOW, 5.0)] * 4, False, id="prompts-with-less-time"),
        pytest.param([SLOW, (SLOW, 5.0), SLOW, SLOW], True, id="a-prompt-with-less-time-between"),
        pytest.param([SLOW, SLOW, (SLOW, 900.0)], True, id="a-prompt-with-more-time"),
        pytest.param([faults.not_installed("p", "no", "cell")] * 4, False, id="not-sent"),
        pytest.param([BUSY, faults.cannot_play("p", "no"), BUSY, BUSY], True, id="not-sent-between"),
    ],
)
def test_cells_in_a_row_with_the_same_fault_end_the_asking(cells, is_down):
    """The next cell is not sent and has the reason; another model of the endpoint is asked."""
    endings = [one if isinstance(one, tuple) else (one, None) for one in cells]
    left_as = [result for result, _ in endings]
    left = [*left_as]

    async def answer(request):
        result = left.pop(0) if left else OK
        if isinstance(result, Fault):
            raise CallFailed(result)
        return result

    with open_room(Fake(answer), retries=0) as room:
        for number, (_, timeout_s) in enumerate(endings):
            room.ask(cell(f"P{number}", timeout_s=timeout_s))
        after, other = room.ask(cell("after")), room.ask(cell("other", model="n"))

    assert isinstance(other.result, Reply)
    assert after.attempts == (not is_down)
    if is_down:
        last = left_as[-1]
        assert (after.result.failure_type, after.result.status) == (last.failure_type, last.status)
        assert (after.result.raw, after.result.timing) == ("", None)
        assert after.result.message.startswith("not asked: p: ")
        assert "3 cells in a row ended so" in after.result.message


def test_a_target_is_up_again_with_the_answer_to_a_cell_in_flight():
    """Cells count as they end: of four in flight, three fail first, and the answer of the fourth ends the outage."""
    held = asyncio.Event()

    async def answer(request):
        if request.prompt == "P0":
            await held.wait()
        elif request.prompt != "P9":
            raise CallFailed(BUSY)
        return OK

    with open_room(Fake(answer), limit=4, retries=0) as room:
        first = room.asker.submit("P0", cell("P0"))
        for number in range(1, 4):
            room.ask(cell(f"P{number}"))
        down = room.ask(cell("P8"))
        room.asker._loop.call_soon_threadsafe(held.set)
        first.result()
        up = room.ask(cell("P9"))

    assert (down.attempts, up.attempts) == (0, 1)


@pytest.mark.parametrize(
    ("fault", "is_explained"),
    [
        pytest.param(REFUSED, True, id="nothing-answers"),
        pytest.param(
            refused_by_server("p", "m", WireError(status=404, message="model 'm' not found")),
            True,
            id="unknown",
        ),
        pytest.param(BUSY, False, id="busy"),
    ],
)
def test_a_fault_says_how_a_name_was_read(fault, is_explained):
    """A cell that is not asked says it about its own target."""
    with open_room(Fake(raises(CallFailed(fault))), retries=0) as room:
        texts = [room.ask(cell(f"P{n}", model=f"openai/m{n}")).result for n in range(2)]

    for n, result in enumerate(texts):
        hint = f" The name was read as the model openai/m{n} of fake. Did you mean openai_responses/m{n}?"
        assert (isinstance(result, Fault) and result.message.endswith(hint)) is (
            is_explained and (n == 0 or fault is REFUSED)
        )


TARGET = Target(provider="fake", model="m")
#: a token of input costs a dollar, one of output two
PRICE = OwnPrice(pattern="fake/*", input_usd=1e6, output_usd=2e6, cached_usd=1e6)


def sender_of(provider, **settings):
    chosen = {"budget_usd": 10.0, "retries": 0, **settings}
    return Sender({"fake": provider}, Settings(targets=(TARGET,), prices=(PRICE,), **chosen))


def send(sender, *requests):
    async def sending():
        asked = [Request(**{"model": "m", "prompt": "hi", "max_output_tokens": 1, **one}) for one in requests]
        return [await sender.send(cell(), one, 0.0) for one in asked]

    return asyncio.run(sending())


def endings(results):
    found = []
    for one in results:
        how = one.result.failure_type if isinstance(one.result, Fault) else "ok"
        found.append((how, one.attempts, one.cost_usd))
    return found


def costs(n_input, n_output):
    async def answer(request):
        return Reply(text="hi", input_tokens=n_input, output_tokens=n_output)

    return answer


def fails(fault):
    async def answer(request):
        raise CallFailed(fault)

    return answer


def test_no_request_is_sent_once_the_budget_is_spent():
    """The call that reaches the budget is the last one; the others have no attempt and no cost."""
    provider = Fake(costs(4, 0))

    results = endings(send(sender_of(provider), *[{}] * 5))

    assert results == [("ok", 1, 4.0)] * 3 + [("budget_spent", 0, None)] * 2
    assert len(provider.asked) == 3


def test_a_warm_up_is_paid_too():
    """Every request counts for the budget."""
    provider = Warm(costs(6, 0))

    results = endings(send(sender_of(provider), {}, {}))

    assert results == [("ok", 1, 6.0), ("budget_spent", 0, None)]


@pytest.mark.parametrize(
    ("answer", "how", "cost", "spent_usd"),
    [
        pytest.param(costs(3, 2), "ok", 7.0, 7.0, id="counted"),
        # 4096 for a template, 2 for the prompt, and one token of output.
        pytest.param(costs(None, 2), "ok", None, 4100.0, id="not-counted"),
        pytest.param(fails(faults.timed_out("fake", 1.0)), "timeout", None, 4100.0, id="timeout"),
        pytest.param(
            fails(Fault(failure_type="stream_error", status="error", message="", usage=(Usage(input_tokens=3),))),
            "stream_error",
            3.0,
            3.0,
            id="broken-and-counted",
        ),
        pytest.param(costs(100, 2), "context_overflow", 104.0, 104.0, id="cut-and-counted"),
        pytest.param(
            fails(refused_by_server("fake", "m", WireError(status=400, message="bad"))),
            "http_400",
            None,
            0.0,
            id="refused-costs-nothing",
        ),
        pytest.param(fails(faults.unreachable("fake", "x", "refused")), "connect_error", None, 0.0, id="no-server"),
    ],
)  # fmt: skip
def test_the_cost_of_a_call(answer, how, cost, spent_usd):
    """The row has the known cost; the budget counts the highest possible cost of the rest."""
    request = {"prompt": "hi " * 300} if how == "context_overflow" else {}

    sender = sender_of(Fake(answer), budget_usd=1e9)

    results = endings(send(sender, request))

    assert results == [(how, 1, cost)]
    assert sender.spent_usd == pytest.approx(spent_usd)


def test_a_retry_is_not_sent_any_more():
    """A cell that waits for its next attempt keeps its own fault if the budget is spent meanwhile."""

    async def answer(request):
        sender.spent_usd = 10.0
        raise CallFailed(refused_by_server("fake", "m", WireError(status=429), retry_after_s=0.0))

    provider = Fake(answer)
    sender = sender_of(provider, retries=3)

    assert endings(send(sender, {})) == [("http_429", 1, None)]
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    ("asked_s", "retries", "said"),
    [
        (0.0, 0, None),
        (0.0, 2, "Tried 3 times (Retry-After: 0 s, obeyed)."),
        (900.0, 2, "Tried once (Retry-After: 900 s, longer than the timeout)."),
    ],
)
def test_a_fault_says_how_often_it_was_tried(asked_s, retries, said):
    """It has the attempts and the wait that was obeyed or refused."""

    async def answer(request):
        raise CallFailed(refused_by_server("fake", "m", WireError(status=429), retry_after_s=asked_s))

    (ended,) = send(sender_of(Fake(answer), retries=retries, budget_usd=None), {})

    assert isinstance(ended.result, Fault), ended
    assert ended.result.message.removeprefix("fake: HTTP 429: no reason given").strip(". ") == (
        said or ""
    ).strip(".")


def test_an_exchange_ends_between_its_turns():
    """The turns paid for so far are kept, and the cell counts as not asked to its end."""

    async def answer(request):
        call = ToolCall(name="ls", arguments="{}", id="1")
        return Reply(tool_calls=(call,), input_tokens=5, output_tokens=0)

    (ended,) = send(
        sender_of(Handy(answer)),
        {"tools": (Tool(name="ls", description="", parameters={}),), "world": World(files={}, steps=8)},
    )

    assert endings([ended]) == [("budget_spent", 2, 10.0)]
    assert len(ended.result.turns) == 2


TIMING = Timing(started_at_ms=5, ended_at_ms=7, e2e_ms=2.0)


def request(words, **more):
    return Request(**{"model": "qwen3:8b", "prompt": "word " * words, **more})


def reply(**counts):
    return Reply(text="Paris.", raw="<think>hm</think>Paris.", timing=TIMING, **counts)


def test_a_cut_prompt_is_reported_with_both_figures():
    """A reply to a truncated prompt does not count; its text and times are kept."""
    fault = cut_prompt("lab", request(3000), reply(input_tokens=2048))

    assert fault.message == (
        "lab: the prompt was cut to fit qwen3:8b's context: 3000 words were sent, and the server counted "
        "2048 prompt tokens. Raise the server's context (num_ctx, in Ollama)."
    )
    assert (fault.failure_type, fault.status, fault.scope) == ("context_overflow", "error", "cell")
    assert (fault.retryable, fault.sent) == (False, True)
    assert (fault.raw, fault.timing) == ("<think>hm</think>Paris.", TIMING)


ANSWERED = Turn(calls=(ToolCall(name="read"),), results=("word " * 300,))


@pytest.mark.parametrize(
    ("asked", "counts", "is_cut"),
    [
        pytest.param(request(300), {"input_tokens": 299}, True, id="fewer"),
        pytest.param(request(300), {"input_tokens": 300}, False, id="as-many"),
        pytest.param(request(300), {"input_tokens": 4000}, False, id="more"),
        pytest.param(request(300), {"input_tokens": None}, False, id="not-counted"),
        pytest.param(request(300), {"input_tokens": 0}, False, id="counted-as-0"),
        pytest.param(request(LEAST_WORDS), {"input_tokens": 100}, True, id="just-long-enough"),
        pytest.param(request(LEAST_WORDS - 1), {"input_tokens": 100}, False, id="too-short-to-be-cut"),
        pytest.param(request(300), {"input_tokens": 44, "cached_tokens": 256}, False, id="rest-from-a-cache"),
        pytest.param(
            request(300), {"input_tokens": 100, "cached_tokens": 44}, True, id="cut-and-from-a-cache"
        ),
        pytest.param(
            request(900), {"input_tokens": 800, "cached_tokens": 700}, True, id="cut-after-the-cache"
        ),
        pytest.param(request(10, system="word " * 300), {"input_tokens": 256}, True, id="of-its-system"),
        pytest.param(request(10, history=(ANSWERED,)), {"input_tokens": 256}, True, id="of-its-results"),
    ],
)
def test_a_cut_prompt_is_recognized(asked, counts, is_cut):
    """Fewer tokens than words were counted, for a prompt that is long enough to decide."""
    assert (cut_prompt("lab", asked, reply(**counts)) is not None) == is_cut


@given(
    words=st.integers(0, 2000), extra=st.integers(0, 2000), cached=st.one_of(st.none(), st.integers(0, 2000))
)
def test_a_prompt_that_is_read_whole_is_not_cut(words, extra, cached):
    """Every word has at least one token."""
    assert cut_prompt("lab", request(words), reply(input_tokens=words + extra, cached_tokens=cached)) is None


async def _text(request):
    return request.prompt


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        pytest.param(lambda request: Reply(text=request.prompt), "write async def ask", id="not-async"),
        pytest.param(_text, "a provider's ask returns a Reply, not str", id="no-reply"),
    ],
)
def test_a_plugins_ask_must_be_async_and_return_a_reply(ask, message, monkeypatch):
    """The error says what to write."""
    monkeypatch.setattr(provider := Fake(ask), "ask", ask)

    with pytest.raises(TypeError, match=message):
        asyncio.run(ask_once(provider, request(1)))
