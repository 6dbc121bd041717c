r"""Escapes in a text, such as `\u0073`, `\/`, `\x73`, `%73` and `&#115;`: their meaning and their places."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Span = tuple[int, int]

_LENGTH_OF_PAIR = len(r"\ud83d\ude00")
_COMMON = {
    rf"\{name}": meaning for name, meaning in zip("ntrbfv0\"'/\\", "\n\t\r\b\f\v\0\"'/\\", strict=True)
}


def _utf8(mark: str) -> str:
    """Return a pattern of one character in UTF-8, each byte written as the mark and two hex digits."""
    digit = "[0-9A-Fa-f]"
    more = rf"{mark}[89ABab]{digit}"
    longer = (
        rf"{mark}{first}{digit}(?:{more}){{{n}}}" for first, n in (("[CDcd]", 1), ("[Ee]", 2), ("[Ff]", 3))
    )
    return "|".join((*longer, rf"{mark}{digit}{digit}"))


_BYTE = r"\\x"
_ESCAPE = re.compile(
    rf"""
      {_utf8("%")}
    | {_utf8(_BYTE)}
    | \\u[Dd][89ABab][0-9A-Fa-f]{{2}}\\u[Dd][C-Fc-f][0-9A-Fa-f]{{2}}   # a pair of surrogates
    | \\u[0-9A-Fa-f]{{4}}
    | \\u\{{[0-9A-Fa-f]{{1,5}}\}} | \\U000[0-9A-Fa-f]{{5}}
    | \\[ntrbfv0] | \\[^A-Za-z0-9\s]
    | &(?:\#[0-9]{{1,7}} | \#[Xx][0-9A-Fa-f]{{1,6}} | [A-Za-z][A-Za-z0-9]{{1,31}});
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Stretch:
    """A part of a text with escapes in it."""

    text: str
    start: int
    stop: int

    def undone(self) -> str:
        r"""Return what it means, one layer of escapes undone: `\\u0073` becomes `\u0073`, and that `s`."""
        return _ESCAPE.sub(_meaning, self.text[self.start : self.stop])

    def traced(self, spans: Iterable[Span]) -> list[Span]:
        """Return where in the text the spans of `undone()` come from."""
        places: list[int] = []
        end = self.start
        for escape in _ESCAPE.finditer(self.text, self.start, self.stop):
            places += range(end, escape.start())
            places += [escape.start()] * len(_meaning(escape))
            end = escape.end()
        places += range(end, self.stop + 1)
        return [(places[start], places[stop]) for start, stop in spans]


def stretches(text: str, reach: int) -> Iterator[Stretch]:
    """Yield the parts of a text within `reach` of an escape; the rest has no escapes."""
    first = last = -1
    for escape in _ESCAPE.finditer(text):
        start, stop = escape.span()
        if first < 0:
            first = start
        elif start - last > 2 * reach:
            yield Stretch(text, max(0, first - reach), last + reach)
            first = start
        last = stop
    if first >= 0:
        yield Stretch(text, max(0, first - reach), min(len(text), last + reach))


def _meaning(escape: re.Match[str]) -> str:
    written = escape[0]
    if (common := _COMMON.get(written)) is not None:
        return common
    if written[0] == "&":
        return html.unescape(written)
    if written[0] == "%" or written[1] == "x":
        return _decoded(bytes.fromhex(written.replace(written[: 1 if written[0] == "%" else 2], "")))
    if len(written) == _LENGTH_OF_PAIR:
        return str(json.loads(f'"{written}"'))
    if written[1] in "uU":
        return chr(int(written[2:].strip("{}"), 16))
    return written[1]


def _decoded(utf8: bytes) -> str:
    """A single byte above 0x7F is a character of Latin-1, as in Python's `repr` of a text."""
    return utf8.decode("latin-1" if len(utf8) == 1 else "utf-8", "replace")
