"""Common parts of commands: their result, arguments that name runs and cells, text for a terminal."""

from __future__ import annotations

import argparse
import contextlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.options import parse_run_id
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.parts import parts

if TYPE_CHECKING:
    from pytest_openclaw.runs.reading import StoredRun
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.rows import Record


@dataclass(frozen=True, kw_only=True)
class CliCommand:
    """A command of the command line.

    Attributes:
        help: the text of `--help`; the list of commands shows its first line.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], CommandResult]


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """A command's result.

    Attributes:
        lines: for a person.
        data: for a program, under `--json`.
        status: the exit status.
        warnings: shown on stderr, each on a line.
        raw: written unchanged to a file or a pipe, in UTF-8, in place of `lines`.
    """

    lines: Sequence[str]
    data: JsonObject
    status: int = 0
    warnings: Sequence[str] = ()
    raw: Iterable[str] | None = None


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the run that a command works on."""
    parser.add_argument("run", metavar="RUN", help="the run's directory, its id, or last")
    add_runs_dir(parser)


def add_runs_dir(parser: argparse.ArgumentParser) -> None:
    """Add the option for the folder of runs."""
    parser.add_argument(
        "--runs-dir", type=Path, metavar="DIR", help="the folder of a RUN that is not a path (runs)"
    )


def or_argument_error(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Turn a `ValueError` into an error of argparse, which shows the allowed values."""

    def parse(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def add_rootdir(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option for the project's folder."""
    parser.add_argument("--rootdir", type=Path, metavar="DIR", help=what)


def run_path(name: str, runs_dir: Path) -> Path:
    """Return the directory of the run that the user names: a path, a run id, or `last`.

    Raises:
        OpenClawError: there is no such run.
    """
    from pytest_openclaw.runs.reading import find_run

    path = Path(name)
    if path.is_dir():
        return path if path.name else path.resolve()
    if path.name != name:
        raise OpenClawError(f"there is no run directory {path}")
    return find_run(runs_dir, name)


def read_run(arguments: argparse.Namespace, *, even_active: bool = False) -> StoredRun:
    """Return the run that `add_run` names; raise as `run_path` and `load_run` do."""
    from pytest_openclaw.runs.reading import load_run

    return load_run(run_path(arguments.run, arguments.runs_dir), even_active=even_active)


def held_by(arguments: argparse.Namespace, run: StoredRun) -> StoredRun:
    """Return a run that is summarized again, with what parts hold for it; see `Part.arguments`."""
    held = {name: part.held_by(arguments, run) for name, part in parts().items() if part.held_by}
    return replace(run, held={name: value for name, value in held.items() if value is not None})


def new_run_path(name: str, runs_dir: Path) -> Path:
    """Return the path of a new run, which `name` gives as a path or as an id in the folder of runs.

    Raises:
        OpenClawError: the path exists already, or its name is not a valid run id.
    """
    path = Path(name)
    path = path if path.name != name else runs_dir / name
    try:
        parse_run_id(path.name)
    except ValueError as error:
        raise OpenClawError(f"no run can be named {path.name}: {error}") from None
    if path.exists():
        raise OpenClawError(f"{path} exists already; name a run that does not")
    return path


def write_over_ours(path: Path, text: str, first_words: str, what: str) -> None:
    """Write a file, replacing an older one that a command wrote, but no other file.

    Every file of this kind (`what`, such as `page`) begins with `first_words`.

    Raises:
        OpenClawError: another file is there.
        OSError: the file cannot be written.
    """
    from pytest_openclaw.util.files import is_there, open_file, replacing

    if is_there(path):
        found = b""
        with contextlib.suppress(OpenClawError), open_file(path) as older:
            found = older.read(len(first_words.encode()))
        if found != first_words.encode():
            raise OpenClawError(f"{path} exists and is not a {what} of pytest-openclaw; name another file")
    with replacing(path) as file:
        file.write(text.encode())


def terminal_width() -> int:
    """Return the columns of the terminal; 80 in a file or a pipe, unless `COLUMNS` says otherwise."""
    return shutil.get_terminal_size().columns


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose cells."""
    parser.add_argument("--failed", action="store_true", help="cells that did not pass, faults included")
    add_target(parser)
    parser.add_argument("--prompt", metavar="GLOB", help="cells of these prompts, by id or name")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses targets."""
    parser.add_argument(
        "--target", metavar="GLOB", help="these targets, such as 'ollama_openai/*'; case does not matter"
    )


def is_chosen(record: Record, arguments: argparse.Namespace) -> bool:
    """Whether a row passes the filters."""
    from pytest_openclaw.reports.cells import is_miss

    return (
        fits(record.target.label, arguments.target)
        and (fits(record.prompt_id, arguments.prompt) or fits(record.prompt_name, arguments.prompt))
        and (not arguments.failed or is_miss(record))
    )


def fits(text: str, glob: str | None) -> bool:
    """Whether a text matches a glob; every text matches None."""
    return glob is None or fnmatchcase(text.lower(), glob.lower())
