"""Finds the one JSON object, or array, in an answer; compares and writes JSON values.

Objects and arrays are recognized bare, in a fence or in prose. A brace or bracket that does not continue as
JSON is prose, such as `{name}` or `[link](…)`. Text that continues with a key and a colon, but is malformed
later, is broken JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_openclaw.util.files import JsonObject, is_deeper
from pytest_openclaw.util.text import MAX_SHOWN_CHARS, counted, first_few, shortened, shown, valid_value

LONGEST_NUMBER = 308
"""The most digits of a whole number, which is then also a finite double."""
MAX_DEPTH = 64
"""Deeper nesting is rejected: rows, reports and recursive schemas cannot handle it."""

MOST_KEYS = 4
"""The most keys that a message names."""

_START = re.compile(r"""\{(?=[ \t\r\n]*+["}])|\[(?=[ \t\r\n]*+["{}\[\]\-0-9tfn])""")
_KEYED = re.compile(r'"(?:[^"\\]|\\.)*+"[ \t\r\n]*+:', re.DOTALL)
_MOST_TRIED = 1000
"""The most brackets of prose that are tried, because each costs as much as counting the lines so far."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The JSON of an answer.

    Attributes:
        value: the object or array; strings are valid UTF-8, numbers beyond a double are infinite.
        parsed: the value in the form for `parsed_output`: an array is under `array`, and an infinite number,
            which JSON cannot represent, is null.
        problem: the violation if there is no value.
    """

    value: Any = None
    parsed: JsonObject | None = None
    problem: str | None = None


def find_json(text: str, *, kind: Literal["object", "array"] = "object", strict: bool = False) -> Found:
    """Find the one JSON object, or array, in an answer without surrounding blanks, in one linear pass.

    Args:
        text: the answer.
        kind: the wanted JSON. In a search for an object, an array without objects, such as `[1]`, is prose.
        strict: whether the JSON must be the whole answer, without a fence or prose.
    """
    values: list[Any] = []
    is_whole, position, n_prose = False, 0, 0
    while n_prose < _MOST_TRIED and (start := _START.search(text, position)):
        try:
            value, position = _DECODER.raw_decode(text, start.start())
        except RecursionError:
            return _TOO_DEEP
        except ValueError as error:
            # NaN and Infinity have no position.
            stop = getattr(error, "pos", None) or text.index(str(error), start.end())
            if _KEYED.search(text, start.end(), stop):
                return Found(problem=f"the JSON is broken {_place(text, stop)}")
            position, n_prose = max(stop, start.end()), n_prose + 1
            continue
        if is_deeper(value, MAX_DEPTH):
            return _TOO_DEEP
        if kind == "array" or _has_object(value):
            values.append(value)
            is_whole = (start.start(), position) == (0, len(text))
    if problem := _problem(values, kind):
        return Found(problem=problem)
    if strict and not is_whole:
        return Found(problem=f"text or a fence around the JSON {kind}, but only the JSON is allowed")
    value = valid_value(values[0])
    plain = json.loads(json.dumps(value), parse_constant=lambda _: None)
    return Found(value=value, parsed=plain if isinstance(plain, dict) else {"array": plain})


_TOO_DEEP = Found(problem=f"the JSON is nested more than {MAX_DEPTH} levels deep")


def _problem(values: list[Any], kind: str) -> str | None:
    if not values:
        return f"no JSON {kind} found, exactly 1 expected"
    if len(values) > 1:
        return f"{len(values)} JSON values found, exactly 1 {kind} expected"
    found = "object" if isinstance(values[0], dict) else "array"
    return None if found == kind else f"the JSON is an {found}, an {kind} expected"


def _has_object(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_has_object, value)))


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: 1 equals 1.0, true equals no number, keys have no order."""
    return bool(identity(left) == identity(right))


def identity(value: Any) -> Any:
    """Return a hashable form in which equal JSON values, and only those, are equal."""
    if isinstance(value, dict):
        return ("object", frozenset((key, identity(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ("array", tuple(identity(item) for item in value))
    return (isinstance(value, bool), value)


def to_text(value: Any) -> str:
    """Return a value as JSON for a message."""
    return json.dumps(value, ensure_ascii=False)


def shown_value(value: Any) -> str:
    """Return a value as JSON for a message, which shortens texts, and only names a long object or array."""
    text = to_text(value)
    if len(text) <= MAX_SHOWN_CHARS or not isinstance(value, dict | list):
        return shortened(text)
    if isinstance(value, list):
        return f"an array of {counted(len(value), 'item')}"
    return f"an object with {first_few([*map(shown, value)], MOST_KEYS)}"


def _place(text: str, position: int) -> str:
    if position == len(text):
        return "off before its end"
    line = text.count("\n", 0, position) + 1
    return f"at line {line}, column {position - text.rfind(chr(10), 0, position)}"


def _number(written: str) -> int | float:
    is_whole = written.lstrip("-").isdigit() and len(written) <= LONGEST_NUMBER
    return int(written) if is_whole else float(written)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=_no_constant)
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
# JSON allows them unescaped, but readers such as `str.splitlines` end a line there.
_OTHER_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}


def line_of(row: Any) -> bytes:
    """Return a row, or a value in it, as a line of `results.jsonl`, without its line feed."""
    text = _JSON.encode(row)
    return (text if text.isascii() else text.translate(_OTHER_LINE_ENDS)).encode()


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, without the keys of objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(one)
