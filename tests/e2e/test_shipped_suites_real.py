"""The shipped suites with the embedded model, from this repository, as its owner would run them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.sessions import Project, all_gone

pytestmark = pytest.mark.engine

REPOSITORY = Path(__file__).parents[2]
NATIVE = ("N0", "N8", "N14", "N16", "N31", "N34", "N36", "N40")  # as in `tox -e bench`


@pytest.mark.nightly
def test_the_shipped_suites_end_in_a_verdict(project: Project, embedded_model: str) -> None:
    """The small model passes some cells and fails others; without a gate only a fault would fail the run."""
    suites = [f"benchmarks/prompts_{name}.toml" for name in ("core", "tools")]
    native = [f"benchmarks/prompts_native.toml::{prompt_id}" for prompt_id in NATIVE]

    ended = project.run(
        "--openclaw-verdict=gate",
        "--tb=no",
        models=f"llama_cpp/{embedded_model}",
        named=(*suites, *native),
        cwd=REPOSITORY,
    )

    rows = ended.run.rows
    judged = [row["objective_pass"] for row in rows]
    assert ended.status == 0, ended.text
    assert {row["suite"] for row in rows} == {*suites, "benchmarks/prompts_native.toml"}
    assert {row["prompt_id"] for row in rows if row["tools_offered"]} == {*NATIVE}
    assert {row["availability_status"] for row in rows} == {"ok"}
    assert judged.count(True) >= 4
    assert judged.count(False) >= 4
    assert ended.outcomes == {
        "passed": sum(row["success"] and row["objective_pass"] is not False for row in rows),
        "failed": sum(not row["success"] or row["objective_pass"] is False for row in rows),
    }
    assert all(row["ttft_ms"] <= row["e2e_ms"] for row in rows if row["ttft_ms"] is not None)

    summary, group = ended.run.summary, ended.run.group("llama_cpp")
    assert (summary["state"], summary["n_rows"]) == ("finished", summary["n_cells"])
    assert (group["n_ok"], group["n_error"]) == (len(rows), 0)
    assert (group["tool_use"]["evidence"], group["tool_use"]["n"]) == ("native", 5)
    assert group["tool_use"]["tier"] in {1, 2, 3}
    assert ended.wide_lines == []
    assert len(ended.engines) == 1
    assert all_gone(ended.engines)
    assert ended.left == []
