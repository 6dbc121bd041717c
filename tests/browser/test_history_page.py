"""The page of `history` as a user sees it."""

import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.values.requests import Target
from tests.browser.conftest import axe_faults
from tests.unit.runs.stored_runs import A, row, store

HOSTILE = Target(provider="lab", model="<img src=x onerror=alert(1)>\u202e")
DAY = 86_400_000


@pytest.fixture
def trend(tmp_path):
    """A page of three runs on two targets; the model's digest changes before the last run."""
    for day in range(3):
        ended = {"ended_at_ms": (20000 + day) * DAY, "started_at_ms": 0}
        rows = [
            row(target, f"P{n}", objective_pass=n > day, **ended) for target in (A, HOSTILE) for n in range(4)
        ]
        server = {"server": {"server": "ollama", "digest": "old" if day < 2 else "<b>new"}}
        store(
            tmp_path / f"runs/night-{day}",
            rows,
            serving={A.label: server},
            n_selected={A: 4, HOSTILE: 5 if day == 1 else 4},
        )
    assert main(["history", str(tmp_path / "runs"), "--page", str(tmp_path / "trend.html")]) == 0
    return tmp_path / "trend.html"


@pytest.mark.parametrize("colors", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_charts_of_all_runs(open_page, trend, width, colors):
    """Each target has its points, a dashed line at the change, and its runs as a table on demand."""
    page = open_page(trend, width=width, colors=colors)

    assert page.locator("figcaption h2").all_inner_texts() == [
        HOSTILE.label.replace("\u202e", "\\u202e"),
        "lab/a",
    ]
    of_a = page.locator("figure").nth(1)
    assert [of_a.locator(one).count() for one in ("circle", ".change", ".changes li")] == [3, 1, 1]
    assert of_a.locator(".changes").inner_text() == "2024-10-06, night-2: digest old → <b>new"
    assert of_a.locator("g title").first.text_content() == "night-0, 2024-10-04, 3/4, 30 % to 95 %"
    of_a.locator("summary").click()
    assert of_a.locator("tbody tr").nth(2).inner_text().split()[:3] == ["night-2", "2024-10-06", "1/4"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert axe_faults(page) == []


def test_an_interrupted_run_is_hollow(open_page, trend):
    """The point of a run that is not finished has the color of the paper."""
    page = open_page(trend)

    assert page.locator("figure").first.locator(".interrupted circle").count() == 1


def test_the_newest_of_many_runs_are_seen(open_page, tmp_path):
    """A chart that is wider than a phone begins at its end."""
    for day in range(60):
        store(tmp_path / f"runs/{day}", [row(A, "P1", ended_at_ms=(20000 + day) * DAY, started_at_ms=0)])
    assert main(["history", str(tmp_path / "runs"), "--page", str(tmp_path / "many.html")]) == 0

    page = open_page(tmp_path / "many.html", width=390)

    assert page.locator("circle").last.evaluate("one => one.getBoundingClientRect().right <= innerWidth")


def test_a_page_without_runs(open_page, trend):
    """If no target is chosen, the page says so."""
    empty = trend.with_name("empty.html")
    assert main(["history", str(trend.parent / "runs"), "--target", "none", "--page", str(empty)]) == 0

    assert open_page(empty).locator("#charts").inner_text() == "No run has such a target."
