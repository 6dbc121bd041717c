"""Decides after each repeat of a target whether further repeats can be left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import counted
from pytest_openclaw.stats.repeats import always_alike
from pytest_openclaw.stats.tool_use import is_futile, tool_use_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import CellKey, Target


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision after a repeat whose cells all have rows.

    Attributes:
        repeat: the repeat, from 1.
        ends: why the target's further repeats are left out; None if they are run.
    """

    target: Target
    repeat: int
    ends: str | None

    @property
    def plain(self) -> JsonObject:
        """The decision as plain values, which xdist can send."""
        return {"target": self.target.label, "repeat": self.repeat, "ends": self.ends}


class EarlyStopping:
    """Decides on each target's repeats, one after the other, as its rows arrive.

    Args:
        n_selected: cells by target and repeat.
        looks: the repeats after which the tier is looked at; the last of them is the last repeat of all.
        fixed: those among them that are run in any case. A decision waits for their rows as for all rows
            of its repeat, but a repeat of fixed cells alone needs no decision.
    """

    def __init__(
        self,
        n_selected: Mapping[tuple[Target, int], int],
        looks: tuple[int, ...],
        fixed: Mapping[tuple[Target, int], int] | None = None,
    ) -> None:
        self._looks = looks
        self._n_missing: dict[Target, Counter[int]] = {}
        self._last: dict[Target, int] = {}
        for (target, repeat), n in n_selected.items():
            self._n_missing.setdefault(target, Counter())[repeat] += n
            if n > (fixed or {}).get((target, repeat), 0):
                self._last[target] = max(repeat, self._last.get(target, 0))
        self._records: dict[Target, list[Record]] = {}
        self._known: set[CellKey] = set()
        self._through: Counter[Target] = Counter()
        self._ended: dict[Target, int] = {}

    @property
    def ended(self) -> Mapping[Target, int]:
        """The targets whose further repeats are left out, each with its last repeat."""
        return self._ended

    def begin(self) -> Iterator[Decision]:
        """Decide on the repeats that have all their rows already, or that the session did not select."""
        for target in self._n_missing:
            yield from self._decide(target)

    def take(self, record: Record) -> Iterator[Decision]:
        """Add a row. A second row of a cell, as from a plugin that reruns tests, changes nothing."""
        target = record.target
        if target in self._n_missing and record.key not in self._known:
            self._known.add(record.key)
            self._records.setdefault(target, []).append(record)
            yield from self.leave_out(target, record.repeat)

    def leave_out(self, target: Target, repeat: int) -> Iterator[Decision]:
        """Stop waiting for the row of one cell."""
        if target in self._n_missing:
            self._n_missing[target][repeat] -= 1
            yield from self._decide(target)

    def _decide(self, target: Target) -> Iterator[Decision]:
        n_missing = self._n_missing[target]
        last = self._last.get(target, 0)
        while target not in self._ended:
            repeat = self._through[target] + 1
            if repeat >= last or n_missing[repeat] > 0:
                return
            self._through[target] = repeat
            ends = self._end(target, repeat)
            if ends:
                self._ended[target] = repeat
            yield Decision(target=target, repeat=repeat, ends=ends)

    def _end(self, target: Target, repeat: int) -> str | None:
        # Rows of later repeats that arrived early are not counted: a decision must not depend on speed.
        records = [record for record in self._records.get(target, ()) if record.repeat <= repeat]
        answered = [record for record in records if record.availability_status == "ok"]
        latest = [record for record in records if record.repeat == repeat]
        if latest and not any(record.repeat == repeat for record in answered):
            return f"nothing was answered in repeat {repeat}"
        use = tool_use_of(answered, len(self._n_missing), self._looks)
        after = f"after {counted(repeat, 'repeat')}"
        if repeat in self._looks and use.conclusive:
            return f"tier {use.tier} is settled {after}"
        if always_alike(answered):
            # The rate is that of the first repeat, and so is the effective sample: this is no further look.
            return f"all repeats are alike {after}: only new prompts can settle the tier"
        if repeat in self._looks[1:] and is_futile(answered, use):
            return f"more repeats would hardly settle the tier {after}: new prompts can"
        return None
