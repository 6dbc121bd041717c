"""Validators of an answer, and the parts that all validators share.

Of text: equality, contents, patterns, and counts of words and sentences. Of JSON: required keys, equality and
JSON Schema. Of answers that OpenClaw itself asks for: heartbeat replies, typed decisions, short texts.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, cast

from msgspec import Meta, Struct

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
from pytest_openclaw.util.typed import Count, converted, prefixed
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


def check_patterns(key: str, *patterns: str) -> None:
    """Reject a text that is not a regular expression."""
    with prefixed(key):
        for pattern in patterns:
            compile_pattern(pattern)


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
        check_patterns("pattern", self.pattern)

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
            raise ValueError("value is empty, which every reply contains.")

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
                "value cannot be written as JSON, which has no NaN, infinity or date."
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
        with prefixed("schema"):
            self._bounded  # noqa: B018 - a bad schema is reported when the suite is read

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


# --- answers that OpenClaw asks for -----------------------------------------------------------------

SILENT = "NO_REPLY"
ACK = "HEARTBEAT_OK"
MAX_REST_CHARS = 300
"""The characters that OpenClaw allows in addition to HEARTBEAT_OK in a reply that it drops."""

_TAG = re.compile(r"<[^<>]*>|&nbsp;", re.IGNORECASE)
_MARKUP = "*`~_"
_AT_END = re.compile(rf"{ACK}\W{{0,4}}\Z")


@dataclass(frozen=True, kw_only=True)
class OpenclawAck:
    """OpenClaw drops the reply: it is `NO_REPLY`, or has `HEARTBEAT_OK` at its start or end.

    In addition to `HEARTBEAT_OK`, at most 300 characters are allowed. HTML tags and Markdown emphasis around
    the reply do not count, nor do up to four marks such as `.` or `!` after the token. Use `exact` for the
    exact contract.
    """

    type: ClassVar[str] = "openclaw_ack"

    def check(self, reply: Reply) -> Verdict:
        """Judge the reply as OpenClaw's gateway does before it delivers a heartbeat reply."""
        text = reply.text.strip()
        if text == SILENT:
            return Verdict(passed=True, parsed={"token": SILENT, "rest_chars": 0})
        rest = _without_token(text)
        if not rest:
            rest = _without_token(_TAG.sub(" ", text).strip(_MARKUP).strip())
        if rest is None:
            return judged(False, f"not only {SILENT}, and no {ACK} at the start or the end")
        violation = f"{len(rest)} characters in addition to {ACK}, at most {MAX_REST_CHARS} allowed"
        return judged(len(rest) <= MAX_REST_CHARS, violation, {"token": ACK, "rest_chars": len(rest)})


def _without_token(text: str) -> str | None:
    """Remove the token from both ends of a text, and collapse blanks; return None for a text without it."""
    rest = text
    while rest.startswith(ACK):
        rest = rest.removeprefix(ACK).lstrip()
    if found := _AT_END.search(rest):
        rest = rest[: found.start()]
    return None if rest == text else " ".join(rest.split())


# --- decisions ------------------------------------------------------------------------------------

_FENCE = re.compile(r"\A```(?:json)?(.*)```\Z", re.DOTALL | re.IGNORECASE)
_EXAMPLE = '{ route = { choice = ["support", "sales"], expected = ["support"] } }'
_Chance = Annotated[float, Meta(ge=0, le=1)]


class _ChoiceQuestion(Struct, tag_field="type", tag="choice"):
    choice: str
    probabilities: dict[str, _Chance]


class _Score(Struct, tag_field="type", tag="score"):
    score: float
    probabilities: list[_Chance]


class _Boolean(Struct, tag_field="type", tag="boolean", rename={"probability": "probabilityTrue"}):
    probability: _Chance


class _Question(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    choice: tuple[str, ...] = ()
    score: Annotated[int, Meta(ge=2)] | None = None
    boolean: bool = False
    expected: tuple[str | int | float, ...] | None = None

    def __post_init__(self) -> None:
        kinds = [kind for kind in ("choice", "score", "boolean") if getattr(self, kind)]
        if len(kinds) != 1:
            raise ValueError(f"has {listed(kinds, 'no type')}. Write one of choice, score, boolean.")
        if self.expected is None:
            return
        if self.choice and {*self.expected} - {*self.choice}:
            raise ValueError("expects a label that choice does not have. Write labels of choice.")
        is_pair = len(self.expected) == 2 and not any(isinstance(one, str) for one in self.expected)
        if not self.choice and not is_pair:
            raise ValueError("has expected without a pair. Write the smallest and the largest value.")

    def flaw(self, given: Any) -> str | None:
        """Return the flaw of an answer, or None."""
        try:
            answered = converted(
                given, _ChoiceQuestion if self.choice else _Score if self.score else _Boolean
            )
        except ValueError as error:
            return str(error)
        if isinstance(answered, _Boolean):
            return self._unexpected("probabilityTrue", answered.probability)
        chances = answered.probabilities
        if isinstance(answered, _Score):
            if len(chances) != self.score or not any(chances):
                return f"probabilities is not a list of {self.score} numbers, or all are 0"
            if not 0 <= answered.score <= self.score - 1:
                return f"the score is not a number from 0 to {self.score - 1}"
            return self._unexpected("score", answered.score)
        if answered.choice not in self.choice:
            return f"the choice is not one of {listed(self.choice)}"
        if {*chances} != {*self.choice} or not any(chances.values()):
            return "the keys of probabilities are not exactly the labels, or all values are 0"
        if chances[answered.choice] < max(chances.values()):
            return f"{shown(answered.choice)} is chosen, and another label has a larger probability"
        if self.expected is not None and answered.choice not in self.expected:
            return f"{shown(answered.choice)} is chosen, expected is {listed(self.expected)}"
        return None

    def _unexpected(self, name: str, value: float) -> str | None:
        low, high = cast("tuple[float, float]", self.expected or (-math.inf, math.inf))
        return None if low <= value <= high else f"{name} is {value:g}, expected is {low:g} to {high:g}"


@dataclass(frozen=True, kw_only=True)
class OpenclawDecision:
    """The answer is one JSON object of typed answers that OpenClaw accepts, and each of them is expected.

    `questions` has each question by its id. `expected` has the right labels of a `choice` (a list of labels),
    the smallest and the largest right level of a `score` (the number of its levels, which count from 0), or
    the smallest and the largest right probability of a `boolean` (true). Without `expected`, all answers are
    right. Probabilities are 0 to 1, one for each label or level, and not all 0; the chosen label has the
    largest. One fence around the whole answer does not count.
    """

    type: ClassVar[str] = "openclaw_decision"
    questions: Mapping[str, _Question] = field(
        metadata=hint(f"Write the questions, for example questions = {_EXAMPLE}.")
    )

    def check(self, reply: Reply) -> Verdict:
        """Check the decision as OpenClaw does, then compare it with the expected answers."""
        text = answer(reply)
        if fence := _FENCE.match(text):  # OpenClaw's tool `llm-task` removes the fence
            text = fence[1].strip(BLANKS)
        return judged_json(text, self._violation, strict=True)

    def _violation(self, answers: Mapping[str, Any]) -> str | None:
        if answers.keys() != self.questions.keys():
            given = listed(list(answers)[:20], "none")
            return f"the answers are {given}, asked were {listed(list(self.questions))}"
        for key, question in self.questions.items():
            if flaw := question.flaw(answers[key]):
                return f"{key}: {flaw}"
        return None


# --- short texts ----------------------------------------------------------------------------------

FORMS: Mapping[str, int] = {"title": 60, "recap": 450, "status": 280}
"""The length (UTF-16) at which OpenClaw 2026.9.6 cuts each form."""


def _read(form: str, text: str) -> str:
    """Return the text that OpenClaw uses; for a title, the first line that is not a fence."""
    if form == "title":
        lines = (line.strip() for line in text.splitlines())
        text = next((line for line in lines if line and not line.startswith("```")), "")
        text = re.sub(r"\A(?:title\s*:\s*)?", "", text, count=1, flags=re.IGNORECASE).strip("\"'`")
    one_line = " ".join(text.split())
    return one_line.strip("\"'`“”").strip() if form == "status" else one_line


@dataclass(frozen=True, kw_only=True)
class OpenclawText:
    """OpenClaw shows the whole title, recap or status line, and the text is about the right thing.

    `form` is `title`, `recap` or `status`. A title is the first line that is not a fence, without `Title:`
    and quotes. OpenClaw cuts a reply with a title after 60 characters, a recap after 450 and a status line
    after 280. The text has a word of each list in `about` and no word of `never`; case does not matter.
    """

    type: ClassVar[str] = "openclaw_text"
    form: Literal["title", "recap", "status"] = field(metadata=hint('Write "title", "recap" or "status".'))
    about: tuple[tuple[str, ...], ...] = ()
    never: tuple[str, ...] = ()

    def check(self, reply: Reply) -> Verdict:
        """Judge the text that OpenClaw would show."""
        text, limit, whole = answer(reply), FORMS[self.form], _read(self.form, answer(reply))
        # OpenClaw cuts a reply before it reads a title from it, and cuts the other texts after reading them.
        shown_text = _read("title", _cut(text, limit)) if self.form == "title" else _cut(whole, limit)
        violation = self._violation(shown_text, is_whole=shown_text == whole)
        return judged(violation is None, violation or "", kept(shown_text))

    def _violation(self, text: str, *, is_whole: bool) -> str | None:
        if not text:
            return f"no text is left for a {self.form}"
        if not is_whole:
            return f"{shown(text)} is all that OpenClaw shows, the rest is cut off"
        folded = text.casefold()
        for words in self.about:
            if not any(word.casefold() in folded for word in words):
                return f"{shown(text)} has none of {listed(words)}"
        found = next((word for word in self.never if word.casefold() in folded), None)
        return None if found is None else f"{shown(text)} has {shown(found)}"


def _cut(text: str, limit: int) -> str:
    return text.encode("utf-16-le")[: 2 * limit].decode("utf-16-le", "ignore")
