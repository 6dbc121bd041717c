"""The shipped suites against the embedded model, from this repository, as its owner would run them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.sessions import Project, all_gone

pytestmark = pytest.mark.engine

REPOSITORY = Path(__file__).parents[2]


def test_the_shipped_suites_end_in_a_verdict(project: Project, embedded_model: str) -> None:
    """The small model passes some cells and fails others; without a gate only a fault would fail the run."""
    ended = project.run(
        "--openclaw-verdict=gate", "--tb=no", models=f"llama_cpp/{embedded_model}", cwd=REPOSITORY
    )

    rows = ended.run.rows
    judged = [row["objective_pass"] for row in rows]
    assert ended.status == 0, ended.text
    assert {row["suite"] for row in rows} == {"benchmarks/prompts_core.toml", "benchmarks/prompts_tools.toml"}
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
    assert group["tool_use"]["n"] >= 16
    assert group["tool_use"]["tier"] in {1, 2, 3}
    assert ended.wide_lines == []
    assert len(ended.engines) == 1
    assert all_gone(ended.engines)
    assert ended.left == []
