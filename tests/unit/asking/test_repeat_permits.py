"""Which repeats may be asked already, and which never."""

from __future__ import annotations

from pytest_openclaw.asking.messages import PlannedCell, RepeatDecision
from pytest_openclaw.asking.repeat_permits import RepeatPermits
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.targets import Target


def _cells(n_repeats: int, model: str = "m") -> list[PlannedCell]:
    target = Target(provider="fake", model=model)
    request = Request(model=model, prompt="hi")
    return [
        PlannedCell(
            token=f"{model} r{n}", place=n, target=target, request=request, repeat=n, is_fixed_repeat=False,
            is_ahead=True,
        )
        for n in range(1, n_repeats + 1)
    ]  # fmt: skip


def _decision(repeat: int, ends: str | None = None) -> RepeatDecision:
    return RepeatDecision(target="fake/m", repeat=repeat, ends=ends)


def test_without_a_plan_all_may_be_asked() -> None:
    """A run with a fixed number of repeats never waits."""
    assert [RepeatPermits().permit(one) for one in _cells(3)] == ["ask"] * 3


def test_a_repeat_waits_for_the_one_before() -> None:
    """Each decision permits one more repeat, of its own target alone."""
    repeats, (first, second, third), others = RepeatPermits(), _cells(3), _cells(2, model="other")
    repeats.plan([first, second, third, *others])

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "wait", "wait"]

    repeats.receive(_decision(1))

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "ask", "wait"]
    assert repeats.permit(others[1]) == "wait"


def test_what_has_ended_is_left_out() -> None:
    """The repeats after the last one are not asked, with the reason; a repeated decision changes nothing."""
    repeats, (first, second, third) = RepeatPermits(), _cells(3)
    repeats.plan([first, second, third])
    for decision in (_decision(1), _decision(2, "it is settled"), _decision(1)):
        repeats.receive(decision)

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "ask", "leave_out"]
    assert [repeats.why_left_out(one) for one in (second, third)] == [None, "it is settled"]


def test_where_repeats_are_mixed_none_waits() -> None:
    """A cell does not wait for a later one; an end is received regardless."""
    repeats, (first, second, third) = RepeatPermits(), _cells(3)
    repeats.plan([second, first, third])

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "ask", "ask"]

    repeats.receive(_decision(1, "it is settled"))

    assert repeats.permit(third) == "leave_out"


def test_what_cannot_wait_goes_on() -> None:
    """A repeat whose test is running is asked, and the rest of that repeat too."""
    repeats, (first, second, third) = RepeatPermits(), _cells(3)
    repeats.plan([first, second, third])

    repeats.go_on(second)

    assert [repeats.permit(one) for one in (second, third)] == ["ask", "wait"]


def test_fixed_repeats_never_wait() -> None:
    """A prompt's own number is neither ended by a conclusive tier nor delayed, and changes no order."""
    repeats, (first, second, third) = RepeatPermits(), _cells(3)
    own = [one._replace(is_fixed_repeat=True) for one in (third, first, second)]
    repeats.plan([*own, first, second, third])

    repeats.receive(_decision(1, "it is settled"))

    assert [repeats.permit(one) for one in own] == ["ask"] * 3
    assert [repeats.why_left_out(one) for one in own] == [None] * 3
    assert [repeats.permit(one) for one in (first, second)] == ["ask", "leave_out"]
