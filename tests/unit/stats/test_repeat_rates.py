"""The results of a prompt's repeats."""

from __future__ import annotations

from pytest_openclaw.stats.repeats import repeats_of
from pytest_openclaw.values.rows import Record
from tests.unit.reports.summaries import fault, missed, record, summary_of


def _rows(*prompts: tuple[int, int]) -> list[Record]:
    """Prompts, each with `passed` of `n` repeats."""
    return [
        (record if repeat <= passed else missed)(prompt_id=f"P{number}", repeat=repeat)
        for number, (passed, n) in enumerate(prompts, start=1)
        for repeat in range(1, n + 1)
    ]


def test_flaky_prompts_passed_only_sometimes() -> None:
    """The flakiest come first, in order of their rows if equal; a prompt asked once says nothing."""
    found = repeats_of(_rows((1, 9), (8, 9), (4, 9), (2, 9), (5, 9), (0, 9), (9, 9), (1, 1)))

    assert found is not None
    assert (found.n_prompts, found.n_passed, found.always_alike) == (7, 1, False)
    assert [prompt.prompt_id for prompt in found.flaky] == ["P3", "P5", "P4", "P1", "P2"]
    assert (found.flaky[0].n_success, found.flaky[0].n) == (4, 9)


def test_without_repeats_there_is_nothing_to_say() -> None:
    """Prompts asked once, and repeats without a reply or a verdict, do not count."""
    rows = [
        *_rows((1, 1), (0, 1)),
        fault(prompt_id="P1", repeat=2),
        record(prompt_id="P2", repeat=2, objective_pass=None),
    ]

    assert summary_of(rows).groups[0].repeats is None


def test_an_empty_reply_is_a_miss() -> None:
    """A repeat with an empty answer counts as in `passed`."""
    rows = [record(), record(repeat=2, success=False, objective_pass=None, failure_type="empty_response")]

    found = summary_of(rows).groups[0].repeats

    assert found is not None
    assert len(found.flaky) == 1
