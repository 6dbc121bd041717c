"""Implements the command line: work on existing runs, and on OpenClaw's configuration.

A command is a module of this folder and its line in `COMMANDS`. Its docstring is its help: the first line
is in the list of commands, all of it in `--help`. It has `add_arguments(parser)` and
`run(arguments) -> CommandResult`; slow imports are inside `run`. This module handles `--json`, errors and the
exit status.

Finds where a project configures its models, and adds them there without changing existing lines.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from configparser import Error, RawConfigParser
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pytest_openclaw import __version__
from pytest_openclaw.cli.result import for_stderr
from pytest_openclaw.suites.wording import closest
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.installation import NAME
from pytest_openclaw.util.text import inert, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import ModuleType

    from pytest_openclaw.cli.result import CommandResult


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


RUNS = "runs"
PYPROJECT = "pyproject.toml"
SECTION = "tool.pytest.ini_options"
OWN_INI = "pytest.ini"
# Files of pytest's own, in its order; the first that exists is used, even if it is empty.
OWN = ("pytest.toml", ".pytest.toml", OWN_INI, ".pytest.ini")
# Files of other tools, used only with a section for pytest.
SHARED = (
    (PYPROJECT, SECTION),
    (PYPROJECT, "tool.pytest"),
    ("tox.ini", "pytest"),
    ("setup.cfg", "tool:pytest"),
)


@dataclass(frozen=True, kw_only=True)
class Settled:
    """The place where the models are named.

    Attributes:
        section: of the file.
        text: the lines to add there.
        wrote: whether they were written; otherwise the user has to add them, unless `is_there`.

    """

    file: Path
    section: str
    text: str = ""
    wrote: bool = False
    is_there: bool = False


def settle(folder: Path, models: Sequence[str]) -> Settled:
    """Add the models to pytest's configuration, if the project has none; never change a line.

    Args:
        folder: the project's.
        models: target specs.

    Raises:
        OSError: a file cannot be read or written.

    """
    for found in _configured(folder):
        return replace(found, text=_lines(found.file, models))
    has_tests = (folder / "tests").is_dir()
    pyproject = folder / PYPROJECT
    if pyproject.exists():
        text = _lines(pyproject, models, has_tests=has_tests)
        wrote = _append(pyproject, f"[{SECTION}]\n{text}")
        return Settled(file=pyproject, section=SECTION, text=text, wrote=wrote)
    own = folder / OWN_INI
    text = _lines(own, models, has_tests=has_tests)
    with own.open("x", encoding="utf-8", newline="\n") as file:
        file.write(f"[pytest]\n{text}")
    return Settled(file=own, section="pytest", text=text, wrote=True)


def project_folder(start: Path) -> Path:
    """Return the root folder that pytest would find from a folder below it; the folder itself if none is."""
    return next((folder for folder in (start, *start.parents) if _configured(folder)), start)


def runs_folder(start: Path) -> Path:
    """Return where the sessions of a project write runs, relative to a folder at or below its root."""
    root = project_folder(start)
    keys = next((_section(found.file, found.section) for found in _configured(root)), None)
    named = (keys or {}).get("openclaw_runs_dir")
    folder = named if isinstance(named, str) else None
    if folder is None and (root == start or (start / RUNS).is_dir()):
        return Path(RUNS)
    return Path(os.path.relpath(root / Path(folder or RUNS).expanduser(), start))


def _configured(folder: Path) -> list[Settled]:
    """Return the files with configuration of pytest, in its order."""
    found = []
    for name, section in (*((name, "pytest") for name in OWN), *SHARED):
        if (file := folder / name).exists():
            keys = _section(file, section)
            if keys is not None or name in OWN:
                is_there = "openclaw_models" in (keys or ())
                found.append(Settled(file=file, section=section, is_there=is_there))
    return found


def _section(file: Path, section: str) -> Mapping[str, object] | None:
    """Return the keys of a section; None if the file has none.

    The user has to fix a malformed file: a TOML file has no section then, an ini file an empty one.
    """
    try:
        text = file.read_text("utf-8")
        if file.suffix == ".toml":
            table: object = tomllib.loads(text)
            for name in section.split("."):
                table = table.get(name) if isinstance(table, dict) else None
            return table if isinstance(table, dict) else None
        parser = RawConfigParser(strict=False, allow_no_value=True)
        parser.read_string(text)
    except (Error, ValueError):
        return None if file.suffix == ".toml" else {}
    return parser[section] if parser.has_section(section) else None


def _append(pyproject: Path, text: str) -> bool:
    """Append a table, if the result is valid TOML; return whether it was appended."""
    old = pyproject.read_bytes()
    line_end = b"\r\n" if b"\r\n" in old else b"\n"
    gap = b"" if not old.strip() else line_end if old.endswith(b"\n") else 2 * line_end
    added = gap + text.encode().replace(b"\n", line_end)
    try:
        for text_so_far in (old, old + added):  # the table may exist in another notation
            tomllib.loads(text_so_far.decode())
    except ValueError:
        return False
    with pyproject.open("ab") as file:
        file.write(added)
    return True


def _lines(file: Path, models: Sequence[str], *, has_tests: bool = False) -> str:
    """Return the lines that name the models, in the file's notation."""
    if file.suffix == ".toml":
        # JSON strings and lists are valid TOML as long as characters are not escaped.
        lines = [f"openclaw_models = {json.dumps([*models], ensure_ascii=False)}"]
        paths = '["tests"]'
    else:
        lines = ["openclaw_models =", *(f"    {model}" for model in models)]
        paths = "tests"
    if has_tests:
        lines.append(f"testpaths = {paths}")
    bare = "a bare `pytest` runs your tests alone" if has_tests else "a bare `pytest` asks them too"
    return "\n".join([f"# `pytest benchmarks/` asks these models; {bare}.", *lines, ""])
