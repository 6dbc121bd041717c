"""What repeats of a prompt say, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_openclaw.stats.repeats import Repeats

SHOWN_KS = frozenset({1, 2, 3, 4, 5, 8, 10, 20, 50, 100})
"""Of many repeats these are enough, and the last."""


def render_flaky(repeats: Repeats) -> str:
    """Return `P7 3/5, P12 4/5`: the prompts that flip most, with the repeats that passed."""
    return ", ".join(f"{prompt.prompt_id} {prompt.n_success}/{prompt.n}" for prompt in repeats.flakiest)
