"""The command line: commands for existing runs and for a project's configuration.

A command is a `CliCommand` in the `COMMANDS` of a module: of this folder (`OWN`), or of a part, whose
commands are named in `parts/__init__.py`. This module handles `--json`, errors and the exit status.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw import __version__
from pytest_openclaw.cli.project import NAME, project_folder, runs_folder
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import closest, inert, printable
from pytest_openclaw.values.parts import FOLDER, table

if TYPE_CHECKING:
    from pytest_openclaw.cli.result import CliCommand, CommandResult

OWN = {"init": "init", "providers": "lists", "show": "show", "surfaces": "lists", "validators": "lists"}
"""The commands of this folder, each with its module."""

REFUSED = 4
"""Exit status if a command could not do its work, as in pytest for wrong usage; argparse's own is 2."""
PLAIN = str.maketrans("├─●┤·–…", "[-o]|-~", "") | {ord("→"): "->"}
"""For a terminal without UTF-8."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the words name, and return its exit status."""
    # The shell's `>&-` closes the output.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    words = sys.argv[1:] if argv is None else argv
    first = next(iter(words), "-")
    modules = command_modules()
    # A module loads what its command needs, so only the named one is loaded.
    parser = build_parser([first] if first in modules else None)
    if "_ARGCOMPLETE" in os.environ:  # the shell asks for completions; no user types this
        import argcomplete

        argcomplete.autocomplete(parser)
    if not first.startswith("-") and first not in modules:
        parser.error(f"there is no command {first}.{closest(first, modules)} {NAME} --help lists them.")
    arguments = parser.parse_args(words)
    if arguments.command is None:
        parser.print_help()
        return 0
    prog = f"{NAME} {arguments.command}"
    try:
        _find_project(arguments)
        answer = load_command(arguments.command).run(arguments)
        for warning in answer.warnings:
            _complain(prog, warning)
        try:
            _show(answer, as_json=arguments.json)
        except BrokenPipeError:
            # The reader has closed the pipe; Python would report it again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OpenClawError, OSError) as error:
        where, why = getattr(error, "filename", None), getattr(error, "strerror", None) or error
        _complain(prog, f"{where}: {why}" if where else str(why))
        return REFUSED
    return answer.status


def command_modules() -> Mapping[str, str]:
    """Return the commands in alphabetical order, each with its module."""
    modules = {command: f"{__name__}.{module}" for command, module in OWN.items()}
    for name, entry in table().items():
        modules |= dict.fromkeys(entry.commands, f"{FOLDER}.{name}")
    return dict(sorted(modules.items()))


def load_command(name: str) -> CliCommand:
    """Return the command with this name."""
    commands: Iterable[CliCommand] = import_module(command_modules()[name]).COMMANDS
    return next(command for command in commands if command.name == name)


def build_parser(names: Iterable[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line. It knows only the commands in `names`, or all without it."""
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Works on runs of LLM benchmarks that pytest has measured; it calls no model.",
        epilog="`<command> --help` shows an example. Benchmarks themselves are run by pytest.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    listed = parser.add_subparsers(title="commands", dest="command", metavar="<command>")
    for name in command_modules() if names is None else names:
        command = load_command(name)
        added = listed.add_parser(
            name,
            help=command.help.splitlines()[0],
            description=command.help,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(added)
        added.add_argument("--json", action="store_true", help="print the result as one JSON object instead")
    return parser


def _complain(prog: str, text: str) -> None:
    print(f"{prog}: {printable(text)}", file=sys.stderr)  # noqa: T201


def _find_project(arguments: argparse.Namespace) -> None:
    """Set folders that the words do not name to the project's folders, as pytest finds it from here."""
    here = Path.cwd()
    if getattr(arguments, "runs_dir", here) is None:
        arguments.runs_dir = runs_folder(here)
    if getattr(arguments, "rootdir", here) is None:
        root = project_folder(here)
        arguments.rootdir = Path() if root == here else root


def _show(answer: CommandResult, *, as_json: bool) -> None:
    if answer.raw is not None and not as_json:
        _pour(answer.raw)
        return
    if as_json:
        lines = [inert(json.dumps(answer.data, indent=2))]  # ASCII, which every terminal and pipe takes
    else:
        encoding = sys.stdout.encoding or "utf-8"
        plain = {} if encoding.lower().startswith("utf") else PLAIN
        shown = "\n".join(printable(line.translate(plain)) for line in answer.lines)
        lines = [shown.encode(encoding, "backslashreplace").decode(encoding)]
    print("\n".join(lines), flush=True)  # noqa: T201


def _pour(texts: Iterable[str]) -> None:
    """Write texts to stdout byte for byte, or escaped to a terminal."""
    for text in texts:
        if sys.stdout.isatty():
            print(printable(text.replace("\r\n", "\n")), end="")  # noqa: T201
        else:
            sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()
