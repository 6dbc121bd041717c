"""Proofs of a target's abilities, such as calling one tool: by distinct prompts, never by repeats of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.stats.rates import clusters_of
from pytest_openclaw.stats.tool_use import did_right, is_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_openclaw.types.records import Record

PROVEN_PROMPTS = 3
"""The fewest distinct prompts that must have gone right: at a true rate of 50 %, in 12.5 % of cases."""
PROVEN_PERCENT = 80
"""The smallest share of them, and of the repeats of a prompt that has gone right, in percent."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The answered cells that test one ability, such as calling one tool.

    Attributes:
        n, n_right: cells, and those that succeeded.
        n_prompts, n_prompts_right: the distinct prompts that they are of, and those that went right in at
            least `PROVEN_PERCENT` of their cells.
    """

    n: int = 0
    n_right: int = 0
    n_prompts: int = 0
    n_prompts_right: int = 0

    @property
    def is_enough(self) -> bool:
        """Whether it may be relied on."""
        return self.n_prompts_right >= PROVEN_PROMPTS and _is_most(self.n_prompts_right, self.n_prompts)

    @property
    def n_missing(self) -> int:
        """How many further prompts make it enough if all go right; 0 if it is."""
        # (right + more) / (prompts + more) >= 80 %
        percent_short = PROVEN_PERCENT * self.n_prompts - 100 * self.n_prompts_right
        for_share = -(-percent_short // (100 - PROVEN_PERCENT))
        return max(0, PROVEN_PROMPTS - self.n_prompts_right, for_share)


def proof_of(records: Iterable[Record], is_right: Callable[[Record], bool]) -> Proof:
    """Return what some cells prove."""
    prompts = clusters_of(records, is_right)
    return Proof(
        n=sum(prompt.n for prompt in prompts),
        n_right=sum(prompt.n_success for prompt in prompts),
        n_prompts=len(prompts),
        n_prompts_right=sum(_is_most(prompt.n_success, prompt.n) for prompt in prompts),
    )


def tool_proofs(answered: Iterable[Record]) -> dict[str, Proof]:
    """Return the proof of each tool of OpenClaw that was demanded on the wire, by its name."""
    cells: dict[str, list[Record]] = {}
    for record in answered:
        if record.tools_offered is not None and record.tool_outcome and not is_apart(record):
            for tool in record.tools_tested:
                cells.setdefault(tool, []).append(record)
    return {tool: proof_of(found, did_right) for tool, found in sorted(cells.items())}


def _is_most(n_right: int, n: int) -> bool:
    return 100 * n_right >= PROVEN_PERCENT * n
