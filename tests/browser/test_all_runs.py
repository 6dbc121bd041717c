"""The page of all runs: rates, changes of a tier, and links."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_openclaw.cli import main
from tests.browser import made_runs
from tests.browser.conftest import Opener, axe_faults, reported

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def folder(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs on two days each apart; the last one is small, and the first one has a page."""
    runs = tmp_path_factory.mktemp("all") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        for n, (better, prompts) in enumerate([(-0.7, 40), (0.0, 40), (0.07, 40), (0.07, 8)]):
            patch.setattr(made_runs, "BEGAN_MS", 1_795_300_000_000 + 2 * n * DAY_MS)
            made_runs.make_run(runs / f"r{n}", prompts=prompts, targets=2, seed=n, better=better)
    reported(runs / "r0")
    assert main(["report", "--all", "--runs-dir", str(runs)]) == 0
    return runs


def test_each_target_has_its_rates_and_its_runs(open_page: Opener, folder: Path) -> None:
    """A point for each run, newest first in the table, links to what each run has, and the tier's changes."""
    page = open_page(folder / "index.html")
    first = page.locator("#target-1")

    assert first.locator("h2").inner_text() == "lab/model-a:70b"
    assert first.locator(".chart circle").count() == 4
    links = first.locator("tbody a")
    assert links.all_inner_texts() == ["r3", "r2", "r1", "r0"]
    assert links.last.get_attribute("href") == "r0/report.html"
    assert first.locator(".notes dd").all_inner_texts() == ["2? → 1? in r1"]


@pytest.mark.parametrize(("width", "colors"), [(1280, "light"), (390, "dark")])
def test_it_is_accessible_and_narrow_enough(open_page: Opener, folder: Path, width: int, colors: str) -> None:
    """Axe finds no serious fault, and only tables scroll sideways."""
    page = open_page(folder / "index.html", width=width, colors=colors, reduced_motion="reduce")

    assert axe_faults(page) == []
    assert page.evaluate("document.scrollingElement.scrollWidth") == width
