"""The commands that list the names for targets and suites: providers, surfaces and validators."""

from __future__ import annotations

import dataclasses
import inspect
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.cli.project import load_project
from pytest_openclaw.cli.result import CliCommand, CommandResult, add_rootdir, terminal_width
from pytest_openclaw.openclaw.catalog import Catalogue, load_catalogue, read_catalogue
from pytest_openclaw.providers import Builtin
from pytest_openclaw.reports.blocks import Table
from pytest_openclaw.reports.numbers import wrapped_rows
from pytest_openclaw.reports.terminal import table_lines
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject

if TYPE_CHECKING:
    import argparse

PROVIDERS = """List the providers that a target can name, with an example of each.

The list includes providers from the project's `conftest.py`, from installed
plugins and from the ini key `openclaw_endpoints`. No request is sent.

Example:
  pytest-openclaw providers
"""

SURFACES = """List the tool surfaces of OpenClaw that a suite can offer.

A surface is the list of tools that OpenClaw sends in one kind of configuration.
A prompt offers it by name, such as `tools = "direct"`. The shipped surfaces are
captured from a release; `capture-tools` adds the installed OpenClaw.

Example:
  pytest-openclaw surfaces
  pytest-openclaw surfaces --catalogue openclaw-2026.9.6.json
"""

VALIDATORS = """List the validators that a suite can name, with their keys.

The list includes validators from the project's `conftest.py` and from installed
plugins. A key with ? is optional.

Example:
  pytest-openclaw validators
"""


_add_rootdir = partial(add_rootdir, what="the project whose own entries are listed too (as pytest finds it)")


def _add_catalogue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--catalogue", type=Path, metavar="FILE", help="a file from capture-tools (the shipped catalogue)"
    )


def _list_providers(arguments: argparse.Namespace) -> CommandResult:
    project = load_project(arguments.rootdir.resolve(), ())
    found: list[JsonObject] = []
    for name, known in project.providers.items():
        provider, model = known, "MODEL"
        if isinstance(known, Builtin):
            provider, model = known.load(), known.example
        # `inspect.getdoc` would take the text of the base class.
        asks = " ".join((provider.__doc__ or "A provider of this project.").split("\n\n")[0].split())
        found.append({"name": name, "asks": asks, "example": f"{name}/{model}"})
    for one in project.endpoints:
        asks = f"A server from openclaw_endpoints, called like {one.kind}."
        found.append({"name": one.name, "asks": asks, "example": f"{one.name}/MODEL"})
    rows = [("--openclaw-models=", "asks"), *((one["example"], one["asks"]) for one in found)]
    return CommandResult(lines=[*wrapped_rows(rows, terminal_width())], data={"providers": found})


def _list_surfaces(arguments: argparse.Namespace) -> CommandResult:
    file = arguments.catalogue
    try:
        catalogue = read_catalogue(file) if file else load_catalogue()
    except ValueError as error:
        raise OpenClawError(f"{file} {error}") from None
    return CommandResult(
        lines=[catalogue.source, "", *surface_lines(catalogue)],
        data={"catalogue": catalogue.source, "surfaces": surfaces_as_json(catalogue)},
    )


def surface_lines(catalogue: Catalogue) -> list[str]:
    """Return a table of a catalogue's surfaces."""
    rows = [(name, f"{len(tools)}", ", ".join(tools)) for name, tools in catalogue.surfaces.items()]
    head = ("surface", "tools", "such as")
    return [*table_lines(Table(head=head, rows=rows, words=head, shrinks=2), terminal_width())]


def surfaces_as_json(catalogue: Catalogue) -> list[JsonObject]:
    """Return name, sizes and tools of each surface."""
    return [
        {"surface": name, **catalogue.sizes.get(name, {}), "tools": [*tools]}
        for name, tools in catalogue.surfaces.items()
    ]


def _list_validators(arguments: argparse.Namespace) -> CommandResult:
    found: list[JsonObject] = []
    rows = [("type", "keys (?: may be left out), and what passes")]
    for validator in load_project(arguments.rootdir.resolve(), ()).validators.values():
        keys: dict[bool, list[str]] = {True: [], False: []}
        for field in dataclasses.fields(validator):  # type: ignore[arg-type]
            keys[field.default is field.default_factory is dataclasses.MISSING].append(field.name)
        meaning = " ".join((inspect.getdoc(validator) or "").split()).partition(". ")[0].rstrip(".") + "."
        known = {"type": validator.type, "meaning": meaning}
        found.append({**known, "required_keys": keys[True], "optional_keys": keys[False]})
        shown = ", ".join([*keys[True], *(f"{key}?" for key in keys[False])])
        rows.append((validator.type, f"{shown}{': ' if shown else ''}{meaning}"))
    return CommandResult(lines=[*wrapped_rows(rows, terminal_width())], data={"validators": found})


COMMANDS = (
    CliCommand(name="providers", help=PROVIDERS, add_arguments=_add_rootdir, run=_list_providers),
    CliCommand(name="surfaces", help=SURFACES, add_arguments=_add_catalogue, run=_list_surfaces),
    CliCommand(name="validators", help=VALIDATORS, add_arguments=_add_rootdir, run=_list_validators),
)
