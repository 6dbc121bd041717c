"""Which repeats may be asked already, and which never."""

from __future__ import annotations

from dataclasses import replace

from pytest_openclaw.asking.asker import RepeatPermits
from pytest_openclaw.values.prompts import Cell
from tests.unit.asking.fake_providers import cell


def _cells(n_repeats: int, model: str = "m") -> list[Cell]:
    return [replace(cell(model=model), repeat=n, n_repeats=n_repeats) for n in range(1, n_repeats + 1)]


def test_a_fixed_number_of_repeats_never_waits() -> None:
    """All may be asked at once."""
    assert [RepeatPermits(waits=False).permit(one) for one in _cells(3)] == ["ask"] * 3


def test_a_repeat_waits_for_the_one_before() -> None:
    """Each decision permits one more repeat, of its own target alone."""
    repeats, (first, second, third), others = RepeatPermits(waits=True), _cells(3), _cells(2, model="other")

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "wait", "wait"]

    repeats.receive("fake/m", 1, None)

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "ask", "wait"]
    assert repeats.permit(others[1]) == "wait"


def test_what_has_ended_is_left_out() -> None:
    """The repeats after the last one are not asked, with the reason; a repeated decision changes nothing."""
    repeats, (first, second, third) = RepeatPermits(waits=True), _cells(3)
    for repeat, ends in ((1, None), (2, "it is settled"), (1, None)):
        repeats.receive("fake/m", repeat, ends)

    assert [repeats.permit(one) for one in (first, second, third)] == ["ask", "ask", "leave_out"]
    assert [repeats.why_left_out(one) for one in (second, third)] == [None, "it is settled"]


def test_what_cannot_wait_goes_on() -> None:
    """A repeat whose test is running is asked, and the rest of that repeat too."""
    repeats, (_, second, third) = RepeatPermits(waits=True), _cells(3)

    repeats.allow(second)

    assert [repeats.permit(one) for one in (second, third)] == ["ask", "wait"]


def test_fixed_repeats_never_wait() -> None:
    """A prompt's own number is neither ended by a conclusive tier nor delayed, and changes no order."""
    repeats, (first, second, third) = RepeatPermits(waits=True), _cells(3)
    own = [replace(one, prompt=replace(one.prompt, repeat=3)) for one in (third, first, second)]

    repeats.receive("fake/m", 1, "it is settled")

    assert [repeats.permit(one) for one in own] == ["ask"] * 3
    assert [repeats.why_left_out(one) for one in own] == [None] * 3
    assert [repeats.permit(one) for one in (first, second)] == ["ask", "leave_out"]
