"""Validators that count words, sentences and bullets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.validators.answer import answer, judged
from pytest_openclaw.validators.keys import hint, limit_value, settle
from pytest_openclaw.validators.sentences import count_sentences

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Reply, Verdict

_HINT = 'Write a whole number, for example "value": 3.'


@dataclass(frozen=True, kw_only=True)
class MaxWords:
    """At most `value` words, a word being a run of non-space characters."""

    type: ClassVar[str] = "max_words"
    value: int = field(metadata=hint(_HINT))

    def __post_init__(self) -> None:
        settle(self, value=limit_value(self.type, "value", self.value))

    def check(self, reply: Reply) -> Verdict:
        """Count the words."""
        words = len(answer(reply).split())
        violation = f"{_count(words, 'word')}, at most {self.value} allowed"
        return judged(words <= self.value, violation, {"words": words})


@dataclass(frozen=True, kw_only=True)
class MaxSentences:
    """At most `value` sentences, as `sentences.py` splits them."""

    type: ClassVar[str] = "max_sentences"
    value: int = field(metadata=hint(_HINT))

    def __post_init__(self) -> None:
        settle(self, value=limit_value(self.type, "value", self.value))

    def check(self, reply: Reply) -> Verdict:
        """Count the sentences."""
        sentences = count_sentences(answer(reply))
        violation = f"{_count(sentences, 'sentence')}, at most {self.value} allowed"
        return judged(sentences <= self.value, violation, {"sentences": sentences})


@dataclass(frozen=True, kw_only=True)
class ExactBullets:
    """Exactly `value` bullets, a bullet being a line that starts with `-` after blanks."""

    type: ClassVar[str] = "exact_bullets"
    value: int = field(metadata=hint(_HINT))

    def __post_init__(self) -> None:
        settle(self, value=limit_value(self.type, "value", self.value))

    def check(self, reply: Reply) -> Verdict:
        """Count the bullets; lines are those of `str.splitlines`, and lines of prose do not matter."""
        bullets = sum(line.lstrip().startswith("-") for line in answer(reply).splitlines())
        violation = f"{_count(bullets, 'bullet')}, exactly {self.value} allowed"
        return judged(bullets == self.value, violation, {"bullets": bullets})


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
