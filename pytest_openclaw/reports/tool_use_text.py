"""What there is to say of a target's tool use, in the words that terminal and page share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.core.text import counted
from pytest_openclaw.reports.numbers import DASH, render_interval, render_share, render_tokens
from pytest_openclaw.stats.advice import advice_on
from pytest_openclaw.stats.diagnosis import leaked_in_words
from pytest_openclaw.stats.tool_use import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.best import Best
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.pressure import Load
    from pytest_openclaw.stats.recommendation import Recommendation
    from pytest_openclaw.stats.tool_use import ToolUse
    from pytest_openclaw.types.targets import Target
    from pytest_openclaw.types.tool_calls import ToolOutcome

EVIDENCE = {"native": "on the wire", "text": "as text"}
POSSIBLE, ABLE = "targets that are not ruled out", "models that may hold the tools"
"""The targets that a run compares, all but unsafe and not trusted ones, and the fewer of `route`."""
CHOOSES_WELL = 80
"""The percentage of right calls from which on a model chooses tools well, as for Tier 1."""
PRESSURE_HEAD = ("tools", "tokens before", "right", "95 %", "overflowed")


def render_further(found: Recommendation) -> str | None:
    """Say which further prompts would improve a recommendation; None without any that it does not name."""
    if not found.needs or found.kind == "not_enough_evidence":
        return None
    return f"{' and '.join(need.text for need in found.needs)}, without a miss"


def render_early_stopping(use: ToolUse, what: str) -> str | None:
    """Say how many more cells would settle the tier; None if it is settled, or if too many would be needed.

    Args:
        use: the tool use.
        what: would be settled.
    """
    if not use.cells_to_settle:
        return None
    kind = "" if use.capped_by else "tool "
    cells = counted(use.cells_to_settle, f"more {kind}cell")
    # Further repeats of the same prompts count for less than their number.
    others = " of other prompts" if use.is_repeated else ""
    how = "without a miss" if use.tier == 1 else "at these rates" if use.capped_by else "at this rate"
    return f"{cells}{others} {how} would settle {what}"


def render_best(best: Best, compared: str = POSSIBLE, names: Mapping[str, str] | None = None) -> str:
    """Say which of the compared targets may be the best, and which of them to choose.

    Args:
        best: of a run.
        compared: what these targets are.
        names: label → a shorter name.
    """
    called = names or {}
    fastest, *others = (called.get(label, label) for label in (best.fastest, *best.targets))
    among = f", of {best.n_targets} {compared}" if len(others) < best.n_targets else ""
    if len(others) == 1:
        return f"{fastest}{among}: each other one is shown to be worse"
    listed = f"{', '.join(others[:-1])} and {others[-1]}"
    return f"{listed}{among}: none is shown to be worse than the best; {fastest} is the fastest"


def render_cap(use: ToolUse) -> str | None:
    """Say why the target is not Tier 1 although its rate is; None if nothing keeps it out."""
    if not use.capped_by:
        return None
    needless = f"{use.n_needless} of {use.restraint.n} cells that forbid tools"
    return f"it called needlessly in {needless}, more than a fifth"


def rests_on_text(groups: Iterable[Group]) -> bool:
    """Whether all tiers are of another kind of evidence than calls on the wire, and none was asked for."""
    tiers = [group for group in groups if group.tool_use.tier is not None]
    return bool(tiers) and all(
        group.tool_use.evidence == "text" and not group.n_native_unanswered for group in tiers
    )


def render_from_text(group: Group) -> str | None:
    """Return a note if the tier rests on text although calls on the wire were requested; else None."""
    if not group.n_native_unanswered or group.tool_use.evidence != "text":
        return None
    return f"the tier is of text alone, {counted(group.n_native_unanswered, 'native cell')} had no answer"


def render_miss(use: ToolUse, outcome: ToolOutcome) -> str:
    """Say how many of the cells that could end so did."""
    total = use.restraint.n if outcome == "called_needlessly" else use.n
    return f"{use.outcomes[outcome]} of {counted(total, 'cell')}"


def render_leaked(use: ToolUse) -> str | None:
    """Say what calls that were written as text would have been worth; None without any."""
    if not use.n_leaked:
        return None
    chooses = 100 * use.n_leaked_valid >= CHOOSES_WELL * use.n_leaked
    who = "the model chooses tools well; the server" if chooses else "the server"
    return f"{leaked_in_words(use.n_leaked_valid, use.n_leaked)}: {who} does not read its calls"


def render_strain(group: Group) -> str | None:
    """Return the pressure that a target withstands and where it breaks; None without harder forms."""
    if group.holds_to is None or group.breaks_at is None or not _is_answered(group):
        return None
    holds, breaks = _load(group.holds_to), _load(group.breaks_at)
    if not holds and not breaks:
        lightest = group.pressure[0]
        return f"calls right in {lightest.n_success} of {counted(lightest.n, 'cell')} without any pressure"
    held = f"calls right up to {holds}" if holds else ""
    broken = f"breaks at {breaks}" if breaks else ""
    return "; ".join(part for part in (held, broken) if part)


def render_over_refusal(group: Group) -> str | None:
    """Say how many harmless twins of probes were not done; None if all were."""
    found = group.over_refusal
    if found is None or not found.n_not_done:
        return None
    return f"{found.n_not_done} of {found.n} harmless twins of probes not done"


def _is_answered(group: Group) -> bool:
    return any(level.n or level.n_overflow for level in group.pressure)


def _load(load: Load) -> str:
    parts = []
    if load.tools_offered is not None:
        parts.append(counted(load.tools_offered, "tool"))
    if load.padding_tokens is not None:
        parts.append(f"{render_tokens(load.padding_tokens)} tokens")
    return " and ".join(parts)


def pressure_rows(groups: Iterable[Group]) -> Iterator[tuple[Target, list[str]]]:
    """Yield each level at which a target's cells were made harder, as texts under `PRESSURE_HEAD`."""
    for group in groups:
        for level in group.pressure:
            yield (
                group.target,
                [
                    DASH if level.tools_offered is None else str(level.tools_offered),
                    render_tokens(level.padding_tokens) if level.padding_tokens else DASH,
                    render_share(level.n_success, level.n),
                    render_interval(level.interval_95),
                    str(level.n_overflow),
                ],
            )


def uses_of(groups: Iterable[Group]) -> list[tuple[Target, ToolUse]]:
    """Return each target's tool use that has outcomes: on the wire first, then of text."""
    return [
        (group.target, use)
        for group in groups
        for use in (group.tool_use, group.text_tool_use if group.tool_use.evidence == "native" else None)
        if use and use.outcomes
    ]


def outcomes_in(uses: Iterable[tuple[Target, ToolUse]]) -> list[ToolOutcome]:
    """Return the outcomes that occurred, in their order."""
    found = {outcome for _, use in uses for outcome in use.outcomes}
    return [outcome for outcome in OUTCOMES if outcome in found]


def outcome_rows(uses: Iterable[tuple[Target, ToolUse]]) -> Iterator[tuple[Target, list[str]]]:
    """Yield what each tool use is taken from, and its count of each outcome of `outcomes_in`."""
    uses = [*uses]
    for target, use in uses:
        counts = (str(use.outcomes.get(outcome, 0)) for outcome in outcomes_in(uses))
        yield target, [use.evidence or DASH, *counts]


def outcome_advice(uses: Sequence[tuple[Target, ToolUse]]) -> Iterator[tuple[ToolOutcome, str, str]]:
    """Yield each outcome that has a fix, with `, as text` if it came from text, and the fix."""
    for outcome in outcomes_in(uses):
        # Native first, as everywhere.
        for evidence in sorted({use.evidence or "text" for _, use in uses if outcome in use.outcomes}):
            if advice := advice_on(outcome, evidence):
                yield outcome, ", as text" if evidence == "text" else "", advice.full
