"""Save what the installed OpenClaw sends to a model.

A server on loopback takes the place of the model and saves OpenClaw's first
request: tools, system prompt, fields. It captures what the release sends by
default (direct), the tools behind its bridge (coding, full), and with --config
what results from your own config (configured). Each needs a start of OpenClaw,
about ten seconds.

The file is a catalogue like the one that ships: with --openclaw-catalogue=FILE
suites offer its tools. It contains no names of host and user, no paths, no
times, and no key. After an update of OpenClaw, capture again.

OpenClaw runs in its own folders. OpenClaw itself reads your config and never
writes it; your keys, servers, channels, gateway, MCP servers, hooks and plugins
are left out.

Example:
  pytest-openclaw capture-tools
  pytest-openclaw capture-tools --config ~/.openclaw/openclaw.json
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.cli.lists import surface_lines, surfaces_as_json
from pytest_openclaw.cli.result import Command, CommandResult, write_over_ours
from pytest_openclaw.openclaw.catalog import catalogue_in
from pytest_openclaw.providers.openclaw.capture import capture
from pytest_openclaw.util.errors import OpenClawError

if TYPE_CHECKING:
    import argparse

FIRST_WORDS = '{\n "release": "openclaw-'


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="capture the surface of this config, too")
    parser.add_argument("--model", metavar="PROVIDER/ID", help="which model of the config (its agent's)")
    parser.add_argument("--agent", metavar="ID", help="which agent of the config (its default agent)")
    parser.add_argument("-o", "--out", metavar="FILE", help="the catalogue (openclaw-RELEASE.json)")


def _run(arguments: argparse.Namespace) -> CommandResult:
    if arguments.config is None and (arguments.model or arguments.agent):
        raise OpenClawError("--model and --agent belong to a config: give --config, too")
    data = capture(os.environ, arguments.config, model=arguments.model, agent=arguments.agent)
    out = Path(arguments.out or f"{data['release']}.json")
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    write_over_ours(out, text, FIRST_WORDS, "catalogue")
    catalogue = catalogue_in(data)
    missing = ", ".join(data["about"]["not_described"])
    notes = [f"behind the bridge, but on no surface, so left out: {missing}"] if missing else []
    return CommandResult(
        lines=[*surface_lines(catalogue), "", f"wrote {out}"],
        data={
            "release": data["release"],
            "out": str(out),
            "sha256": catalogue.sha256,
            "surfaces": surfaces_as_json(catalogue),
            "notes": notes,
        },
        warnings=notes,
    )


COMMANDS = (Command(name="capture-tools", help=__doc__, add_arguments=_add_arguments, run=_run),)
