"""Validators of answers that OpenClaw itself asks for: heartbeat replies, typed decisions, short texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from pytest_openclaw.judging.keys import BLANKS, Keyed, answer, hint, judged, judged_json, kept
from pytest_openclaw.util.text import listed, shown
from pytest_openclaw.values.replies import Reply, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable


SILENT = "NO_REPLY"
ACK = "HEARTBEAT_OK"
MAX_REST_CHARS = 300
"""Fixed in OpenClaw: the characters allowed beside HEARTBEAT_OK in a reply that is dropped."""

_TAG = re.compile(r"<[^<>]*>|&nbsp;", re.IGNORECASE)
_MARKUP = "*`~_"
_MAX_PUNCTUATION = 4


@dataclass(frozen=True, kw_only=True)
class OpenclawAck:
    """The reply is one that OpenClaw drops: `NO_REPLY` alone, or `HEARTBEAT_OK` at its start or end.

    Beside `HEARTBEAT_OK` at most 300 characters are allowed. HTML tags and Markdown emphasis around the
    reply do not count, nor up to four marks such as `.` or `!` behind the token. For the exact
    contract use `exact`.
    """

    type: ClassVar[str] = "openclaw_ack"

    def check(self, reply: Reply) -> Verdict:
        """Judge as OpenClaw's gateway does before it delivers a heartbeat reply."""
        text = reply.text.strip()
        if text == SILENT:
            return Verdict(passed=True, parsed={"token": SILENT, "rest_chars": 0})
        rest = _beside_token(text)
        if not rest:
            rest = _beside_token(_TAG.sub(" ", text).strip(_MARKUP).strip())
        if rest is None:
            return judged(False, f"not {SILENT} alone, and no {ACK} at the start or the end")
        violation = f"{len(rest)} characters beside {ACK}, at most {MAX_REST_CHARS} allowed"
        return judged(len(rest) <= MAX_REST_CHARS, violation, {"token": ACK, "rest_chars": len(rest)})


def _beside_token(text: str) -> str | None:
    """Return what is left once the token is gone from both ends, blanks collapsed; None without it."""
    start, end = 0, _end_of_token(text)
    punctuation = text[end:] if end != len(text) else ""
    while text.startswith(ACK, start, end):
        start = _skip_blanks(text, start + len(ACK))
    while end - len(ACK) >= start and text.endswith(ACK, start, end):
        end -= len(ACK)
        while end > start and text[end - 1].isspace():
            end -= 1
    if (start, end) == (0, len(text)):
        return None
    return " ".join(f"{text[start:end]}{punctuation}".split())


def _end_of_token(text: str) -> int:
    """Return where the token ends at the end of the text, before at most four marks; else the end."""
    for marks in range(_MAX_PUNCTUATION + 1):
        end = len(text) - marks
        if text.endswith(ACK, 0, max(end, 0)):
            return end
        if end > 0 and re.match(r"\w", text[end - 1]):
            break
    return len(text)


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


_FENCE = "```"
_EXAMPLE = '{ route = { choice = ["support", "sales"], expected = ["support"] } }'


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
        if not self.choice and not (len(self.expected) == 2 and all(map(_is_number, self.expected))):
            raise ValueError("has expected without a pair. Write the smallest and the largest value.")

    def flaw(self, given: Any) -> str | None:
        """Return the flaw of an answer."""
        kind = "choice" if self.choice else "score" if self.score else "boolean"
        if not isinstance(given, Mapping) or given.get("type") != kind:
            return f"no answer of type {kind}"
        if self.choice:
            return self._choice_flaw(given)
        if self.score is None:
            chance = given.get("probabilityTrue")
            if not _is_between(chance, 0, 1):
                return "probabilityTrue is no number from 0 to 1"
            return self._unexpected("probabilityTrue", chance)
        score, chances = given.get("score"), given.get("probabilities")
        if not isinstance(chances, list) or len(chances) != self.score or not _are_chances(chances):
            return f"probabilities is not a list of {self.score} numbers from 0 to 1, or all are 0"
        if not _is_between(score, 0, self.score - 1):
            return f"the score is no number from 0 to {self.score - 1}"
        return self._unexpected("score", score)

    def _choice_flaw(self, given: Mapping[str, Any]) -> str | None:
        chosen, chances = given.get("choice"), given.get("probabilities")
        if chosen not in self.choice:
            return f"the choice is none of {listed(self.choice)}"
        if not isinstance(chances, Mapping) or {*chances} != {*self.choice}:
            return "probabilities has not exactly the labels as keys"
        if not _are_chances([*chances.values()]):
            return "probabilities are not numbers from 0 to 1, or all 0"
        if chances[chosen] < max(chances.values()):
            return f"{shown(chosen)} is chosen, and another label has a larger probability"
        if self.expected is not None and chosen not in self.expected:
            return f"{shown(chosen)} is chosen, expected is {listed(self.expected)}"
        return None

    def _unexpected(self, name: str, value: Any) -> str | None:
        if self.expected is None or _is_between(value, *self.expected):
            return None
        low, high = self.expected
        return f"{name} is {value:g}, expected is {low:g} to {high:g}"


def _are_chances(values: list[Any]) -> bool:
    return all(_is_between(value, 0, 1) for value in values) and any(values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_between(value: Any, low: Any, high: Any) -> bool:
    return _is_number(value) and low <= value <= high


@dataclass(frozen=True, kw_only=True)
class OpenclawDecision(Keyed):
    """The answer is one JSON object of typed answers that OpenClaw accepts, and each is an expected one.

    `questions` has each question by its id. Of a `choice` (a list of labels) `expected` are the right labels,
    of a `score` (the number of its levels) the smallest and the largest right one, counted from 0, and of a
    `boolean` (true) the smallest and the largest right probability; without `expected` all are. Probabilities
    are 0 to 1, one for each label or level, not all 0, and the chosen label has the largest. One fence around
    the whole answer does not count.
    """

    type: ClassVar[str] = "openclaw_decision"
    questions: Mapping[str, _Question] = field(
        metadata=hint(f"Write what was asked, for example questions = {_EXAMPLE}.")
    )

    def check(self, reply: Reply) -> Verdict:
        """Judge as OpenClaw checks a decision, then compare it with what is expected."""
        return judged_json(_without_fence(answer(reply)), self._violation, strict=True)

    def _violation(self, answers: Mapping[str, Any]) -> str | None:
        if answers.keys() != self.questions.keys():
            given = listed(list(answers)[:20], "none")
            return f"the answers are {given}, asked were {listed(list(self.questions))}"
        for key, question in self.questions.items():
            if flaw := question.flaw(answers[key]):
                return f"{key}: {flaw}"
        return None


def _without_fence(text: str) -> str:
    """Return what is in the fence around a text, as OpenClaw's tool `llm-task` does."""
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    inner = text[len(_FENCE) : -len(_FENCE)]
    return (inner[4:] if inner[:4].casefold() == "json" else inner).strip(BLANKS)


def _title(text: str) -> str:
    """Return the first line that is no fence, without `Title:` and quotes around it."""
    lines = (line.strip() for line in text.replace("\r", "").split("\n"))
    first = next((line for line in lines if line and not line.startswith("```")), "")
    return _one_line(re.sub(r"\A(?:title\s*:\s*)?", "", first, count=1, flags=re.IGNORECASE).strip("\"'`"))


def _status(text: str) -> str:
    """Return the text on one line, without quotes around it."""
    return _one_line(text).strip("\"'`“”").strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


FORMS: Mapping[str, tuple[int, Callable[[str], str]]] = {
    "title": (60, _title),
    "recap": (450, _one_line),
    "status": (280, _status),
}
"""By form, the characters (UTF-16) at which OpenClaw 2026.9.6 cuts, and what it takes for the text."""


@dataclass(frozen=True, kw_only=True)
class OpenclawText(Keyed):
    """What OpenClaw shows of a title, a recap or a status line is whole, and about the right thing.

    `form` is `title`, `recap` or `status`. A title is the first line that is no fence, without `Title:` and
    quotes. OpenClaw cuts a reply with a title off after 60 characters, a recap after 450 and a status line
    after 280. Of each list of `about` the text has one of the words, in any case, and none of `never`.
    """

    type: ClassVar[str] = "openclaw_text"
    form: Literal["title", "recap", "status"] = field(metadata=hint('Write "title", "recap" or "status".'))
    about: tuple[tuple[str, ...], ...] = ()
    never: tuple[str, ...] = ()

    def check(self, reply: Reply) -> Verdict:
        """Judge the text that OpenClaw would show."""
        limit, read = FORMS[self.form]
        text, whole = answer(reply), read(answer(reply))
        # A title is read from what was cut off, and the other texts are cut off after they were read.
        shown_text = read(_cut(text, limit)) if self.form == "title" else _cut(whole, limit)
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
