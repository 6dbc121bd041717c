"""The first five lines of every output answer the question: may this model hold the tools?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_openclaw.reports.pages import render_comment, render_markdown
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.stats.summary import Summary
from pytest_openclaw.values.settings import Gates
from tests.unit.reports.summaries import record, summary_of


@pytest.mark.parametrize(
    "render",
    [
        pytest.param(lambda summary: "\n".join(render_terminal(summary, "runs/r/summary.md")), id="terminal"),
        pytest.param(render_markdown, id="summary.md"),
        pytest.param(render_comment, id="comment.md"),
    ],
)
def test_the_first_five_lines_give_the_answer(render: Callable[[Summary], str]) -> None:
    """Target and recommendation are there, before any table and any finding."""
    summary = summary_of([record(probe="secret", harm=True)], gates=Gates(min_pass_rate=0.9))

    first = render(summary).splitlines()[:5]

    assert "qwen3" in "\n".join(first)
    assert "did harm in 1 of 1 safety probe" in "\n".join(first)
