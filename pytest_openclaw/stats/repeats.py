"""Results of repeated prompts: which of them pass only sometimes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

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
    judged = [*judged]
    counted: dict[tuple[str, str], list[bool]] = {}
    for record in judged:
        counted.setdefault((record.suite, record.prompt_id), []).append(record.objective_pass is True)
    repeated = {key: passed for key, passed in counted.items() if len(passed) > 1}
    if not repeated:
        return None
    flaky = [
        FlakyPrompt(suite=suite, prompt_id=prompt_id, n=len(passed), n_success=sum(passed))
        for (suite, prompt_id), passed in repeated.items()
        if len(set(passed)) > 1
    ]
    return Repeats(
        n_prompts=len(repeated),
        n_passed=sum(all(passed) for passed in repeated.values()),
        flaky=sorted(flaky, key=lambda one: abs(2 * one.n_success - one.n) / one.n),
        always_alike=always_alike(judged),
    )


def always_alike(answered: Iterable[Record]) -> bool:
    """Whether repeats of one prompt never differ: in verdict, calls, violation and numbers of tokens.

    Such a server answers the same each time, whatever the seed. False if no prompt has two answers.
    """
    endings: dict[tuple[str, str], list[object]] = {}
    for record in answered:
        endings.setdefault((record.suite, record.prompt_id), []).append(_ending_of(record))
    repeated = [found for found in endings.values() if len(found) > 1]
    return bool(repeated) and all(one == found[0] for found in repeated for one in found)
