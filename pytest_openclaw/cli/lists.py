"""The commands that list what a target or a suite can name: providers, surfaces and validators."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.cli.project import load_project
from pytest_openclaw.cli.result import Command, CommandResult, add_rootdir, terminal_width
from pytest_openclaw.util.errors import OpenClawError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pytest_openclaw.cli.project import Project
    from pytest_openclaw.openclaw.catalog import Catalogue
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.protocols import Validator


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, terminal_width(), initial_indent="  ", subsequent_indent="  ")


# --- providers ------------------------------------------------------------------------------------

PROVIDERS = """List the providers that a target can name, with an example of each.

Those of the project's `conftest.py`, of installed plugins and of the ini key
`openclaw_endpoints` are listed too. No server is called.

Example:
  pytest-openclaw providers
"""


def _add_providers_arguments(parser: argparse.ArgumentParser) -> None:
    add_rootdir(parser, "the project whose own providers are listed too (as pytest finds it)")


def _list_providers(arguments: argparse.Namespace) -> CommandResult:
    listed = [*_providers(load_project(arguments.rootdir.resolve(), ()))]
    lines: list[str] = []
    for one in listed:
        lines += [one["name"], *_indented(one["asks"]), f"  --openclaw-models={one['example']}"]
    return CommandResult(lines=lines, data={"providers": listed})


def _providers(project: Project) -> Iterator[JsonObject]:
    from pytest_openclaw.providers import Builtin

    for name, known in project.providers.items():
        provider = known.load() if isinstance(known, Builtin) else known
        asks = " ".join((inspect.getdoc(provider) or "").split("\n\n")[0].split())
        model = known.example if isinstance(known, Builtin) else "MODEL"
        yield {"name": name, "asks": asks, "example": f"{name}/{model}"}
    for endpoint in project.endpoints:
        yield {
            "name": endpoint.name,
            "asks": f"A server of openclaw_endpoints, asked as {endpoint.kind}.",
            "example": f"{endpoint.name}/MODEL",
        }


# --- surfaces -------------------------------------------------------------------------------------

SURFACES = """List the tool surfaces of OpenClaw that a suite can offer.

A surface is the list of tools that OpenClaw sends under one kind of config. A
prompt offers one with `tools = "direct"`. Those that ship were captured from a
release; `capture-tools` saves those of the installed OpenClaw.

Example:
  pytest-openclaw surfaces
  pytest-openclaw surfaces --catalogue openclaw-2026.9.6.json
"""


def _add_surfaces_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--catalogue", type=Path, metavar="FILE", help="a file of capture-tools (those that ship)"
    )


def _list_surfaces(arguments: argparse.Namespace) -> CommandResult:
    from pytest_openclaw.openclaw.catalog import load_catalogue, read_catalogue

    file = arguments.catalogue
    try:
        catalogue = read_catalogue(file) if file else load_catalogue()
    except ValueError as error:
        raise OpenClawError(f"{file} {error}") from None
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
    from pytest_openclaw.reports.blocks import Table, table_lines
    from pytest_openclaw.reports.numbers import listed

    width = terminal_width()
    rows = []
    for name, tools in catalogue.surfaces.items():
        n_bytes = catalogue.sizes.get(name, {}).get("bytes_of_the_release")
        rows.append((name, f"{len(tools)}", f"{n_bytes:,}" if n_bytes else "", listed(tools, width // 2)))
    head = ("surface", "tools", "bytes", "such as")
    return [*table_lines(Table(head=head, rows=rows, words=("such as",), shrinks=3), width)]


def surfaces_as_json(catalogue: Catalogue) -> list[JsonObject]:
    """Return name, sizes and tools of each surface."""
    return [
        {"surface": name, **catalogue.sizes.get(name, {}), "tools": [*tools]}
        for name, tools in catalogue.surfaces.items()
    ]


# --- validators -----------------------------------------------------------------------------------

VALIDATORS = """List the validators that a suite can name, with their keys and an example.

Those of the project's `conftest.py` and of installed plugins are listed too.

Example:
  pytest-openclaw validators
"""

EXAMPLES = {
    "all_of": 'validators = [{ type = "max_words", value = 8 }, { type = "contains", value = "ok" }]',
    "any_of": 'validators = [{ type = "exact", value = "yes" }, { type = "exact", value = "Yes." }]',
    "contains": 'value = "Paris"',
    "exact": 'value = "ACK"',
    "exact_bullets": "value = 3",
    "json_equals": 'value = { route = "read" }',
    "json_keys": 'required_keys = ["route"]',
    "json_schema": 'schema = { type = "object", required = ["route"] }',
    "max_sentences": "value = 2",
    "max_words": "value = 8",
    "not": 'validator = { type = "tool_invocation", expected_tools = [] }',
    "one_of": 'values = ["wait", "stop"]',
    "openclaw_decision": 'questions = { route = { choice = ["support", "sales"], expected = ["support"] } }',
    "openclaw_text": 'form = "title", about = [["backup", "copy"]]',
    "regex_fullmatch": 'pattern = "[A-Z]{3}"',
    "tool_call": 'calls = [{ name = "read", arguments = { path = "notes.md" } }]',
    "tool_invocation": 'expected_tools = ["df"]',
    "world": 'calls = [{ name = "read" }]',
}
"""Keys of an example by type; a type that is not here needs none, or is a plugin's."""


def _add_validators_arguments(parser: argparse.ArgumentParser) -> None:
    add_rootdir(parser, "the project whose own validators are listed too (as pytest finds it)")


def _list_validators(arguments: argparse.Namespace) -> CommandResult:
    project = load_project(arguments.rootdir.resolve(), ())
    listed = [_described(validator) for validator in project.validators.values()]
    lines: list[str] = []
    for one in listed:
        lines += [one["type"], *_indented(one["meaning"]), f"  validator = {one['example']}"]
        lines += [f"  also: {', '.join(one['optional_keys'])}"] if one["optional_keys"] else []
    return CommandResult(lines=lines, data={"validators": listed})


def _described(validator: type[Validator]) -> JsonObject:
    meaning = " ".join((inspect.getdoc(validator) or "").split()).partition(". ")[0].rstrip(".")
    keys: dict[bool, list[str]] = {True: [], False: []}
    for field in dataclasses.fields(validator):  # type: ignore[arg-type]
        is_required = field.default is field.default_factory is dataclasses.MISSING
        keys[is_required].append(field.name)
    # A plugin's keys have no values that are known to be right.
    values = EXAMPLES.get(validator.type) or ", ".join(f"{key} = …" for key in keys[True])
    return {
        "type": validator.type,
        "meaning": f"{meaning}.",
        "required_keys": keys[True],
        "optional_keys": keys[False],
        "example": "{ " + ", ".join(filter(None, (f'type = "{validator.type}"', values))) + " }",
    }


COMMANDS = (
    Command(name="providers", help=PROVIDERS, add_arguments=_add_providers_arguments, run=_list_providers),
    Command(name="surfaces", help=SURFACES, add_arguments=_add_surfaces_arguments, run=_list_surfaces),
    Command(
        name="validators", help=VALIDATORS, add_arguments=_add_validators_arguments, run=_list_validators
    ),
)
