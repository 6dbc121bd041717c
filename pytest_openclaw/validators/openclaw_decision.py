"""Would OpenClaw accept these typed answers to a rubric, and are they the expected ones?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pytest_openclaw.core.quoting import listed, shown
from pytest_openclaw.validators.answer import BLANKS, answer, judged_json
from pytest_openclaw.validators.keys import hint, list_value, settle, table_value, texts_value, what

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Reply, Verdict

_FENCE = "```"
_EXAMPLE = '{ route = { choice = ["support", "sales"], expected = ["support"] } }'
_KINDS = ("choice", "score", "boolean")


@dataclass(frozen=True, kw_only=True)
class OpenclawDecision:
    """The answer is one JSON object of typed answers that OpenClaw accepts, and each is an expected one.

    `questions` has each question by its id. Of a `choice` (a list of labels) `expected` are the right labels,
    of a `score` (the number of its levels) the smallest and the largest right one, counted from 0, and of a
    `boolean` (true) the smallest and the largest right probability; without `expected` all are. Probabilities
    are 0 to 1, one for each label or level, not all 0, and the chosen label has the largest. One fence around
    the whole answer does not count.
    """

    type: ClassVar[str] = "openclaw_decision"
    questions: Mapping[str, Mapping[str, Any]] = field(
        metadata=hint(f"Write what was asked, for example questions = {_EXAMPLE}.")
    )

    def __post_init__(self) -> None:
        read = {
            key: _question(key, value)
            for key, value in table_value(self.type, "questions", self.questions).items()
        }
        settle(self, questions=read)

    def check(self, reply: Reply) -> Verdict:
        """Judge as OpenClaw checks a decision, then compare it with what is expected."""
        return judged_json(_without_fence(answer(reply)), self._violation, strict=True)

    def _violation(self, answers: Mapping[str, Any]) -> str | None:
        if answers.keys() != self.questions.keys():
            given = listed(list(answers)[:20], "none")
            return f"the answers are {given}, asked were {listed(list(self.questions))}"
        for key, question in self.questions.items():
            if flaw := _flaw(question, answers[key]):
                return f"{key}: {flaw}"
        return None


def _without_fence(text: str) -> str:
    """Return what is in the fence around a text, as OpenClaw's tool `llm-task` does."""
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    inner = text[len(_FENCE) : -len(_FENCE)]
    return (inner[4:] if inner[:4].casefold() == "json" else inner).strip(BLANKS)


def _flaw(question: Mapping[str, Any], given: Any) -> str | None:
    kind = next(one for one in _KINDS if one in question)
    if not isinstance(given, Mapping) or given.get("type") != kind:
        return f"no answer of type {kind}"
    return _FLAWS[kind](question, given)


def _choice_flaw(question: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    chosen, chances = given.get("choice"), given.get("probabilities")
    if chosen not in question["choice"]:
        return f"the choice is none of {listed(question['choice'])}"
    if not isinstance(chances, Mapping) or {*chances} != {*question["choice"]}:
        return "probabilities has not exactly the labels as keys"
    if not _are_chances([*chances.values()]):
        return "probabilities are not numbers from 0 to 1, or all 0"
    if chances[chosen] < max(chances.values()):
        return f"{shown(cast('str', chosen))} is chosen, and another label has a larger probability"
    if chosen not in question.get("expected", question["choice"]):
        return f"{shown(cast('str', chosen))} is chosen, expected is {listed(question['expected'])}"
    return None


def _score_flaw(question: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    score, chances, last = given.get("score"), given.get("probabilities"), question["score"] - 1
    if not isinstance(chances, list) or len(chances) != question["score"] or not _are_chances(chances):
        return f"probabilities is not a list of {question['score']} numbers from 0 to 1, or all are 0"
    if not _is_between(score, 0, last):
        return f"the score is no number from 0 to {last}"
    return _unexpected("score", score, question)


def _boolean_flaw(question: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    chance = given.get("probabilityTrue")
    if not _is_between(chance, 0, 1):
        return "probabilityTrue is no number from 0 to 1"
    return _unexpected("probabilityTrue", chance, question)


_FLAWS = {"choice": _choice_flaw, "score": _score_flaw, "boolean": _boolean_flaw}


def _unexpected(name: str, value: Any, question: Mapping[str, Any]) -> str | None:
    if "expected" not in question or _is_between(value, *question["expected"]):
        return None
    low, high = question["expected"]
    return f"{name} is {value:g}, expected is {low:g} to {high:g}"


def _are_chances(values: list[Any]) -> bool:
    return all(_is_between(value, 0, 1) for value in values) and any(values)


def _is_between(value: Any, low: float, high: float) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and low <= value <= high


def _question(key: str, value: Any) -> Mapping[str, Any]:
    where = f"openclaw_decision: the question {shown(key)}"
    question = table_value(where, key, value)
    kinds = [one for one in _KINDS if one in question]
    if len(kinds) != 1:
        raise ValueError(f"validator {where} has {listed(kinds, 'no type')}. Write one of {listed(_KINDS)}.")
    (kind,) = kinds
    if unknown := question.keys() - {kind, "expected"}:
        raise ValueError(f"validator {where} has {listed(sorted(unknown))}. Write {kind} and expected.")
    if kind == "choice":
        labels = texts_value(where, kind, question[kind])
        if {*texts_value(where, "expected", question.get("expected", labels))} - {*labels}:
            raise ValueError(f'validator {where}: "expected" has what is no label. Write labels of "choice".')
        return question
    if kind == "score" and not (isinstance(question[kind], int) and question[kind] >= 2):
        raise ValueError(f'validator {where}: "score" is {what(question[kind])}. Write the number of levels.')
    limits = list_value(where, "expected", question.get("expected", (0, 1)))
    if len(limits) != 2 or not all(_is_between(one, 0, float("inf")) for one in limits):
        raise ValueError(
            f'validator {where}: "expected" is no pair. Write the smallest and the largest value.'
        )
    return question
