"""Validators that look at the answer as a text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.core.bounded_regex import fullmatches
from pytest_openclaw.core.quoting import listed, shown
from pytest_openclaw.types.replies import Reply, Verdict
from pytest_openclaw.validators.answer import BLANKS, answer, judged, kept
from pytest_openclaw.validators.keys import check_pattern, choices_value, flag_value, hint, settle, text_value

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
class Exact:
    """The answer equals `value`, including case; blanks around either do not count."""

    type: ClassVar[str] = "exact"
    value: str = field(metadata=hint('Write the answer wanted, for example "value": "HEARTBEAT_OK".'))

    def __post_init__(self) -> None:
        settle(self, value=text_value(self.type, "value", self.value).strip(BLANKS))

    def check(self, reply: Reply) -> Verdict:
        """Compare the whole answer with `value`."""
        text = answer(reply)
        violation = f"{shown(text)} is not {shown(self.value)}"
        return judged(text == self.value, violation, kept(text))


@dataclass(frozen=True, kw_only=True)
class OneOf:
    """The answer is one of `values`, including case; a number among them matches no text.

    With `ignore_case` case is ignored, with `ignore_punctuation` whatever is neither letter, digit nor blank.
    """

    type: ClassVar[str] = "one_of"
    values: tuple[str | int | float, ...] = field(
        metadata=hint('List the answers allowed, for example "values": ["yes", "no"].')
    )
    ignore_case: bool = False
    ignore_punctuation: bool = False

    def __post_init__(self) -> None:
        settle(self, values=choices_value(self.type, "values", self.values))
        flag_value(self.type, "ignore_case", self.ignore_case)
        flag_value(self.type, "ignore_punctuation", self.ignore_punctuation)

    def check(self, reply: Reply) -> Verdict:
        """Look for the whole answer among `values`."""
        text = answer(reply)
        violation = f"{shown(text)} is not one of {listed(self.values)}"
        allowed = {self._plain(value) for value in self.values if isinstance(value, str)}
        return judged(self._plain(text) in allowed, violation, kept(text))

    def _plain(self, text: str) -> str:
        return plain(text, case=self.ignore_case, punctuation=self.ignore_punctuation)


@dataclass(frozen=True, kw_only=True)
class RegexFullmatch:
    """The whole answer matches `pattern`, a regular expression of Python's `re`."""

    type: ClassVar[str] = "regex_fullmatch"
    pattern: str = field(metadata=hint('Write a regular expression, for example "pattern": "[0-9]+".'))

    def __post_init__(self) -> None:
        check_pattern(self.type, "pattern", text_value(self.type, "pattern", self.pattern))

    def check(self, reply: Reply) -> Verdict:
        """Match the answer.

        Raises:
            OpenClawError: the pattern cannot be decided in time, which says nothing about the model.
        """
        text = answer(reply)
        violation = f"{shown(text)} does not match {shown(self.pattern)}"
        return judged(fullmatches(self.pattern, text), violation, kept(text))


@dataclass(frozen=True, kw_only=True)
class Contains:
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
        text_value(self.type, "value", self.value)
        for key in ("ignore_case", "ignore_punctuation", "whole_words"):
            flag_value(self.type, key, getattr(self, key))
        if not self._plain(self.value):
            raise ValueError(f'validator {self.type}: "value" is empty, which every reply contains.')

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
