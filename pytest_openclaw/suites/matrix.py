"""Combines prompts, targets and repeats into cells, and selects prompts by `--openclaw-prompts`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pytest_openclaw.judging.judge import affects_tier
from pytest_openclaw.suites.surfaced import on_surface, why_not_on_openclaw
from pytest_openclaw.types.prompts import Cell
from pytest_openclaw.types.targets import LISTED

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytest_openclaw.types.prompts import Prompt
    from pytest_openclaw.types.surface import Surface
    from pytest_openclaw.types.targets import Target


def build_cells(
    prompts: Sequence[Prompt],
    targets: Sequence[Target],
    repeats: int = 1,
    *,
    of_tools_alone: bool = False,
    surface: Surface | None = None,
) -> tuple[Cell, ...]:
    """Return the cells of prompts on targets, target by target and repeat by repeat.

    A local server then loads a model once, instead of once per prompt.

    Args:
        prompts: of one suite.
        targets: in order.
        repeats: of each prompt that does not set its own number.
        of_tools_alone: of these, ask a prompt that does not affect a tier once.
        surface: of the targets that are asked as OpenClaw asks, and only what can be asked there.
    """
    numbers = [
        prompt.repeat or (1 if of_tools_alone and not affects_tier(prompt) else repeats) for prompt in prompts
    ]
    asked = {
        name: prompts if name == LISTED else [_on_openclaw(prompt, surface) for prompt in prompts]
        for name in dict.fromkeys(target.surface for target in targets)
    }
    return tuple(
        Cell(prompt=prompt, target=target, repeat=repeat, n_repeats=prompt.repeat or repeats)
        for target in targets
        for repeat in range(1, max(numbers, default=0) + 1)
        for prompt, number in zip(asked[target.surface], numbers, strict=True)
        if repeat <= number and prompt is not None
    )


def _on_openclaw(prompt: Prompt, surface: Surface | None) -> Prompt | None:
    return None if surface is None or why_not_on_openclaw(prompt) else on_surface(prompt, surface)


def select_prompts(prompts: Sequence[Prompt], patterns: Sequence[str]) -> tuple[Prompt, ...]:
    """Return the prompts whose id matches one of the patterns, in their own order.

    Args:
        prompts: of one suite or of several.
        patterns: ids or globs (`*`, `?`, `[…]`), case-sensitive; no patterns mean every prompt. An id
            has no brackets, so as a pattern it matches itself.
    """
    if not patterns:
        return tuple(prompts)
    return tuple(prompt for prompt in prompts if any(fnmatchcase(prompt.id, pattern) for pattern in patterns))


def unmatched(patterns: Sequence[str], ids: Collection[str]) -> tuple[str, ...]:
    """Return the patterns that match no id, each once, so that a typo can be reported."""
    lost = (pattern for pattern in patterns if not any(fnmatchcase(prompt_id, pattern) for prompt_id in ids))
    return tuple(dict.fromkeys(lost))
