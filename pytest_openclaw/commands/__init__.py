"""Implements the command line: work on existing runs, and on OpenClaw's configuration.

A command is a module of this folder and its line in `COMMANDS`. Its docstring is its help: the first line
is in the list of commands, all of it in `--help`. It has `add_arguments(parser)` and
`run(arguments) -> CommandResult`; slow imports are inside `run`. This module handles `--json`, errors and the
exit status.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pytest_openclaw import __version__
from pytest_openclaw.commands.result import for_stderr
from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.installation import NAME
from pytest_openclaw.core.text import inert, printable
from pytest_openclaw.suites.wording import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

    from pytest_openclaw.commands.result import CommandResult

COMMANDS = (
    "capture-tools", "compare", "export", "gate", "history", "init", "merge", "providers", "report",
    "rescore", "route", "show", "surfaces", "validators",
)  # fmt: skip

REFUSED = 4
"""Exit status if a command could not do its work, as in pytest for wrong usage; argparse's own is 2."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the words name, and return its exit status."""
    parser, parsers = _parsers()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks for completions; no user types this
        import argcomplete

        argcomplete.autocomplete(parser)
    _check_command(parser, sys.argv[1:] if argv is None else argv)
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    command = load_command(arguments.command)
    try:
        _find_project(arguments)
        answer: CommandResult = command.run(arguments)
    except (OpenClawError, OSError) as error:
        _complain(parsers[arguments.command], _in_words(error))
        return REFUSED
    for warning in answer.warnings:
        _complain(parsers[arguments.command], printable(warning))
    try:
        _show(answer, as_json=arguments.json)
    except BrokenPipeError:
        # The reader has closed the pipe; Python would report it again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return answer.status


class _WrappingParser(argparse.ArgumentParser):
    """Breaks its messages between words."""

    def error(self, message: str) -> NoReturn:
        super().error(for_stderr(message, len(f"{self.prog}: error: ")))


def _complain(parser: argparse.ArgumentParser, text: str) -> None:
    start = f"{parser.prog}: "
    print(f"{start}{for_stderr(text, len(start))}", file=sys.stderr)  # noqa: T201


def _check_command(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """End the program if the words begin with no command; argparse names the one that is meant since 3.14."""
    name = next(iter(words), "-")
    if not name.startswith("-") and name not in COMMANDS:
        parser.error(f"there is no command {name}.{closest(name, COMMANDS)} {NAME} --help lists them.")


def _find_project(arguments: argparse.Namespace) -> None:
    """Set the folders that the words do not name to those of the project, as pytest finds it from here."""
    from pytest_openclaw.commands.configured import project_folder, runs_folder

    here = Path.cwd()
    if getattr(arguments, "runs_dir", here) is None:
        arguments.runs_dir = runs_folder(here)
    if getattr(arguments, "rootdir", here) is None:
        root = project_folder(here)
        arguments.rootdir = Path() if root == here else root


def load_command(name: str) -> ModuleType:
    """Return a command's module, named as the command, with `_` for `-`."""
    return import_module(f"{__name__}.{name.replace('-', '_')}")


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    parser = _WrappingParser(
        prog=NAME,
        description="Works on runs of LLM benchmarks that pytest has measured; it calls no model.",
        epilog="`<command> --help` shows an example. Benchmarks themselves are run by pytest.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    listed = parser.add_subparsers(title="commands", dest="command", metavar="<command>")
    parsers: dict[str, argparse.ArgumentParser] = {}
    for name in COMMANDS:
        module = load_command(name)
        assert module.__doc__, "its docstring is a command's help"
        parsers[name] = listed.add_parser(
            name,
            help=module.__doc__.splitlines()[0],
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(parsers[name])
        parsers[name].add_argument(
            "--json", action="store_true", help="print the result as one JSON object instead"
        )
    return parser, parsers


def _show(answer: CommandResult, *, as_json: bool) -> None:
    if answer.raw is not None and not as_json:
        _pour(answer.raw)
        return
    if as_json:
        lines = [inert(json.dumps(answer.data, indent=2))]  # ASCII, which every terminal and pipe takes
    else:
        encoding = sys.stdout.encoding or "utf-8"
        lines = [
            printable(line).encode(encoding, "backslashreplace").decode(encoding) for line in answer.lines
        ]
    print("\n".join(lines), flush=True)  # noqa: T201


def _pour(texts: Iterable[str]) -> None:
    """Write texts to stdout byte for byte, or escaped to a terminal."""
    if sys.stdout.isatty():
        for text in texts:
            print(printable(text.replace("\r\n", "\n")), end="")  # noqa: T201
        return
    out = getattr(sys.stdout, "buffer", None)  # a captured stdout may have none
    for text in texts:
        if out is None:
            print(text, end="")  # noqa: T201
        else:
            out.write(text.encode())
    sys.stdout.flush()


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return printable(f"{where}{error.strerror or error}")
    return printable(str(error))
