"""Finds JSON in a text, in one linear pass.

Objects and arrays are recognized bare, in a fence or in prose. A brace or bracket that does not continue
as JSON is prose, such as `{name}` or `[link](…)`; one that continues as an object, with a key and
a colon, and is malformed later, is broken JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MAX_DEPTH = 64
"""Deeper nesting is rejected: rows, reports and recursive schemas cannot handle it."""

_START = re.compile(r"""\{(?=[ \t\r\n]*+["}])|\[(?=[ \t\r\n]*+["{}\[\]\-0-9tfn])""")
_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
        (?P<open> [{\[] ) | (?P<close> [}\]] ) | (?P<comma> , ) | (?P<colon> : )
        | (?P<string> " [^"\\\x00-\x1f]*+ (?: \\(?: ["\\/bfnrt] | u[0-9a-fA-F]{4} ) [^"\\\x00-\x1f]*+ )* " )
        | (?P<scalar> -?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)? | true | false | null )
    )""",
    re.VERBOSE,
)
_VALUE = frozenset({"open", "string", "scalar"})
_EXPECTED = {
    "value": _VALUE,
    "first value": _VALUE | {"close"},
    "first key": frozenset({"string", "close"}),
    "key": frozenset({"string"}),
    "colon": frozenset({"colon"}),
    "next": frozenset({"comma", "close"}),
}


@dataclass(frozen=True, kw_only=True)
class Span:
    """JSON found in a text.

    Attributes:
        kind: a whole `object` or `array`; or `broken` JSON, malformed at `end`; or `deep`, nested more than
            64 levels.
        holds_object: whether it contains or is an object, even a broken one.
    """

    kind: Literal["object", "array", "broken", "deep"]
    start: int
    end: int
    holds_object: bool = True


def find_spans(text: str) -> list[Span]:
    """Return all outermost JSON objects and arrays in order; the first broken one ends the list."""
    spans: list[Span] = []
    position = 0
    while start := _START.search(text, position):
        walk = _Walk(text, start.start())
        kind = walk.go()
        position = max(walk.position, start.end())
        if kind is None:
            continue
        ended = kind in ("broken", "deep")
        spans.append(Span(kind=kind, start=start.start(), end=position, holds_object=walk.objects or ended))
        if ended:
            break
    return spans


class _Walk:
    """One walk from an opening bracket to its closing one, or to where JSON stops."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.position = start
        self.stack: list[str] = []
        self.objects = False
        self.keyed = False
        self.state = "value"

    def go(self) -> Literal["object", "array", "broken", "deep"] | None:
        """Walk; return None if the text is prose."""
        outer = self.text[self.position]
        while token := _TOKEN.match(self.text, self.position):
            name = str(token.lastgroup)
            if name not in _EXPECTED[self.state] or not self._take(name, token.group(name)):
                break
            self.position = token.end()
            if not self.stack:
                return "object" if outer == "{" else "array"
            if len(self.stack) > MAX_DEPTH:
                return "deep" if self.keyed else None
        return "broken" if self.keyed else None

    def _take(self, name: str, bracket: str) -> bool:
        """Advance to the state after this token; return False if a bracket does not match."""
        if name == "open":
            self.stack.append(bracket)
            self.state = "first key" if bracket == "{" else "first value"
        elif name == "close":
            if self.stack.pop() + bracket not in ("{}", "[]"):
                return False
            self.objects = self.objects or bracket == "}"
            self.state = "next"
        elif name == "comma":
            self.state = "key" if self.stack[-1] == "{" else "value"
        elif name == "colon":
            self.keyed = True
            self.state = "value"
        else:
            self.state = "colon" if self.state in ("key", "first key") else "next"
        return True
