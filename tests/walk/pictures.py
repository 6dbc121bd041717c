"""The pictures in the docs: screens of the walk, and the pages in Chromium.

`OPENCLAW_TEST_PICTURES=docs/images pytest tests/walk -m nightly -k pictures` makes them anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.conftest import require_browser
from tests.walk.screens import run_on_terminal
from tests.walk.steps import MISTAKES, TASKS

SCREENS = {
    "terminal-run.png": (TASKS[0], 100),
    "terminal-narrow.png": (TASKS[0], 60),
    "terminal-mistake.png": (MISTAKES[2], 80),
}
WIDTHS = {
    "page-wide.png": (1440, "light"),
    "page-tablet.png": (1024, "dark"),
    "page-phone.png": (390, "light"),
}


def take_pictures(folder: Path, environ: Mapping[str, str], into: Path) -> list[Path]:
    """Write the pictures, and return their paths.

    Args:
        folder: the project with its runs.
        environ: of the commands.
        into: the folder that takes them.
    """
    from playwright.sync_api import sync_playwright

    for line in ("pytest-openclaw report second --baseline first", "pytest-openclaw report --all"):
        assert run_on_terminal(line, folder, environ, columns=80, color=False).status == 0
    into.mkdir(parents=True, exist_ok=True)
    made = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=require_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, (step, columns) in SCREENS.items():
            shown = run_on_terminal(step.line, folder, environ, columns=columns, color=True)
            page = browser.new_page(viewport={"width": 1200, "height": 600})
            page.set_content(shown.picture(f"$ {step.line}"))
            page.locator("div").screenshot(path=into / name)
            made.append(into / name)
        pages = {name: ("second/report.html", *look) for name, look in WIDTHS.items()}
        pages["page-all-runs.png"] = ("index.html", 1024, "light")
        for name, (file, width, colors) in pages.items():
            page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=colors)
            page.goto((folder / "runs" / file).as_uri())
            page.wait_for_selector("body[data-ready]")
            page.screenshot(path=into / name)
            made.append(into / name)
        browser.close()
    return made
