"""`report`: when it refuses; what it writes is looked at in tests/browser."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_openclaw.commands import main
from pytest_openclaw.core.installation import install_command
from tests.unit.stored.stored_runs import A, files_of, row, store


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run in a project that is the current folder."""
    monkeypatch.chdir(tmp_path)
    return store(Path("runs/one"), [row(A, "P1")])


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_without_its_extra_it_says_how_to_get_it(
    run: Path, missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No page is written without its charts."""
    from pytest_openclaw.reports.html.library import bundle

    bundle.cache_clear()
    for name in ("altair", "vl_convert"):
        monkeypatch.setitem(sys.modules, name, None if name == missing else _Other())
    before = files_of(run)

    assert main(["report", "one"]) == 4

    assert capsys.readouterr().err == (
        f"pytest-openclaw report: the page's charts need {missing}, which is not installed: "
        f"{install_command('report')}\n"
    )
    assert files_of(run) == before


class _Other:
    SCHEMA_VERSION = "v6.1.0"


def test_it_overwrites_nothing_but_its_own(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of yours stays; an older page is replaced."""
    monkeypatch.setattr("pytest_openclaw.reports.html.render_page", lambda shown: _PAGE)
    Path("notes.html").write_text("<p>mine</p>")

    assert main(["report", "one", "--into", "notes.html"]) == 4
    assert "notes.html exists and is no page of ours; name another file" in capsys.readouterr().err
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
