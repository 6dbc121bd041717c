"""The sections of a page below the findings, with tables and lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.reports.blocks import Findings, Section, SummaryFinding, Table
from pytest_openclaw.reports.facts import figures_of, full
from pytest_openclaw.reports.numbers import (
    DASH,
    render_interval,
    render_share,
    render_tier,
)
from pytest_openclaw.stats.tool_use import OUTCOMES, TIER_NAMES
from pytest_openclaw.values.parts import called, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.conclusions.groups import Group
    from pytest_openclaw.conclusions.summary import Summary, SummaryPart
    from pytest_openclaw.values.tool_calls import ToolOutcome


def sections_of(summary: Summary) -> list[Section]:
    """Return the sections in their order, empty ones too."""
    why = [
        SummaryFinding(label="", text=reason.text, target=group.target.label)
        for group in summary.groups
        for reason in group.recommendation.reasons
    ]
    missed = Findings(entries=[*_missed(summary)])
    found = [
        (10, Section(id="why", title="Why", blocks=[Findings(entries=why)])),
        *(pair for sections in called("sections") for pair in sections(summary)),
        *(
            (rank, listing.section(summary.groups))
            for listings in (LISTINGS, *(part.listings for part in parts().values()))
            for rank, listing in listings.items()
        ),
        (90, Section(id="missed", title="Missed by all targets", blocks=[missed], is_in_comment=True)),
        *((100, _added(part)) for part in summary.added),
    ]
    return [section for _, section in sorted(found, key=lambda pair: pair[0])]


def _added(part: SummaryPart) -> Section:
    tables = [Table(head=one.head, rows=one.rows, caption=one.caption) for one in part.tables]
    if not tables:  # a section needs more than its intro
        return Section(id=part.name, title=part.title, blocks=[part.intro])
    return Section(id=part.name, title=part.title, intro=part.intro, blocks=tables)


def _missed(summary: Summary) -> Iterator[SummaryFinding]:
    for one in summary.missed_by_all if summary.n_answered else ():
        yield SummaryFinding(
            label=f"{one.prompt_id} {one.prompt_name}", text=one.violation or "no usable answer"
        )


# --- tables of targets ------------------------------------------------------------------------------


class Listing(NamedTuple):
    """A section with a table, whose first column is the target.

    Attributes:
        entries: the values of a group that have a row each.
        columns: the other columns, each with the text of a value's cell.
        words: names of columns that are aligned on the left.
    """

    id: str
    title: str
    intro: str
    entries: Callable[[Any], Iterable[Any]]
    columns: Mapping[str, Callable[[Any], str]]
    words: Sequence[str] = ()

    def section(self, groups: Sequence[Group]) -> Section:
        """Return the section, without the counts of outcomes that no target has."""
        rows = [(group.target.label, entry) for group in groups for entry in self.entries(group)]
        unseen = set(OUTCOMES).difference(*(group.tool_use.outcomes for group in groups))
        columns = {head: cell for head, cell in self.columns.items() if head not in unseen}
        table = Table(
            head=("target", *columns),
            rows=[[label, *(cell(entry) for cell in columns.values())] for label, entry in rows],
            words=self.words,
            caption=self.title,
        )
        return Section(id=self.id, title=self.title, intro=self.intro, blocks=[table])


def _uses(group: Group) -> list[Any]:
    return [group.tool_use] if group.tool_use.outcomes else []


def _figure(name: str) -> Callable[[Any], str]:
    return lambda figures: full(figures[name])


def _count(outcome: ToolOutcome) -> Callable[[Any], str]:
    return lambda use: str(use.outcomes.get(outcome, 0))


LISTINGS = {
    30: Listing(
        "times",
        "How long it took",
        "Successful cells. A figure is followed by its 95 % interval; ? where there are too few cells.",
        lambda group: [figures_of(group)] if group.latency_ms.get("p50") is not None else [],
        {name: _figure(name) for name in ("p50", "p95", "p99", "TTFT", "tok/s")},
    ),
    50: Listing(
        "tiers",
        "Tiers",
        "A tier with ? is not conclusive: its 95 % interval, for all targets and looks together, does not "
        "lie inside it. Held back: cells that forbid tools and had no call.",
        _uses,
        {
            "evidence": lambda use: use.evidence or DASH,
            "tier": lambda use: render_tier(use.tier, use.conclusive),
            "name": lambda use: TIER_NAMES.get(use.tier, DASH),
            "right": lambda use: render_share(use.n_success, use.n),
            "95 %": lambda use: render_interval(use.tier_interval),
            "held back": lambda use: render_share(use.restraint.n_success, use.restraint.n),
        },
        words=("evidence", "tier", "name"),
    ),
    60: Listing(
        "outcomes",
        "How tool use ended",
        "",
        _uses,
        {
            "evidence": lambda use: use.evidence or DASH,
            **{one: _count(one) for one in OUTCOMES},
        },
        words=("evidence",),
    ),
}
