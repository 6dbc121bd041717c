"""The page of all runs: trends, changes of a tier, filters and links."""

from __future__ import annotations

import json
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


def test_each_target_has_its_trend_and_its_runs(open_page: Opener, folder: Path) -> None:
    """A point for each run, newest first in the table, links to what each run has, and the tier's changes."""
    page = open_page(folder / "index.html")

    assert page.locator("#targets h2").all_inner_texts()[0].startswith("lab/model-a:70b")
    assert page.locator("#targets .trend").count() == 2
    assert page.locator("#targets section").first.locator("circle").count() == 4
    links = page.locator("#targets section").first.locator("tbody a")
    assert links.all_inner_texts() == ["r3", "r2", "r1", "r0"]
    assert links.last.get_attribute("href") == "r0/report.html"
    assert (
        page.locator("#targets .changed").first.inner_text()
        == "Tier changes: Tier 2? → Tier 1? in r1 (2026-11-23)"
    )


def test_filters_are_in_the_address(open_page: Opener, folder: Path) -> None:
    """By size, suite, rate and target; opened again, the address shows the same."""
    page = open_page(folder / "index.html")
    first = page.locator("#targets section").first

    page.locator("select[name=size]").select_option("30")
    assert first.locator("tbody tr").count() == 3
    page.locator("select[name=suite]").select_option("benchmarks/prompts_core.toml")
    assert page.locator("#targets section").count() == 0
    page.locator("select[name=size]").select_option("")
    assert first.locator("tbody td:nth-of-type(4)").all_inner_texts() == ["–"] * 4
    assert first.locator(".empty").inner_text() == "no tool cell was answered"
    page.locator("select[name=what]").select_option("passed")
    page.locator("input[name=target]").fill("cloud")
    assert page.locator("#targets h2").count() == 1
    shown = page.locator("#targets").inner_text()
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.locator("#targets").inner_text() == shown
    assert page.url.endswith("#what=passed&suite=benchmarks%2Fprompts_core.toml&target=cloud")


def test_targets_have_their_surface(open_page: Opener, tmp_path: Path) -> None:
    """A label names it, and the filter leaves the targets that were asked on it."""
    run = made_runs.make_run(tmp_path / "runs/r", prompts=20, targets=1)
    results = run / "results.jsonl"
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    more = [{**row, "surface": "openclaw"} for row in rows]
    results.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *more]), "utf-8")
    assert main(["report", "--all", "--runs-dir", str(tmp_path / "runs")]) == 0
    page = open_page(tmp_path / "runs/index.html")

    badges = page.locator("#targets h2 .badge:first-of-type")
    assert badges.all_inner_texts() == ["surface listed", "surface openclaw"]
    page.locator("select[name=surface]").select_option("openclaw")

    assert badges.all_inner_texts() == ["surface openclaw"]
    assert page.url.endswith("#surface=openclaw")


@pytest.mark.parametrize(("width", "colors"), [(1280, "light"), (390, "dark")])
def test_it_is_accessible_and_narrow_enough(open_page: Opener, folder: Path, width: int, colors: str) -> None:
    """Axe finds no serious fault, and only tables scroll sideways."""
    page = open_page(folder / "index.html", width=width, colors=colors, reduced_motion="reduce")

    assert axe_faults(page) == []
    assert page.evaluate("document.scrollingElement.scrollWidth") == width
