"""List the tool surfaces of OpenClaw that a suite can offer.

A surface is the list of tools that OpenClaw sends under one kind of config. A
prompt offers one with `tools = "direct"`. Those that ship were captured from a
release; `capture-tools` saves those of the installed OpenClaw.

Example:
  pytest-openclaw surfaces
  pytest-openclaw surfaces --catalogue openclaw-2026.9.6.json

"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import CommandResult, catalogue_of, terminal_width

if TYPE_CHECKING:
    import argparse

    from pytest_openclaw.openclaw.catalog import Catalogue
    from pytest_openclaw.util.json_types import JsonObject


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `surfaces`."""
    parser.add_argument(
        "--catalogue", type=Path, metavar="FILE", help="a file of capture-tools (those that ship)"
    )


def run(arguments: argparse.Namespace) -> CommandResult:
    """List the surfaces with their sizes and first tools."""
    catalogue = catalogue_of(arguments.catalogue)
    return CommandResult(
        lines=[
            f"{catalogue.source}: tools of each surface, and their size in a request",
            "",
            *surface_lines(catalogue),
            "",
            'In a suite: tools = "direct"; one tool: tools = ["read", "exec"]',
        ],
        data={"catalogue": catalogue.source, "surfaces": surfaces_as_json(catalogue)},
    )


def surface_lines(catalogue: Catalogue) -> list[str]:
    """Return a table of a catalogue's surfaces."""
    from pytest_openclaw.reports.numbers import listed, render_columns

    width = terminal_width()
    rows = [("surface", "tools", "bytes", "such as")]
    for name, tools in catalogue.surfaces.items():
        n_bytes = catalogue.sizes.get(name, {}).get("bytes_of_the_release")
        rows.append((name, f"{len(tools)}", f"{n_bytes:,}" if n_bytes else "", listed(tools, width // 2)))
    return [*render_columns(rows, (True, False, False, True), most=width, shrinks=3, width=width)]


def surfaces_as_json(catalogue: Catalogue) -> list[JsonObject]:
    """Return name, sizes and tools of each surface."""
    return [
        {"surface": name, **catalogue.sizes.get(name, {}), "tools": [*tools]}
        for name, tools in catalogue.surfaces.items()
    ]
