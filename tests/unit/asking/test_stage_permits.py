"""Which stages may be asked already, and which never."""

from __future__ import annotations

from pytest_openclaw.asking.asker import StagePermits


def _permits(permits: StagePermits, target: str = "a") -> list[str]:
    return [permits.permit(target, stage) for stage in range(4)]


def test_a_stage_waits_for_the_decision_on_the_one_before() -> None:
    """Each decision permits one more stage of its own target; stage 0 waits for nothing."""
    permits = StagePermits()

    assert _permits(permits) == ["ask", "ask", "wait", "wait"]

    permits.receive("a", 1, None)

    assert _permits(permits) == ["ask", "ask", "ask", "wait"]
    assert _permits(permits, "b") == ["ask", "ask", "wait", "wait"]


def test_stages_after_the_end_are_left_out() -> None:
    """They are not asked, with the reason; a repeated decision changes nothing."""
    permits = StagePermits()
    for stage, ends in ((1, None), (2, "it is settled"), (1, None)):
        permits.receive("a", stage, ends)

    assert _permits(permits) == ["ask", "ask", "ask", "leave_out"]
    assert [permits.why_left_out("a", stage) for stage in (2, 3)] == [None, "it is settled"]
