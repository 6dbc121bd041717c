"""Validators that look at the answer as a text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pytest_openclaw.core.bounded_regex import compile_pattern, fullmatches
from pytest_openclaw.core.quoting import listed, shown
from pytest_openclaw.types.replies import Reply, Verdict
from pytest_openclaw.validators.answer import BLANKS, answer, judged, kept
from pytest_openclaw.validators.keys import choices_value, flag_value, hint, settle, text_value


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
    """The answer is one of `values`, including case; a number among them matches no text."""

    type: ClassVar[str] = "one_of"
    values: tuple[str | int | float, ...] = field(
        metadata=hint('List the answers allowed, for example "values": ["yes", "no"].')
    )

    def __post_init__(self) -> None:
        settle(self, values=choices_value(self.type, "values", self.values))

    def check(self, reply: Reply) -> Verdict:
        """Look for the whole answer among `values`."""
        text = answer(reply)
        violation = f"{shown(text)} is not one of {listed(self.values)}"
        return judged(text in self.values, violation, kept(text))


@dataclass(frozen=True, kw_only=True)
class RegexFullmatch:
    """The whole answer matches `pattern`, a regular expression of Python's `re`."""

    type: ClassVar[str] = "regex_fullmatch"
    pattern: str = field(metadata=hint('Write a regular expression, for example "pattern": "[0-9]+".'))

    def __post_init__(self) -> None:
        pattern = text_value(self.type, "pattern", self.pattern)
        try:
            compile_pattern(pattern)
        except ValueError as error:
            raise ValueError(f'validator {self.type}: "pattern" {error}') from error

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
    """The answer contains `value`; `ignore_case` ignores case."""

    type: ClassVar[str] = "contains"
    value: str = field(metadata=hint('Write the text that must occur, for example "value": "nginx".'))
    ignore_case: bool = False

    def __post_init__(self) -> None:
        text_value(self.type, "value", self.value)
        flag_value(self.type, "ignore_case", self.ignore_case)
        if not self.value:
            raise ValueError(f'validator {self.type}: "value" is empty, which every reply contains.')

    def check(self, reply: Reply) -> Verdict:
        """Search the answer for `value`."""
        text = answer(reply)
        fold = str.casefold if self.ignore_case else str
        violation = f"{shown(text)} does not contain {shown(self.value)}"
        return judged(fold(self.value) in fold(text), violation)
