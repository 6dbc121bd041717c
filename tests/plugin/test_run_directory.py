"""The files of a run, and the page that it writes itself."""

import pytest

from tests.plugin.conftest import NOOP, YES


@pytest.mark.under_workers
def test_every_file_is_there(project):
    """A run directory holds its files and nothing temporary; the inventory describes the machine."""
    project.suite({"P1": ("say yes", NOOP), "P2": ("say no", YES)})

    session = project.run(models="scripted/llama3.2:3b,scripted/b@low")

    assert sorted(path.name for path in session.run_dir.iterdir()) == [
        "comment.md",
        "config.json",
        "inventory.json",
        "resources_scripted__b__low_after.txt",
        "resources_scripted__b__low_before.txt",
        "resources_scripted__llama3.2_3b_after.txt",
        "resources_scripted__llama3.2_3b_before.txt",
        "results.jsonl",
        "summary.json",
        "summary.md",
    ]
    text = (session.run_dir / "results.jsonl").read_bytes()
    assert (text.count(b"\n"), text[-1:]) == (4, b"\n")
    assert {row["run_id"] for row in session.rows} == {session.run_dir.name}
    inventory = session.load("inventory.json")
    assert inventory["memory_total_bytes"] > 0
    assert inventory["packages"]["pytest"] == pytest.__version__
    assert inventory["cpu"]["logical_cores"] >= 1
    assert inventory["python"]["version"]


def test_the_summary_counts_every_status(project):
    """Each group counts its rows by status; rates exclude cells without a reply."""
    words = ("say yes", "say no", "timeout", "busy", "nologin")
    project.suite({f"P{n}": (word, YES) for n, word in enumerate(words)})

    session = project.run("--openclaw-retries=0", "--openclaw-concurrency=1")

    (first,) = session.summary["groups"]
    counted = {key: first[key] for key in first if key.startswith("n_")}
    assert counted == {
        "n_total": 5, "n_ok": 2, "n_success": 2, "n_skipped_unavailable": 0, "n_rate_limited": 1, "n_error": 1,
        "n_auth_error": 1, "n_native_unanswered": 0, "n_open_probes": 0,
    }  # fmt: skip
    assert (first["success_rate_ok"], first["objective_pass_rate"]) == (1.0, 0.5)
    assert first["resources_before"]["memory_total_bytes"] > 0
    assert first["resources_after"]["taken_at_ms"] >= first["resources_before"]["taken_at_ms"]


def test_a_run_writes_its_page(project):
    """At its end, with every cell, and says where."""
    project.suite({"P1": ("say yes", YES), "P2": ("say perhaps", YES)})

    session = project.run("--openclaw-report")

    page = (session.run_dir / "report.html").read_text("utf-8")
    assert "<title>a on scripted/m · OpenClaw benchmark</title>" in page
    assert "answered: “perhaps”" in page
    assert f"page runs/{session.run_dir.name}/report.html" in session.words


def test_a_page_that_cannot_be_written_costs_nothing_else(plain_project, monkeypatch):
    """The run has its rows, its summary and its status, and says why there is no page."""
    monkeypatch.setattr("pytest_openclaw.parts.pages.MOST_CELLS", 1)
    plain_project.suite({"P1": ("say yes", YES), "P2": ("say yes", YES)})

    session = plain_project.run("--openclaw-report")

    assert session.status == 0
    assert "has 2 cells, a page at most 1; use export" in session.words
    assert (session.run_dir / "summary.json").exists()
    assert not (session.run_dir / "report.html").exists()
