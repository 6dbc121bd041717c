"""Finds the part at fault if a local server's tool cells end without a call.

`features/diagnosing.py` repeats one cell in other ways. The first row that applies names the cause:

| cause | if |
| --- | --- |
| none | the same request, streamed again, now has a call |
| `stream` | the answer has a call unless it is streamed |
| `template` | tools do not make the prompt longer, or the server reports that its template shows no tools |
| `parser` | the answer has a call as text, or tokens without text, and no other cell has a real call |
| `model` | the answer has words and no call, or the model's calls are parsed in other cells |

`advice.toml` has the fix for each way in which tool use fails.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.conclusions.serving import served_in
from pytest_openclaw.util.text import counted

if TYPE_CHECKING:
    from pytest_openclaw.stats.tool_use import Evidence
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import ToolOutcome


@cache
def _advice() -> Mapping[str, Any]:
    return tomllib.loads(
        resources.files("pytest_openclaw.conclusions").joinpath("advice.toml").read_text("utf-8")
    )


def advice_on(outcome: ToolOutcome, evidence: Evidence | None) -> str:
    """Return the fix for an outcome, which depends on its kind of evidence; empty for a good outcome."""
    known = _advice()
    of_text = known["outcome_of_text"] if evidence == "text" else {}
    return str(of_text.get(outcome) or known["outcome"].get(outcome, ""))


def parser_remedy(provider: str, server: str | None) -> str:
    """Return how to make a server, by its reported name, read the calls that a model writes as text."""
    remedies: Mapping[str, str] = _advice()["remedy"]
    if provider == "llama_cpp":
        return remedies["llama_cpp"]
    if server == "ollama" and provider != "ollama_native":
        return remedies["ollama /v1"]
    return remedies.get(server or "") or remedies[_advice()["server"].get(provider, "unknown")]


Cause = Literal["model", "template", "parser", "stream"]

SWALLOWED_TOKENS = 8
"""From this number of tokens on, an empty answer did not end early: the server withheld the text."""
# The strongest evidence is first: a written call shows that the model knows its tools.
SYMPTOMS: tuple[ToolOutcome, ...] = ("leaked_as_text", "no_call", "claimed_not_done")
"""Outcomes without a call that a diagnosis explains."""
_WITH_A_CALL = frozenset(
    {"valid", "forbidden_call", "extra_call", "wrong_tool", "bad_arguments", "unknown_tool"}
)
"""Outcomes that only a call on the wire has."""


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """The cell, asked in one way.

    Attributes:
        change: `as_asked` for the cell itself, then `unstreamed`, `without_tools`, `streamed_again`.
        outcome: `called`, `empty`, `fault`, or a `tool_outcome`.
        message: the reason if there is no answer.
    """

    change: str
    outcome: str
    input_tokens: int | None
    output_tokens: int | None
    message: str | None

    @property
    def in_words(self) -> str:
        """The content of the answer."""
        words = {"called": "a call", "leaked_as_text": "a call written as text", "empty": "nothing"}
        return words.get(self.outcome, "words and no call")


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The part at fault in one cell of a target, with the evidence.

    Attributes:
        outcome: the cell's `tool_outcome`.
        cause: None if the repeats show no cause.
        finding: the cause and its evidence in words.
        fix: what to change; empty if no cause was found.
        template_shows_tools: as the server reports; None if it does not report it.
        repeats: in the order in which they were sent.
    """

    suite: str
    prompt_id: str
    outcome: str
    cause: Cause | None
    finding: str
    fix: str
    template_shows_tools: bool | None
    repeats: Sequence[Repeat]

    @property
    def in_words(self) -> str:
        """The finding and the fix as one sentence."""
        return f"{self.finding}; {self.fix}" if self.fix else self.finding


def evidence_in(inventory: JsonObject, label: str) -> JsonObject | None:
    """Return the repeats of a target's cell and its `server`, from the first part of the run with any."""
    for serving in served_in(inventory, label):
        if evidence := serving.get("diagnosis"):
            return {**evidence, "server": serving.get("server") or {}}
    return None


def diagnosis_of(evidence: JsonObject | None, records: Sequence[Record]) -> Diagnosis | None:
    """Return the part at fault; None if nothing was repeated.

    The target's rows may have real calls, which show that template, parser and stream can work.
    """
    if evidence is None:
        return None
    names = [field.name for field in fields(Repeat)]
    repeats = [Repeat(**{name: one.get(name) for name in names}) for one in evidence["tries"]]
    cause, finding, fix = _cause({repeat.change: repeat for repeat in repeats}, evidence, records)
    return Diagnosis(
        suite=evidence["suite"],
        prompt_id=evidence["prompt_id"],
        outcome=evidence["outcome"],
        cause=cause,
        finding=finding,
        fix=fix,
        template_shows_tools=evidence["server"].get("template_shows_tools"),
        repeats=repeats,
    )


def _cause(
    repeats: Mapping[str, Repeat], evidence: JsonObject, records: Sequence[Record]
) -> tuple[Cause | None, str, str]:
    """Return the cause, the finding and the fix."""
    plain, again = repeats["unstreamed"], repeats.get("streamed_again")
    if plain.outcome == "called":
        if again is None or again.outcome == "called":
            what = "the same request now has a call, so its answers vary: repeat the cell (-repeat)"
            return None, what, ""
        what = f"unstreamed the answer has a call, streamed {again.in_words}: the server's stream loses it"
        fix = "use --openclaw-stream=off, and set streaming: false for this model in OpenClaw"
        return "stream", what, fix
    remedy = parser_remedy(records[0].provider if records else "", evidence["server"].get("server"))
    if hidden := _hides_tools(repeats, evidence):
        return "template", f"the chat template does not show the model its tools: {hidden}", remedy
    if plain.outcome == "fault":
        return None, f"the cell could not be repeated: {plain.message}", ""
    if plain.outcome == "leaked_as_text":
        n_called = sum(row.tools_offered is not None and row.tool_outcome in _WITH_A_CALL for row in records)
        if n_called:
            others = counted(n_called, "other cell")
            what = f"the server reads the model's calls in {others}, and here the model wrote one as text"
            return "model", what, "take a larger or less quantised model"
        leaked = [row.leaked_valid for row in records if row.leaked_valid is not None]
        known = f" ({leaked_in_words(sum(leaked), len(leaked))})" if leaked else ""
        return "parser", f"the model writes its call, and the server does not read it{known}", remedy
    if plain.outcome == "empty" and (plain.output_tokens or 0) >= SWALLOWED_TOKENS:
        what = f"the model generates {plain.output_tokens} tokens, and the server delivers none of them"
        return "parser", what, remedy
    what = f"the model sees its tools and answers with {plain.in_words}, streamed or not"
    return "model", what, "offer fewer tools, or take a larger model or one trained to call tools"


def _hides_tools(repeats: Mapping[str, Repeat], evidence: JsonObject) -> str | None:
    """Return the evidence that the tools do not reach the model; None if they do, or may."""
    says = evidence["server"].get("template_shows_tools")
    if evidence["server"].get("server") == "ollama" and says is not None:
        # Ollama's counts leave out cached tokens, but its list of capabilities is reliable.
        return None if says else "Ollama does not list tools among its capabilities"
    without = repeats["without_tools"].input_tokens
    given = repeats["unstreamed"].input_tokens or repeats["as_asked"].input_tokens
    if without and given:
        tools = counted(evidence["tools_offered"], "tool")
        counts = f"the prompt has {given} tokens with its {tools} and {without} without"
        return None if given > without else counts
    return "the server's own description of it names no tools" if says is False else None


def leaked_in_words(n_valid: int, n: int) -> str:
    """Return in words how many of the calls written as text would have been right."""
    return f"{n_valid} of {counted(n, 'written call')} {'is' if n == 1 else 'are'} right"
