"""The spending of a run, and its effect."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_openclaw.asking.sending import Sender
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.replies import CallResult, Fault, Reply, Usage
from pytest_openclaw.values.requests import Request, Target
from pytest_openclaw.values.settings import OwnPrice, Settings
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from pytest_openclaw.values.worlds import World
from tests.unit.asking.fake_providers import Answer, Fake, Handy, Warm, cell

TARGET = Target(provider="fake", model="m")
#: a token of input costs a dollar, one of output two
PRICE = OwnPrice(pattern="fake/*", input_usd=1e6, output_usd=2e6, cached_usd=1e6)


def sender_of(provider: Fake, **settings: Any) -> Sender:
    """A sender with a budget of 10 USD if there is no other."""
    chosen = {"budget_usd": 10.0, "retries": 0, **settings}
    return Sender({"fake": provider}, Settings(targets=(TARGET,), prices=(PRICE,), **chosen))


def send(sender: Sender, *requests: dict[str, Any]) -> list[CallResult]:
    """Send these one after the other."""

    async def sending() -> list[CallResult]:
        asked = [Request(**{"model": "m", "prompt": "hi", "max_output_tokens": 1, **one}) for one in requests]
        return [await sender.send(cell(), one, 0.0) for one in asked]

    return asyncio.run(sending())


def endings(results: list[CallResult]) -> list[tuple[str, int, float | None]]:
    """The end of each, its attempts and its cost."""
    found = []
    for one in results:
        how = one.result.failure_type if isinstance(one.result, Fault) else "ok"
        found.append((how, one.attempts, one.cost_usd))
    return found


def costs(n_input: int | None, n_output: int | None) -> Answer:
    """A reply with these counts."""

    async def answer(request: Request) -> Reply:
        return Reply(text="hi", input_tokens=n_input, output_tokens=n_output)

    return answer


def fails(fault: Fault) -> Answer:
    """No reply, with this fault."""

    async def answer(request: Request) -> Reply:
        raise CallFailed(fault)

    return answer


def test_no_request_is_sent_once_the_budget_is_spent() -> None:
    """The call that reaches the budget is the last one; the others have no attempt and no cost."""
    provider = Fake(costs(4, 0))

    results = endings(send(sender_of(provider), *[{}] * 5))

    assert results == [("ok", 1, 4.0)] * 3 + [("budget_spent", 0, None)] * 2
    assert len(provider.asked) == 3


def test_a_warm_up_is_paid_too() -> None:
    """Every request counts for the budget."""
    provider = Warm(costs(6, 0))

    results = endings(send(sender_of(provider), {}, {}))

    assert results == [("ok", 1, 6.0), ("budget_spent", 0, None)]


@pytest.mark.parametrize(
    ("answer", "how", "cost", "spent_usd"),
    [
        pytest.param(costs(3, 2), "ok", 7.0, 7.0, id="counted"),
        # 4096 for a template, 2 for the prompt, and one token of output.
        pytest.param(costs(None, 2), "ok", None, 4100.0, id="not-counted-is-the-most-that-it-can-be"),
        pytest.param(fails(faults.timed_out("fake", 1.0)), "timeout", None, 4100.0, id="given-up-too"),
        pytest.param(
            fails(Fault(failure_type="stream_error", status="error", message="", usage=(Usage(input_tokens=3),))),
            "stream_error",
            3.0,
            3.0,
            id="broken-and-counted",
        ),
        pytest.param(costs(100, 2), "context_overflow", 104.0, 104.0, id="cut-and-counted"),
        pytest.param(
            fails(faults.refused_by_server("fake", "m", faults.WireError(status=400, message="bad"))),
            "http_400",
            None,
            0.0,
            id="refused-costs-nothing",
        ),
        pytest.param(fails(faults.unreachable("fake", "x", "refused")), "connect_error", None, 0.0, id="no-server"),
    ],
)  # fmt: skip
def test_what_is_taken_out(answer: Answer, how: str, cost: float | None, spent_usd: float) -> None:
    """The row has the known cost; the budget counts the highest possible cost of the rest."""
    request = {"prompt": "hi " * 300} if how == "context_overflow" else {}

    sender = sender_of(Fake(answer), budget_usd=1e9)

    results = endings(send(sender, request))

    assert results == [(how, 1, cost)]
    assert sender.spent_usd == pytest.approx(spent_usd)


def test_a_retry_is_not_sent_any_more() -> None:
    """A cell that waits for its next attempt keeps its own fault if the budget is spent meanwhile."""

    async def answer(request: Request) -> Reply:
        sender.spent_usd = 10.0
        raise CallFailed(
            faults.refused_by_server("fake", "m", faults.WireError(status=429), retry_after_s=0.0)
        )

    provider = Fake(answer)
    sender = sender_of(provider, retries=3)

    assert endings(send(sender, {})) == [("http_429", 1, None)]
    assert len(provider.asked) == 1


def test_an_exchange_ends_between_its_turns() -> None:
    """The turns paid for so far are kept, and the cell counts as not asked to its end."""

    async def answer(request: Request) -> Reply:
        call = ToolCall(name="ls", arguments="{}", id="1")
        return Reply(tool_calls=(call,), input_tokens=5, output_tokens=0)

    (ended,) = send(
        sender_of(Handy(answer)),
        {"tools": (Tool(name="ls", description="", parameters={}),), "world": World(files={}, steps=8)},
    )

    assert endings([ended]) == [("budget_spent", 2, 10.0)]
    assert isinstance(ended.result, Fault)
    assert len(ended.result.turns) == 2
