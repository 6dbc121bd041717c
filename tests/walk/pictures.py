"""The pictures in the docs, made anew by `OPENCLAW_TEST_PICTURES=docs/images pytest tests/walk -k pictures`."""

from tests.conftest import require_browser
from tests.walk.screens import run_on_terminal

RUN = "pytest benchmarks/prompts_tools.toml --openclaw-models=qwen3:8b,llama3.2:3b"
MISTAKE = "pytest benchmarks --openclaw-models=qwen3:80b"
SCREENS = {"terminal-run.png": RUN, "terminal-mistake.png": MISTAKE}
CELL = "#view=differs&cell=benchmarks/prompts_tools.toml::T3[ollama_native/llama3.2:3b]"
PAGES = {
    "page-first.png": ("second/report.html", 1440, "light"),
    "page-cell.png": (f"second/report.html{CELL}", 1440, "dark"),
    "page-phone.png": ("second/report.html", 390, "light"),
}
"""Of each picture the file with what is shown of it, the width of the window, and the color scheme."""


def take_pictures(folder, environ, into):
    """Write the pictures of a project with its runs into a folder, and return their paths."""
    from playwright.sync_api import sync_playwright

    line = "pytest-openclaw report second --baseline first"
    assert run_on_terminal(line, folder, environ, columns=80, color=False).status == 0
    # It has paths and versions of this machine.
    without_header = {**environ, "PYTEST_ADDOPTS": f"{environ['PYTEST_ADDOPTS']} --no-header"}
    into.mkdir(parents=True, exist_ok=True)
    made = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=require_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, line in SCREENS.items():
            shown = run_on_terminal(line, folder, without_header, columns=80, color=True)
            page = browser.new_page(viewport={"width": 1200, "height": 600})
            page.set_content(shown.picture(f"$ {line}"))
            page.locator("div").screenshot(path=into / name)
            made.append(into / name)
        for name, (shown_file, width, colors) in PAGES.items():
            file, hash_sign, part = shown_file.partition("#")
            page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=colors)
            page.goto(f"{(folder / 'runs' / file).as_uri()}{hash_sign}{part}")
            page.wait_for_selector("body[data-ready]")
            page.screenshot(path=into / name)
            made.append(into / name)
        browser.close()
    return made
