"""The patch format of apply_patch, which OpenClaw has in common with Codex.

A patch is between `*** Begin Patch` and `*** End Patch` and has sections: `*** Add File:`,
`*** Delete File:`, and `*** Update File:` with an optional `*** Move to:` and pieces. A piece may begin with
`@@`, or with `@@` and a line that is somewhere before it; its lines begin with a blank (kept), `-` (gone)
or `+` (new). Lines are looked for as they are, then without blanks around them and with quotes, dashes and
blanks of every kind alike; they must occur once (OpenClaw 2026.9.6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.paths import absolute
from pytest_openclaw.worlds.file_tools import ALIKE, same_ends, with_ends_of
from pytest_openclaw.worlds.workspace import ToolError, inside, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.worlds.workspace import Workspace

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File: ", "*** Delete File: ", "*** Update File: "
_MOVE, _END_OF_FILE = "*** Move to: ", "*** End of File"


@dataclass
class _Piece:
    """Lines that are together, and the lines in their place."""

    context: str | None = None
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


@dataclass
class _Section:
    """The changes of one file; the lines of a new one are those of its only piece."""

    kind: str
    path: str
    move_to: str | None = None
    pieces: list[_Piece] = field(default_factory=list)


def apply_patch(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Change files as a patch says, and return which.

    Raises:
        ToolError: it is not a patch, or a file is not as the patch expects; sections before it are done.
    """
    sections = _read_sections(text_of(arguments, "input"))
    done: dict[str, None] = {}
    for section in sections:
        place = inside(section.path)
        if section.kind == _ADD:
            _create(workspace, place, "".join(f"{line}\n" for piece in section.pieces for line in piece.new))
            done[f"A {place}"] = None
        elif section.kind == _DELETE:
            if place not in workspace.files:
                raise ToolError("file not found")
            workspace.remove(place)
            done[f"D {place}"] = None
        elif changed := _update(workspace, section, place):
            done[f"M {changed}"] = None
    if not done:
        return "No changes made."
    return "\n".join(["Success. Updated the following files:", *done])


# --- reading a patch ------------------------------------------------------------------------------


def _read_sections(patch: str) -> list[_Section]:
    lines = same_ends(patch).strip().split("\n")
    if lines[0].startswith("<<") and lines[-1].strip() == "EOF":
        lines = lines[1:-1]  # some models write it as a here-document
    if not lines or lines[0].strip() != _BEGIN:
        raise ToolError(f"The first line of the patch must be '{_BEGIN}'")
    if lines[-1].strip() != _END:
        raise ToolError(f"The last line of the patch must be '{_END}'")
    sections: list[_Section] = []
    for number, line in enumerate(lines[1:-1], 2):
        if kind := next((mark for mark in (_ADD, _DELETE, _UPDATE) if line.strip().startswith(mark)), None):
            sections.append(_Section(kind=kind, path=line.strip()[len(kind) :].strip()))
        elif not sections:
            known = ", ".join(f"'{mark}{{path}}'" for mark in (_ADD, _DELETE, _UPDATE))
            what = f"'{line[:200]}' is not a valid hunk header. Valid hunk headers: {known}"
            raise ToolError(f"Invalid patch hunk at line {number}: {what}")
        else:
            _read_line(sections[-1], line, number)
    if not sections or any(one.kind == _UPDATE and not (one.pieces or one.move_to) for one in sections):
        raise ToolError("No files were modified.")
    return sections


def _read_line(section: _Section, line: str, number: int) -> None:
    """Add a line to a section."""
    if line.startswith(_MOVE) and not section.pieces:
        section.move_to = line[len(_MOVE) :].strip()
    elif line.rstrip() == "@@" or line.startswith("@@ "):
        section.pieces.append(_Piece(context=line[3:].strip() or None))
    elif line.strip() != _END_OF_FILE:
        mark, text = line[:1] or " ", line[1:]
        if mark not in "-+ ":
            raise ToolError(
                f"Invalid patch hunk at line {number}: Unexpected line found in update hunk: '{line[:200]}'."
                " Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"
            )
        if not section.pieces:
            section.pieces.append(_Piece())
        section.pieces[-1].old += [text] if mark in "- " else []
        section.pieces[-1].new += [text] if mark in "+ " else []


# --- applying a section ---------------------------------------------------------------------------


def _create(workspace: Workspace, place: str, text: str) -> None:
    if place in workspace.files or workspace.is_folder(place):
        raise ToolError(
            f'Cannot create {place}: the file already exists. Use "{_UPDATE}{place}" to change it, or delete'
            " it earlier in the same patch."
        )
    workspace.put(place, text)


def _update(workspace: Workspace, section: _Section, place: str) -> str | None:
    """Change a file, and return where it is then; None if nothing has changed."""
    text, path = workspace.files.get(place), absolute(place)
    if text is None:
        raise ToolError(f"Failed to read file to update {path}: path not found")
    changed = _updated(text, section, path)
    target = place if section.move_to is None else inside(section.move_to)
    if target != place:
        _create(workspace, target, changed)
        workspace.remove(place)
    elif changed == text:
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
            position = 1 + _find(lines, [piece.context], position, path)
        if piece.old[-1:] == piece.new[-1:] == [""] and len(piece.old) > 1:
            # A blank line after a piece is often not in the file.
            piece.old.pop()
            piece.new.pop()
        if piece.old:
            start = _find(lines, piece.old, position, path)
            position = start + len(piece.old)
        else:
            # New lines alone go after the line that was named, or to the end.
            start = position = len(lines) if piece.context is None else position
        found.append((start, position, piece.new))
    return found


def _find(lines: Sequence[str], wanted: Sequence[str], first: int, path: str) -> int:
    """Return where a run of lines begins, at or after `first`.

    The lines are compared as one text, so that the search is quick however they repeat.
    """
    for form in (str, _alike):
        needle, text = ("\n" + "".join(f"{form(line)}\n" for line in run) for run in (wanted, lines[first:]))
        if (at := text.find(needle)) >= 0:
            if text.find(needle, at + 1) >= 0:
                raise ToolError(
                    f"Found several occurrences of these lines in {path}. The lines must be unique;"
                    f" include more surrounding lines in the hunk:\n{_shown(wanted)}"
                )
            return first + text.count("\n", 0, at)
    raise ToolError(f"Failed to find expected lines in {path}:\n{_shown(wanted)}")


def _alike(line: str) -> str:
    return line.strip().translate(ALIKE)


def _shown(lines: Sequence[str]) -> str:
    return "\n".join(lines)[:2000]
