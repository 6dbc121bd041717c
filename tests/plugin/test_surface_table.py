"""The table of one model on each surface: its figures from runs, and its place on the page."""

from __future__ import annotations

from typing import Any

import pytest

from tests.openclaw import surface_table
from tests.openclaw.model_server import ScriptedModel
from tests.openclaw.surface_faults import SUITE, answer

pytestmark = pytest.mark.newest


def test_the_page_has_the_table_that_is_kept() -> None:
    """It is written by the command, and every way of asking is in it."""
    page, table = surface_table.PAGE.read_text("utf-8"), surface_table.load_table()

    assert surface_table.with_table(page, table) == page
    assert surface_table.render(table) in page
    assert [*table["columns"]] == [column.name for column in surface_table.COLUMNS]


def test_what_is_kept_of_runs(plain_project: Any) -> None:
    """Each run in figures, and the paired difference of each two."""
    plain_project.suite(SUITE)
    with ScriptedModel(answer, pause_s=0, prompt_tokens=9000) as model:
        plain_project.pytester.makeini(
            f"[pytest]\nopenclaw_endpoints =\n    lab = ollama_openai {model.url}\n"
        )
        plain_project.run("--openclaw-run-id=listed", models="lab/direct")
        plain_project.run(
            *("--openclaw-surface=openclaw", "--openclaw-surface-from=substitute"),
            "--openclaw-run-id=substitute",
            models="lab/direct",
        )

    table = surface_table.table_of(plain_project.folder / "runs")

    listed, substitute = (table["columns"][name] for name in ("listed", "substitute"))
    assert (listed["n_judged"], listed["n_passed"], listed["release"]) == (5, 5, None)
    assert (substitute["n_judged"], substitute["n_passed"]) == (5, 2)
    assert substitute["outcomes"] == {"valid": 2, "unknown_tool": 3}
    assert substitute["turn"]["prompt_tokens"] == 9000
    (difference,) = table["differences"]
    assert (difference["from"], difference["to"], difference["same_outcome"]) == ("listed", "substitute", 2)
    assert (difference["n_cells"], difference["difference"], difference["n_worse"]) == (5, -0.6, 3)
    page = surface_table.render(table)
    assert "| passed | **5** | **2** |" in page
    assert "| 5 | 5 → 2 | -60 | -100 to +25 | 2 | `valid` 5 → 2, `unknown_tool` 0 → 3 |" in page
