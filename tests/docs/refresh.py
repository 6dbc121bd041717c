"""Write true output into pages: `python -m tests.docs.refresh docs/tutorial.md README.md`.

Every command of a page that is not marked `elsewhere` is run, and its output replaces the output that the
page shows, even if that is only `…`. The published JSON Schemas of a run's files are rewritten too.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pytest_openclaw.values import run_files
from pytest_openclaw.values.run_files import TYPES, schema_text
from tests.docs.pages import Command, File, cut, read_page
from tests.docs.terminal import Terminal

SCHEMAS = Path(run_files.__file__).parent / "schemas"

READERS_FOLDER = "/home/you/assistant"


def refreshed(text: str, terminal: Terminal) -> str:
    """Return a page with the current output."""
    lines = text.splitlines()
    moved = 0
    for block in read_page(text):
        if isinstance(block, File):
            terminal.write(block)
        elif not block.elsewhere:
            output = terminal.run(block.line).stdout.replace(str(terminal.folder), READERS_FOLDER)
            moved += _replace(lines, block, output, moved)
    return "\n".join([*lines, ""])


def _replace(lines: list[str], command: Command, output: str, moved: int) -> int:
    """Put an output into the page, and return the number of lines by which the rest has moved."""
    if not command.shown:
        return 0
    new = [f"{command.indent}{line}".rstrip() for line in cut(output, command.begins_at)]
    start = command.start + moved
    lines[start : start + len(command.shown)] = new
    return len(new) - len(command.shown)


def main(pages: list[str]) -> None:
    """Refresh the named pages, and the schemas."""
    for name in TYPES:
        SCHEMAS.joinpath(f"{name}.schema.json").write_text(schema_text(name), "utf-8")
    for page in map(Path, pages):
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(refreshed(page.read_text("utf-8"), Terminal(Path(folder))), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
