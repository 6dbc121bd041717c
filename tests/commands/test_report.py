"""`report`: when it refuses; tests/browser checks what it writes."""

from pathlib import Path

import pytest

from tests.unit.reports.summaries import fault, missed
from tests.unit.runs.stored_runs import A, definition, row, store

PAGE = '<!doctype html>\n<html lang="en" data-made-by="pytest-openclaw"></html>'


@pytest.fixture
def run(project):
    texts = [f"answer {n} " * 30 for n in range(100)]
    rows = [row(A, f"P{n}", raw_output=text) for n, text in enumerate(texts)]
    return store(project / "runs/one", rows)


def test_it_needs_no_extra_and_is_small(run, command):
    """The page is one file without a library, below 300 kB."""
    assert "100 cells on 1 target, 0." in command("report", "one").out

    page = (run / "report.html").read_bytes()
    assert len(page) < 300_000
    assert page.count(b"<script>") == 1


def test_it_overwrites_only_its_own_page(run, monkeypatch, command):
    """A user's file stays; an older page is replaced."""
    monkeypatch.setattr("pytest_openclaw.parts.pages.render_page", lambda shown: PAGE)
    Path("notes.html").write_text("<p>mine</p>")

    message = command.refused("report", "one", "--into", "notes.html")

    assert message == "notes.html exists and is not a page of pytest-openclaw; name another file"
    assert Path("notes.html").read_text() == "<p>mine</p>"
    for _ in range(2):
        command("report", "one")
    assert (run / "report.html").read_text() == PAGE


def test_a_page_that_would_be_too_large_has_the_beginnings_of_texts(run, monkeypatch, command):
    """It is below the limit, and says on the page and in a warning what is missing."""
    command("report", "one")
    whole = (run / "report.html").stat().st_size
    monkeypatch.setattr("pytest_openclaw.parts.pages.MOST_PAGE_BYTES", whole - 1)

    warning = command("report", "one").err

    assert "the page would be too large, so it cuts texts after" in warning
    assert (run / "report.html").stat().st_size < whole
    assert "more characters]" in (run / "report.html").read_text("utf-8")


def test_a_page_to_share_has_no_texts(project, command):
    """It keeps names, verdicts and times; the page with texts, and its notes, are not replaced."""
    call = {"id": "c", "name": "read", "arguments": "zq-arguments"}
    texts = {
        "raw_output": "zq-reply",
        "parsed_output": {"found": "zq-finding"},
        "extra": {"x_note": "zq-extra"},
    }
    rows = [
        missed(A, prompt_id="P1", suite="s", violation="zq-violation", tool_call_details=(call,), **texts),
        fault(A, prompt_id="P2", suite="s", fault_message="the server's words"),
    ]
    keys = {"prompt": "zq-prompt", "system": "zq-system", "validator": {"type": "exact", "value": "zq-rule"}}
    run = store(
        project / "runs/one", rows, prompts=[definition(one, suite="s", **keys) for one in ("P1", "P2")]
    )
    command("report", "one")

    assert "wrote runs/one/report-shared.html" in command("report", "one", "--share").out
    whole, shared = ((run / name).read_text("utf-8") for name in ("report.html", "report-shared.html"))
    secrets = ("reply", "finding", "extra", "violation", "arguments", "prompt", "system", "rule")
    gone = [*(f"zq-{word}" for word in secrets), "the server's words"]
    assert [text for text in gone if text not in whole] == []
    assert [text for text in gone if text in shared] == []
    assert "called read" in shared


def test_it_opens_the_page(run, monkeypatch, command):
    """In the browser of the system; without one it says so."""
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or False)

    message = command("report", "one", "--open").err

    assert opened == [(run / "report.html").as_uri()]
    assert "no browser was found; open runs/one/report.html" in message
