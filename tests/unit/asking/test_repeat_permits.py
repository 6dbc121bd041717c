"""Which repeats may be asked yet, and which never."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from pytest_openclaw.asking.repeats import RepeatPermits
from pytest_openclaw.types.prompts import Cell
from tests.unit.asking.fake_providers import cell


def _cells(n_repeats: int, model: str = "m") -> list[Cell]:
    return [replace(cell(model=model), repeat=n, n_repeats=n_repeats) for n in range(1, n_repeats + 1)]


def _decision(repeat: int, ends: str | None = None) -> dict[str, object]:
    return {"target": "fake/m", "repeat": repeat, "ends": ends}


def test_without_a_plan_all_may_be_asked() -> None:
    """A run that asks each prompt a fixed number of times waits for nothing."""
    assert [RepeatPermits().permit(one) for one in _cells(3)] == ["ask"] * 3


def test_a_repeat_waits_for_the_one_before() -> None:
    """Each decision lets one more repeat be asked, of its own target alone."""
    repeats, (first, second, third), others = RepeatPermits(), _cells(3), _cells(2, model="other")
    repeats.plan([first, second, third, *others])

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "wait", "wait"]

    repeats.receive(_decision(1))

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "ask", "wait"]
    assert repeats.permit(others[1]) == "wait"


def test_what_has_ended_is_left_out() -> None:
    """The repeats after the last one are not asked, and say why; hearing it twice changes nothing."""
    repeats, (first, second, third) = RepeatPermits(), _cells(3)
    repeats.plan([first, second, third])
    for decision in (_decision(1), _decision(2, "it is settled"), _decision(1)):
        repeats.receive(decision)

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "ask", "leave_out"]
    assert [repeats.why_left_out(one) for one in (second, third)] == [None, "it is settled"]


def test_where_repeats_are_mixed_none_waits() -> None:
    """A cell does not wait for one that comes after it; an end is heard all the same."""
    repeats, (first, second, third) = RepeatPermits(), _cells(3)
    repeats.plan([second, first, third])

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "ask", "ask"]

    repeats.receive(_decision(1, "it is settled"))

    assert repeats.permit(third) == "leave_out"


def test_what_cannot_wait_goes_on() -> None:
    """A repeat whose test is under way is asked, and what follows in it too."""
    repeats, (first, second, third) = RepeatPermits(), _cells(3)
    repeats.plan([first, second, third])

    repeats.go_on(second)

    assert [repeats.permit(one) for one in (second, third)] == ["ask", "wait"]


@pytest.mark.parametrize("ends", [None, "it is settled"])
def test_waiting_ends_with_a_decision_from_another_thread(ends: str | None) -> None:
    """Whichever it is."""
    repeats, (first, second) = RepeatPermits(), _cells(2)
    repeats.plan([first, second])
    teller = threading.Timer(0.05, repeats.receive, [_decision(1, ends)])
    teller.start()

    repeats.await_turn(second, gives_up=lambda: False)

    assert repeats.permit(second) == ("leave_out" if ends else "ask")
    teller.join()


def test_waiting_ends_when_the_session_does() -> None:
    """Nobody tells a worker anything any more then."""
    repeats, (first, second) = RepeatPermits(), _cells(2)
    repeats.plan([first, second])

    repeats.await_turn(second, gives_up=lambda: True)

    assert repeats.permit(second) == "wait"


def test_what_is_asked_anyway_waits_for_nothing() -> None:
    """A prompt's own number is neither ended by a settled tier nor held up, and puts no order out of joint."""
    repeats, (first, second, third) = RepeatPermits(), _cells(3)
    own = [replace(one, prompt=replace(one.prompt, repeat=3)) for one in (third, first, second)]
    repeats.plan([*own, first, second, third])

    repeats.receive(_decision(1, "it is settled"))

    assert [repeats.permit(one) for one in own] == ["ask"] * 3
    assert [repeats.why_left_out(one) for one in own] == [None] * 3
    assert [repeats.permit(one) for one in (first, second)] == ["ask", "leave_out"]
