"""List the validators that a suite can name, with their keys and an example.

Those of the project's `conftest.py` and of installed plugins are listed too.

Example:
  pytest-openclaw validators

"""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import CommandResult, add_rootdir, terminal_width

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.protocols import Validator

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `validators`."""
    add_rootdir(parser, "the project whose own validators are listed too (as pytest finds it)")


def run(arguments: argparse.Namespace) -> CommandResult:
    """List the built-in validators, then those of the project."""
    from pytest_openclaw.cli.project import project_or_builtin

    project, warnings = project_or_builtin(arguments.rootdir)
    listed = [*project.validators.values()]
    return CommandResult(
        lines=[line for validator in listed for line in _lines(validator)],
        data={"validators": [_as_json(validator) for validator in listed]},
        warnings=warnings,
    )


def example_of(validator: type[Validator]) -> str:
    """Return what a suite writes; a plugin's keys have no values that are known to be right."""
    keys = EXAMPLES.get(validator.type) or ", ".join(f"{key} = …" for key in _keys(validator, required=True))
    return "{ " + ", ".join(filter(None, (f'type = "{validator.type}"', keys))) + " }"


def _lines(validator: type[Validator]) -> Iterator[str]:
    yield validator.type
    yield from textwrap.wrap(
        _meaning(validator), terminal_width(), initial_indent="  ", subsequent_indent="  "
    )
    yield f"  validator = {example_of(validator)}"
    if optional := _keys(validator, required=False):
        yield f"  also: {', '.join(optional)}"


def _meaning(validator: type[Validator]) -> str:
    return " ".join((inspect.getdoc(validator) or "").split()).partition(". ")[0].rstrip(".") + "."


def _keys(validator: type[Validator], *, required: bool) -> list[str]:
    fields = dataclasses.fields(validator)  # type: ignore[arg-type]
    missing = dataclasses.MISSING
    return [
        field.name
        for field in fields
        if (field.default is missing and field.default_factory is missing) is required
    ]


def _as_json(validator: type[Validator]) -> JsonObject:
    return {
        "type": validator.type,
        "meaning": _meaning(validator),
        "required_keys": _keys(validator, required=True),
        "optional_keys": _keys(validator, required=False),
        "example": example_of(validator),
    }
