"""Validators that count words, sentences and bullets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.core.quoting import listed
from pytest_openclaw.core.text import counted
from pytest_openclaw.validators.answer import answer, judged
from pytest_openclaw.validators.keys import hint, limit_value, settle, texts_value
from pytest_openclaw.validators.sentences import count_sentences

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Reply, Verdict

_HINT = 'Write a whole number, for example "value": 3.'
MARKERS = ("-", "*", "+", "\u2022")


@dataclass(frozen=True, kw_only=True)
class _AtMost:
    type: ClassVar[str]
    value: int = field(metadata=hint(_HINT))
    at_least: int = 0

    def __post_init__(self) -> None:
        settle(self, **_limits(self.type, self.value, self.at_least))

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
class ExactBullets:
    """Exactly `value` bullets, or from `at_least` to `value`.

    A bullet is a line that starts with one of `markers` after blanks. They are `-`, `*`, `+` and the dot of a
    list; `-` alone is the default, and the others count only before a blank.
    """

    type: ClassVar[str] = "exact_bullets"
    value: int = field(metadata=hint(_HINT))
    at_least: int | None = None
    markers: tuple[str, ...] = ("-",)

    def __post_init__(self) -> None:
        least = self.value if self.at_least is None else self.at_least
        settle(self, **_limits(self.type, self.value, least))
        if self.at_least is None:
            settle(self, at_least=self.value)
        settle(self, markers=texts_value(self.type, "markers", self.markers))
        if not self.markers or not set(MARKERS).issuperset(self.markers):
            raise ValueError(f'validator {self.type}: "markers" may hold {listed(MARKERS)}. Name some.')

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


def _limits(owner: str, value: object, at_least: object) -> dict[str, int]:
    most, least = limit_value(owner, "value", value), limit_value(owner, "at_least", at_least)
    if least > most:
        raise ValueError(f'validator {owner}: "at_least" is {least}, more than "value", {most}. Lower it.')
    return {"value": most, "at_least": least}


def _violation(number: int, word: str, at_least: int, most: str) -> str:
    wanted = f"at least {at_least} needed" if number < at_least else most
    return f"{counted(number, word)}, {wanted}"
