"""Pages in a real Chromium: without a network, and any error in the page fails the test."""

from pathlib import Path

import pytest

from pytest_openclaw.cli import main
from tests.browser.made_runs import make_run
from tests.conftest import require_browser

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def chromium():
    return require_browser()


@pytest.fixture(scope="session")
def context(chromium, tmp_path_factory):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=chromium,
            args=ARGUMENTS,
            viewport={"width": 1280, "height": 900},
        )
        context.set_default_timeout(PATIENCE_MS)
        yield context
        context.close()


@pytest.fixture
def open_page(context):
    """Opens a file and waits until it is drawn; at the end the page must have reported no error."""
    complaints = []
    pages = []

    def open_(path, **look):
        page = context.new_page()
        pages.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: request.url == path.as_uri() or complaints.append(request.url))
        page.set_viewport_size({"width": look.pop("width", 1280), "height": 900})
        page.emulate_media(color_scheme=look.pop("colors", "light"), **look)
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_
    for page in pages:
        page.close()
    assert complaints == []


@pytest.fixture(scope="session")
def made_run(chromium, tmp_path_factory):
    return reported(make_run(tmp_path_factory.mktemp("runs") / "one", prompts=60, targets=3, repeats=2))


def reported(run, *words):
    assert main(["report", str(run), *words]) == 0
    return run


def axe_faults(page):
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return [
        f"{one['impact']}: {one['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for one in violations
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]
