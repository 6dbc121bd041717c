"""Reading the one JSON object, or array, of an answer.

Finds JSON in a text, in one linear pass.

Objects and arrays are recognized bare, in a fence or in prose. A brace or bracket that does not continue
as JSON is prose, such as `{name}` or `[link](…)`; one that continues as an object, with a key and
a colon, and is malformed later, is broken JSON.

Values as lines of `results.jsonl`.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.util.text import valid_value

if TYPE_CHECKING:
    from pytest_openclaw.util.json_types import JsonObject


LONGEST_NUMBER = 308
"""Digits; every whole number up to this length is also a finite double."""
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


class HugeNumber(float):
    """A JSON number beyond a double, such as 1e400: compares as infinity, knows how it was written."""

    written: str

    def __repr__(self) -> str:
        return self.written

    def is_integer(self) -> bool:
        """A number this large has no fraction, unless it was written with hundreds of digits."""
        return True


@dataclass(frozen=True, kw_only=True)
class Found:
    """The JSON of an answer.

    Attributes:
        value: the object or array; strings are valid UTF-8, numbers beyond a double `HugeNumber`s.
        parsed: the same for `parsed_output`, fit for `json.dumps(allow_nan=False)`: huge numbers are
            texts, an array is under `array`.
        problem: why there is no value, as a violation.

    """

    value: Any = None
    parsed: JsonObject | None = None
    problem: str | None = None


def find_json(text: str, *, kind: Literal["object", "array"] = "object", strict: bool = False) -> Found:
    """Find the one JSON object, or array, in an answer without surrounding blanks.

    Args:
        text: the answer.
        kind: what is wanted. In search of an object, an array without objects is prose, such as `[1]`.
        strict: it must be the whole answer, without a fence and without prose.

    """
    spans = [span for span in find_spans(text) if kind == "array" or span.holds_object]
    if problem := _problem(text, spans, kind):
        return Found(problem=problem)
    span = spans[0]
    if strict and (span.start, span.end) != (0, len(text)):
        return Found(problem=f"text or a fence around the JSON {kind}, which must be alone")
    value = valid_value(
        json.loads(text[span.start : span.end], parse_int=_number, parse_float=_number, strict=True)
    )
    return Found(value=value, parsed=_keep(value))


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: 1 equals 1.0, true equals no number, order of keys is free."""
    return bool(identity(left) == identity(right))


def identity(value: Any) -> Any:
    """Return a hashable form in which equal JSON values, and only those, are equal."""
    if isinstance(value, dict):
        return ("object", frozenset((key, identity(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ("array", tuple(identity(item) for item in value))
    if isinstance(value, HugeNumber):
        return ("huge", value.written)
    return (isinstance(value, bool), value)


def to_text(value: Any) -> str:
    """Return a value as JSON for a message."""
    if isinstance(value, HugeNumber):
        return value.written
    return json.dumps(_plain(value), ensure_ascii=False)


def _problem(text: str, spans: list[Span], kind: str) -> str | None:
    for span in spans:
        if span.kind == "deep":
            return f"the JSON is nested more than {MAX_DEPTH} levels deep"
        if span.kind == "broken":
            return f"the JSON is broken {_place(text, span.end)}"
    if not spans:
        return f"no JSON {kind} found, exactly 1 expected"
    if len(spans) > 1:
        return f"{len(spans)} JSON values found, exactly 1 {kind} expected"
    if spans[0].kind != kind:
        return f"the JSON is an {spans[0].kind}, an {kind} expected"
    return None


def _place(text: str, position: int) -> str:
    if position == len(text):
        return "off before its end"
    line = text.count("\n", 0, position) + 1
    return f"at line {line}, column {position - text.rfind(chr(10), 0, position)}"


def _number(written: str) -> int | float:
    is_integer = written.lstrip("-").isdigit()
    if is_integer and len(written) <= LONGEST_NUMBER:
        return int(written)
    value = math.inf if is_integer else float(written)
    if math.isfinite(value):
        return value
    huge = HugeNumber("-inf" if written.startswith("-") else "inf")
    huge.written = written
    return huge


def _plain(value: Any) -> Any:
    if isinstance(value, HugeNumber):
        return value.written
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _keep(value: Any) -> JsonObject:
    plain = _plain(value)
    return plain if isinstance(plain, dict) else {"array": plain}


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
# JSON may hold them as they are, but readers such as `str.splitlines` end a line there.
_OTHER_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}


def line_of(row: Any) -> bytes:
    """Return a row, or a value in it, as a line of `results.jsonl`, without its line feed."""
    text = _JSON.encode(row)
    return (text if text.isascii() else text.translate(_OTHER_LINE_ENDS)).encode()
