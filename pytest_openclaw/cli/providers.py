"""List the providers that a target can name, with an example of each.

Those of the project's `conftest.py`, of installed plugins and of the ini key
`openclaw_endpoints` are listed too. No server is called.

Example:
  pytest-openclaw providers

"""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import CommandResult, add_rootdir, terminal_width

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pytest_openclaw.cli.project import Project
    from pytest_openclaw.util.json_types import JsonObject


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `providers`."""
    add_rootdir(parser, "the project whose own providers are listed too (as pytest finds it)")


def run(arguments: argparse.Namespace) -> CommandResult:
    """List the built-in providers, then those of the project."""
    from pytest_openclaw.cli.project import project_or_builtin

    project, warnings = project_or_builtin(arguments.rootdir)
    listed = [*_described(project)]
    lines = []
    for one in listed:
        lines += [
            f"{one['name']}",
            *textwrap.wrap(str(one["asks"]), terminal_width(), initial_indent="  ", subsequent_indent="  "),
            f"  --openclaw-models={one['example']}",
        ]
    return CommandResult(lines=lines, data={"providers": listed}, warnings=warnings)


def _described(project: Project) -> Iterator[JsonObject]:
    """Yield each provider's name, what it asks, and a target of it."""
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
