"""Selects cells of a run for a command: by filters, or the one that the user names."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_openclaw.core.errors import OpenClawError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import CellKey

MOST_LISTED = 20


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose cells."""
    parser.add_argument("--failed", action="store_true", help="cells that did not pass, faults included")
    add_target(parser)
    parser.add_argument("--prompt", metavar="GLOB", help="cells of these prompts, by id or name")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses targets."""
    parser.add_argument(
        "--target", metavar="GLOB", help="these targets, such as 'ollama_openai/*'; capitals do not matter"
    )


def is_chosen(record: Record, arguments: argparse.Namespace) -> bool:
    """Whether the filters let a row through."""
    from pytest_openclaw.reports.cell_text import is_miss

    return (
        fits(record.target.label, arguments.target)
        and (fits(record.prompt_id, arguments.prompt) or fits(record.prompt_name, arguments.prompt))
        and (not arguments.failed or is_miss(record))
    )


def fits(text: str, glob: str | None) -> bool:
    """Whether a text fits a glob; without one, all do."""
    return glob is None or fnmatchcase(text.lower(), glob.lower())


def suite_fits(suite: str, glob: str | None) -> bool:
    """Whether a suite fits a glob by its path or by its file's name."""
    return fits(suite, glob) or fits(PurePosixPath(suite).name, glob)


def find_cell(records: Sequence[Record], name: str, run: str) -> Record:
    """Return the cell with a name as in pytest, or with a part of it that is enough.

    Args:
        records: to search.
        name: such as `P1`, `P1[lab/m]`, `P1[lab/m]-r2`, with or without the suite and `::` before it.
        run: the run, for the message.

    Raises:
        OpenClawError: none or several match; the message lists the candidates.
    """
    found = [record for record in records if name in _names(record)]
    if len(found) == 1:
        return found[0]
    if not found:
        known = dict.fromkeys(short for record in records for short in (record.prompt_id, record.key.name))
        near = get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"`show {run}` lists them"
        raise OpenClawError(f"{run} has no row of a cell {name}; {hint}")
    names = full_names(records)
    listed = [f"  {names[record.key]}" for record in found[:MOST_LISTED]]
    if len(found) > MOST_LISTED:
        listed.append(f"  and {len(found) - MOST_LISTED} more")
    raise OpenClawError("\n".join([f"{name} may be one of {len(found)} cells; name one of them:", *listed]))


def full_names(records: Sequence[Record]) -> dict[CellKey, str]:
    """Return the cells' names as in pytest, with the suite if two suites have the same id."""
    suites: dict[str, set[str]] = {}
    repeated: set[tuple[str, str]] = set()
    for record in records:
        suites.setdefault(record.prompt_id, set()).add(record.suite)
        if record.repeat > 1:
            repeated.add((record.suite, record.prompt_id))
    names = {}
    for record in records:
        twins = suites[record.prompt_id]
        file = PurePosixPath(record.suite).name
        is_enough = sum(PurePosixPath(suite).name == file for suite in twins) == 1
        suite = f"{file if is_enough else record.suite}::" if len(twins) > 1 else ""
        repeat = "-r1" if record.repeat == 1 and (record.suite, record.prompt_id) in repeated else ""
        names[record.key] = f"{suite}{record.key.name}{repeat}"
    return names


def _names(record: Record) -> Iterator[str]:
    target, repeat = f"[{record.target.label}]", f"-r{record.repeat}"
    for before in ("", f"{record.suite}::", f"{PurePosixPath(record.suite).name}::"):
        for prompt in dict.fromkeys((record.prompt_id, record.prompt_name)):
            for place in ("", target):
                yield f"{before}{prompt}{place}"
                yield f"{before}{prompt}{place}{repeat}"
