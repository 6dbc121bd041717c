r"""The edits of a world: pieces of a file found, with some tolerance, and replaced.

As in OpenClaw 2026.9.6: line ends are compared as `\n`. A piece that is not found is looked for
once more without the blanks at the ends of lines, and with quotes, dashes and blanks of every kind alike.
What is not replaced stays as it was.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING

from pytest_openclaw.worlds.workspace import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_EXACTLY = "The old text must match exactly including all whitespace and newlines."
#: on one character, as in Unicode's stream-safe text; they are sorted in a time that grows with their square
MOST_MARKS = 30
LINE_ENDS = re.compile(r"\r\n|\r|\n")
#: quotes, dashes and blanks of every kind → the plain ones
ALIKE = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u00a0\u202f\u205f\u3000", " ")
    | dict.fromkeys(map(chr, range(0x2002, 0x200B)), " ")
)


class NotFoundError(ToolError):
    """A piece is not there."""


def same_ends(text: str) -> str:
    r"""Return a text in which each line ends with `\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def replace_pieces(path: str, text: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return a text with old pieces replaced by new ones; all are looked for in the text as it is.

    Args:
        path: for the wording.
        text: what the file holds.
        pairs: an old and a new text each; none of the old ones is empty.

    Raises:
        NotFoundError: a piece is not there.
        ToolError: it is there more than once, or two of them overlap.

    """
    plain = same_ends(text)
    tidy = [(same_ends(old), same_ends(new)) for old, new in pairs]
    folded = _Folded(plain) if any(old not in plain for old, _ in tidy) else None
    spans = sorted(_span(path, plain, folded, [old for old, _ in tidy], n) for n in range(len(tidy)))
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start < end:
            raise ToolError(
                f"edits[{one}] and edits[{other}] overlap in {path}."
                " Merge them into one edit or target disjoint regions."
            )
    replaced = [(start, end, tidy[n][1]) for start, end, n in spans]
    return _with_ends(text, plain, replaced) if "\r" in text else _spliced(plain, replaced)


def _spliced(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    ends = [0, *(end for _, end, _ in spans)]
    kept = [text[end:start] for end, (start, _, _) in zip(ends, spans, strict=False)]
    return "".join(chain(*zip(kept, (new for _, _, new in spans), strict=True), [text[ends[-1] :]]))


def _span(path: str, plain: str, folded: _Folded | None, olds: Sequence[str], n: int) -> tuple[int, int, int]:
    """Where an old text is, and the number of its edit."""
    old = olds[n]
    is_exact = old in plain
    wanted = old if is_exact or folded is None else folded.fold(old)
    where = plain if is_exact or folded is None else folded.text
    count = where.count(wanted) if wanted else 0
    if count > 1:
        what, each = ("the text", "The text") if len(olds) == 1 else (f"edits[{n}]", "Each oldText")
        raise ToolError(
            f"Found {count} occurrences of {what} in {path}. {each} must be unique."
            " Please provide more context to make it unique."
        )
    if wanted and not count:
        what = "the exact text" if len(olds) == 1 else f"edits[{n}]"
        raise NotFoundError(f"Could not find {what} in {path}. {_EXACTLY}")
    start = where.find(wanted)
    if is_exact:
        return start, start + len(old), n
    found = folded.source(start, start + len(wanted)) if folded and wanted else None
    if found is None:
        what = "The fuzzy match" if len(olds) == 1 else f"The fuzzy match for edits[{n}]"
        raise ToolError(
            f"{what} in {path} crosses an ambiguous Unicode-normalization or trimmed-whitespace boundary."
            " Copy the exact source text or use a span whose normalized boundaries map cleanly."
        )
    return *found, n


class _Folded:
    """A text in which what is alike is the same, and where its places are in the source.

    A place within a character that became several has no place in the source.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        kept = [_fold_line(line).rstrip() for line in self._lines]
        self.text = "\n".join(kept)
        self._starts = [0, *accumulate(len(line) + 1 for line in kept)]
        self._sources = [0, *accumulate(len(line) + 1 for line in self._lines)]

    def fold(self, wanted: str) -> str:
        """Return a text that is looked for in this one, folded as it is."""
        return _Folded(wanted).text

    def source(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the span in the source; None if it is not known."""
        first, last = self._place(start, at_end=False), self._place(end, at_end=True)
        return None if first is None or last is None else (first, last)

    def _place(self, place: int, *, at_end: bool) -> int | None:
        n = bisect_right(self._starts, place) - 1
        line, source = self._lines[n], self._sources[n]
        if not at_end and place == self._starts[n + 1] - 1:
            return source + len(line)  # behind the blanks, at the line's end
        offset = _bounds(line).get(place - self._starts[n])
        return None if offset is None else source + offset


def _fold_line(line: str) -> str:
    if line.isascii():
        return line
    return "".join(_fold_piece(line[first:last]) for first, last in _characters(line))


def _fold_piece(piece: str) -> str:
    return unicodedata.normalize("NFKC", piece).translate(ALIKE)


def _bounds(line: str) -> dict[int, int]:
    """Return where the characters of a folded line begin and end → where those of the line do."""
    ends = [last for _, last in _characters(line)]
    sizes = (len(_fold_piece(line[first:last])) for first, last in _characters(line))
    return {0: 0, **dict(zip(accumulate(sizes), ends, strict=True))}


def _characters(line: str) -> Iterator[tuple[int, int]]:
    """Yield where each character begins and ends, with the marks that are combined with it."""
    start = 0
    for position in range(1, len(line) + 1):
        is_mark = position < len(line) and unicodedata.combining(line[position])
        if not is_mark or position - start > MOST_MARKS:
            yield start, position
            start = position


def _with_ends(text: str, plain: str, spans: Sequence[tuple[int, int, str]]) -> str:
    """Return a text with the spans replaced; new lines end as the line that they come in does.

    Args:
        text: as it is.
        plain: the same with plain line ends.
        spans: start and end in it, and the new text.

    """
    ends = LINE_ENDS.findall(text)
    places = [found.start() for found in re.finditer("\n", plain)]
    pieces: list[str] = []
    position = line = 0
    for start, end, new in [*spans, (len(plain), len(plain), "")]:
        first, *others = plain[position:start].split("\n")
        pieces += [first, *(mark + other for mark, other in zip(ends[line:], others, strict=False))]
        line_at = bisect_right(places, start - 1)
        own = ends[line_at : line_at + 1] or ends[-1:] or ["\n"]
        pieces.append(new.replace("\n", own[0]))
        position, line = end, bisect_right(places, end - 1)
    return "".join(pieces)
