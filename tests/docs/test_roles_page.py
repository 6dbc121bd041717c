"""The how-to on roles: its commands, with the shipped suites and two models that answer from a table."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import Command, File, read_page
from tests.docs.reference import DOCS
from tests.docs.terminal import Terminal, masked

pytestmark = pytest.mark.newest

PAGE = DOCS / "how-to/roles.md"
REPLIES = Path(__file__).parents[1] / "suites"
CONFTEST = """
import json
import re
from pathlib import Path

from pytest_openclaw import Provider, Reply, Request

REPLIES = json.loads(Path(__file__).with_name("replies.json").read_text("utf-8"))


class Lab(Provider):
    name = "lab"

    async def ask(self, request: Request) -> Reply:
        return Reply(text=REPLIES[request.model][request.prompt])


def pytest_openclaw_providers():
    return [Lab]
"""


@pytest.fixture
def lab(tmp_path: Path) -> Terminal:
    """A project with the suites and two models: `careful` is right, `hasty` misses each recap and status line."""
    terminal = Terminal(tmp_path)
    terminal.write(File(path="pytest.ini", text="[pytest]\nopenclaw_models = lab/careful, lab/hasty\n"))
    terminal.write(File(path="conftest.py", text=CONFTEST))
    said: dict[str, dict[str, str]] = {"careful": {}, "hasty": {}}
    for role in ("title", "utility"):
        suite = (DOCS.parent / f"benchmarks/prompts_role_{role}.toml").read_text("utf-8")
        terminal.write(File(path=f"benchmarks/prompts_role_{role}.toml", text=suite))
        replies = tomllib.loads((REPLIES / f"replies_role_{role}.toml").read_text("utf-8"))
        for prompt in tomllib.loads(suite)["prompts"]:
            right, wrong = (replies[prompt["id"]][kind][0] for kind in ("right", "wrong"))
            said["careful"][prompt["prompt"]] = right
            said["hasty"][prompt["prompt"]] = right if role == "title" else wrong
    terminal.write(File(path="replies.json", text=json.dumps(said)))
    return terminal


def test_the_page_shows_what_its_commands_print(lab: Terminal) -> None:
    """Each command runs in order; the summary has the roles, and `route` the model for titles and recaps."""
    ask, route = (block for block in read_page(PAGE.read_text("utf-8")) if isinstance(block, Command))

    asked = lab.run(ask.line)
    assert asked.returncode == 1, asked.stdout  # of hasty each miss is a failed test
    (run,) = (lab.folder / "runs").iterdir()
    for sentence in (
        "title: fit: 12 of 12 cells right",
        "utility: not fit: 0 of 12 cells right",
    ):
        assert f"- lab/hasty: {sentence}" in (run / "summary.md").read_text("utf-8")
    assert re.search(r"utility .*fit: 12 of 12 cells\s+right", asked.stdout)

    routed = lab.run(route.line)

    assert routed.returncode == 0, routed.stdout
    assert masked(routed.stdout.splitlines()) == masked([*route.shown])
    assert '"utilityModel": "lab/careful"' in (run / "openclaw.patch.json5").read_text("utf-8")
