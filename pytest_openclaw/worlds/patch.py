"""The patch format of apply_patch, which OpenClaw has in common with Codex.

A patch is between `*** Begin Patch` and `*** End Patch` and has sections: `*** Add File:`,
`*** Delete File:`, and `*** Update File:` with an optional `*** Move to:` and pieces. A piece may begin with
`@@`, or with `@@` and a line that is somewhere before it; its lines begin with a blank (kept), `-` (gone)
or `+` (new). Lines are looked for as they are, then without blanks behind them, then without blanks around,
then with quotes, dashes and blanks of every kind alike; they must be there once (OpenClaw 2026.9.6).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.paths import absolute
from pytest_openclaw.worlds.edits import ALIKE, LINE_ENDS, same_ends
from pytest_openclaw.worlds.workspace import ToolError, inside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_openclaw.worlds.workspace import Workspace

MOST_PIECES = 100
MOST_COUNTED = 1000
_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File: ", "*** Delete File: ", "*** Update File: "
_MOVE, _END_OF_FILE = "*** Move to: ", "*** End of File"


@dataclass
class _Piece:
    """Lines that are together, and what comes in their place."""

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
    if not patch.strip():
        raise ToolError("Provide a patch input.")
    sections = _read_sections(_lines_between(patch))
    if not sections:
        raise ToolError("No files were modified.")
    summary = _Summary()
    for section in sections:
        _apply(workspace, section, summary)
    return summary.text()


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
    """Add a line to a section; returns how many pieces it has started."""
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
    started = 0
    if line.rstrip() == "@@" or line.startswith("@@ "):
        section.pieces.append(_Piece(context=line[3:].strip() or None))
        return 1
    if not section.pieces or (section.pieces[-1].at_end and line.strip()):
        section.pieces.append(_Piece())
        started = 1
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
    return started


# --- applying ------------------------------------------------------------------------------------


@dataclass
class _Summary:
    """What was done, in OpenClaw's order; each path once."""

    added: dict[str, None] = field(default_factory=dict)
    modified: dict[str, None] = field(default_factory=dict)
    deleted: dict[str, None] = field(default_factory=dict)
    unchanged: dict[str, None] = field(default_factory=dict)

    def text(self) -> str:
        marks = (("A", self.added), ("M", self.modified), ("D", self.deleted))
        lines = [f"{mark} {path}" for mark, paths in marks for path in paths]
        if self.unchanged and not lines:
            return f"No changes made to {', '.join(self.unchanged)}."
        return "\n".join(["Success. Updated the following files:", *lines])


def _apply(workspace: Workspace, section: _Section, summary: _Summary) -> None:
    place = inside(section.path, "")
    if section.kind == _ADD:
        hint = f'Use "{_UPDATE}{place}" to change it, or delete it earlier in the same patch.'
        _create(workspace, place, "".join(f"{line}\n" for line in section.added), hint)
        summary.added[place] = None
    elif section.kind == _DELETE:
        _delete(workspace, place)
        summary.deleted[place] = None
    else:
        _update(workspace, section, place, summary)


def _create(workspace: Workspace, place: str, text: str, hint: str) -> None:
    if workspace.is_there(place):
        raise ToolError(f"Cannot create {place}: the file already exists. {hint}")
    workspace.put(place, text)


def _delete(workspace: Workspace, place: str) -> None:
    if workspace.is_folder(place) and workspace.entries(place):
        raise ToolError("directory is not empty")
    if not workspace.is_there(place):
        raise ToolError("file not found")
    workspace.remove(place)


def _update(workspace: Workspace, section: _Section, place: str, summary: _Summary) -> None:
    text, path = workspace.text(place), absolute(place)
    if text is None:
        why = "unsafe path" if workspace.is_folder(place) else "path not found"
        raise ToolError(f"Failed to read file to update {path}: Failed boundary read for {path} ({why})")
    changed = _updated(text, section, path)
    target = place if section.move_to is None else inside(section.move_to, "")
    if target != place:
        _create(workspace, target, changed, "Delete it earlier in the same patch to replace it.")
        workspace.remove(place)
    elif _with_end(changed) == _with_end(text):
        summary.unchanged[place] = None
        return
    else:
        workspace.put(place, changed)
    summary.unchanged.pop(place, None)
    summary.modified[target] = None


def _with_end(text: str) -> str:
    plain = same_ends(text)
    return plain if not plain or plain.endswith("\n") else f"{plain}\n"


def _updated(text: str, section: _Section, path: str) -> str:
    """Return the changed text; each line ends as it did, or as those around it do."""
    ends = [*LINE_ENDS.findall(text), ""]
    lines = LINE_ENDS.split(text)
    if lines[-1] == "":
        lines.pop()
        ends.pop()
    usual = ends[0] if ends and ends[0] else "\n"
    found = sorted(_places(_Lines(lines), section, path), key=lambda place: place[0])
    result: list[tuple[str, str]] = []
    position = 0
    for start, end, new in found:
        result += zip(lines[position:start], ends[position:start], strict=True)
        own = ends[start:end]
        near = next(filter(None, [*own, *ends[start : start + 1], *ends[start - 1 : start], usual]))
        added = [near] * len(new)
        if new and (own or start == len(lines) > 0):  # the last line may have no end
            added[-1] = own[-1] if own else ends[-1]
        result += zip(new, added, strict=True)
        position = end
    result += zip(lines[position:], ends[position:], strict=True)
    last = len(result) - 1
    return "".join(line + (end or (usual if n < last else "")) for n, (line, end) in enumerate(result))


def _places(searched: _Lines, section: _Section, path: str) -> list[tuple[int, int, list[str]]]:
    """Return from which line up to which the lines go, and what comes there, for each piece."""
    places: list[tuple[int, int, list[str]]] = []
    position = 0
    for piece in section.pieces:
        if piece.context is not None:
            context = searched.find([piece.context], position)
            if context is None:
                raise ToolError(f"Failed to find context '{piece.context[:200]}' in {path}")
            if context.count > 1:
                raise ToolError(
                    f"Found {context.count} occurrences of context '{piece.context[:200]}' in {path}."
                    " The context must be unique; use a more specific @@ context line."
                )
            position = context.line + 1
        if not piece.old:
            # New lines alone go behind the line that was named, or to the end.
            position = searched.count if piece.context is None or piece.at_end else position
            places.append((position, position, piece.new))
            continue
        start = _find(searched, piece, position, path)
        position = start + len(piece.old)
        places.append((start, position, piece.new))
    return places


def _find(searched: _Lines, piece: _Piece, position: int, path: str) -> int:
    found = searched.find(piece.old, position, at_end=piece.at_end)
    wanted = "\n".join(piece.old)[:2000]
    if found is None and piece.old[-1] == "":
        # A blank line behind a piece is often none of the file's.
        piece.old.pop()
        if piece.new and piece.new[-1] == "":
            piece.new.pop()
        found = searched.find(piece.old, position, at_end=piece.at_end)
    if found is None:
        raise ToolError(f"Failed to find expected lines in {path}:\n{wanted}")
    if found.count > 1:
        raise ToolError(
            f"Found {found.count} occurrences of these lines in {path}."
            f" The lines must be unique; include more surrounding lines in the hunk:\n{wanted}"
        )
    return found.line


@dataclass(frozen=True)
class _Found:
    """The first line of a run of lines, and how often the run is there."""

    line: int
    count: int


class _Lines:
    """Finds runs of lines in time that is linear in the file, however the lines repeat."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.count = len(lines)
        self._lines = lines
        self._joined: dict[int, tuple[str, list[int]]] = {}

    def find(self, wanted: Sequence[str], start: int, *, at_end: bool = False) -> _Found | None:
        """Return the first line of the run, at or behind `start`, and how often it is there; None if nowhere.

        A run that is meant to be at the end is looked for there alone.
        """
        last = self.count - len(wanted)
        first = max(start, last) if at_end else start
        if not wanted:
            return _Found(start, 1)
        if first > last:
            return None
        for level, tidy in enumerate(_TIDIES):
            needle = "".join(f"{tidy(line)}\n" for line in wanted)
            text, starts = self._text(level)
            if (at := text.find(f"\n{needle}", starts[first])) >= 0:
                line = bisect_left(starts, at)
                return _Found(line, self._count(text, needle, at))
        return None

    def _text(self, level: int) -> tuple[str, list[int]]:
        if level not in self._joined:
            tidied = [_TIDIES[level](line) for line in self._lines]
            starts = [0, *accumulate(len(line) + 1 for line in tidied)]
            self._joined[level] = "\n" + "".join(f"{line}\n" for line in tidied), starts
        return self._joined[level]

    def _count(self, text: str, needle: str, start: int) -> int:
        """How often a run of lines is there, overlapping ones too; counted up to a bound."""
        count = 0
        at = start
        while at >= 0 and count < MOST_COUNTED:
            count += 1
            at = text.find(f"\n{needle}", at + 1)
        return count


def _alike(line: str) -> str:
    return line.strip().translate(ALIKE)


_TIDIES: tuple[Callable[[str], str], ...] = (lambda line: line, str.rstrip, str.strip, _alike)
