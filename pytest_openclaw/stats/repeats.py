"""Results of repeated prompts: which of them pass only sometimes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from pytest_openclaw.stats.intervals import has_passed

if TYPE_CHECKING:
    from pytest_openclaw.values.rows import Record

_ending_of = attrgetter(
    "success", "objective_pass", "violation", "tool_outcome", "tool_use_success", "tool_calls",
    "tool_call_count", "output_tokens", "reasoning_tokens", "finish_reason",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FlakyPrompt:
    """A prompt of which some repeats passed and some did not."""

    suite: str
    prompt_id: str
    n: int
    n_success: int


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """The prompts that were asked more than once.

    Attributes:
        n_prompts: how many, with two judged repeats or more.
        n_passed: those that passed each time.
        flaky: those that passed only sometimes, the flakiest first.
        always_alike: every repeat of each prompt ended as the others did, so that only new prompts add
            evidence; see `always_alike`.
    """

    n_prompts: int
    n_passed: int
    flaky: Sequence[FlakyPrompt]
    always_alike: bool


def repeats_of(judged: Iterable[Record]) -> Repeats | None:
    """Return the results of one target's repeats; None if no prompt has two."""
    repeated = _repeated(judged)
    if not repeated:
        return None
    prompts = [
        FlakyPrompt(suite=suite, prompt_id=prompt_id, n=len(rows), n_success=sum(map(has_passed, rows)))
        for (suite, prompt_id), rows in repeated.items()
    ]
    flaky = [one for one in prompts if 0 < one.n_success < one.n]
    return Repeats(
        n_prompts=len(prompts),
        n_passed=sum(one.n_success == one.n for one in prompts),
        flaky=sorted(flaky, key=lambda one: abs(2 * one.n_success - one.n) / one.n),
        always_alike=_are_alike(repeated.values()),
    )


def always_alike(answered: Iterable[Record]) -> bool:
    """Whether repeats of one prompt never differ: in verdict, calls, violation and numbers of tokens.

    Such a server answers the same each time, whatever the seed. False if no prompt has two answers.
    """
    return _are_alike(_repeated(answered).values())


def _repeated(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """Return the rows of each prompt that has two or more."""
    prompts: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        prompts.setdefault((record.suite, record.prompt_id), []).append(record)
    return {key: rows for key, rows in prompts.items() if len(rows) > 1}


def _are_alike(repeated: Collection[Sequence[Record]]) -> bool:
    return bool(repeated) and all(_ending_of(row) == _ending_of(rows[0]) for rows in repeated for row in rows)
