"""The file tools of a world: read, write, edit and ls, as in OpenClaw 2026.9.6."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.dispatch import edit_distance
from pytest_openclaw.openclaw.paths import absolute
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.worlds.workspace import ToolError, inside, text_of, whole_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.worlds.shortening import ResultLimits
    from pytest_openclaw.worlds.workspace import Workspace

MOST_ENTRIES = 500


def same_ends(text: str) -> str:
    r"""Return a text in which each line ends with `\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def with_ends_of(text: str, plain: str) -> str:
    r"""Return a changed text with the line ends of the first one: all `\r\n`, or all `\n`."""
    return plain.replace("\n", "\r\n") if "\r\n" in text else plain


def _place(arguments: Mapping[str, Any]) -> str:
    """Return the place that `path` names; blanks only do not name one."""
    path = text_of(arguments, "path")
    if not path.strip():
        given = ", ".join("path=<empty-string>" if name == "path" else name for name in arguments)
        raise ToolError(
            f"Missing required parameter: path (received: {given})."
            " Supply correct parameters before retrying."
        )
    return inside(path)


def write(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Write a whole file."""
    place, content = _place(arguments), text_of(arguments, "content")
    if workspace.files.get(place) == content:
        return f"No changes made to {absolute(place)}. The file already has identical content."
    workspace.put(place, content)
    return f"Successfully wrote {len(content.encode())} bytes to {absolute(place)}"


def ls(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """List a folder, one name in each line."""
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


# --- read -----------------------------------------------------------------------------------------

MOST_NAMES, LONGEST_NAME = 100, 64
MOST_PAGE_BYTES, _ROOM_FOR_MARK = 51_200, 160


def read(workspace: Workspace, limits: ResultLimits, arguments: Mapping[str, Any]) -> str:
    """Return a file, or `limit` lines from `offset` on, its first line from the character `cursor` on."""
    path = text_of(arguments, "path")
    # Only a config restricts OpenClaw's `read` to the workspace, and spilled files are outside it.
    place = path if path in workspace.spilled else _place(arguments)
    text = workspace.files.get(place)
    if text is None:
        return _without_file(workspace, place, arguments)
    if not text:
        return "File is empty (0 bytes)."
    text = valid_text(text)  # the file may have other bytes
    lines = same_ends(text).split("\n")
    end = "\n" if lines[-1] == "" else ""
    if end:
        lines.pop()
    first = whole_of(arguments, "offset", 1)
    if first > len(lines):
        n = len(lines)
        return f"Offset {first} is beyond end of file ({n} lines total). Retry with offset <= {n}."
    cursor = whole_of(arguments, "cursor", 0, least=0)
    length = len(lines[first - 1])
    if cursor and cursor >= length:
        more = f" Use offset={first + 1} to continue." if first < len(lines) else ""
        return f"Cursor {cursor} is at or beyond the end of line {first} ({length} characters).{more}"
    limit = whole_of(arguments, "limit", 0)
    wanted = lines[first - 1 :][: limit or None]
    left = len(lines) - (first - 1 + len(wanted))
    body = "\n".join(wanted)[cursor:] + ("" if left else end)
    more = "1 more line" if left == 1 else f"{left} more lines"
    mark = f"\n\n[{more} in file. Use offset={len(lines) - left + 1} to continue.]" if left else ""
    if len((body + mark).encode()) <= limits.read_bytes and len(body + mark) <= limits.result_chars:
        return body + mark
    return _beginning(body, first, cursor, limit, limits)


def _beginning(body: str, first: int, cursor: int, limit: int, limits: ResultLimits) -> str:
    """Return as many whole lines as there is room for, or a part of one, and where the rest begins."""
    size = f"{limits.read_bytes / 1024:.1f}".removesuffix(".0")
    room = min(limits.result_chars, limits.read_bytes, MOST_PAGE_BYTES) - _ROOM_FOR_MARK
    part = body[:room].encode()[:room].decode(errors="ignore")
    shown, line_end, rest = part.rpartition("\n")
    if body[len(part) : len(part) + 1] == "\n":
        shown, line_end, rest = part, "\n", ""
    if line_end:
        n = shown.count("\n") + 1
        at = f"offset={first + n}" + (f", limit={limit - n}" if limit else "")
    else:
        shown = rest
        at = f"offset={first}, cursor={cursor + len(rest)}" + (f", limit={limit}" if limit else "")
    return f"{shown}\n\n[Read output capped at {size}KB for this call. Use {at} to continue.]"


def _without_file(workspace: Workspace, place: str, arguments: Mapping[str, Any]) -> str:
    path = absolute(place)
    if workspace.is_folder(place):
        raise ToolError(
            f"Read requires a file path, but {path} is a directory."
            " List the directory, then read a specific file."
        )
    if arguments.get("optional") is True:
        return f"Optional file not found: {path}."
    folder, _, name = place.rpartition("/")
    wanted = name.lower()
    most = max(1, len(wanted) * 2 // 5)
    near = sorted(
        (distance, one)
        for one in (entry.rstrip("/") for entry in workspace.entries(folder)[:MOST_NAMES])
        if max(len(one), len(wanted)) <= LONGEST_NAME and abs(len(one) - len(wanted)) <= most
        if (distance := edit_distance(wanted, one.lower())) <= most
    )
    hint = f" Did you mean: {', '.join(one for _, one in near[:3])}?" if near else ""
    raise ToolError(f"File not found: {path}.{hint}")


# --- edit -----------------------------------------------------------------------------------------

MOST_EDITS = 100
MOST_SHOWN_CHARS = 800
#: quotes, dashes and blanks of every kind → the plain ones
ALIKE = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u00a0\u202f\u205f\u3000", " ")
    | dict.fromkeys(map(chr, range(0x2002, 0x200B)), " ")
)
_NO_EDITS = (
    "Missing required parameter: edits (received: path, edits=<array>)."
    " Supply correct parameters before retrying."
)


class _NotFoundError(ToolError):
    """An old text is not in the file."""


def edit(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Replace texts in a file; each must occur once, and none is replaced unless all are found."""
    place = _place(arguments)
    path = absolute(place)
    text = workspace.files.get(place)
    pairs = _edits(arguments)
    if text is None:
        code = "not-file" if workspace.is_folder(place) else "ENOENT"
        raise ToolError(f"Could not edit file: {path}. Error code: {code}.")
    plain = same_ends(text)
    try:
        changed = _replaced(path, plain, pairs)
    except _NotFoundError as error:
        if len(pairs) > 1:
            raise
        shown = plain if len(plain) <= MOST_SHOWN_CHARS else f"{plain[:MOST_SHOWN_CHARS]}\n... (truncated)"
        raise ToolError(f"{error}\nCurrent file contents:\n{shown}") from None
    if changed == plain:
        return f"No changes made to {path}. The replacement text is identical to the original."
    workspace.put(place, with_ends_of(text, changed))
    return f"Successfully replaced {len(pairs)} block(s) in {path}."


def _edits(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    edits = arguments.get("edits")
    if edits is None and "oldText" in arguments:
        edits = [arguments]  # one edit without its list, which OpenClaw accepts
    if not isinstance(edits, list) or not edits or not all(isinstance(one, Mapping) for one in edits):
        raise ToolError(_NO_EDITS)
    if len(edits) > MOST_EDITS:
        raise ToolError(f"At most {MOST_EDITS} edits in one call.")
    pairs = [(text_of(one, "oldText"), text_of(one, "newText")) for one in edits]
    if not all(old.strip() for old, _ in pairs):
        raise ToolError(_NO_EDITS)
    return [(same_ends(old), same_ends(new)) for old, new in pairs]


def _replaced(path: str, plain: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return a text with old pieces replaced by new ones; all are looked for in the text before any change.

    A piece that is not found is looked for again without the blanks at the ends of lines, and with quotes,
    dashes and blanks of every kind alike.
    """
    olds = [old for old, _ in pairs]
    spans = sorted((*_span(path, plain, olds, n), n) for n in range(len(olds)))
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start < end:
            raise ToolError(
                f"edits[{one}] and edits[{other}] overlap in {path}."
                " Merge them into one edit or target disjoint regions."
            )
    changed = plain
    for start, end, n in reversed(spans):
        changed = changed[:start] + pairs[n][1] + changed[end:]
    return changed


def _span(path: str, plain: str, olds: Sequence[str], n: int) -> tuple[int, int]:
    """Return where an old text begins and ends."""
    old = olds[n]
    is_exact = old in plain
    wanted, searched = (old, plain) if is_exact else (_fold(old), _fold(plain))
    count = searched.count(wanted) if wanted else 0
    if count > 1:
        what, each = ("the text", "The text") if len(olds) == 1 else (f"edits[{n}]", "Each oldText")
        raise ToolError(
            f"Found {count} occurrences of {what} in {path}. {each} must be unique."
            " Please provide more context to make it unique."
        )
    if wanted and not count:
        what = "the exact text" if len(olds) == 1 else f"edits[{n}]"
        raise _NotFoundError(
            f"Could not find {what} in {path}."
            " The old text must match exactly including all whitespace and newlines."
        )
    if not wanted:
        raise _NotFoundError(f"Could not find the exact text in {path}.")
    start = searched.find(wanted)
    if is_exact:
        return start, start + len(old)
    return _unfolded(plain, searched, start), _unfolded(plain, searched, start + len(wanted))


def _fold(text: str) -> str:
    """Return a text in which alike characters are the same, without blanks at the ends of lines."""
    return "\n".join(map(str.rstrip, text.translate(ALIKE).split("\n")))


def _unfolded(plain: str, folded: str, position: int) -> int:
    """Return the position in the text of one in its folded form, in which only ends of lines are missing."""
    n = folded.count("\n", 0, position)
    column = position - folded.rfind("\n", 0, position) - 1
    return sum(len(line) + 1 for line in plain.split("\n")[:n]) + column
