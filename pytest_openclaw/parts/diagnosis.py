"""Finds the part at fault if a local server's tool cells end without a call.

After the tests one cell of each target is repeated in other ways, with at most 3 requests within limits and
budget. The first row that applies names the cause:

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from typing import Any, Literal, NotRequired, TypedDict

from pytest_openclaw.asking.asker import Asker
from pytest_openclaw.asking.sending import request_for
from pytest_openclaw.conclusions.summary import Group, leaked_in_words
from pytest_openclaw.judging.judge import Facts
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.session.owner import Owner, Watcher
from pytest_openclaw.stats.tool_use import Evidence
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import counted, cut
from pytest_openclaw.util.typed import Count
from pytest_openclaw.values.parts import Part, PartKey
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.replies import Fault, Reply
from pytest_openclaw.values.requests import Request, Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.run_files import TargetFacts, served_in
from pytest_openclaw.values.settings import Settings
from pytest_openclaw.values.tool_calls import ToolOutcome

MOST_TEXT = 300
"""The maximum number of characters of an answer that are kept as evidence."""


@cache
def _advice() -> Mapping[str, Any]:
    return tomllib.loads(resources.files("pytest_openclaw.parts").joinpath("advice.toml").read_text("utf-8"))


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


# --- the repeats of a cell --------------------------------------------------------------------------


class Suspects(Watcher):
    """The cells that a diagnosis repeats, one per target of a local server."""

    def __init__(self, asker: Asker, providers: Mapping[str, Provider], settings: Settings) -> None:
        self._asker, self._providers, self._settings = asker, providers, settings
        self._found: dict[Target, tuple[Cell, Record]] = {}
        self._ranks: dict[Target, tuple[bool, int]] = {}

    def note(self, cell: Cell, record: Record) -> None:
        """Keep a cell if it is the best one of its target to repeat."""
        # Requests are kept as evidence, so they must not contain images.
        if record.tool_outcome not in SYMPTOMS or not cell.prompt.tools or cell.prompt.images:
            return
        # A single turn can be repeated exactly, an exchange cannot.
        rank = cell.prompt.world is not None, SYMPTOMS.index(record.tool_outcome)
        known = self._ranks.get(cell.target)
        provider = self._providers[cell.target.provider]
        is_own = isinstance(provider, OverHttp) and provider.takes_tools and not provider.address.is_public
        if is_own and (known is None or rank < known):
            self._ranks[cell.target] = rank
            self._found[cell.target] = cell, replace(record, raw_output="", turns=None)

    def examine(self) -> Iterator[tuple[Target, str, JsonObject, JsonObject]]:
        """Repeat the cell of each target, and yield the evidence, without and with the requests."""
        for target, (cell, row) in self._found.items():
            whole = _examine(self._asker, self._providers[target.provider], cell, row, self._settings)
            tries = [{key: value for key, value in one.items() if key != "body"} for one in whole["tries"]]
            yield target, "diagnosis", {**whole, "tries": tries}, whole


def _examine(asker: Asker, provider: Provider, cell: Cell, row: Record, settings: Settings) -> JsonObject:
    assert isinstance(provider, OverHttp), "only these are noted"
    # An exchange is repeated up to its first answer. First repeats are always sent.
    single = replace(cell, prompt=replace(cell.prompt, world=None, turns=()), repeat=1)
    asked = replace(request_for(cell, settings, provider), world=None, turns=(), lookup_turns=0)
    unstreamed = replace(asked, stream=False)
    counts: JsonObject = {}
    if cell.prompt.world is None:  # else the row has the sums of its turns
        counts = {"input_tokens": row.input_tokens, "output_tokens": row.output_tokens}
    first = {"change": "as_asked", "outcome": row.tool_outcome, **counts, "body": provider.body(asked)}
    tries = [first]
    for change, request in {
        "unstreamed": unstreamed,
        "without_tools": replace(unstreamed, tools=(), max_output_tokens=1),
        "streamed_again": asked,
    }.items():
        if request is not asked or (asked.stream and tries[1]["outcome"] == "called"):
            found = _repeat(asker, f"{cell.id} {change}", single, request)
            tries.append({"change": change, **found, "body": provider.body(request)})
    return {
        "suite": cell.prompt.suite,
        "prompt_id": cell.prompt.id,
        "outcome": row.tool_outcome,
        "tools_offered": len(asked.tools),
        "url": f"{provider.describe().get('base_url') or ''}{provider.route(asked)}",
        "tries": tries,
    }


def _repeat(asker: Asker, token: str, cell: Cell, request: Request) -> JsonObject:
    try:
        result = asker.ask(token, cell, request).result
    except Exception as error:  # a broken provider is evidence too
        return {"outcome": "fault", "message": f"{type(error).__name__}: {error}"}
    finally:
        asker.done(token)
    if isinstance(result, Fault):
        return {"outcome": "fault", "message": result.message}
    return {
        "outcome": _outcome(result, replace(cell.prompt, tools=request.tools)),
        "input_tokens": result.input_tokens,
        "output_tokens": result.output_tokens,
        "text": cut(strip_thinking(result.text), MOST_TEXT),
        "called": [call.name for call in result.tool_calls],
    }


def _outcome(reply: Reply, prompt: Prompt) -> str:
    """Return whether the answer has a call, and in which form; any call counts."""
    answer = replace(reply, text=strip_thinking(reply.text), raw=reply.raw or reply.text)
    if reply.tool_calls:
        return "called"
    if prompt.tools and Facts(prompt=prompt, answer=answer).written:
        return "leaked_as_text"
    return "no_call" if answer.text.strip() or reply.reasoning.strip() else "empty"


# --- the part in a run ------------------------------------------------------------------------------


class TryEntry(TypedDict):
    """The cell of a diagnosis, asked in one way."""

    change: str
    outcome: str
    input_tokens: NotRequired[Count | None]
    output_tokens: NotRequired[Count | None]
    message: NotRequired[str | None]


@dataclass(frozen=True, kw_only=True)
class DiagnosisEntry:
    """The repeats of a target's cell that had no call."""

    suite: str
    prompt_id: str
    outcome: str
    tools_offered: Count
    tries: list[TryEntry]

    def __post_init__(self) -> None:
        """Reject a diagnosis without the repeats that every diagnosis has."""
        if missing := {"as_asked", "unstreamed", "without_tools"} - {one["change"] for one in self.tries}:
            raise ValueError(f"has no try {min(missing)}")


def _join(owner: Owner, config: object) -> None:  # noqa: ARG001 - for other parts
    settings: Any = owner.settings
    if settings.diagnose:
        owner.watchers.append(Suspects(owner.asker, owner.providers, owner.settings))


def _notes(group: Any) -> Iterator[tuple[int, str, str]]:
    if fault := group.diagnosis:
        yield 60, "part at fault", f"{fault.cause or 'unknown'}, by {fault.prompt_id}: {fault.in_words}"


def _advise(group: Any, outcome: ToolOutcome) -> str:
    use = group.tool_use
    if group.diagnosis and use.evidence == "native" and outcome in SYMPTOMS:
        return ""  # the diagnosis says it
    if outcome == "leaked_as_text":
        return parser_remedy(group.target.provider, group.server)
    return advice_on(outcome, use.evidence)


PART = Part(
    keys={
        Settings: {"diagnose": PartKey(bool, default=False)},
        TargetFacts: {"diagnosis": PartKey(NotRequired[DiagnosisEntry | None])},
        Group: {
            "diagnosis": PartKey(
                Diagnosis | None,
                "the part at fault if tool cells end without a call; None if this was not examined.",
                "recommendation",
                lambda one: diagnosis_of(evidence_in(one.inventory, one.label), one.records),
            )
        },
    },
    join=_join,
    notes=_notes,
    advise=_advise,
)
