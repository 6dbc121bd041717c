"""The patch format of apply_patch, which OpenClaw has in common with Codex.

A patch stands between `*** Begin Patch` and `*** End Patch` and has sections: `*** Add File:`,
`*** Delete File:`, and `*** Update File:` with an optional `*** Move to:` and pieces. A piece may begin with
`@@`, or with `@@` and a line that stands somewhere before it; its lines begin with a blank (kept), `-` (gone)
or `+` (new). Lines are looked for as they are, then without blanks behind them, then without blanks around.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from pytest_openclaw.tools.paths import absolute
from pytest_openclaw.tools.world.workspace import ToolError, inside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_openclaw.tools.world.workspace import Workspace

MOST_PIECES = 100
_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File: ", "*** Delete File: ", "*** Update File: "
_MOVE, _END_OF_FILE = "*** Move to: ", "*** End of File"


@dataclass
class _Piece:
    """Lines that stand together, and what comes in their place."""

    context: str | None = None
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    at_end: bool = False


@dataclass
class _Section:
    """What happens to one file."""

    kind: str
    path: str
    line: int
    added: list[str] = field(default_factory=list)
    move_to: str | None = None
    pieces: list[_Piece] = field(default_factory=list)


def patch_files(workspace: Workspace, patch: str) -> str:
    """Change the workspace as a patch says, and return what was changed.

    Raises:
        ToolError: it is no patch, or a file is not as the patch takes it to be; sections before it are done.
    """
    sections = _read_sections(_lines_between(patch))
    if not sections:
        raise ToolError(_no_header("", 2))
    done = [_apply(workspace, section) for section in sections]
    return "\n".join(["Success. Updated the following files:", *done])


# --- reading -------------------------------------------------------------------------------------


def _lines_between(patch: str) -> list[str]:
    lines = patch.strip().replace("\r\n", "\n").split("\n")
    if len(lines) > 1 and lines[0].strip().startswith("<<") and lines[-1].strip() == "EOF":
        lines = lines[1:-1]  # some models write it as a shell would take it
    if not lines or lines[0].strip() != _BEGIN:
        raise ToolError(f"The first line of the patch must be '{_BEGIN}'")
    if lines[-1].strip() != _END:
        raise ToolError(f"The last line of the patch must be '{_END}'")
    return lines[1:-1]


def _read_sections(lines: Sequence[str]) -> list[_Section]:
    sections: list[_Section] = []
    n_pieces = 0
    for number, line in enumerate(lines, 2):
        if head := next((mark for mark in (_ADD, _DELETE, _UPDATE) if line.strip().startswith(mark)), None):
            sections.append(_Section(kind=head, path=line.strip()[len(head) :].strip(), line=number))
        elif sections:
            n_pieces += _read_line(sections[-1], line, number)
        elif line.strip():
            raise ToolError(_no_header(line, number))
        if n_pieces + len(sections) > MOST_PIECES:
            raise ToolError(f"Invalid patch: more than {MOST_PIECES} hunks")
    for section in sections:
        if section.kind == _UPDATE and not section.pieces and section.move_to is None:
            where = f"Invalid patch hunk at line {section.line}"
            raise ToolError(f"{where}: Update file hunk for path '{section.path}' is empty")
    return sections


def _no_header(line: str, number: int) -> str:
    known = ", ".join(f"'{mark}{{path}}'" for mark in (_ADD, _DELETE, _UPDATE))
    what = f"'{line[:200]}' is not a valid hunk header"
    return f"Invalid patch hunk at line {number}: {what}. Valid hunk headers: {known}"


def _read_line(section: _Section, line: str, number: int) -> int:
    """Add a line to a section; returns how many pieces it has begun."""
    if section.kind == _ADD and line.startswith("+"):
        section.added.append(line[1:])
        return 0
    if section.kind == _UPDATE:
        if line.startswith(_MOVE) and not section.pieces:
            section.move_to = line[len(_MOVE) :].strip()
            return 0
        return _read_piece_line(section, line, number)
    if line.strip():
        raise ToolError(_no_header(line, number))
    return 0


def _read_piece_line(section: _Section, line: str, number: int) -> int:
    begun = 0
    if line.rstrip() == "@@" or line.startswith("@@ "):
        section.pieces.append(_Piece(context=line[3:].strip() or None))
        return 1
    if not section.pieces or (section.pieces[-1].at_end and line.strip()):
        section.pieces.append(_Piece())
        begun = 1
    piece = section.pieces[-1]
    if line.strip() == _END_OF_FILE:
        piece.at_end = True
    elif not line or line[0] == " ":
        if not piece.at_end:
            piece.old.append(line[1:])
            piece.new.append(line[1:])
    elif line[0] == "-":
        piece.old.append(line[1:])
    elif line[0] == "+":
        piece.new.append(line[1:])
    else:
        raise ToolError(
            f"Invalid patch hunk at line {number}: Unexpected line found in update hunk: '{line[:200]}'."
            " Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"
        )
    return begun


# --- applying ------------------------------------------------------------------------------------


def _apply(workspace: Workspace, section: _Section) -> str:
    place = inside(section.path)
    if section.kind == _ADD:
        workspace.put(place, "".join(f"{line}\n" for line in section.added))
        return f"A {section.path}"
    text = workspace.text(place)
    if text is None:
        if section.kind == _DELETE:
            raise ToolError("file not found")
        path = absolute(place)
        raise ToolError(
            f"Failed to read file to update {path}: Failed boundary read for {path} (path not found)"
        )
    if section.kind == _DELETE:
        workspace.remove(place)
        return f"D {section.path}"
    changed = _updated(text, section, absolute(place))
    if section.move_to is None:
        workspace.put(place, changed)
        return f"M {section.path}"
    target = inside(section.move_to)
    workspace.put(target, changed)
    if target != place:
        workspace.remove(place)
    return f"M {section.move_to}"


def _updated(text: str, section: _Section, path: str) -> str:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    found = _places(lines, section, path)
    result: list[str] = []
    position = 0
    for start, end, new in sorted(found, key=lambda place: place[0]):
        result += [*lines[position:start], *new]
        position = end
    result += lines[position:]
    return "".join(f"{line}\n" for line in result)


def _places(lines: Sequence[str], section: _Section, path: str) -> list[tuple[int, int, list[str]]]:
    """Return from which line up to which the lines go, and what comes there, for each piece."""
    searched = _Lines(lines)
    places: list[tuple[int, int, list[str]]] = []
    position = 0
    for piece in section.pieces:
        if piece.context is not None:
            context = searched.find([piece.context], position)
            if context is None:
                raise ToolError(f"Failed to find context '{piece.context[:200]}' in {path}")
            position = context + 1
        if not piece.old:
            # New lines alone go behind the line that was named, or to the end.
            start = len(lines) if piece.context is None or piece.at_end else position
            places.append((start, start, piece.new))
            continue
        start = _find(searched, piece, position, path)
        position = start + len(piece.old)
        places.append((start, position, piece.new))
    return places


def _find(searched: _Lines, piece: _Piece, position: int, path: str) -> int:
    found = searched.find(piece.old, position, at_end=piece.at_end)
    if found is None and len(piece.old) > 1 and piece.old[-1] == "":
        # A blank line behind a piece is often none of the file's.
        piece.old.pop()
        if piece.new and piece.new[-1] == "":
            piece.new.pop()
        found = searched.find(piece.old, position, at_end=piece.at_end)
    if found is None:
        wanted = "\n".join(piece.old)
        raise ToolError(f"Failed to find expected lines in {path}:\n{wanted[:2000]}")
    return found


class _Lines:
    """Finds runs of lines in time that is linear in the file, however the lines repeat."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.count = len(lines)
        self._lines = lines
        self._joined: dict[int, tuple[str, list[int]]] = {}

    def find(self, wanted: Sequence[str], start: int, *, at_end: bool = False) -> int | None:
        """Return the first line of the run, at or behind `start`; at the end first if that is meant."""
        for level, tidy in enumerate(_TIDIES):
            needle = "\n" + "".join(f"{tidy(line)}\n" for line in wanted)
            text, starts = self._text(level)
            last = self.count - len(wanted)
            if at_end and last >= start and text.startswith(needle, starts[last]):
                return last
            if start <= last and (at := text.find(needle, starts[start])) >= 0:
                return bisect_left(starts, at)
        return None

    def _text(self, level: int) -> tuple[str, list[int]]:
        if level not in self._joined:
            tidied = [_TIDIES[level](line) for line in self._lines]
            starts = [0, *accumulate(len(line) + 1 for line in tidied)]
            self._joined[level] = "\n" + "".join(f"{line}\n" for line in tidied), starts
        return self._joined[level]


_TIDIES: tuple[Callable[[str], str], ...] = (lambda line: line, str.rstrip, str.strip)
