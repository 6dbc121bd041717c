"""What repeats of a prompt say, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import render_interval, render_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.repeats import Repeats

SHOWN_KS = frozenset({1, 2, 3, 4, 5, 8, 10, 20, 50, 100})
"""Of many repeats these are enough, and the last."""
ALIKE = "all repeats of each prompt are alike; only new prompts add evidence"
"""What to say of a target that answers the same each time."""
REPEATS_HEAD = ("Target", "k", "pass@k: one of k passes", "pass^k: all k pass", "prompts")


def render_flaky(repeats: Repeats) -> str:
    """Return `P7 3/5, P12 4/5`: the prompts that flip most, with the repeats that passed."""
    return ", ".join(f"{prompt.prompt_id} {prompt.n_success}/{prompt.n}" for prompt in repeats.flakiest)


def repeats_rows(groups: Sequence[Group]) -> Iterator[list[str]]:
    """Yield a row for each target and number of repeats, under `REPEATS_HEAD`."""
    for group in groups:
        ks = group.repeats.k if group.repeats else ()
        for at in ks:
            if at.k in SHOWN_KS or at is ks[-1]:
                yield [
                    group.target.label,
                    str(at.k),
                    f"{render_rate(at.pass_at_k)} ({render_interval(at.pass_at_k_interval_95)})",
                    f"{render_rate(at.pass_hat_k)} ({render_interval(at.pass_hat_k_interval_95)})",
                    str(at.n_prompts),
                ]


def flips_of(groups: Sequence[Group]) -> Iterator[tuple[str, str]]:
    """Yield each repeated target's label, and how often two repeats of a prompt disagree."""
    for group in groups:
        if repeats := group.repeats:
            flips = f"{render_rate(repeats.flip_rate)} ({render_interval(repeats.flip_interval_95)})"
            more = f" Flakiest: {render_flaky(repeats)}." if repeats.flakiest else ""
            more = f" {ALIKE[0].upper()}{ALIKE[1:]}." if repeats.always_alike else more
            yield group.target.label, f"two repeats of a prompt disagree in {flips} of pairs.{more}"
