"""Validators of answers that OpenClaw itself asks for: heartbeat replies, typed decisions, short texts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
from msgspec import Meta, Struct

from pytest_openclaw.judging.text import BLANKS, answer, hint, judged, judged_json, kept
from pytest_openclaw.util.text import listed, shown
from pytest_openclaw.util.typed import converted
from pytest_openclaw.values.replies import Reply, Verdict

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
    """Return the text without the token at its ends, with blanks collapsed; None if there is no token."""
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


class _Boolean(Struct, tag_field="type", tag="boolean"):
    probability: _Chance = msgspec.field(name="probabilityTrue")


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
