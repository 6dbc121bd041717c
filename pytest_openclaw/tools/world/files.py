"""The file tools of a world: read, write, edit, ls, apply_patch."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from pytest_openclaw.tools.world.patch import patch_files
from pytest_openclaw.tools.world.workspace import ToolError, inside, text_of, whole_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.tools.world.workspace import Workspace

MOST_READ_CHARS = 12_000
MOST_READ_LINES = 2000
MOST_ENTRIES = 500
MOST_EDITS = 100
_EXACTLY = "must match exactly including all whitespace and newlines."


def read(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Return a file, or the lines from `offset` on, at most `limit` of them."""
    path = text_of(arguments, "path")
    place = inside(path)
    text = workspace.text(place)
    if text is None:
        if workspace.is_folder(place):
            raise ToolError("EISDIR: illegal operation on a directory, read")
        if arguments.get("optional") is True:
            return f"(there is no file {path})"
        raise ToolError(f"File not found: {path}")
    lines = text.split("\n")
    first = whole_of(arguments, "offset", 1)
    if first > len(lines):
        raise ToolError(f"Offset {first} is beyond end of file ({len(lines)} lines total)")
    limit = whole_of(arguments, "limit", MOST_READ_LINES)
    shown = _fitting(lines[first - 1 : first - 1 + min(limit, MOST_READ_LINES)])
    last = first - 1 + len(shown)
    body = "\n".join(shown)
    if last < len(lines):
        left = len(lines) - last
        return f"{body}\n\n[{left} more lines in file. Use offset={last + 1} to continue.]"
    return body or "(the file is empty)"


def _fitting(lines: Sequence[str]) -> list[str]:
    """As many whole lines as fit into one answer; of a longer first line its beginning."""
    if lines and len(lines[0]) > MOST_READ_CHARS:
        return [f"{lines[0][:MOST_READ_CHARS]} [the line goes on]"]
    sizes = accumulate(len(line) + 1 for line in lines)
    return [line for line, size in zip(lines, sizes, strict=True) if size <= MOST_READ_CHARS + 1]


def write(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Put a text in place of what a file held."""
    path, content = text_of(arguments, "path"), text_of(arguments, "content")
    workspace.put(inside(path), content)
    return f"Successfully wrote {len(content.encode())} bytes to {path}"


def edit(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Replace pieces of a file; each must stand there once, and none is replaced unless all are found."""
    path = text_of(arguments, "path")
    place = inside(path)
    text = workspace.text(place)
    if text is None:
        raise ToolError(f"File not found: {path}")
    pairs = _edits(path, arguments.get("edits"))
    spans = sorted(_span(path, text, pairs, n) for n in range(len(pairs)))
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start < end:
            raise ToolError(f"edits[{one}] and edits[{other}] overlap in {path}. Merge them into one edit.")
    pieces: list[str] = []
    position = 0
    for start, end, n in spans:
        pieces += [text[position:start], pairs[n][1]]
        position = end
    changed = "".join([*pieces, text[position:]])
    if changed == text:
        raise ToolError(f"No changes made to {path}. The replacement is the same text.")
    workspace.put(place, changed)
    return f"Successfully replaced {len(pairs)} block(s) in {path}."


def _edits(path: str, value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, list) or not value or not all(isinstance(one, Mapping) for one in value):
        raise ToolError("edits must contain at least one replacement")
    if len(value) > MOST_EDITS:
        raise ToolError(f"at most {MOST_EDITS} edits in one call")
    pairs = [(text_of(one, "oldText"), text_of(one, "newText")) for one in value]
    for n, (old, _) in enumerate(pairs):
        if not old:
            raise ToolError(f"{_name(pairs, n)} must not be empty in {path}.")
    return pairs


def _span(path: str, text: str, pairs: Sequence[tuple[str, str]], n: int) -> tuple[int, int, int]:
    """Where the old text of an edit stands, and the number of the edit."""
    old = pairs[n][0]
    start = text.find(old)
    if start < 0:
        if len(pairs) == 1:
            said = f"Could not find the exact text in {path}. The old text {_EXACTLY}"
        else:
            said = f"Could not find edits[{n}] in {path}. The oldText {_EXACTLY}"
        shown = text if len(text) <= MOST_READ_CHARS else f"{text[:MOST_READ_CHARS]}\n... (truncated)"
        raise ToolError(f"{said}\nCurrent file contents:\n{shown}")
    if text.find(old, start + 1) >= 0:
        raise ToolError(
            f"Found {text.count(old)} occurrences of {_name(pairs, n)} in {path}. It must be unique."
            " Give more of the text around it."
        )
    return start, start + len(old), n


def _name(pairs: Sequence[tuple[str, str]], n: int) -> str:
    return "oldText" if len(pairs) == 1 else f"edits[{n}].oldText"


def ls(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """List a folder, a name a line."""
    path = text_of(arguments, "path", ".") or "."
    place = inside(path)
    if workspace.text(place) is not None:
        raise ToolError(f"Not a directory: {path}")
    if not workspace.is_folder(place):
        raise ToolError(f"Path not found: {path}")
    names = workspace.entries(place)
    after = arguments.get("after")
    if isinstance(after, str) and after in names:
        names = names[names.index(after) + 1 :]
    shown = names[: min(MOST_ENTRIES, whole_of(arguments, "limit", MOST_ENTRIES))]
    body = "\n".join(shown) or "(empty directory)"
    if len(shown) < len(names):
        return f"{body}\n\n[{len(names) - len(shown)} more entries. Use after={shown[-1]} to continue.]"
    return body


def apply_patch(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Change files by a patch; see `patch.py`."""
    return patch_files(workspace, text_of(arguments, "input"))
