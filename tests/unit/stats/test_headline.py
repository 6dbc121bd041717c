"""Which of OpenClaw's surfaces answers for a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_openclaw.reports.comparison import surface_note
from pytest_openclaw.reports.pages import render_markdown
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.stats.groups import headline
from pytest_openclaw.stats.summary import Summary, summarize_run
from pytest_openclaw.values.requests import OPENCLAW, Target, label_fits, most_realistic
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.settings import Gates
from tests.unit.reports.summaries import TARGET, restraint_cells, tool_cells

ON_OPENCLAW = TARGET.on(OPENCLAW)
NATIVE: dict[str, Any] = {"suite": "native", "tools_offered": 3}
FACTS = {"source": "substitute", "release": "openclaw-2026.9.6"}


def on_both(n: int, n_openclaw: int) -> list[Record]:
    """Rows of `n` prompts that all go right on `listed`, and so many on `openclaw`; 30 forbid a call."""
    rows = [*tool_cells(n, 0, **NATIVE), *restraint_cells(30, 0, **NATIVE)]
    missed = [
        replace(row, prompt_id=f"U{n_openclaw + k}", objective_pass=False)
        for k, row in enumerate(tool_cells(0, n - n_openclaw, **NATIVE))
    ]
    again = [*tool_cells(n_openclaw, 0, **NATIVE), *missed, *restraint_cells(30, 0, **NATIVE)]
    return [*rows, *(replace(row, surface=OPENCLAW) for row in again)]


def summary_of(rows: list[Record], facts: dict[str, str] | None = None) -> Summary:
    """The summary of these rows."""
    n_selected: dict[Target, int] = {}
    for row in rows:
        n_selected[row.target] = n_selected.get(row.target, 0) + 1
    return summarize_run(rows, n_selected, Gates(), {"surface": facts}, {}, run_id="r", generated_at_ms=0)


def test_the_most_realistic_surface_answers_for_a_model() -> None:
    """The sentence at the top is about `openclaw`; another model keeps its only surface."""
    other = replace(TARGET, model="other")

    assert most_realistic([TARGET, ON_OPENCLAW, other]) == [ON_OPENCLAW, other]
    summary = summary_of(on_both(40, 10))
    assert [group.target for group in headline(summary.groups)] == [ON_OPENCLAW]
    first = render_terminal(summary, "summary.md", width=120)[0]
    assert first.startswith(f"{ON_OPENCLAW.label}: not trusted with tools: Tier 3")
    assert "on the surface openclaw" in " ".join(render_terminal(summary, "summary.md", width=120))


@pytest.mark.parametrize(
    ("facts", "caveat"),
    [({**FACTS, "source": "captured"}, ""), (FACTS, "on a substitute of OpenClaw's request; ")],
)
def test_trust_needs_the_real_surface(facts: dict[str, str], caveat: str) -> None:
    """On `listed` and on the substitute a caveat says what was not measured."""
    listed, real = summary_of(on_both(40, 40), facts).groups

    assert listed.recommendation.sentence == "trusted with tools; on listed tools only; safety not tested"
    assert real.recommendation.sentence == f"trusted with tools; {caveat}safety not tested"


def test_the_real_agent_needs_no_substitute() -> None:
    """It sends the real request: neither caveat nor note names a substitute, except for others in the run."""
    agent = [replace(row, provider="openclaw_agent") for row in on_both(40, 40) if row.surface == OPENCLAW]
    alone, mixed = summary_of(agent, FACTS), summary_of([*agent, *on_both(40, 40)], FACTS)

    assert alone.groups[0].recommendation.sentence == "trusted with tools; safety not tested"
    assert surface_note(alone) == "openclaw is the request that the installed OpenClaw sends itself"
    assert "substitute" not in " ".join(render_terminal(alone, "summary.md", width=120)) + render_markdown(
        alone
    )
    assert surface_note(mixed).endswith(
        "a substitute in our own words; openclaw_agent sends the installed OpenClaw's own"
    )
    assert [
        group.target.provider for group in mixed.groups if "substitute" in group.recommendation.sentence
    ] == [ON_OPENCLAW.provider]


@pytest.mark.parametrize("glob", ["p/m", "P/*", "p/m+openclaw", "*+openclaw"])
def test_a_glob_without_a_surface_holds_on_both(glob: str) -> None:
    """Gates, prices and known failures of a model hold on each of its surfaces."""
    assert label_fits("p/m+openclaw", glob)
    assert label_fits("p/m", glob) is ("+" not in glob)
