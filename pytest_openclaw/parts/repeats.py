"""Repeats: how often the prompts that were asked more than once passed, and whether repeats differ at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_openclaw.conclusions.groups import Group
from pytest_openclaw.reports.numbers import render_rate
from pytest_openclaw.reports.sections import Listing
from pytest_openclaw.stats.intervals import has_passed, is_judged
from pytest_openclaw.stats.tool_use import are_alike, repeated
from pytest_openclaw.util.text import first_few
from pytest_openclaw.values.parts import Key, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_openclaw.values.rows import Record

MOST_FLAKY = 5
ALIKE = "all repeats of each prompt are alike; only new prompts add evidence"


@dataclass(frozen=True, kw_only=True)
class FlakyPrompt:
    """A prompt with repeats that passed and repeats that did not."""

    suite: str
    prompt_id: str
    n: int
    n_success: int


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """The prompts that were asked more than once.

    Attributes:
        n_prompts: prompts with at least two judged repeats.
        n_passed: prompts that passed every time.
        flaky: prompts that passed only sometimes, the flakiest first.
        always_alike: whether all repeats of each prompt ended alike, so that only new prompts add evidence;
            see the function of this name.
    """

    n_prompts: int
    n_passed: int
    flaky: Sequence[FlakyPrompt]
    always_alike: bool


def repeats_of(judged: Iterable[Record]) -> Repeats | None:
    """Return the results of one target's repeats; None if no prompt has two."""
    rows_of = repeated(judged)
    if not rows_of:
        return None
    prompts = [
        FlakyPrompt(suite=suite, prompt_id=prompt_id, n=len(rows), n_success=sum(map(has_passed, rows)))
        for (suite, prompt_id), rows in rows_of.items()
    ]
    flaky = [prompt for prompt in prompts if 0 < prompt.n_success < prompt.n]
    return Repeats(
        n_prompts=len(prompts),
        n_passed=sum(prompt.n_success == prompt.n for prompt in prompts),
        flaky=sorted(flaky, key=lambda prompt: abs(2 * prompt.n_success - prompt.n) / prompt.n),
        always_alike=are_alike(rows_of.values()),
    )


def flakiest(repeats: Repeats) -> str:
    """Return the prompts that passed only sometimes; empty if no prompt did."""
    return first_few([f"{one.prompt_id} {one.n_success}/{one.n}" for one in repeats.flaky], MOST_FLAKY)


def _notes(group: Any) -> Iterator[tuple[int, str, str]]:
    if repeats := group.repeats:
        yield 100, "flaky", flakiest(repeats)
        yield 110, "repeats", ALIKE if repeats.always_alike else ""


PART = Part(
    keys={
        Group: {
            "repeats": Key(
                Repeats | None,
                "",
                "tokens_per_s_interval_95",
                lambda evidence: repeats_of(filter(is_judged, evidence.answered)),
            )
        }
    },
    notes=_notes,
    listings={
        40: Listing(
            "repeats",
            "Asked again",
            "Prompts that were asked more than once.",
            lambda group: [group.repeats] if group.repeats and group.repeats.n_prompts else [],
            {
                "prompts": lambda repeats: str(repeats.n_prompts),
                "passed each time": lambda repeats: str(repeats.n_passed),
                "sometimes": lambda repeats: (
                    f"{len(repeats.flaky)} ({render_rate(len(repeats.flaky) / repeats.n_prompts)})"
                ),
                "the flakiest": flakiest,
            },
            words=("the flakiest",),
        )
    },
)
