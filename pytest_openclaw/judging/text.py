"""Validators of an answer as a text: equality, contents, patterns, and counts of words and sentences."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.judging.keys import BLANKS, Keyed, answer, check_pattern, hint, judged, kept, settle
from pytest_openclaw.util.bounded_regex import fullmatches
from pytest_openclaw.util.text import counted, listed, shown
from pytest_openclaw.util.typed import Count
from pytest_openclaw.values.replies import Reply, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, kw_only=True)
class Noop:
    """No validation: every reply is left unjudged."""

    type: ClassVar[str] = "noop"

    def check(self, reply: Reply) -> Verdict:  # noqa: ARG002
        """Return a verdict that neither passes nor fails."""
        return Verdict(passed=None)


@dataclass(frozen=True, kw_only=True)
class Exact(Keyed):
    """The answer equals `value`, including case; blanks around either do not count."""

    type: ClassVar[str] = "exact"
    value: str = field(metadata=hint('Write the answer wanted, for example "value": "HEARTBEAT_OK".'))

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, value=self.value.strip(BLANKS))

    def check(self, reply: Reply) -> Verdict:
        """Compare the whole answer with `value`."""
        text = answer(reply)
        violation = f"{shown(text)} is not {shown(self.value)}"
        return judged(text == self.value, violation, kept(text))


@dataclass(frozen=True, kw_only=True)
class OneOf(Keyed):
    """The answer is one of `values`, including case; a number among them matches no text.

    With `ignore_case` case is ignored, with `ignore_punctuation` whatever is neither letter, digit nor blank.
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
        allowed = {self._plain(value.strip(BLANKS)) for value in self.values if isinstance(value, str)}
        return judged(self._plain(text) in allowed, violation, kept(text))

    def _plain(self, text: str) -> str:
        return plain(text, case=self.ignore_case, punctuation=self.ignore_punctuation)


@dataclass(frozen=True, kw_only=True)
class RegexFullmatch(Keyed):
    """The whole answer matches `pattern`, a regular expression of Python's `re`."""

    type: ClassVar[str] = "regex_fullmatch"
    pattern: str = field(metadata=hint('Write a regular expression, for example "pattern": "[0-9]+".'))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pattern(self.type, "pattern", self.pattern)

    def check(self, reply: Reply) -> Verdict:
        """Match the answer.

        Raises:
            OpenClawError: the pattern cannot be decided in time, which says nothing about the model.
        """
        text = answer(reply)
        violation = f"{shown(text)} does not match {shown(self.pattern)}"
        return judged(fullmatches(self.pattern, text), violation, kept(text))


@dataclass(frozen=True, kw_only=True)
class Contains(Keyed):
    """The answer contains `value`; `ignore_case` ignores case.

    With `ignore_punctuation` whatever is neither letter, digit nor blank is left out of both, and with
    `whole_words` no letter, digit or underscore is directly before or behind it.
    """

    type: ClassVar[str] = "contains"
    value: str = field(metadata=hint('Write the text that must occur, for example "value": "nginx".'))
    ignore_case: bool = False
    ignore_punctuation: bool = False
    whole_words: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._plain(self.value):
            raise ValueError(f"validator {self.type}: value is empty, which every reply contains.")

    def check(self, reply: Reply) -> Verdict:
        """Search the answer for `value`."""
        text = answer(reply)
        violation = f"{shown(text)} does not contain {shown(self.value)}"
        return judged(self._is_in(self._plain(text), self._plain(self.value)), violation)

    def _is_in(self, text: str, value: str) -> bool:
        if not self.whole_words:
            return value in text
        return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None

    def _plain(self, text: str) -> str:
        return plain(text, case=self.ignore_case, punctuation=self.ignore_punctuation)


def plain(text: str, *, case: bool, punctuation: bool) -> str:
    """Return a text as it is compared.

    Args:
        text: an answer, or what it is compared with.
        case: upper and lower case are equal.
        punctuation: only letters, with their combining marks, digits and blanks count; a run of blanks is
            one, and none is at the ends.
    """
    if punctuation:
        text = " ".join("".join(_letters_of(unicodedata.normalize("NFC", text))).split())
    return text.casefold() if case else text


def _letters_of(text: str) -> Iterator[str]:
    """Yield letters, digits, blanks, and the marks on letters, which are vowels in Indic scripts."""
    has_letter = False
    for char in text:
        is_mark = unicodedata.category(char) in ("Mn", "Mc") and not "\ufe00" <= char <= "\ufe0f"
        has_letter = char.isalnum() or (has_letter and is_mark)
        if has_letter or char.isspace():
            yield char


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
    `。`, `！` or `？` anywhere, a run of marks being one end. No end is a mark that a closing quote,
    bracket or emphasis hides, and the period of a common abbreviation: those above, initials such as
    U.S., and `No.` before a numeral. What follows the last end is one more sentence.
    """
    ends = 0
    rest = 0
    for mark in _MARK.finditer(text):
        if mark.group()[0] in _WIDE_MARKS and text[mark.end() : mark.end() + 1] in _CLOSERS:
            continue
        ends += 1
        rest = mark.end()
    return ends + bool(text[rest:].strip())


_HINT = 'Write a whole number, for example "value": 3.'
MARKERS = ("-", "*", "+", "\u2022")


@dataclass(frozen=True, kw_only=True)
class _AtMost(Keyed):
    value: Count = field(metadata=hint(_HINT))
    at_least: Count = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_limits(self.type, self.value, self.at_least)

    def _judged(self, number: int, word: str) -> Verdict:
        violation = _violation(number, word, self.at_least, f"at most {self.value} allowed")
        return judged(self.at_least <= number <= self.value, violation, {f"{word}s": number})


@dataclass(frozen=True, kw_only=True)
class MaxWords(_AtMost):
    """At most `value` words, and with `at_least` no fewer than that.

    A word is a run of non-space characters.
    """

    type: ClassVar[str] = "max_words"

    def check(self, reply: Reply) -> Verdict:
        """Count the words."""
        return self._judged(len(answer(reply).split()), "word")


@dataclass(frozen=True, kw_only=True)
class MaxSentences(_AtMost):
    """At most `value` sentences, and with `at_least` no fewer than that."""

    type: ClassVar[str] = "max_sentences"

    def check(self, reply: Reply) -> Verdict:
        """Count the sentences."""
        return self._judged(count_sentences(answer(reply)), "sentence")


@dataclass(frozen=True, kw_only=True)
class ExactBullets(Keyed):
    """Exactly `value` bullets, or from `at_least` to `value`.

    A bullet is a line that starts with one of `markers` after blanks. They are `-`, `*`, `+` and the dot of a
    list; `-` alone is the default, and the others count only before a blank.
    """

    type: ClassVar[str] = "exact_bullets"
    value: Count = field(metadata=hint(_HINT))
    at_least: Count | None = None
    markers: tuple[str, ...] = ("-",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at_least is None:
            settle(self, at_least=self.value)
        else:
            _check_limits(self.type, self.value, self.at_least)
        if not self.markers or not set(MARKERS).issuperset(self.markers):
            raise ValueError(f"validator {self.type}: markers may hold {listed(MARKERS)}. Name some.")

    def check(self, reply: Reply) -> Verdict:
        """Count the bullets; lines are those of `str.splitlines`, and lines of prose do not matter."""
        assert self.at_least is not None, "it is settled"
        bullets = sum(map(self._is_bullet, answer(reply).splitlines()))
        most = f"exactly {self.value}" if self.at_least == self.value else f"at most {self.value}"
        least = 0 if self.at_least == self.value else self.at_least
        violation = _violation(bullets, "bullet", least, f"{most} allowed")
        return judged(self.at_least <= bullets <= self.value, violation, {"bullets": bullets})

    def _is_bullet(self, line: str) -> bool:
        bare = line.lstrip()
        return any(bare.startswith(one if one == "-" else (f"{one} ", f"{one}\t")) for one in self.markers)


def _check_limits(owner: str, most: int, least: int) -> None:
    if least > most:
        raise ValueError(f"validator {owner}: at_least is {least}, more than value, {most}. Lower it.")


def _violation(number: int, word: str, at_least: int, most: str) -> str:
    wanted = f"at least {at_least} needed" if number < at_least else most
    return f"{counted(number, word)}, {wanted}"
