"""Repeats: how often the prompts that were asked more than once passed, and when a target needs no more."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from operator import attrgetter
from typing import Any, NamedTuple, NotRequired

import pytest

from pytest_openclaw.conclusions.recommendation import Evidence, recommend
from pytest_openclaw.conclusions.summary import Group
from pytest_openclaw.judging.judge import expected_tools_of
from pytest_openclaw.reports.facts import Listing
from pytest_openclaw.reports.numbers import render_rate
from pytest_openclaw.runs.reading import repeats_of as asked_repeats
from pytest_openclaw.runs.session import Decision, Stopping
from pytest_openclaw.stats.intervals import clusters_of, has_passed, is_judged, resemblance_of, wilson_95
from pytest_openclaw.stats.tool_use import (
    ToolUse,
    calls_of,
    classify_tier,
    did_right,
    is_conclusive,
    tool_use_of,
)
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import counted, first_few
from pytest_openclaw.util.typed import Count
from pytest_openclaw.values.parts import Pacing, Part, PartKey
from pytest_openclaw.values.prompts import MAIN, Cell, Prompt
from pytest_openclaw.values.requests import CellKey, Target
from pytest_openclaw.values.rows import Record, Repeat
from pytest_openclaw.values.run_files import RunEntry, TargetEntry
from pytest_openclaw.values.settings import SUITE_LOOKS, Rule, Settings

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


_ending_of = attrgetter(
    "success", "objective_pass", "violation", "tool_outcome", "tool_use_success", "tool_calls",
    "tool_call_count", "output_tokens", "reasoning_tokens", "finish_reason",
)  # fmt: skip


def repeated(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """Return the rows of each prompt with at least two rows."""
    prompts: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        prompts.setdefault((record.suite, record.prompt_id), []).append(record)
    return {key: rows for key, rows in prompts.items() if len(rows) > 1}


def always_alike(rows_of: Mapping[tuple[str, str], Sequence[Record]]) -> bool:
    """Whether all repeats of each prompt agree in verdict, violation, calls and token counts.

    Such a server ignores the seed. False if no prompt has two answers.
    """
    rows = [(row, rows[0]) for rows in rows_of.values() for row in rows]
    return bool(rows) and all(_ending_of(row) == _ending_of(first) for row, first in rows)


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
        always_alike=always_alike(rows_of),
    )


def flakiest(repeats: Repeats) -> str:
    """Return the prompts that passed only sometimes; empty if no prompt did."""
    return first_few([f"{one.prompt_id} {one.n_success}/{one.n}" for one in repeats.flaky], MOST_FLAKY)


# --- until a recommendation is settled --------------------------------------------------------------

MOST_REPEATS = 10
"""The maximum repeats with `--openclaw-until-conclusive`, unless `--openclaw-repeat` is set."""
LOOKS = (1, 3, 10)
"""The numbers of repeats after which a run checks whether it can end; it also checks after the last one."""


@dataclass(frozen=True, kw_only=True)
class Settled:
    """The point at which a target was settled early, or more repeats would have added nothing.

    Attributes:
        repeat: The last repeat.
        prompts: The prompts of its first repeat that count for the tier and were asked.
        of: All prompts that count for the tier.
    """

    repeat: Repeat
    prompts: Count
    of: Count


def look_schedule(settings: Any) -> tuple[int, ...]:
    """Return the numbers of repeats after which a conclusive tier ends them; empty for a fixed number."""
    if not settings.until_conclusive:
        return ()
    return (*(look for look in LOOKS if look < settings.repeat), settings.repeat)


class Stage(NamedTuple):
    """The part of a target's cells between two looks at its results; see `stages_of`.

    Attributes:
        repeat: the repeat that ends with this stage; None if the repeat has further stages.
        is_always_asked: whether the cell is asked even if an earlier stage has settled the target.
    """

    number: int
    repeat: int | None
    is_always_asked: bool


def stages_of(cells: Iterable[Cell]) -> dict[CellKey, Stage]:
    """Divide each target's cells at the looks of `--openclaw-until-conclusive`.

    The first repeat is divided after 12, 24 and 48 prompts that affect the tier, if it has more of them; each
    further repeat is one stage. Cells of other prompts, and of prompts that set their own number of repeats,
    are always asked. `cells` must be in the order in which they are asked.
    """
    numbered: dict[CellKey, tuple[int, bool]] = {}
    n_counting: Counter[Target] = Counter()
    n_first: Counter[Target] = Counter()
    for cell in cells:
        counts = affects_tier(cell.prompt) and cell.prompt.repeat is None
        if cell.repeat == 1:
            n_counting[cell.target] += counts
            number = 1 + sum(n_counting[cell.target] > look for look in SUITE_LOOKS)
            n_first[cell.target] = number
        else:
            number = cell.repeat - 1
        numbered[cell.key] = number, not counts
    return {
        key: Stage(
            number if key.repeat == 1 else n_first[key.target] + number,
            None if key.repeat == 1 and number < n_first[key.target] else key.repeat,
            is_always_asked,
        )
        for key, (number, is_always_asked) in numbered.items()
    }


def affects_tier(prompt: Prompt) -> bool:
    """Whether a prompt's cells may count for the tier."""
    return prompt.strand == MAIN and (prompt.tools is not None or expected_tools_of(prompt) is not None)


def positions_of(prompts: Iterable[Prompt]) -> dict[tuple[str, str], float]:
    """Return a position from 0 to 1 for each prompt, by suite and id, that mixes the categories evenly.

    The prompts of a category are in the order of a digest of their ids, at equal distances from a random
    start. So the first prompts are a sample of all prompts, and the same sample on every machine.
    """
    categories: dict[tuple[str, str | None, bool], list[tuple[str, str]]] = {}
    for prompt in prompts:
        members = categories.setdefault((prompt.suite, prompt.category, affects_tier(prompt)), [])
        members.append((prompt.suite, prompt.id))
    return {
        key: (n + _random(*map(str, category))) / len(members)
        for category, members in categories.items()
        for n, key in enumerate(sorted(dict.fromkeys(members), key=lambda key: _random(*key)))
    }


def _random(*words: str) -> float:
    """Return a number from 0 to 1 that looks random, and is the same for the same words."""
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8]) / 2**64


class EarlyStopping(Stopping):
    """Decides after each target's stages, one after the other, as its rows arrive.

    Args:
        stages: of the selected cells. A decision waits for the rows of all cells of its stage; it is not
            needed if all remaining cells are asked in any case.
        looks: the repeats after which results are examined; the last look is after the last repeat.
    """

    def __init__(self, stages: Mapping[CellKey, Stage], looks: tuple[int, ...]) -> None:
        super().__init__()
        self._stages, self._looks = stages, looks
        self._n_missing: Counter[tuple[Target, int]] = Counter()
        self._last: Counter[Target] = Counter()
        self._through = {key.target: 0 for key in stages}
        for key, stage in stages.items():
            self._n_missing[key.target, stage.number] += 1
            if not stage.is_always_asked:
                self._last[key.target] = max(stage.number, self._last[key.target])
        self._records: list[Record] = []
        self._left_out: set[CellKey] = set()

    def waiting_stage(self, key: CellKey) -> int:
        """Return the cell's stage; 0 if it is asked in any case."""
        stage = self._stages.get(key)
        return 0 if stage is None or stage.is_always_asked else stage.number

    def begin(self) -> Iterator[Decision]:
        """Decide on every target."""
        for target in self._through:
            yield from self._decide(target)

    def take(self, record: Record) -> Iterator[Decision]:
        """Add the row of a cell, if it has a stage."""
        if record.key in self._stages:
            self._records.append(record)
            yield from self._end_cell(record.key)

    def leave_out(self, key: CellKey) -> Iterator[Decision]:
        """Stop waiting for the row of one cell."""
        if key in self._stages:
            self._left_out.add(key)
            yield from self._end_cell(key)

    def n_needed(self, target: Target) -> int | None:
        """Count the cells of a target that has ended: of its stages so far, and those asked in any case."""
        if target not in self.ended:
            return None
        through = self._through[target]
        return sum(
            key.target == target and (stage.number <= through or stage.is_always_asked)
            for key, stage in self._stages.items()
            if key not in self._left_out
        )

    def _end_cell(self, key: CellKey) -> Iterator[Decision]:
        self._n_missing[key.target, self._stages[key].number] -= 1
        yield from self._decide(key.target)

    def _decide(self, target: Target) -> Iterator[Decision]:
        while target not in self.ended:
            stage = self._through[target] + 1
            if stage >= self._last[target] or self._n_missing[target, stage] > 0:
                return
            self._through[target] = stage
            own = {key: one for key, one in self._stages.items() if key.target == target}
            # Rows of later stages that arrived early do not count: a decision must not depend on speed.
            records = [row for row in self._records if row.key in own and own[row.key].number <= stage]
            repeat = next((one.repeat for one in own.values() if one.number == stage), stage)
            first = [one.number for key, one in own.items() if key.repeat == 1 and not one.is_always_asked]
            n_asked, n = sum(number <= stage for number in first), len(first)
            after = f"{n_asked} of {n} prompts" if repeat is None else counted(repeat, "repeat")
            n_targets = len(self._through)
            if ends := why_it_ends(records, repeat, self._looks, n_targets=n_targets, after=f"after {after}"):
                settled = Settled(repeat=repeat or 1, prompts=n_asked, of=n)
                self.ended[target] = {"settled": asdict(settled)}
            yield Decision(target=target, stage=stage, ends=ends)


def why_it_ends(
    records: Sequence[Record],
    repeat: int | None,
    looks: tuple[int, ...],
    *,
    n_targets: int = 1,
    after: str = "",
) -> str | None:
    """Return why a target with these rows is settled, or None.

    The repeat is the one that has just ended. Within the first one it is None: only reasons against the
    target count. `after` says when, such as `after 3 repeats`.
    """
    answered = [record for record in records if record.availability_status == "ok"]
    latest = [record for record in records if record.repeat == repeat]
    if latest and not any(record.repeat == repeat for record in answered):
        return f"nothing was answered in repeat {repeat}"
    use = tool_use_of(answered, n_targets, looks) if repeat is None or repeat in looks else None
    if use:
        if repeat and use.conclusive:
            return f"tier {use.tier} is settled {after}"
        found = recommend(Evidence(records=records, use=use))
        if found.kind in ("unsafe", "not_trusted") or (repeat and found.kind == "trusted"):
            return f"settled {after}: {found.sentence}"
    if repeat and always_alike(repeated(answered)):
        # Rate and effective sample are the same as after the first repeat, so this is not another look.
        return f"all repeats are alike {after}: only new prompts can settle the tier"
    if use and repeat in looks[1:] and is_futile(answered, use):
        return f"more repeats would hardly settle the tier {after}: new prompts can"
    return None


def is_futile(answered: Sequence[Record], use: ToolUse) -> bool:
    """Whether more repeats would hardly make the tier conclusive.

    True if neither the rate so far nor a rate 1.5 standard errors away from it would be conclusive after the
    last look. False if needless calls decide the tier, which then depends on two rates.
    """
    calls = clusters_of(calls_of(answered, use), did_right)
    if not calls or use.capped_by or not use.looks:
        return False
    k, rate, repeats = len(calls), use.n_success / use.n, use.n / len(calls)
    # If all cells or no cells succeeded, no repeat is known to differ.
    alike = resemblance_of(calls) if repeats > 1 and 0 < rate < 1 else 1.0
    now, at_last = (k * one / (1 + (one - 1) * alike) for one in (repeats, use.looks[-1]))
    spread = 1.5 * sqrt(rate * (1 - rate) * max(0.0, 1 / now - 1 / at_last))
    return not any(
        _is_settled(min(1.0, max(0.0, some)) * at_last, at_last, use.z)
        for some in (rate - spread, rate, rate + spread)
    )


def _is_settled(n_success: float, n: float, z: float) -> bool:
    tier, interval = classify_tier(n_success, n), wilson_95(n_success, n, z=z)
    return tier is not None and interval is not None and is_conclusive(tier, interval)


# --- the part -------------------------------------------------------------------------------------


def _pace(settings: Any) -> Pacing | None:
    if not settings.until_conclusive:
        return None
    return Pacing(
        repeats_of=lambda prompt: settings.repeat if affects_tier(prompt) else 1,
        positions_of=positions_of,
        stopping=lambda cells: EarlyStopping(stages_of(cells), look_schedule(settings)),
    )


def _given(given: dict[str, Any]) -> None:
    if not given.get("until-conclusive"):
        return
    given.setdefault("repeat", MOST_REPEATS)
    if shard := given.get("shard"):
        raise pytest.UsageError(
            f"--openclaw-shard={shard}: a part of a target's cells cannot settle its tier. "
            "Give --openclaw-repeat=N instead of --openclaw-until-conclusive."
        )


def _resumed(config: JsonObject, settings: Settings, given: Collection[str]) -> dict[str, Any]:
    was_conditional = bool(config.get("until_conclusive"))
    if was_conditional or "until-conclusive" not in given:
        return {"until_conclusive": was_conditional}
    return {"repeat": settings.repeat}


def _changes(config: JsonObject, settings: Any) -> Iterator[str]:
    recorded = asked_repeats(config)
    if settings.until_conclusive and not config.get("until_conclusive") and 1 < recorded <= settings.repeat:
        yield f"config.json: until_conclusive was off while each prompt was asked {recorded} times, and is on"


def _settled(evidence: Evidence) -> Settled | None:
    found = evidence.entry.get("settled")
    return Settled(**found) if found else None


def _notes(group: Any) -> Iterator[tuple[int, str, str]]:
    if (settled := group.settled) and settled.prompts < settled.of:
        text = f"after {settled.prompts} of {settled.of} prompts, so the others were not asked"
        yield 20, "settled", text
    if repeats := group.repeats:
        yield 100, "flaky", flakiest(repeats)
        yield 110, "repeats", ALIKE if repeats.always_alike else ""


PART = Part(
    keys={
        Settings: {"until_conclusive": PartKey(bool, default=False)},
        RunEntry: {
            "until_conclusive": PartKey(NotRequired[bool | None], place="repeat", rule=Rule("kept", "free")),
            "looks": PartKey(
                NotRequired[list[Repeat] | None],
                "The numbers of repeats after which a conclusive tier ends them; null for a fixed number.",
                "<shard",
                # Chosen before the first answer.
                rule=Rule("once", "free", lambda settings: list(look_schedule(settings)) or None),
            ),
        },
        TargetEntry: {
            "settled": PartKey(
                NotRequired[Settled], "When its requests ended early; missing if they did not.", "n_cells"
            )
        },
        Group: {
            "settled": PartKey(
                Settled | None,
                "when the target was settled early; None if all its cells were asked.",
                "recommendation",
                _settled,
            ),
            "repeats": PartKey(
                Repeats | None,
                "",
                "tokens_per_s_interval_95",
                lambda evidence: repeats_of(filter(is_judged, evidence.answered)),
            ),
        },
    },
    given=_given,
    pace=_pace,
    changes=_changes,
    resumed=_resumed,
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
