"""Save the requests of the installed OpenClaw to a model.

A server on loopback replaces the model and saves OpenClaw's first request:
tools, system prompt, fields. The release's default request (direct) and the
tools behind its bridge (coding, full) are captured. Each starts OpenClaw once,
which takes about ten seconds.

The file is a catalogue like the one that ships: with --openclaw-catalogue=FILE
suites offer its tools. It contains no host or user name, no path, no time and
no key. After an update of OpenClaw, capture again.

Example:
  pytest-openclaw capture-tools
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.cli.lists import surface_lines, surfaces_as_json
from pytest_openclaw.cli.result import CliCommand, CommandResult, write_over_ours
from pytest_openclaw.openclaw.catalog import catalogue_in
from pytest_openclaw.providers.openclaw.capture import capture

if TYPE_CHECKING:
    import argparse

FIRST_WORDS = '{\n "release": "openclaw-'


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--out", metavar="FILE", help="the catalogue (openclaw-RELEASE.json)")


def _run(arguments: argparse.Namespace) -> CommandResult:
    data = capture()
    out = Path(arguments.out or f"{data['release']}.json")
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    write_over_ours(out, text, FIRST_WORDS, "catalogue")
    catalogue = catalogue_in(data)
    return CommandResult(
        lines=[*surface_lines(catalogue), "", f"wrote {out}"],
        data={
            "release": data["release"],
            "out": str(out),
            "sha256": catalogue.sha256,
            "surfaces": surfaces_as_json(catalogue),
        },
    )


COMMANDS = (CliCommand(name="capture-tools", help=__doc__, add_arguments=_add_arguments, run=_run),)
