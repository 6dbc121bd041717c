"""The protocol of reports, and the built-in ones; plugins add theirs by `pytest_openclaw_reports`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.stats.summary import Summary


class Report(Protocol):
    """A file of the run directory about the whole run: `summary.md`, and those of plugins."""

    @property
    def name(self) -> str:
        """The file's name, such as `tiers.csv`; a class attribute will do."""
        ...

    def render(self, summary: Summary) -> str:
        """Return the file's text.

        Args:
            summary: the run in figures, as `summary.json` has it: one group a target, gates, findings.
        """
        ...


class SummaryPage:
    """`summary.md`."""

    name = "summary.md"

    def render(self, summary: Summary) -> str:
        """Return the whole page."""
        from pytest_openclaw.reports.pages import render_markdown

        return render_markdown(summary)


class CommentPage:
    """`comment.md`."""

    name = "comment.md"

    def render(self, summary: Summary) -> str:
        """Return a page of the size of a comment."""
        from pytest_openclaw.reports.pages import render_comment

        return render_comment(summary)


BUILTIN: tuple[type[Report], ...] = (SummaryPage, CommentPage)


@dataclass(frozen=True, kw_only=True)
class NamedReport:
    """A report that is to be written, and who brings it, such as a plugin's name."""

    claimant: str
    name: str
    render: Callable[[Summary], str]


def built_in() -> tuple[NamedReport, ...]:
    """Return the reports that every run has."""
    made = (report() for report in BUILTIN)
    return tuple(NamedReport(claimant="pytest_openclaw", name=one.name, render=one.render) for one in made)
