"""The page is accessible: axe finds no serious fault in either color scheme, and a small screen is enough."""

from itertools import product

import pytest

from tests.browser.conftest import axe_faults


def _open_cell(page):
    page.locator("[role=gridcell].v1").first.click()
    page.locator("#panel details").evaluate_all("list => { for (const one of list) one.open = true; }")


def _filter(page):
    page.locator("#filters").evaluate("one => { one.open = true; }")
    page.get_by_role("checkbox", name="missed").check()


def _unfold(page):
    page.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true")


NARROW = (390, "dark")
WIDE = [look for look in product((1440, 1024, 390), ("light", "dark")) if look != NARROW]


@pytest.mark.parametrize(
    ("width", "colors"), [NARROW, *(pytest.param(*look, marks=pytest.mark.nightly) for look in WIDE)]
)
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(_open_cell, id="cell-open"),
        pytest.param(_unfold, id="unfolded"),
        pytest.param(_filter, id="filtered"),
    ],
)
def test_axe_finds_no_serious_fault(open_page, made_run, act, width, colors):
    """Names, roles, contrasts, order of headings, focus: in both color schemes, wide and narrow."""
    page = open_page(made_run / "report.html", width=width, colors=colors, reduced_motion="reduce")
    act(page)
    page.wait_for_timeout(100)

    assert axe_faults(page) == []


def _colors(page):
    cell = "getComputedStyle(document.querySelector('[role=gridcell].v0')).backgroundColor"
    return page.evaluate("getComputedStyle(document.body).backgroundColor"), page.evaluate(cell)


@pytest.mark.nightly
def test_the_system_chooses_the_colors_until_the_reader_does(open_page, made_run):
    """The switch overrides the system's scheme, and Auto restores it."""
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


def test_a_telephone_is_wide_enough(open_page, made_run):
    """Filters fold, only tables and the matrix scroll sideways and say so; an open cell fills the screen."""
    page = open_page(made_run / "report.html", width=390)
    assert page.evaluate("document.scrollingElement.scrollWidth") == 390
    assert not page.locator("#filter").is_visible()
    page.get_by_text("Filter", exact=True).click()
    assert page.locator("#filter").is_visible()
    assert page.locator(".hint").first.is_visible()
    page.locator("[role=gridcell].v1").first.click()

    box = page.locator("#panel").bounding_box()
    assert (box["x"], box["width"]) == (0, 390)
    assert page.evaluate("document.querySelector('#panel .body').scrollWidth") <= 390
    page.keyboard.press("Escape")
    assert not page.locator("#panel").is_visible()
