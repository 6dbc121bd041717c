"""The extensions and commands on the pages exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_openclaw import hookspecs
from pytest_openclaw.cli import command_modules

ROOT = Path(__file__).parent.parent
EXAMPLES = {path.read_text("utf-8"): path.stem for path in (ROOT / "tests/examples").glob("*.py")}
HOOKS = {name for name in vars(hookspecs) if name.startswith("pytest_openclaw_")}


def _quoted(page: str) -> list[str]:
    blocks = re.findall(r"```python[^\n]*\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    return [block for block in blocks if "def pytest_openclaw_" in block]


@pytest.mark.parametrize(
    "page", ["README.md", "docs/extending.md", "docs/how-to/validator.md", "docs/how-to/provider.md"]
)
def test_an_extension_that_is_shown_is_an_example(page: str) -> None:
    """It is quoted word for word, so that the tests have run the code that a reader pastes."""
    quoted = _quoted(page)

    assert quoted
    assert all(block in EXAMPLES for block in quoted)


def test_every_hook_has_an_example_and_every_example_is_shown() -> None:
    """The pages quote all examples, and the table of extensions names every hook."""
    page = (ROOT / "docs/extending.md").read_text("utf-8")
    pages = ("docs/extending.md", "docs/how-to/validator.md", "docs/how-to/provider.md")
    shown = [block for one in pages for block in _quoted(one)]

    assert {EXAMPLES[block] for block in shown} == set(EXAMPLES.values())
    assert {name for text in EXAMPLES for name in re.findall(r"def (pytest_openclaw_\w+)", text)} == HOOKS
    assert all(f"| `{name}` |" in page for name in HOOKS)


def test_the_page_of_commands_names_them_all() -> None:
    """Each has its line in the table."""
    page = (ROOT / "docs/commands.md").read_text("utf-8")

    assert set(re.findall(r"^\| `([\w-]+)", page, re.MULTILINE)) == set(command_modules())
