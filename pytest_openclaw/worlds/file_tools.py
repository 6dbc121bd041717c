"""The file tools of a world: read, write, edit, ls, apply_patch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.dispatch import edit_distance
from pytest_openclaw.openclaw.paths import absolute
from pytest_openclaw.worlds.edits import NotFoundError, replace_pieces, same_ends
from pytest_openclaw.worlds.patch import patch_files
from pytest_openclaw.worlds.shortening import ReadFrom, read_part, units
from pytest_openclaw.worlds.workspace import ToolError, inside, text_of, whole_of

if TYPE_CHECKING:
    from pytest_openclaw.worlds.shortening import ResultLimits
    from pytest_openclaw.worlds.workspace import Workspace

MOST_SHOWN_CHARS = 800
MOST_ENTRIES = 500
MOST_EDITS = 100
_NO_EDITS = (
    "Missing required parameter: edits (received: path, edits=<array>)."
    " Supply correct parameters before retrying."
)
MOST_NAMES = 100
LONGEST_NAME = 64


def read(workspace: Workspace, limits: ResultLimits, arguments: Mapping[str, Any]) -> str:
    """Return a file, or `limit` lines from `offset` on, its first line from the character `cursor` on."""
    path = text_of(arguments, "path")
    # Only a config restricts OpenClaw's `read` to the workspace, and spilled files are beside it.
    place = path if path in workspace.spilled else _place(arguments)
    path = absolute(place)
    text = workspace.text(place)
    if text is None:
        if workspace.is_folder(place):
            raise ToolError(
                f"Read requires a file path, but {path} is a directory."
                " List the directory, then read a specific file."
            )
        if arguments.get("optional") is True:
            return f"Optional file not found: {path}."
        raise ToolError(f"File not found: {path}.{_near(workspace, place)}")
    if not text:
        return "File is empty (0 bytes)."
    lines = same_ends(text).split("\n")
    end = "\n" if lines[-1] == "" else ""
    if end:
        lines.pop()
    first = whole_of(arguments, "offset", 1)
    if first > len(lines):
        n = len(lines)
        return f"Offset {first} is beyond end of file ({n} lines total). Retry with offset <= {n}."
    cursor = whole_of(arguments, "cursor", 0, least=0)
    length = units(lines[first - 1])
    if cursor and cursor >= length:
        more = f" Use offset={first + 1} to continue." if first < len(lines) else ""
        return f"Cursor {cursor} is at or beyond the end of line {first} ({length} characters).{more}"
    limit = whole_of(arguments, "limit", 0) or None
    return read_part(lines, end, ReadFrom(first, cursor, limit), limits)


def _place(arguments: Mapping[str, Any]) -> str:
    """Return the place that `path` names; blanks alone name none."""
    path = text_of(arguments, "path")
    if not path.strip():
        given = ", ".join("path=<empty-string>" if name == "path" else name for name in arguments)
        raise ToolError(
            f"Missing required parameter: path (received: {given})."
            " Supply correct parameters before retrying."
        )
    return inside(path)


def _near(workspace: Workspace, place: str) -> str:
    """What is there beside it under a name much like the one that was asked for."""
    folder, _, name = place.rpartition("/")
    wanted = name.lower()
    most = max(1, len(wanted) * 2 // 5)
    names = [one.rstrip("/") for one in workspace.entries(folder)[:MOST_NAMES]]
    near = sorted(
        (distance, one)
        for one in names
        if max(len(one), len(wanted)) <= LONGEST_NAME and abs(len(one) - len(wanted)) <= most
        if (distance := edit_distance(wanted, one.lower())) <= most
    )
    return f" Did you mean: {', '.join(one for _, one in near[:3])}?" if near else ""


def write(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Put a text in place of what a file held."""
    place, content = _place(arguments), text_of(arguments, "content")
    if workspace.text(place) == content:
        return f"No changes made to {absolute(place)}. The file already has identical content."
    workspace.put(place, content)
    return f"Successfully wrote {len(content.encode())} bytes to {absolute(place)}"


def edit(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Replace pieces of a file; each must be there once, and none is replaced unless all are found."""
    place = _place(arguments)
    path = absolute(place)
    text = workspace.text(place)
    pairs = _edits(arguments)
    if text is None:
        code = "not-file" if workspace.is_folder(place) else "ENOENT"
        raise ToolError(f"Could not edit file: {path}. Error code: {code}.")
    try:
        changed = replace_pieces(path, text, pairs)
    except NotFoundError as error:
        if len(pairs) > 1:
            raise
        plain = same_ends(text)
        shown = plain if len(plain) <= MOST_SHOWN_CHARS else f"{plain[:MOST_SHOWN_CHARS]}\n... (truncated)"
        raise ToolError(f"{error}\nCurrent file contents:\n{shown}") from None
    if changed == text:
        return f"No changes made to {path}. The replacement text is identical to the original."
    workspace.put(place, changed)
    return f"Successfully replaced {len(pairs)} block(s) in {path}."


def _edits(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    edits = arguments.get("edits")
    if edits is None and "oldText" in arguments:
        edits = [arguments]  # one edit without its list, which OpenClaw forgives
    if not isinstance(edits, list) or not edits or not all(isinstance(one, Mapping) for one in edits):
        raise ToolError(_NO_EDITS)
    if len(edits) > MOST_EDITS:
        raise ToolError(f"At most {MOST_EDITS} edits in one call.")
    pairs = [(text_of(one, "oldText"), text_of(one, "newText")) for one in edits]
    if not all(old.strip() for old, _ in pairs):
        raise ToolError(_NO_EDITS)
    return pairs


def ls(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """List a folder, a name a line."""
    place = inside(text_of(arguments, "path", ".") or ".")
    if not workspace.is_folder(place):
        raise ToolError("directory not found")
    names = workspace.entries(place)
    after = arguments.get("after")
    if isinstance(after, str) and after:
        names = [name for name in names if name > after]
    shown = names[: min(MOST_ENTRIES, whole_of(arguments, "limit", MOST_ENTRIES))]
    body = "\n".join(json.dumps(name, ensure_ascii=False) for name in shown) or "(empty directory)"
    if len(shown) < len(names):
        return f'{body}\n\n[More entries. Continue with the same path and after="{shown[-1]}".]'
    return body


def apply_patch(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Change files by a patch; see `patch.py`."""
    return patch_files(workspace, text_of(arguments, "input"))
