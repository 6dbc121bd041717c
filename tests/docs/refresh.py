"""Write true output into pages: `python -m tests.docs.refresh docs/tutorial.md README.md`.

Every command of a page that is not marked `elsewhere` is run, and its output replaces the output that the
page shows, even if that is only `…`. The published JSON Schemas of a run's files are rewritten too.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pytest_openclaw.stats.summary import Summary
from pytest_openclaw.values import run_files
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.run_files import ConfigFile, InventoryFile, made_schema
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


def made_schemas() -> dict[str, Any]:
    """Return the published schemas, by name."""
    kinds = {"row": Record, "config": ConfigFile, "inventory": InventoryFile}
    made = {name: made_schema(kind) for name, kind in kinds.items()}
    return {**made, "summary": made_schema(Summary, inline=False)}


def main(pages: list[str]) -> None:
    """Refresh the named pages, and the schemas."""
    for name, schema in made_schemas().items():
        SCHEMAS.joinpath(f"{name}.schema.json").write_text(json.dumps(schema, indent=2) + "\n", "utf-8")
    for page in map(Path, pages):
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(refreshed(page.read_text("utf-8"), Terminal(Path(folder))), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
