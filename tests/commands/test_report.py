"""`report`: when it refuses; what it writes is looked at in tests/browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_openclaw.cli import main
from tests.unit.runs.stored_runs import A, row, store


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run in a project that is the current folder."""
    monkeypatch.chdir(tmp_path)
    return store(Path("runs/one"), [row(A, "P1")])


def test_it_needs_no_extra_and_is_small(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page is one file without a library; a run of 100 cells is below 300 kB."""
    texts = [f"answer {n} " * 30 for n in range(100)]
    big = store(Path("runs/big"), [row(A, f"P{n}", raw_output=text) for n, text in enumerate(texts)])

    assert main(["report", "big"]) == 0

    page = (big / "report.html").read_bytes()
    assert len(page) < 300_000
    assert page.count(b"<script>") == 1
    assert "100 cells on 1 target, 0." in capsys.readouterr().out


def test_it_overwrites_nothing_but_its_own(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of yours stays; an older page is replaced."""
    monkeypatch.setattr("pytest_openclaw.features.pages.render_page", lambda shown: _PAGE)
    Path("notes.html").write_text("<p>mine</p>")

    assert main(["report", "one", "--into", "notes.html"]) == 4
    assert (
        "notes.html exists and is not a page of pytest-openclaw; name another file" in capsys.readouterr().err
    )
    assert Path("notes.html").read_text() == "<p>mine</p>"
    assert main(["report", "one"]) == 0
    assert main(["report", "one"]) == 0
    assert (run / "report.html").read_text() == _PAGE


_PAGE = '<!doctype html>\n<html lang="en" data-made-by="pytest-openclaw"></html>'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["nowhere"], "there is no run nowhere in runs; the last one is one", id="run"),
        pytest.param(["one", "--baseline", "nowhere"], "there is no run nowhere in runs", id="baseline"),
    ],
)
def test_a_run_that_is_not_there_is_named(
    run: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is drawn."""
    assert main(["report", *words]) == 4
    assert said in capsys.readouterr().err


def test_a_run_of_too_many_cells_gets_no_page(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A browser could not load it."""
    monkeypatch.setattr("pytest_openclaw.features.pages.MOST_CELLS", 10)
    big = store(Path("runs/big"), [row(A, f"P{n}") for n in range(11)])

    assert main(["report", "big"]) == 4

    assert "has 11 cells, a page at most 10; use export" in capsys.readouterr().err
    assert not (big / "report.html").exists()
