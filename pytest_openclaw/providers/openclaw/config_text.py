"""Scans the text of an OpenClaw config, which is JSON5, for included files and secrets.

Nothing else is read; OpenClaw itself decides whether the config is valid.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

INCLUDE = "$include"
_TOKEN = re.compile(
    r"""
    //[^\n\r\u2028\u2029]* | /\*.*?\*/                         # comments
    | (?P<text> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )
    | (?P<word> [^\s"'/{}\[\]:,]+ )
    | (?P<mark> [{}\[\]:,] )
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_ENDS_OF_LINES = {"\n", "\r", "\r\n", "\u2028", "\u2029"}
_IN_ADDRESS = re.compile(r"://[^/@:\s]*:([^/@\s]+)@")
_SECRET = re.compile(r"key|token|secret|password|auth|credential", re.IGNORECASE)


class Include(NamedTuple):
    """A path in the text of a config, from quote to quote."""

    begin: int
    end: int
    path: str


def includes_in(text: str) -> Iterator[Include]:
    """Yield the included paths: those of `$include: "path"` and of `$include: ["path", …]`."""
    key, colon, in_list = "", False, False
    for match in _TOKEN.finditer(text):
        kind, piece = match.lastgroup, match.group()
        if kind is None:
            continue  # a comment
        if kind == "text" and key == INCLUDE and colon:
            yield Include(match.start(), match.end(), _unquoted(piece))
            colon = in_list
        elif kind in {"text", "word"}:
            key, colon = _unquoted(piece) if kind == "text" else piece, False
        elif piece == ":":
            colon = True
        elif piece == "[" and key == INCLUDE and colon:
            in_list = True
        elif piece != "," or not in_list:
            colon = in_list = False


def secrets_in(text: str) -> Iterator[str]:
    """Yield values of keys with secret-like names, and passwords in addresses; no `${VARIABLE}`."""
    key, colon = "", False
    for match in _TOKEN.finditer(text):
        kind, piece = match.lastgroup, match.group()
        if kind == "mark":
            colon = piece == ":"
        elif kind:
            plain = _unquoted(piece) if kind == "text" else piece
            if colon and kind == "text" and _SECRET.search(key) and not plain.startswith("${"):
                yield plain
            elif found := _IN_ADDRESS.search(plain):
                yield found[1]
            if not colon:
                key = plain


def _unquoted(piece: str) -> str:
    def meant(match: re.Match[str]) -> str:
        escape = match[1]
        if escape[0] in "ux" and len(escape) > 1:
            return chr(int(escape[1:], 16))
        return "" if escape in _ENDS_OF_LINES else _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(meant, piece[1:-1])
