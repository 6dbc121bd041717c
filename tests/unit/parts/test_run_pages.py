"""A stored run, prepared for a page."""

import json

import pytest

from pytest_openclaw.conclusions.summary import to_json
from pytest_openclaw.parts.pages import show_run
from pytest_openclaw.reports.cells import offered_tools
from pytest_openclaw.reports.html import cell_data
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.summaries import summary_of as stored_or_made
from tests.unit.parts.compared import compare
from tests.unit.reports.summaries import missed, record, summary_of
from tests.unit.runs.stored_runs import A, B, definition, row, store


@pytest.mark.parametrize(
    "changes",
    [{}, *({"tools": tools, "tools_sha256": "0"} for tools in (["read"], ["gone"], 3))],
    ids=["none-offered", "others-today", "unknown-today", "no-tools-at-all"],
)
def test_tools_that_are_not_known_any_more_judge_nothing(changes):
    """Then the page has the content of the row, and no more."""
    assert offered_tools(definition("P1", **changes)) is None


def test_the_baseline_is_next_to_the_same_cells(tmp_path):
    """Cells are matched by suite, prompt, target and repeat."""
    run = store(tmp_path / "now", [row(A, "P1"), row(A, "P2")])
    older = store(tmp_path / "then", [row(A, "P1", raw_output="<think>\na\n</think>\n\nb"), row(B, "P1")])
    shown = show_run(load_run(run), stored_or_made(load_run(run)), load_run(older))

    assert [cell.before is not None for cell in shown.cells] == [True, False]
    _, details = cell_data(shown.cells, shown.prompts, [A])
    assert details[0]["before"]["text"] == "b"


def test_the_comparison_is_the_one_that_was_written(tmp_path):
    """The figures are computed from the rows; only facts that rows lack are read from the summary."""
    run = store(tmp_path / "one", [missed(prompt_id="P1")])
    summary = summary_of([missed(prompt_id="P1")], comparison=compare([record()], [record()]))
    (run / "summary.json").write_text(json.dumps(to_json(summary)))

    shown = show_run(load_run(run), stored_or_made(load_run(run)))

    assert summary.comparison is not None
    assert shown.summary.comparison == summary.comparison
    assert shown.summary.groups[0].passed.n == 1
