"""The file tools of a world: read, write, edit and ls, as in OpenClaw 2026.9.6."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.dispatch import edit_distance
from pytest_openclaw.openclaw.paths import absolute
from pytest_openclaw.worlds.shortening import longest_part, n_bytes, units, weight
from pytest_openclaw.worlds.workspace import ToolError, inside, text_of, whole_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.worlds.shortening import ResultLimits
    from pytest_openclaw.worlds.workspace import Workspace

LINE_ENDS = re.compile(r"\r\n|\r|\n")
MOST_ENTRIES = 500


def same_ends(text: str) -> str:
    r"""Return a text in which each line ends with `\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


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
    return f"Successfully wrote {n_bytes(content)} bytes to {absolute(place)}"


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

MOST_PAGE_BYTES, MOST_PAGE_LINES, MOST_PAGES = 51_200, 2000, 4
MOST_NAMES, LONGEST_NAME = 100, 64


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
    return _read_from(lines, end, _Position(first, cursor, limit), limits)


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


@dataclass(frozen=True)
class _Position:
    """A line of a file from 1, a unit of it from 0, and how many lines are wanted from it."""

    line: int
    cursor: int = 0
    limit: int | None = None

    def mark(self, limits: ResultLimits) -> str:
        """Return the text after the part of a file that ends here."""
        size = f"{limits.read_bytes / 1024:.1f}".removesuffix(".0")
        cursor = f", cursor={self.cursor}" if self.cursor else ""
        limit = "" if self.limit is None else f", limit={self.limit}"
        at = f"offset={self.line}{cursor}{limit}"
        return f"\n\n[Read output capped at {size}KB for this call. Use {at} to continue.]"


def _read_from(lines: Sequence[str], end: str, start: _Position, limits: ResultLimits) -> str:
    """Return the part of a file from a position on; up to four pages, if no number of lines is wanted.

    `executeReadWithAdaptivePaging` in its `agent-tools.read`. `end` follows the last line.
    """
    text, mark = "", ""
    for _ in range(MOST_PAGES):
        page, following = _page(lines, end, start, limits)
        next_mark = following.mark(limits) if following else ""
        if start.limit is not None:
            return page + (next_mark or _limit_mark(lines, start))
        joint = "\n" if text and page and not start.cursor else ""
        if text and not _is_page(f"{text}{joint}{page}{next_mark}", limits.read_bytes, limits):
            break
        text, mark = f"{text}{joint}{page}", next_mark
        if following is None:
            break
        start = following
    return text + mark


def _page(
    lines: Sequence[str], end: str, start: _Position, limits: ResultLimits
) -> tuple[str, _Position | None]:
    """Return a page, and where the next one begins if it was cut (`createBoundedReadTextPage`)."""
    last = len(lines) if start.limit is None else min(len(lines), start.line - 1 + start.limit)
    wanted = list(lines[start.line - 1 : last])
    wanted[0] = wanted[0].removeprefix(longest_part(wanted[0], start.cursor))
    text = "\n".join(wanted) + (end if last == len(lines) else "")
    most_bytes = min(MOST_PAGE_BYTES, limits.read_bytes)
    if len(wanted) <= MOST_PAGE_LINES and _is_page(text + _limit_mark(lines, start), most_bytes, limits):
        return text, None
    marks = (
        _Position(start.line, start.cursor + units(wanted[0]), start.limit),
        _Position(len(lines) + 1, 0, start.limit),
    )
    reserved = max(len(one.mark(limits)) for one in marks)
    part = longest_part(text, most_bytes - reserved, n_bytes)
    part = longest_part(part, limits.result_weight - reserved, weight)
    part = longest_part(part, limits.context_weight - 2 * reserved, partial(weight, least=2))
    room = len(part)
    if len(wanted[0]) > room:
        return part, _Position(start.line, start.cursor + units(part), start.limit)
    whole = part.count("\n") + (room >= len(text) or text[room] == "\n")
    n = min(whole, MOST_PAGE_LINES, len(wanted))
    if n == len(wanted):
        return part, None
    after = start.line + n
    left = None if start.limit is None else last - after + 1
    return "\n".join(wanted[:n]), _Position(after, 0, left)


def _limit_mark(lines: Sequence[str], start: _Position) -> str:
    """Return the text after all lines that were wanted, if the file has more."""
    left = 0 if start.limit is None else len(lines) - (start.line - 1 + start.limit)
    if left <= 0:
        return ""
    more = "1 more line" if left == 1 else f"{left} more lines"
    return f"\n\n[{more} in file. Use offset={len(lines) - left + 1} to continue.]"


def _is_page(text: str, most_bytes: int, limits: ResultLimits) -> bool:
    return n_bytes(text) <= most_bytes and limits.fits(text)


# --- edit -----------------------------------------------------------------------------------------

MOST_EDITS = 100
MOST_SHOWN_CHARS = 800
#: on one character, as in Unicode's stream-safe text; they are sorted in a time that grows with their square
MOST_MARKS = 30
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
    try:
        changed = _replaced(path, text, pairs)
    except _NotFoundError as error:
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
        edits = [arguments]  # one edit without its list, which OpenClaw accepts
    if not isinstance(edits, list) or not edits or not all(isinstance(one, Mapping) for one in edits):
        raise ToolError(_NO_EDITS)
    if len(edits) > MOST_EDITS:
        raise ToolError(f"At most {MOST_EDITS} edits in one call.")
    pairs = [(text_of(one, "oldText"), text_of(one, "newText")) for one in edits]
    if not all(old.strip() for old, _ in pairs):
        raise ToolError(_NO_EDITS)
    return [(same_ends(old), same_ends(new)) for old, new in pairs]


def _replaced(path: str, text: str, pairs: Sequence[tuple[str, str]]) -> str:
    r"""Return a text with old pieces replaced by new ones; all are looked for in the text before any change.

    Line ends are compared as `\n`, and new lines end as the line in which they begin. A piece that is not
    found is looked for again without the blanks at the ends of lines, and with quotes, dashes and blanks of
    every kind alike.
    """
    plain = same_ends(text)
    olds = [old for old, _ in pairs]
    folded = _fold(plain) if any(old not in plain for old in olds) else ""
    spans = sorted((*_span(path, plain, folded, olds, n), n) for n in range(len(olds)))
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start < end:
            raise ToolError(
                f"edits[{one}] and edits[{other}] overlap in {path}."
                " Merge them into one edit or target disjoint regions."
            )
    ends = LINE_ENDS.findall(text)
    pieces: list[str] = []
    done = 0
    for start, end, n in spans:
        line, last = plain.count("\n", 0, start), plain.count("\n", 0, end)
        own = (ends[line : line + 1] or ends[-1:] or ["\n"])[0]
        pieces += [text[done : start + ends[:line].count("\r\n")], pairs[n][1].replace("\n", own)]
        done = end + ends[:last].count("\r\n")
    return "".join([*pieces, text[done:]])


def _span(path: str, plain: str, folded: str, olds: Sequence[str], n: int) -> tuple[int, int]:
    """Return where an old text begins and ends."""
    old = olds[n]
    is_exact = old in plain
    wanted, searched = (old, plain) if is_exact else (_fold(old), folded)
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
    start = searched.find(wanted)
    if is_exact:
        return start, start + len(old)
    first = _unfolded(plain, folded, start, is_end=False)
    last = _unfolded(plain, folded, start + len(wanted), is_end=True)
    if not wanted or first is None or last is None:
        what = "The fuzzy match" if len(olds) == 1 else f"The fuzzy match for edits[{n}]"
        raise ToolError(
            f"{what} in {path} crosses an ambiguous Unicode-normalization or trimmed-whitespace boundary."
            " Copy the exact source text or use a span whose normalized boundaries map cleanly."
        )
    return first, last


def _fold(text: str) -> str:
    """Return a text in which alike characters are the same, without blanks at the ends of lines."""
    lines = text.split("\n")
    folded = (line if line.isascii() else "".join(map(_fold_character, _characters(line))) for line in lines)
    return "\n".join(map(str.rstrip, folded))


def _unfolded(plain: str, folded: str, position: int, *, is_end: bool) -> int | None:
    """Return the position in the text of one in its folded form; None within a character of several."""
    n = folded.count("\n", 0, position)
    lines = plain.split("\n")
    before = sum(map(len, lines[:n])) + n
    if not is_end and folded[position : position + 1] in ("", "\n"):
        return before + len(lines[n])  # after the blanks at the line's end
    column = position - folded.rfind("\n", 0, position) - 1
    bounds = {0: 0}
    folded_length = length = 0
    for character in _characters(lines[n]):
        folded_length += len(_fold_character(character))
        length += len(character)
        bounds[folded_length] = length
    return None if column not in bounds else before + bounds[column]


def _fold_character(character: str) -> str:
    return unicodedata.normalize("NFKC", character).translate(ALIKE)


def _characters(line: str) -> Iterator[str]:
    """Yield each character with the marks that are combined with it."""
    start = 0
    for position in range(1, len(line) + 1):
        is_mark = position < len(line) and unicodedata.combining(line[position])
        if not is_mark or position - start > MOST_MARKS:
            yield line[start:position]
            start = position
