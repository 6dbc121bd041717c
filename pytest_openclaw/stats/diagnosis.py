"""Which part is at fault where a local server's tool cells end without a call.

`features/diagnosing.py` repeats one cell in other ways. The first row that applies names the cause:

| cause | if |
| --- | --- |
| none | the same request, streamed again, now has a call |
| `stream` | the answer has a call unless it is streamed |
| `template` | the prompt is no longer with tools than without; or the server says that it shows none |
| `parser` | the answer has a call as text, or only tokens; and no other cell has a real call |
| `model` | the answer is one in words, or its calls are parsed in other cells |

`advice.toml` says what to change for each way in which tool use fails.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_openclaw.stats.weight import served_in
from pytest_openclaw.util.text import counted

if TYPE_CHECKING:
    from pytest_openclaw.stats.tool_use import Evidence
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import ToolOutcome


class Advice(NamedTuple):
    """The fix for an outcome: `short` is one line of the terminal, `full` also says what it means."""

    short: str
    full: str


_BY_PROVIDER = {
    "ollama_native": "ollama",
    "openai_responses": "public",
    "anthropic_messages": "public",
    "gemini": "public",
}


@cache
def _advice() -> Mapping[str, Any]:
    return tomllib.loads(resources.files("pytest_openclaw.stats").joinpath("advice.toml").read_text("utf-8"))


def advice_on(outcome: ToolOutcome, evidence: Evidence | None) -> Advice | None:
    """Return the fix for an outcome, which depends on its kind of evidence; None for a good outcome."""
    known = _advice()
    of_text = known["outcome_of_text"].get(outcome) if evidence == "text" else None
    if not (found := of_text or known["outcome"].get(outcome)):
        return None
    return Advice(found["short"], found["full"].replace("{diagnose}", known["diagnose"]))


def parser_remedy(provider: str, server: str | None, path: str | None = None) -> str:
    """Return what makes a server read the calls that a model writes as text.

    Args:
        provider: that the target is asked by; an endpoint of the user's own has a name of its own.
        server: as it reports itself; None if it does not.
        path: of the request; None if it is not known.
    """
    remedies: Mapping[str, str] = _advice()["remedy"]
    if provider == "llama_cpp":
        return remedies["llama_cpp"]
    if server == "ollama" and provider != "ollama_native" and path != "/api/chat":
        return remedies["ollama /v1"]
    return remedies.get(server or "") or remedies[_BY_PROVIDER.get(provider, "unknown")]


Cause = Literal["model", "template", "parser", "stream"]

SWALLOWED_TOKENS = 8
"""An empty answer of so many tokens is no early end: something was generated, and the server kept it."""
# The stronger evidence first: a written call shows that the model knows its tools.
SYMPTOMS: tuple[ToolOutcome, ...] = ("leaked_as_text", "no_call", "claimed_not_done")
"""Outcomes without a call that a diagnosis explains."""
_WITH_A_CALL = frozenset(
    {"valid", "forbidden_call", "extra_call", "wrong_tool", "bad_arguments", "unknown_tool"}
)
"""Outcomes that only a call on the wire has."""
ENGINE = "pytest_openclaw.providers.llama_cpp.server"
CHANGES: Mapping[str, str] = {
    "as_asked": "as in the run",
    "unstreamed": "unstreamed",
    "tool_choice_required": "with tool_choice=required",
    "single_tool": "with a single tool",
    "without_tools": "without tools, for one token",
    "streamed_again": "streamed again",
}
OUTCOMES: Mapping[str, str] = {
    "called": "a call",
    "leaked_as_text": "a call written as text",
    "no_call": "words and no call",
    "claimed_not_done": "a claim and no call",
    "empty": "nothing",
    "fault": "no answer",
}


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """The cell, asked in one way.

    Attributes:
        change: how, of `CHANGES`; `as_asked` is the cell itself.
        outcome: of `OUTCOMES`.
        input_tokens, output_tokens: as counted by the server.
        message: why there is no answer.
        command: sends it again, in the run's directory; the key is a variable's name.
    """

    change: str
    outcome: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    message: str | None = None
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The part at fault in one cell of a target, with the evidence.

    Attributes:
        run_id: of the run whose directory has the requests.
        outcome: of the cell.
        cause: None if the repeats do not show one.
        finding: the cause in words, with what shows it.
        fix: what to change; empty if no cause was found.
        template_shows_tools: as the server reports; None if it does not.
        repeats: in the order in which they were sent.
    """

    run_id: str
    suite: str
    prompt_id: str
    outcome: str
    cause: Cause | None
    finding: str
    fix: str = ""
    template_shows_tools: bool | None = None
    repeats: Sequence[Repeat] = field(default_factory=list)

    @property
    def in_words(self) -> str:
        """The finding and the fix as one sentence."""
        return f"{self.finding}; {self.fix}" if self.fix else self.finding


def evidence_in(inventory: JsonObject, label: str) -> JsonObject | None:
    """Return the repeats of a target's cell with its `server`, from whichever machine or part has them."""
    for serving in served_in(inventory, label):
        if evidence := serving.get("diagnosis"):
            return {**evidence, "server": serving.get("server") or {}}
    return None


def diagnosis_of(evidence: JsonObject | None, records: Sequence[Record]) -> Diagnosis | None:
    """Return the part at fault; None if nothing was repeated.

    Args:
        evidence: as `evidence_in` returns it.
        records: the target's rows, whose real calls show that template, parser and stream can work.
    """
    if evidence is None:
        return None
    repeats = [_repeat(one, evidence["request"]) for one in evidence["tries"]]
    found = _Sent({repeat.change: repeat for repeat in repeats}, evidence, records).cause()
    return Diagnosis(
        run_id=evidence["run_id"],
        suite=evidence["suite"],
        prompt_id=evidence["prompt_id"],
        outcome=evidence["outcome"],
        cause=found.cause,
        finding=found.finding,
        fix=found.fix,
        template_shows_tools=evidence["server"].get("template_shows_tools"),
        repeats=repeats,
    )


class _NamedCause(NamedTuple):
    cause: Cause | None
    finding: str
    fix: str = ""


class _Sent(NamedTuple):
    """The repeats of a cell, and what the other cells show."""

    repeats: Mapping[str, Repeat]
    evidence: JsonObject
    records: Sequence[Record]

    def cause(self) -> _NamedCause:
        plain = self.repeats["unstreamed"]
        if plain.outcome == "called":
            return self._of_stream()
        if hidden := self._hides_tools():
            what = f"the chat template does not show the model its tools: {hidden}"
            return _NamedCause("template", what, self._server_fix())
        if plain.outcome == "fault":
            return _NamedCause(None, f"the cell could not be repeated: {plain.message}")
        is_lost = plain.outcome == "empty" and (plain.output_tokens or 0) >= SWALLOWED_TOKENS
        if plain.outcome == "leaked_as_text" or is_lost:
            return self._of_parser(plain)
        return self._of_model(plain)

    def _of_stream(self) -> _NamedCause:
        again = self.repeats.get("streamed_again")
        if again is None or again.outcome == "called":
            what = "the same request now has a call, so its answers vary: repeat the cell (-repeat)"
            return _NamedCause(None, what)
        return _NamedCause(
            "stream",
            f"unstreamed the answer has a call, streamed {_words(again)}: the server's stream loses the call",
            "use --openclaw-stream=off, and set streaming: false for this model in OpenClaw",
        )

    def _hides_tools(self) -> str | None:
        """Return what shows that the tools do not reach the model; None if they do, or may."""
        says = self.evidence["server"].get("template_shows_tools")
        if self.evidence["server"].get("server") == "ollama" and says is not None:
            # Its counts leave out what it has cached, and its list of capabilities is reliable.
            return None if says else "Ollama does not list tools among its capabilities"
        without = self._tokens("without_tools")
        given = self._tokens("unstreamed") or self._tokens("as_asked")
        if without and given:
            n = self.evidence["tools_offered"]
            tools = "its tool" if n == 1 else f"its {n} tools"
            counts = f"the prompt has {given} tokens with {tools} and {without} without"
            return None if given > without else counts
        return "the server's own description of it names no tools" if says is False else None

    def _of_parser(self, plain: Repeat) -> _NamedCause:
        rows = self.records
        n_called = sum(row.tools_offered is not None and row.tool_outcome in _WITH_A_CALL for row in rows)
        if n_called and plain.outcome == "leaked_as_text":
            others = counted(n_called, "other cell")
            finding = f"the server reads the model's calls in {others}, and here the model wrote one as text"
            return _NamedCause("model", finding, "take a larger or less quantised model")
        leaked = [row.leaked_valid for row in rows if row.leaked_valid is not None]
        what = "the model writes its call, and the server does not read it"
        if plain.outcome == "empty":
            tokens = f"{plain.output_tokens} tokens"
            what = f"the model generates {tokens}, and the server delivers nothing of them"
        elif leaked:
            what += f" ({leaked_in_words(sum(leaked), len(leaked))})"
        if self._calls("tool_choice_required"):
            fix = 'set params.extra_body.tool_choice "required" for this model in OpenClaw'
            return _NamedCause("parser", f"{what} unless tool_choice is required", fix)
        return _NamedCause("parser", what, self._server_fix())

    def _of_model(self, plain: Repeat) -> _NamedCause:
        what = f"the model sees its tools and answers with {_words(plain)}, streamed or not"
        if self._calls("single_tool"):
            n = self.evidence["tools_offered"]
            what += f"; offered one tool in place of {n} it calls"
            return _NamedCause("model", what, "offer fewer tools")
        if self._calls("tool_choice_required"):
            return _NamedCause("model", f"{what}; forced by tool_choice it calls", "take a larger model")
        return _NamedCause("model", what, "take a larger model, or one trained to call tools")

    def _server_fix(self) -> str:
        """Return what makes this server show tools to the model and read its calls."""
        provider = self.records[0].provider if self.records else ""
        server = self.evidence["server"].get("server")
        return parser_remedy(provider, server, self.evidence["request"]["path"])

    def _calls(self, change: str) -> bool:
        return change in self.repeats and self.repeats[change].outcome == "called"

    def _tokens(self, change: str) -> int | None:
        return self.repeats[change].input_tokens if change in self.repeats else None


def leaked_in_words(n_valid: int, n: int) -> str:
    """Say how many of the calls that were written as text would have been right."""
    return f"{n_valid} of {counted(n, 'written call')} {'is' if n == 1 else 'are'} right"


def _words(repeat: Repeat) -> str:
    return OUTCOMES.get(repeat.outcome, repeat.outcome)


def _repeat(found: JsonObject, request: JsonObject) -> Repeat:
    return Repeat(
        change=found["change"],
        outcome=found["outcome"],
        input_tokens=found.get("input_tokens"),
        output_tokens=found.get("output_tokens"),
        message=found.get("message"),
        command=_command(request, found["file"]),
    )


def _command(request: JsonObject, file: str) -> str:
    """Return the line of curl; the engine's address and key are those that its command prints."""
    words = [f'-H "{name}: {value}"' for name, value in request["headers"].items()]
    url = shlex.quote(f"{request['url']}{request['path']}")
    if request["url"] is None:
        words.append('-H "authorization: Bearer $TOKEN"')
        url = f'"$URL/v1{request["path"]}"'
    return " ".join(["curl -sS", *words, f"-d @{shlex.quote(file)}", url])


def commands_of(diagnosis: Diagnosis, model: str) -> Iterator[str]:
    """Yield the lines that repeat a diagnosis by hand, in the run's directory."""
    if any("$URL" in repeat.command for repeat in diagnosis.repeats):
        yield f"# python -m {ENGINE} --model FILE --alias {shlex.quote(model)} prints URL and TOKEN"
    for repeat in diagnosis.repeats:
        yield f"# {CHANGES.get(repeat.change, repeat.change)}: {_words(repeat)}"
        yield repeat.command
