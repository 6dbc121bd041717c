"""`--openclaw-report`: the run writes its page itself."""

from typing import Any

from tests.plugin.conftest import YES


def test_a_run_writes_its_page(project: Any) -> None:
    """At its end, with every cell, and says where."""
    project.suite({"P1": ("say yes", YES), "P2": ("say perhaps", YES)})

    session = project.run("--openclaw-report")

    page = (session.run_dir / "report.html").read_text("utf-8")
    assert "<title>a on scripted/m · OpenClaw benchmark</title>" in page
    assert "answered: “perhaps”" in page
    assert f"page runs/{session.run_dir.name}/report.html" in session.words


def test_it_is_an_ini_key(plain_project: Any) -> None:
    """Without it, no page is written."""
    plain_project.suite({"P1": ("say yes", YES)})
    assert not (plain_project.run().run_dir / "report.html").exists()

    plain_project.ini("openclaw_report = true")
    session = plain_project.run("--openclaw-run-id=two")
    assert (session.run_dir / "report.html").exists()


def test_a_page_that_cannot_be_written_costs_nothing_else(plain_project: Any, monkeypatch: Any) -> None:
    """The run has its rows, its summary and its status, and says why there is no page."""
    monkeypatch.setattr("pytest_openclaw.parts.pages.MOST_CELLS", 1)
    plain_project.suite({"P1": ("say yes", YES), "P2": ("say yes", YES)})

    session = plain_project.run("--openclaw-report")

    assert session.status == 0
    assert "has 2 cells, a page at most 1; use export" in session.words
    assert (session.run_dir / "summary.json").exists()
    assert not (session.run_dir / "report.html").exists()
