"""A page's fenced blocks in their order: files to write, and commands with the output that it shows.

A file is a block with a title: ```toml title="pytest.ini". Commands are in ```console blocks, each after
`$ `; its output follows. A comment in the line above a block gives exceptions:

- `<!-- elsewhere: why -->`: it cannot be run here, and only its options are checked;
- `<!-- from: text -->`: the output is shown starting with the first line that has this text.
"""

import re
from dataclasses import dataclass

LEFT_OUT = "…"
_FENCE = re.compile(r"^( *)```(\w+)(?: title=\"([^\"]+)\")?\s*$")
_NOTE = re.compile(r"^\s*<!-- (elsewhere|from): (.+) -->\s*$")


@dataclass(frozen=True, kw_only=True)
class File:
    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that the reader should type.

    Attributes:
        shown: the page's lines of its output, which start at line `start`, from 0, after `indent`.
        elsewhere: why it cannot be run here.
        begins_at: the output is shown starting with the first line that has this text.
    """

    line: str
    shown: tuple[str, ...]
    start: int
    indent: str
    elsewhere: str | None
    begins_at: str | None


def read_page(text):
    return list(_blocks(text.splitlines()))


def commands_of(text):
    return [block for block in read_page(text) if isinstance(block, Command)]


def cut(output, begins_at):
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    if begins_at is None:
        return lines
    first = next((n for n, line in enumerate(lines) if begins_at in line), None)
    if first is None:
        raise AssertionError(f"no line has {begins_at!r}:\n{output}")
    return [LEFT_OUT, *lines[first:]]


def _blocks(lines):
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if not fence:
            number += 1
            continue
        note = _NOTE.match(lines[number - 1]) if number else None
        notes = {note[1]: note[2]} if note else {}
        first = number + 1
        number = next(n for n in range(first, len(lines)) if lines[n] == f"{fence[1]}```")
        if fence[3]:
            body = [line.removeprefix(fence[1]) for line in lines[first:number]]
            yield File(path=fence[3], text="\n".join([*body, ""]))
        elif fence[2] == "console":
            yield from _commands(lines[:number], first, fence[1], notes)
        number += 1


def _commands(lines, number, indent, notes):
    """Yield the commands of a block that goes from a line to the last one."""
    while number < len(lines):
        typed = lines[number].removeprefix(indent)
        if not typed.startswith("$ "):
            raise AssertionError(f"line {number + 1}: a console block begins with `$ `, not {typed!r}")
        line = typed[2:]
        number += 1
        while line.endswith("\\"):
            line = f"{line[:-1].rstrip()} {lines[number].strip()}"
            number += 1
        start = number
        while number < len(lines) and not lines[number].startswith(f"{indent}$ "):
            number += 1
        yield Command(
            line=line,
            shown=tuple(lines[start:number]),
            start=start,
            indent=indent,
            elsewhere=notes.get("elsewhere"),
            begins_at=notes.get("from"),
        )
