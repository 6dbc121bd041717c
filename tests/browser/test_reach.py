"""The page is accessible: axe finds no serious fault in either color scheme, and a small screen is enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import Opener, axe_faults, reported
from tests.browser.made_runs import make_run

if TYPE_CHECKING:
    from playwright.sync_api import Page


def _open_cell(page: Page) -> None:
    page.locator("[role=gridcell].v1").first.click()
    page.locator("#panel details").evaluate_all("list => { for (const one of list) one.open = true; }")


@pytest.mark.parametrize(
    ("width", "colors"),
    [
        pytest.param(
            width,
            colors,
            id=f"{width}-{colors}",
            marks=[] if (width, colors) == (390, "dark") else [pytest.mark.nightly],
        )
        for width in (1440, 1024, 390)
        for colors in ("light", "dark")
    ],
)
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda page: None, id="closed", marks=pytest.mark.nightly),
        pytest.param(_open_cell, id="cell-open"),
        pytest.param(
            lambda page: page.evaluate(
                "for (const one of document.querySelectorAll('main details')) one.open = true"
            ),
            id="unfolded",
        ),
        pytest.param(lambda page: page.get_by_role("checkbox", name="missed").check(), id="filtered"),
    ],
)
def test_axe_finds_no_serious_fault(
    open_page: Opener, made_run: Path, act: Any, width: int, colors: str
) -> None:
    """Names, roles, contrasts, order of headings, focus: in both color schemes, wide and narrow."""
    page = open_page(made_run / "report.html", width=width, colors=colors, reduced_motion="reduce")
    act(page)
    page.wait_for_timeout(100)

    assert axe_faults(page) == []


def _colors(page: Page) -> tuple[str, str]:
    point = "getComputedStyle(document.querySelector('#targets .chart circle')).fill"
    return page.evaluate("getComputedStyle(document.body).backgroundColor"), page.evaluate(point)


@pytest.mark.nightly
def test_the_system_chooses_the_colors_until_the_reader_does(open_page: Opener, made_run: Path) -> None:
    """The switch overrides the system's scheme, charts included, and Auto restores it."""
    page = open_page(made_run / "report.html", colors="light")
    light = _colors(page)

    page.get_by_role("button", name="Dark").click()
    dark = _colors(page)
    assert dark[0] != light[0]
    assert dark[1] != light[1]
    page.emulate_media(color_scheme="dark")
    assert _colors(page) == dark
    page.get_by_role("button", name="Light").click()
    assert _colors(page) == light
    page.get_by_role("button", name="Auto").click()
    assert _colors(page) == dark


@pytest.mark.parametrize(
    "width", [pytest.param(390, id="telephone"), pytest.param(1024, id="tablet", marks=pytest.mark.nightly)]
)
def test_the_answer_is_on_the_first_screen(open_page: Opener, made_run: Path, width: int) -> None:
    """Every target's chips and sentence are seen without scrolling, above any chart; what scrolls says so."""
    page = open_page(made_run / "report.html", width=width)

    answers = page.locator("#targets .answers li")
    assert answers.count() == 3
    for answer in answers.all():
        box = answer.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900
    chips = answers.nth(1).locator(".badge").all_inner_texts()
    assert chips[0].split(" ", 1)[0] in set("✓◐?✗!")
    assert chips[1].startswith("Tier ")
    chart = page.locator("#targets .chart").bounding_box()
    last = answers.last.bounding_box()
    assert chart is not None
    assert last is not None
    assert last["y"] + last["height"] < chart["y"]


def test_a_telephone_is_wide_enough(open_page: Opener, made_run: Path) -> None:
    """Only tables and the matrix scroll sideways; an open cell fills the screen."""
    page = open_page(made_run / "report.html", width=390)
    assert page.evaluate("document.scrollingElement.scrollWidth") == 390
    page.locator("[role=gridcell].v1").first.click()

    box = page.locator("#panel").bounding_box()
    assert box is not None
    assert (box["x"], box["width"]) == (0, 390)
    assert page.evaluate("document.querySelector('#panel .body').scrollWidth") <= 390
    page.keyboard.press("Escape")
    assert not page.locator("#panel").is_visible()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n_prompts", "n_targets", "n_repeats"),
    [
        pytest.param(200, 10, 1, id="2000-cells"),
        pytest.param(1000, 10, 1, id="10000-cells"),
        pytest.param(40, 50, 1, id="50-targets"),
    ],
)
def test_many_cells_stay_quick(
    open_page: Opener, tmp_path: Path, n_prompts: int, n_targets: int, n_repeats: int
) -> None:
    """A search ends before a reader notices."""
    n = n_prompts * n_targets * n_repeats
    run = reported(make_run(tmp_path / "one", prompts=n_prompts, targets=n_targets, repeats=n_repeats))
    page = open_page(run / "report.html")

    assert page.locator("#found").inner_text() == f"{n:,} cells, {n_prompts:,} prompts"
    took = page.evaluate(SEARCH)
    assert took["found"].endswith(" prompts")
    assert max(took["ms"]) < 3000  # about 70 on an idle machine, which a test on a busy one cannot rely on
    page.locator("[role=gridcell][tabindex='0']").focus()
    page.keyboard.press("Control+End")
    row = page.locator("[role=gridcell]:focus").locator("xpath=..")
    assert row.get_attribute("aria-rowindex") == page.locator("#grid").get_attribute("aria-rowcount")


SEARCH = """async () => {
  const input = document.querySelector('input[type=search]');
  const found = document.getElementById('found');
  const result = { ms: [] };
  for (const text of ['disk space', 'disk space on', 'the']) {
    input.value = text;
    const before = found.textContent;
    const began = performance.now();
    input.dispatchEvent(new Event('input'));
    while (found.textContent === before) await new Promise((go) => { setTimeout(go, 5); });
    result.ms.push(performance.now() - began);
    result.found = found.textContent;
  }
  return result;
}"""
