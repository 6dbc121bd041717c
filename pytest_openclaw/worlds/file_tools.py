"""The file tools of a world: read, write, edit and ls, as in OpenClaw 2026.9.6."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.paths import absolute
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.worlds.workspace import ToolError, inside, text_of, whole_of

if TYPE_CHECKING:
    from pytest_openclaw.worlds.workspace import Workspace

MOST_ENTRIES = 500


def same_ends(text: str) -> str:
    r"""Return a text in which each line ends with `\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def with_ends_of(text: str, plain: str) -> str:
    r"""Return a changed text with the line ends of the first one: all `\r\n`, or all `\n`."""
    return plain.replace("\n", "\r\n") if "\r\n" in text else plain


def _place(arguments: Mapping[str, Any]) -> str:
    path = text_of(arguments, "path")
    if not path.strip():
        raise ToolError("Missing required parameter: path. Supply correct parameters before retrying.")
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
    after = text_of(arguments, "after", "")
    names = [name for name in workspace.entries(place) if name > after]
    shown = names[: min(MOST_ENTRIES, whole_of(arguments, "limit", MOST_ENTRIES))]
    body = "\n".join(json.dumps(name, ensure_ascii=False) for name in shown) or "(empty directory)"
    if len(shown) < len(names):
        return f'{body}\n\n[More entries. Continue with the same path and after="{shown[-1]}".]'
    return body


# --- read -----------------------------------------------------------------------------------------

_ROOM_FOR_MARK = 160


def read(workspace: Workspace, most_chars: int, arguments: Mapping[str, Any]) -> str:
    """Return a file, or `limit` lines from `offset` on, its first line from the character `cursor` on."""
    place = _place(arguments)
    text = workspace.files.get(place)
    if text is None:
        return _without_file(workspace, place, arguments)
    if not text:
        return "File is empty (0 bytes)."
    text = same_ends(valid_text(text))  # the file may have other bytes
    lines = text.removesuffix("\n").split("\n")
    n, first = len(lines), whole_of(arguments, "offset", 1)
    if first > n:
        return f"Offset {first} is beyond end of file ({n} lines total). Retry with offset <= {n}."
    wanted = lines[first - 1 :][: whole_of(arguments, "limit", n)]
    cursor = whole_of(arguments, "cursor", 0, least=0)
    left = n - (first - 1 + len(wanted))
    body = "\n".join(wanted)[cursor:]
    if left:
        more = "1 more line" if left == 1 else f"{left} more lines"
        body += f"\n\n[{more} in file. Use offset={n - left + 1} to continue.]"
    elif text.endswith("\n"):
        body += "\n"
    return body if len(body) <= most_chars else _beginning(body, first, cursor, most_chars)


def _beginning(body: str, first: int, cursor: int, most_chars: int) -> str:
    """Return as many whole lines as there is room for, or a part of one, and where the rest begins."""
    part = body[: most_chars - _ROOM_FOR_MARK]
    shown, line_end, _ = part.rpartition("\n")
    if line_end:
        n_shown = shown.count("\n") + 1
        at = f"offset={first + n_shown}"
    else:
        shown, at = part, f"offset={first}, cursor={cursor + len(part)}"
    return f"{shown}\n\n[Read output capped for this call. Use {at} to continue.]"


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
    near = get_close_matches(name, [entry.rstrip("/") for entry in workspace.entries(folder)])
    hint = f" Did you mean: {', '.join(near)}?" if near else ""
    raise ToolError(f"File not found: {path}.{hint}")


# --- edit -----------------------------------------------------------------------------------------

MOST_SHOWN_CHARS = 800
#: quotes, dashes and blanks of every kind → the plain ones
ALIKE = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u00a0\u202f\u205f\u3000", " ")
    | dict.fromkeys(map(chr, range(0x2002, 0x200B)), " ")
)


def edit(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Replace texts in a file; each must occur once, and none is replaced unless all are found."""
    place, edits = _place(arguments), _edits(arguments)
    path, text = absolute(place), workspace.files.get(place)
    if text is None:
        code = "not-file" if workspace.is_folder(place) else "ENOENT"
        raise ToolError(f"Could not edit file: {path}. Error code: {code}.")
    plain = same_ends(text)
    names = ["the exact text"] if len(edits) == 1 else [f"edits[{n}]" for n in range(len(edits))]
    spans = sorted(
        (*_span(path, plain, old, name), new) for name, (old, new) in zip(names, edits, strict=True)
    )
    if any(end > start for (_, end, _), (start, _, _) in pairwise(spans)):
        raise ToolError(f"Edits overlap in {path}. Merge them into one edit or target disjoint regions.")
    changed = plain
    for start, end, new in reversed(spans):
        changed = changed[:start] + new + changed[end:]
    if changed == plain:
        return f"No changes made to {path}. The replacement text is identical to the original."
    workspace.put(place, with_ends_of(text, changed))
    return f"Successfully replaced {len(edits)} block(s) in {path}."


def _edits(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    edits = arguments.get("edits")
    if edits is None and "oldText" in arguments:
        edits = [arguments]  # one edit without its list, which OpenClaw accepts
    given = [one for one in edits if isinstance(one, Mapping)] if isinstance(edits, list) else []
    pairs = [(same_ends(text_of(one, "oldText")), same_ends(text_of(one, "newText"))) for one in given]
    if not pairs or not all(old.strip() for old, _ in pairs):
        raise ToolError("Missing required parameter: edits. Supply correct parameters before retrying.")
    return pairs


def _span(path: str, plain: str, old: str, name: str) -> tuple[int, int]:
    """Return where an old text begins and ends.

    If it is not found, it is looked for without the blanks at the ends of lines, and with quotes, dashes and
    blanks of every kind alike.
    """
    is_exact = old in plain
    wanted, searched = (old, plain) if is_exact else (_fold(old), _fold(plain))
    count = searched.count(wanted) if wanted else 0
    if count > 1:
        raise ToolError(
            f"Found {count} occurrences of {name} in {path}. Each oldText must be unique."
            " Please provide more context to make it unique."
        )
    if not count:
        shown = plain if len(plain) <= MOST_SHOWN_CHARS else f"{plain[:MOST_SHOWN_CHARS]}\n... (truncated)"
        raise ToolError(
            f"Could not find {name} in {path}. The old text must match exactly including all whitespace and"
            f" newlines.\nCurrent file contents:\n{shown}"
        )
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
