"""Reading the one JSON object, or array, of an answer."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.core.files import LONGEST_NUMBER
from pytest_openclaw.core.json_spans import MAX_DEPTH, Span, find_spans
from pytest_openclaw.core.text import valid_value

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject


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
