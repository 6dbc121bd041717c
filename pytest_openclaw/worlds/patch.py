"""The patch format of apply_patch, which OpenClaw has in common with Codex.

A patch is between `*** Begin Patch` and `*** End Patch` and has sections: `*** Add File:`,
`*** Delete File:`, and `*** Update File:` with an optional `*** Move to:` and pieces. A piece may begin with
`@@`, or with `@@` and a line that is somewhere before it; its lines begin with a blank (kept), `-` (gone)
or `+` (new). Lines are looked for as they are, then without blanks at their end, then without blanks on both
sides, then with quotes, dashes and blanks of every kind alike; they must occur once (OpenClaw 2026.9.6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.paths import absolute
from pytest_openclaw.worlds.file_tools import ALIKE, same_ends, with_ends_of
from pytest_openclaw.worlds.workspace import ToolError, inside, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_openclaw.worlds.workspace import Workspace

MOST_PIECES = 100
MOST_COUNTED = 1000
_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File: ", "*** Delete File: ", "*** Update File: "
_MOVE, _END_OF_FILE = "*** Move to: ", "*** End of File"


@dataclass
class _Piece:
    """Lines that are together, and the lines in their place."""

    context: str | None = None
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    at_end: bool = False


@dataclass
class _Section:
    """The changes of one file."""

    kind: str
    path: str
    line: int
    added: list[str] = field(default_factory=list)
    move_to: str | None = None
    pieces: list[_Piece] = field(default_factory=list)


def apply_patch(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Change files as a patch says, and return which.

    Raises:
        ToolError: it is not a patch, or a file is not as the patch expects; sections before it are done.
    """
    patch = text_of(arguments, "input")
    if not patch.strip():
        raise ToolError("Provide a patch input.")
    sections = _read_sections(patch)
    if not sections:
        raise ToolError("No files were modified.")
    changes: dict[str, dict[str, None]] = {"A": {}, "M": {}, "D": {}, "unchanged": {}}
    for section in sections:
        place = inside(section.path, "")
        if section.kind == _ADD:
            hint = f'Use "{_UPDATE}{place}" to change it, or delete it earlier in the same patch.'
            _create(workspace, place, "".join(f"{line}\n" for line in section.added), hint)
            changes["A"][place] = None
        elif section.kind == _DELETE:
            _delete(workspace, place)
            changes["D"][place] = None
        elif (changed := _update(workspace, section, place)) is None:
            changes["unchanged"][place] = None
        else:
            changes["unchanged"].pop(place, None)
            changes["M"][changed] = None
    unchanged = changes.pop("unchanged")
    lines = [f"{mark} {place}" for mark, places in changes.items() for place in places]
    if unchanged and not lines:
        return f"No changes made to {', '.join(unchanged)}."
    return "\n".join(["Success. Updated the following files:", *lines])


# --- reading a patch ------------------------------------------------------------------------------


def _read_sections(patch: str) -> list[_Section]:
    lines = patch.strip().replace("\r\n", "\n").split("\n")
    if len(lines) > 1 and lines[0].strip().startswith("<<") and lines[-1].strip() == "EOF":
        lines = lines[1:-1]  # some models write it as a here-document
    if not lines or lines[0].strip() != _BEGIN:
        raise ToolError(f"The first line of the patch must be '{_BEGIN}'")
    if lines[-1].strip() != _END:
        raise ToolError(f"The last line of the patch must be '{_END}'")
    sections: list[_Section] = []
    for number, line in enumerate(lines[1:-1], 2):
        if kind := next((mark for mark in (_ADD, _DELETE, _UPDATE) if line.strip().startswith(mark)), None):
            sections.append(_Section(kind=kind, path=line.strip()[len(kind) :].strip(), line=number))
        elif not sections or not _read_line(sections[-1], line, number):
            known = ", ".join(f"'{mark}{{path}}'" for mark in (_ADD, _DELETE, _UPDATE))
            what = f"'{line[:200]}' is not a valid hunk header. Valid hunk headers: {known}"
            if line.strip():
                raise ToolError(f"Invalid patch hunk at line {number}: {what}")
        if len(sections) + sum(len(section.pieces) for section in sections) > MOST_PIECES:
            raise ToolError(f"Invalid patch: more than {MOST_PIECES} hunks")
    for section in sections:
        if section.kind == _UPDATE and not section.pieces and section.move_to is None:
            where = f"Invalid patch hunk at line {section.line}"
            raise ToolError(f"{where}: Update file hunk for path '{section.path}' is empty")
    return sections


def _read_line(section: _Section, line: str, number: int) -> bool:
    """Add a line to a section; return whether it belongs there."""
    if section.kind == _ADD and line.startswith("+"):
        section.added.append(line[1:])
    elif section.kind != _UPDATE:
        return False
    elif line.startswith(_MOVE) and not section.pieces:
        section.move_to = line[len(_MOVE) :].strip()
    elif line.rstrip() == "@@" or line.startswith("@@ "):
        section.pieces.append(_Piece(context=line[3:].strip() or None))
    else:
        if not section.pieces or (section.pieces[-1].at_end and line.strip()):
            section.pieces.append(_Piece())
        _read_piece_line(section.pieces[-1], line, number)
    return True


def _read_piece_line(piece: _Piece, line: str, number: int) -> None:
    mark, text = line[:1] or " ", line[1:]
    if line.strip() == _END_OF_FILE:
        piece.at_end = True
    elif mark not in "-+ ":
        raise ToolError(
            f"Invalid patch hunk at line {number}: Unexpected line found in update hunk: '{line[:200]}'."
            " Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"
        )
    elif mark != " " or not piece.at_end:
        piece.old += [text] if mark in "- " else []
        piece.new += [text] if mark in "+ " else []


# --- applying a section ---------------------------------------------------------------------------


def _is_there(workspace: Workspace, place: str) -> bool:
    return place in workspace.files or workspace.is_folder(place)


def _create(workspace: Workspace, place: str, text: str, hint: str) -> None:
    if _is_there(workspace, place):
        raise ToolError(f"Cannot create {place}: the file already exists. {hint}")
    workspace.put(place, text)


def _delete(workspace: Workspace, place: str) -> None:
    if workspace.is_folder(place) and workspace.entries(place):
        raise ToolError("directory is not empty")
    if not _is_there(workspace, place):
        raise ToolError("file not found")
    workspace.remove(place)


def _update(workspace: Workspace, section: _Section, place: str) -> str | None:
    """Change a file, and return where it is then; None if nothing has changed."""
    text, path = workspace.files.get(place), absolute(place)
    if text is None:
        why = "unsafe path" if workspace.is_folder(place) else "path not found"
        raise ToolError(f"Failed to read file to update {path}: Failed boundary read for {path} ({why})")
    changed = _updated(text, section, path)
    target = place if section.move_to is None else inside(section.move_to, "")
    if target != place:
        _create(workspace, target, changed, "Delete it earlier in the same patch to replace it.")
        workspace.remove(place)
    elif changed.splitlines() == text.splitlines():
        return None
    else:
        workspace.put(place, changed)
    return target


def _updated(text: str, section: _Section, path: str) -> str:
    """Return the changed text, with the line ends of the file."""
    plain = same_ends(text)
    lines = plain.removesuffix("\n").split("\n") if plain else []
    for start, stop, new in sorted(_replacements(lines, section, path), key=lambda one: -one[0]):
        lines[start:stop] = new
    end = "\n" if lines and (not plain or plain.endswith("\n")) else ""
    return with_ends_of(text, "\n".join(lines) + end)


def _replacements(lines: Sequence[str], section: _Section, path: str) -> list[tuple[int, int, list[str]]]:
    """Return the first line of each piece, the line after it, and the new lines."""
    found: list[tuple[int, int, list[str]]] = []
    position = 0
    for piece in section.pieces:
        if piece.context is not None:
            context, count = _search(lines, [piece.context], position)
            if not count:
                raise ToolError(f"Failed to find context '{piece.context[:200]}' in {path}")
            if count > 1:
                raise ToolError(
                    f"Found {count} occurrences of context '{piece.context[:200]}' in {path}."
                    " The context must be unique; use a more specific @@ context line."
                )
            position = context + 1
        if piece.old:
            start = _find(lines, piece, position, path)
            position = start + len(piece.old)
        else:
            # New lines alone go after the line that was named, or to the end.
            start = position = len(lines) if piece.context is None or piece.at_end else position
        found.append((start, position, piece.new))
    return found


def _find(lines: Sequence[str], piece: _Piece, position: int, path: str) -> int:
    wanted = "\n".join(piece.old)[:2000]
    start, count = _search(lines, piece.old, position, at_end=piece.at_end)
    if not count and piece.old[-1] == "":
        # A blank line after a piece is often not in the file.
        piece.old.pop()
        if piece.new and piece.new[-1] == "":
            piece.new.pop()
        start, count = _search(lines, piece.old, position, at_end=piece.at_end)
    if not count:
        raise ToolError(f"Failed to find expected lines in {path}:\n{wanted}")
    if count > 1:
        raise ToolError(
            f"Found {count} occurrences of these lines in {path}."
            f" The lines must be unique; include more surrounding lines in the hunk:\n{wanted}"
        )
    return start


_FORMS: tuple[Callable[[str], str], ...] = (
    lambda line: line,
    str.rstrip,
    str.strip,
    lambda line: line.strip().translate(ALIKE),
)
"""The forms in which lines are compared, one after the other."""


def _search(
    lines: Sequence[str], wanted: Sequence[str], start: int, *, at_end: bool = False
) -> tuple[int, int]:
    """Return the first line of a run at or after `start`, and how often it occurs from there on.

    A run that must be at the end is looked for only there. The lines are compared as one text, so that the
    search is quick however they repeat.
    """
    first = max(start, len(lines) - len(wanted)) if at_end else start
    if not wanted:
        return start, 1
    for form in _FORMS:
        text = "\n" + "".join(f"{form(line)}\n" for line in lines[first:])
        needle = "\n" + "".join(f"{form(line)}\n" for line in wanted)
        found = at = text.find(needle)
        count = 0
        while at >= 0 and count < MOST_COUNTED:
            count += 1
            at = text.find(needle, at + 1)
        if count:
            return first + text.count("\n", 0, found), count
    return 0, 0
