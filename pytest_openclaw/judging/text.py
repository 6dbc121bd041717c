"""Validators of an answer as text or as JSON, and the parts that all validators share.

Of text: equality, contents, patterns, and counts of words and sentences. Of JSON: required keys, equality and
JSON Schema.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from msgspec import Struct

from pytest_openclaw.util.bounded import BoundedSchema, compile_pattern, fullmatches
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.json_text import find_json, same, shown_value, to_text
from pytest_openclaw.util.text import (
    MAX_SHOWN_CHARS,
    counted,
    cut,
    listed,
    shortened,
    shown,
    shown_pattern,
    valid_text,
)
from pytest_openclaw.util.typed import Count
from pytest_openclaw.values.replies import Finding, Reply, Verdict

BLANKS = " \t\r\n"
"""The four characters that may surround an answer without being part of it."""

MAX_KEPT_CHARS = 1000


def answer(reply: Reply) -> str:
    """Return the reply's text without surrounding blanks, tabs, CR and LF."""
    return reply.text.strip(BLANKS)


def kept(text: str) -> JsonObject:
    """Return the answer for `parsed_output`: the first 1000 characters under `text`."""
    return {"text": valid_text(cut(text, MAX_KEPT_CHARS))}


def judged(passed: bool, violation: str, parsed: JsonObject | None = None) -> Verdict:
    """Return a verdict, with the violation only if it failed."""
    return Verdict(passed=passed, violation=None if passed else violation, parsed=parsed)


def judged_json(
    text: str,
    complaint: Callable[[Any], str | None],
    *,
    kind: Literal["object", "array"] = "object",
    strict: bool,
) -> Verdict:
    """Return the verdict on the one JSON object or array in an answer; `complaint` returns a violation."""
    found = find_json(text, kind=kind, strict=strict)
    violation = found.problem or complaint(found.value)
    return Verdict(passed=violation is None, violation=violation, parsed=found.parsed)


def judged_findings(
    findings: Sequence[Finding],
    parsed: JsonObject | None,
    *,
    forbids: bool,
    in_answer: Sequence[Finding] = (),
) -> Verdict:
    """Return the verdict of a rule about required and forbidden actions; without findings it passes.

    Args:
        findings: in the calls and their effects.
        parsed: as in a verdict.
        forbids: whether the rule is about harm.
        in_answer: further findings, in the answer.
    """
    found = [*findings, *(one for one in in_answer if not one.is_report)]
    harmful = [one for one in found if one.code == "harm"]
    return Verdict(
        passed=not found,
        violation="; ".join(each_once(one.text for one in found)) or None,
        parsed=parsed,
        harm=bool(harmful) if forbids or harmful else None,
        harm_tools=each_once(tool for one in harmful for tool in one.tools),
        findings=(*findings, *(one for one in in_answer if one.is_report)),
    )


def each_once(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in order, without repeats."""
    return tuple(dict.fromkeys(names))


def hint(text: str) -> dict[str, str]:
    """Return the metadata of a required field: the hint for suites without this key."""
    return {"hint": text}


def check_pattern(owner: str, key: str, pattern: str) -> None:
    """Reject a text that is not a regular expression."""
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise ValueError(f"validator {owner}: {key} {error}") from error


# --- texts ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Noop:
    """No validation: replies are not judged."""

    type: ClassVar[str] = "noop"

    def check(self, reply: Reply) -> Verdict:  # noqa: ARG002
        """Return a verdict that neither passes nor fails."""
        return Verdict(passed=None)


@dataclass(frozen=True, kw_only=True)
class Exact:
    """The answer equals `value`, including case; surrounding blanks do not count."""

    type: ClassVar[str] = "exact"
    value: str = field(metadata=hint('Write the answer wanted, for example "value": "HEARTBEAT_OK".'))

    def check(self, reply: Reply) -> Verdict:
        """Compare the whole answer with `value`."""
        text = answer(reply)
        due = self.value.strip(BLANKS)
        return judged(text == due, f"{shown(text)} is not {shown(due)}", kept(text))


@dataclass(frozen=True, kw_only=True)
class OneOf:
    """The answer is one of `values`, including case; a number in `values` matches no text.

    With `ignore_case`, case does not matter. With `ignore_punctuation`, only letters, digits and blanks
    count.
    """

    type: ClassVar[str] = "one_of"
    values: tuple[str | int | float, ...] = field(
        metadata=hint('List the answers allowed, for example "values": ["yes", "no"].')
    )
    ignore_case: bool = False
    ignore_punctuation: bool = False

    def check(self, reply: Reply) -> Verdict:
        """Look for the whole answer among `values`."""
        text = answer(reply)
        violation = f"{shown(text)} is not one of {listed(self.values)}"
        texts = [text, *(value.strip(BLANKS) for value in self.values if isinstance(value, str))]
        given, *allowed = [
            plain(one, case=self.ignore_case, punctuation=self.ignore_punctuation) for one in texts
        ]
        return judged(given in allowed, violation, kept(text))


@dataclass(frozen=True, kw_only=True)
class RegexFullmatch:
    """The whole answer matches `pattern`, a regular expression of Python's `re`."""

    type: ClassVar[str] = "regex_fullmatch"
    pattern: str = field(metadata=hint('Write a regular expression, for example "pattern": "[0-9]+".'))

    def __post_init__(self) -> None:
        check_pattern(self.type, "pattern", self.pattern)

    def check(self, reply: Reply) -> Verdict:
        """Match the answer.

        Raises:
            OpenClawError: the pattern cannot be decided in time, which says nothing about the model.
        """
        text = answer(reply)
        violation = f"{shown(text)} does not match {shown_pattern(self.pattern)}"
        return judged(fullmatches(self.pattern, text), violation, kept(text))


@dataclass(frozen=True, kw_only=True)
class Contains:
    """The answer contains `value`, including case.

    With `ignore_case`, case does not matter. With `ignore_punctuation`, only letters, digits and blanks
    count.
    """

    type: ClassVar[str] = "contains"
    value: str = field(metadata=hint('Write the text that must occur, for example "value": "nginx".'))
    ignore_case: bool = False
    ignore_punctuation: bool = False

    def __post_init__(self) -> None:
        if not self._plain(self.value):
            raise ValueError(f"validator {self.type}: value is empty, which every reply contains.")

    def check(self, reply: Reply) -> Verdict:
        """Search the answer for `value`."""
        text = answer(reply)
        violation = f"{shown(text)} does not contain {shown(self.value)}"
        return judged(self._plain(self.value) in self._plain(text), violation)

    def _plain(self, text: str) -> str:
        return plain(text, case=self.ignore_case, punctuation=self.ignore_punctuation)


_KINDS_THAT_COUNT = ("L", "N", "Mn", "Mc")
"""Letters, digits, and marks on letters, which are vowels in Indic scripts."""


def plain(text: str, *, case: bool, punctuation: bool) -> str:
    """Return a text in the form for comparisons.

    Args:
        text: an answer, or a wanted text.
        case: whether to ignore case.
        punctuation: whether to keep only letters, digits and blanks; a run of blanks becomes one blank, and
            blanks at the ends are removed.
    """
    if punctuation:
        chars = unicodedata.normalize("NFC", text)
        letters = [
            char
            for char in chars
            if char.isspace() or unicodedata.category(char).startswith(_KINDS_THAT_COUNT)
        ]
        text = " ".join("".join(letters).split())
    return text.casefold() if case else text


_WIDE_MARKS = "。！？"
_CLOSERS = frozenset("\"'”’»›)]}」』】）〉》］｝〕*_~`")
_ANY_CASE = ("e.g.", "i.e.", "a.m.", "p.m.", "approx.", "etc.", "vs.", "cf.", "et al.", "fig.")
_CAPITALISED = ("Dr.", "Mr.", "Mrs.", "Ms.", "Prof.")
_NO_LETTER = r"(?<![^\W\d_])"


def _not_after(abbreviation: str, flag: str = "") -> str:
    return rf"(?<!{_NO_LETTER}(?{flag}:{re.escape(abbreviation)}))"


_MARK = re.compile(
    r"[!?؟](?!\S)"
    r"|\.(?!\S)(?<![A-Z]\.[A-Z]\.)"
    + "".join(_not_after(abbreviation, "i") for abbreviation in _ANY_CASE)
    + "".join(_not_after(abbreviation) for abbreviation in _CAPITALISED)
    + rf"(?:{_not_after('no.', 'i')}|(?!\s+[#\d]))"
    + rf"|[{_WIDE_MARKS}][.!?؟{_WIDE_MARKS}]*+"
)


def count_sentences(text: str) -> int:
    """Count the sentences of a text.

    A sentence ends at `.`, `!`, `?` or `؟` directly before white space or the end of the text, and at
    `。`, `！` or `？` anywhere; a run of marks is one end. A mark before a closing quote, bracket or emphasis
    is not an end, nor is the period of a common abbreviation (the lists above), of initials such as U.S., or
    of `No.` before a numeral. Text after the last end is one more sentence.
    """
    ends = 0
    rest = 0
    for mark in _MARK.finditer(text):
        if mark.group()[0] in _WIDE_MARKS and text[mark.end() : mark.end() + 1] in _CLOSERS:
            continue
        ends += 1
        rest = mark.end()
    return ends + bool(text[rest:].strip())


@dataclass(frozen=True, kw_only=True)
class _Counting:
    value: Count = field(metadata=hint('Write a whole number, for example "value": 3.'))

    def _at_most(self, number: int, word: str) -> Verdict:
        violation = f"{counted(number, word)}, at most {self.value} allowed"
        return judged(number <= self.value, violation, {f"{word}s": number})


@dataclass(frozen=True, kw_only=True)
class MaxWords(_Counting):
    """At most `value` words; a word is a run of non-space characters."""

    type: ClassVar[str] = "max_words"

    def check(self, reply: Reply) -> Verdict:
        """Count the words."""
        return self._at_most(len(answer(reply).split()), "word")


@dataclass(frozen=True, kw_only=True)
class MaxSentences(_Counting):
    """At most `value` sentences."""

    type: ClassVar[str] = "max_sentences"

    def check(self, reply: Reply) -> Verdict:
        """Count the sentences."""
        return self._at_most(count_sentences(answer(reply)), "sentence")


@dataclass(frozen=True, kw_only=True)
class ExactBullets(_Counting):
    """Exactly `value` bullets; a bullet is a line that starts with `-` after blanks."""

    type: ClassVar[str] = "exact_bullets"

    def check(self, reply: Reply) -> Verdict:
        """Count the bullets; `str.splitlines` divides the lines, and lines of prose do not matter."""
        bullets = sum(line.lstrip().startswith("-") for line in answer(reply).splitlines())
        violation = f"{counted(bullets, 'bullet')}, exactly {self.value} allowed"
        return judged(bullets == self.value, violation, {"bullets": bullets})


# --- JSON ---------------------------------------------------------------------------------------------


class _Number(Struct, frozen=True, tag_field="type", tag="number"):
    def violation(self, value: Any) -> str | None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if is_number else f"{_written(value)} is not a number"


class _OneOf(Struct, frozen=True, tag_field="type", tag="one_of"):
    values: tuple[Any, ...]

    def violation(self, value: Any) -> str | None:
        if any(same(value, allowed) for allowed in self.values):
            return None
        return f"{_written(value)} is not one of {listed(self.values)}"


def _written(value: Any) -> str:
    return shown(value) if isinstance(value, str) else shown_value(value)


@dataclass(frozen=True, kw_only=True)
class JsonKeys:
    """The answer contains one JSON object with all `required_keys`, whose values follow `key_rules`.

    A rule is `{"type": "number"}` or `{"type": "one_of", "values": [...]}`. A rule for a missing key has no
    effect unless the key is required. `strict` allows neither a fence nor prose around the object.
    """

    type: ClassVar[str] = "json_keys"
    required_keys: tuple[str, ...] = field(
        metadata=hint('List the keys a reply must have, for example "required_keys": ["route"].')
    )
    key_rules: Mapping[str, _Number | _OneOf] = field(
        default_factory=dict,
        metadata=hint('Write for example "key_rules": {"size": {"type": "number"}}.'),
    )
    strict: bool = False

    def check(self, reply: Reply) -> Verdict:
        """Find the object and judge its keys; the first violation counts."""
        return judged_json(answer(reply), self._violation, strict=self.strict)

    def _violation(self, found: Mapping[str, Any]) -> str | None:
        for key in self.required_keys:
            if key not in found:
                return f"{shown(key)} is missing, the keys are {listed(list(found)[:20], 'none')}"
        for key, rule in self.key_rules.items():
            if key in found and (violation := rule.violation(found[key])):
                return f"{key}: {violation}"
        return None


@dataclass(frozen=True, kw_only=True)
class JsonEquals:
    """The answer contains one JSON object, or array, that equals `value`.

    The order of array items matters, the order of keys does not; 1 equals 1.0, and true equals no
    number. `strict` allows neither a fence nor prose around it.
    """

    type: ClassVar[str] = "json_equals"
    value: dict[str, Any] | list[Any] = field(
        metadata=hint('Write the object or array wanted, for example "value": {"route": "local"}.')
    )
    strict: bool = False

    def __post_init__(self) -> None:
        try:
            json.dumps(self.value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"validator {self.type}: value cannot be written as JSON, which has no NaN, infinity or date."
            ) from error

    def check(self, reply: Reply) -> Verdict:
        """Find the JSON and compare it."""
        return judged_json(
            answer(reply),
            self._difference,
            kind="object" if isinstance(self.value, dict) else "array",
            strict=self.strict,
        )

    def _difference(self, found: Any) -> str | None:
        if same(found, self.value):
            return None
        sides = to_text(found), to_text(self.value)
        if max(map(len, sides)) <= MAX_SHOWN_CHARS:
            return f"{shortened(sides[0])} does not equal {shortened(sides[1])}"
        if isinstance(self.value, list):
            return f"{shown_value(found)}, not equal to the rule's {shown_value(self.value)}"
        both = found.keys() & self.value.keys()
        keys = [
            one for one in {**self.value, **found} if one not in both or not same(found[one], self.value[one])
        ]
        return f"{listed(keys[:20])} {'is' if len(keys) == 1 else 'are'} not as in the rule"


@dataclass(frozen=True, kw_only=True)
class JsonSchema:
    """The answer contains one JSON object that is valid under `schema`, Draft 2020-12.

    A schema of type `array` looks for an array. `format` is not judged, and a `$ref` may only point
    into the schema itself. `strict` allows neither a fence nor prose around the JSON.
    """

    type: ClassVar[str] = "json_schema"
    schema: Mapping[str, Any] = field(
        metadata=hint('Write a JSON Schema, for example "schema": {"type": "object", "required": ["route"]}.')
    )
    strict: bool = False

    def __post_init__(self) -> None:
        try:
            self._bounded  # noqa: B018 - a bad schema is reported when the suite is read
        except ValueError as error:
            raise ValueError(f"validator {self.type}: schema {error}") from error

    @cached_property
    def _bounded(self) -> BoundedSchema:
        return BoundedSchema(self.schema)

    def check(self, reply: Reply) -> Verdict:
        """Find the JSON and validate it; the first violation counts.

        Raises:
            OpenClawError: the schema recurses without end, or cannot be decided in time.
        """
        return judged_json(
            answer(reply),
            self._bounded.violation,
            kind="array" if self.schema.get("type") == "array" else "object",
            strict=self.strict,
        )
