"""What a run has spent, as every process of a machine knows it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.asking.budget import SpentBudget
from pytest_openclaw.asking.fetching import Fetcher, Job, JobResult
from pytest_openclaw.asking.shares import Part
from pytest_openclaw.types import faults
from pytest_openclaw.types.faults import CallFailed
from pytest_openclaw.types.replies import Fault, Reply, Usage
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.settings import OwnPrice, Settings
from pytest_openclaw.types.targets import Target
from pytest_openclaw.types.tool_calls import Tool, ToolCall
from pytest_openclaw.types.worlds import World
from tests.unit.asking.fake_providers import Answer, Fake, Handy, Warm

TARGET = Target(provider="fake", model="m")
#: a token of input costs a dollar, one of output two
PRICE = OwnPrice(pattern="fake/*", input_usd=1e6, output_usd=2e6, cached_usd=1e6)


def test_all_processes_have_one_budget(tmp_path: Path) -> None:
    """What one pays the others see; what other machines have spent is told and only grows."""
    one, other = SpentBudget(tmp_path, 10.0), SpentBudget(tmp_path, 10.0)
    assert (one.spent_usd, one.is_empty) == (0.0, False)

    one.pay(2.5)
    other.pay(0.25)
    one.hear(4.0)
    other.hear(3.0)

    assert [budget.spent_usd for budget in (one, other)] == [6.75, 6.75]
    assert [budget.here_usd for budget in (one, other)] == [2.75, 2.75]
    assert not other.is_empty
    one.pay(3.25)
    assert other.is_empty
    assert SpentBudget(tmp_path, 10.0).is_empty


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    """A reader that comes in the middle of a write loses nothing and counts nothing twice."""
    budget = SpentBudget(tmp_path, 10.0)
    budget.pay(1.0)
    with (tmp_path / "spent.txt").open("ab") as file:
        file.write(b"here 2.")
        file.flush()
        assert budget.spent_usd == 1.0
        file.write(b"5\n")

    assert budget.spent_usd == 3.5


def test_without_a_budget_nothing_is_written(tmp_path: Path) -> None:
    """Most runs have none, and take no notice."""
    budget = SpentBudget(tmp_path, None)
    budget.pay(5.0)

    assert (budget.spent_usd, budget.is_empty, [*tmp_path.iterdir()]) == (0.0, False, [])


# --- asking -------------------------------------------------------------------------------------


def fetch(
    folder: Path, provider: Fake, *requests: dict[str, Any], budget_usd: float | None = 10.0, **settings: Any
) -> list[JobResult]:
    """Ask these one after the other."""
    chosen = Settings(targets=(TARGET,), prices=(PRICE,), budget_usd=budget_usd, **{"retries": 0, **settings})

    async def asking() -> list[JobResult]:
        fetcher = Fetcher({"fake": provider}, chosen, folder)
        told = []
        for number, request in enumerate(requests):
            asked = Request(**{"model": "m", "prompt": "hi", "max_output_tokens": 1, **request})
            job = Job(number=number, target=TARGET, request=asked, part=Part("fake", 1))
            told.append(await fetcher.fetch(job))
        return told

    return asyncio.run(asking())


def endings(told: list[JobResult]) -> list[tuple[str, int, float | None]]:
    """How each ended, after how many attempts, at what cost."""
    found = []
    for one in told:
        assert one.ending is not None, one.error
        result = one.ending.result
        how = result.failure_type if isinstance(result, Fault) else "ok"
        found.append((how, one.ending.attempts, one.ending.cost_usd))
    return found


def costs(n_input: int | None, n_output: int | None) -> Answer:
    """An answer with these counts."""

    async def answer(request: Request) -> Reply:
        return Reply(text="hi", input_tokens=n_input, output_tokens=n_output)

    return answer


def fails(fault: Fault) -> Answer:
    """No answer, for this reason."""

    async def answer(request: Request) -> Reply:
        raise CallFailed(fault)

    return answer


def test_nobody_is_asked_once_the_budget_is_spent(tmp_path: Path) -> None:
    """The call that reaches the budget is the last one; the others have no attempt and no cost."""
    provider = Fake(costs(4, 0))

    told = endings(fetch(tmp_path, provider, *[{}] * 5))

    assert told == [("ok", 1, 4.0)] * 3 + [("budget_spent", 0, None)] * 2
    assert len(provider.asked) == 3


def test_a_warm_up_is_paid_too(tmp_path: Path) -> None:
    """Whatever is sent is taken out of the budget."""
    provider = Warm(costs(6, 0))

    told = endings(fetch(tmp_path, provider, {}, {}))

    assert told == [("ok", 1, 6.0), ("budget_spent", 0, None)]


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
        pytest.param(costs(1, 2), "context_overflow", 5.0, 5.0, id="cut-and-counted"),
        pytest.param(
            fails(faults.refused_by_server("fake", "m", faults.WireError(status=400, message="bad"))),
            "http_400",
            None,
            0.0,
            id="refused-costs-nothing",
        ),
        pytest.param(fails(faults.unreachable("fake", "x", "refused")), "connect_error", None, 0.0, id="nobody-there"),
    ],
)  # fmt: skip
def test_what_is_taken_out(
    tmp_path: Path, answer: Answer, how: str, cost: float | None, spent_usd: float
) -> None:
    """The row tells what is known; the budget counts the worst of what is not."""
    request = {"prompt": "hi " * 300} if how == "context_overflow" else {}

    told = endings(fetch(tmp_path, Fake(answer), request, budget_usd=1e9))

    assert told == [(how, 1, cost)]
    assert SpentBudget(tmp_path, 1e9).spent_usd == pytest.approx(spent_usd)


def test_a_retry_is_not_sent_any_more(tmp_path: Path) -> None:
    """A cell that waits for its next attempt keeps its own fault when the money has gone meanwhile."""

    async def answer(request: Request) -> Reply:
        SpentBudget(tmp_path, 10.0).pay(10.0)
        raise CallFailed(
            faults.refused_by_server("fake", "m", faults.WireError(status=429), retry_after_s=0.0)
        )

    provider = Fake(answer)

    assert endings(fetch(tmp_path, provider, {}, retries=3)) == [("http_429", 1, None)]
    assert len(provider.asked) == 1


def test_attempts_add_up(tmp_path: Path) -> None:
    """What was paid for an attempt that broke is part of the cell's cost."""
    broken = Fault(
        failure_type="connect_error",
        status="error",
        message="",
        retryable=True,
        retry_after_s=0.0,
        usage=(Usage(input_tokens=3),),
    )
    replies = [CallFailed(broken), Reply(text="hi", input_tokens=1, output_tokens=0)]

    async def answer(request: Request) -> Reply:
        result = replies.pop(0)
        if isinstance(result, CallFailed):
            raise result
        return result

    assert endings(fetch(tmp_path, Fake(answer), {}, retries=1)) == [("ok", 2, 4.0)]


def test_an_exchange_ends_between_its_turns(tmp_path: Path) -> None:
    """What was said and paid for before is kept, and the cell counts as not asked to its end."""

    async def answer(request: Request) -> Reply:
        call = ToolCall(name="ls", arguments="{}", id="1")
        return Reply(tool_calls=(call,), input_tokens=5, output_tokens=0)

    (told,) = fetch(
        tmp_path,
        Handy(answer),
        {"tools": (Tool(name="ls", description="", parameters={}),), "world": World(files={}, steps=8)},
        budget_usd=10.0,
    )

    assert endings([told]) == [("budget_spent", 2, 10.0)]
    assert told.ending is not None
    assert isinstance(told.ending.result, Fault)
    assert len(told.ending.result.turns) == 2
