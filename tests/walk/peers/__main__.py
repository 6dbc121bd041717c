"""The pictures of docs/explanation/first-screens.md: what each program shows first of the same benchmark.

It needs Node 22 or later, and takes a minute. Nothing else needs these programs.

    npm install --prefix /tmp/peers promptfoo@0.123.1
    python -m venv /tmp/peers/inspect
    /tmp/peers/inspect/bin/pip install inspect-ai==0.3.285 openai
    python -m tests.walk.peers --promptfoo /tmp/peers/node_modules/.bin/promptfoo \
        --inspect /tmp/peers/inspect/bin/inspect --into docs/images
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import NO_OTHER_PLUGINS, require_browser
from tests.providers.servers.misbehaving import unused_port
from tests.walk.lab import serve, write_project
from tests.walk.screens import Shown, run_on_terminal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
COLUMNS, LINES = 100, 36
"""Of the terminal. What has scrolled out of it when the command ends is not in the picture."""
WINDOW = {"width": 1440, "height": 900}
PATIENCE_S = 120.0
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
"""For Chromium: pages of other hosts are not found."""
OURS = "pytest benchmarks/prompts_tools.toml --openclaw-models=qwen3:8b,llama3.2:3b --openclaw-run-id=ours"


def main() -> None:
    """Run all three programs, and write two pictures of each."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--promptfoo", required=True, help="the command")
    parser.add_argument("--inspect", required=True, help="the command")
    parser.add_argument("--into", type=Path, required=True, help="the folder for the pictures")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="lab-") as scratch,
        serve() as server,
        sync_playwright() as playwright,
    ):
        folder = Path(scratch)
        write_project(folder)
        for file in ("promptfooconfig.yaml", "inspect_task.py"):
            shutil.copy(HERE / file, folder)
        environ = _environ(folder, server.origin)
        browser = playwright.chromium.launch(
            executable_path=require_browser(), args=["--no-sandbox", "--disable-gpu", OFFLINE]
        )
        for name, line in _lines(given.promptfoo, given.inspect).items():
            shown = run_on_terminal(line, folder, environ[name], columns=COLUMNS, color=True)
            print(f"{name}: {len(shown.text.splitlines())} lines, exit status {shown.status}")
            _take_terminal(browser, shown, line, given.into / f"first-{name}-terminal.png")
        assert run_on_terminal("pytest-openclaw report ours", folder, {}, columns=80, color=False).status == 0
        _take_page(
            browser, (folder / "runs/ours/report.html").as_uri(), given.into / "first-openclaw-page.png"
        )
        with unused_port() as port:
            pass  # only now can a program listen there
        servers = {
            "promptfoo": f"{given.promptfoo} view -n -p {port}",
            "inspect": f"{given.inspect} view start --port {port} --log-dir logs",
        }
        for name, line in servers.items():
            with _serving(line, folder, environ[name], port) as url:
                page = f"{url}/eval" if name == "promptfoo" else url
                _take_page(browser, page, given.into / f"first-{name}-page.png")
        browser.close()


def _environ(folder: Path, origin: str) -> dict[str, Mapping[str, str]]:
    """Return the environment of each program; none of them reports its use to anyone."""
    promptfoo = {
        "OLLAMA_BASE_URL": origin,
        "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
        "NODE_NO_WARNINGS": "1",
    }
    return {
        "openclaw": {"OLLAMA_HOST": origin, "PYTEST_ADDOPTS": f"{NO_OTHER_PLUGINS} --no-header"},
        "promptfoo": promptfoo,
        "inspect": {"OLLAMA_BASE_URL": f"{origin}/v1"},
    }


def _lines(promptfoo: str, inspect: str) -> dict[str, str]:
    return {
        "openclaw": OURS,
        "promptfoo": f"{promptfoo} eval",
        "inspect": f"{inspect} eval inspect_task.py --model ollama/qwen3:8b,ollama/llama3.2:3b",
    }


def _take_terminal(browser: Browser, shown: Shown, line: str, into: Path) -> None:
    program, *rest = shlex.split(line)
    page = browser.new_page(viewport={"width": 1400, "height": 600})
    page.set_content(shown.picture(f"$ {' '.join([Path(program).name, *rest])}", last=LINES))
    page.locator("div").screenshot(path=into)
    page.close()


def _take_page(browser: Browser, url: str, into: Path) -> None:
    page = browser.new_page(viewport=WINDOW)
    page.goto(url)
    _settle(page)
    page.screenshot(path=into)
    page.close()


def _settle(page: Page) -> None:
    """Wait until the page's text has been the same for two seconds."""
    before, deadline = "", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        page.wait_for_timeout(2000)
        text = page.evaluate("document.body.innerText")
        if text and text == before and "Loading" not in text:
            return
        before = text


@contextmanager
def _serving(line: str, folder: Path, environ: Mapping[str, str], port: int) -> Iterator[str]:
    """Run a program that serves pages, and yield its address."""
    import os

    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE_S
    process = subprocess.Popen(shlex.split(line), cwd=folder, env={**os.environ, **environ})
    try:
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(url, timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


if __name__ == "__main__":
    main()
