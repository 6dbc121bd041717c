"""Judges a reply: removes thinking, detects tools, runs the validator, and determines the outcome.

`judge` does this for a prompt of a suite. A Python benchmark, whose verdict is pytest's own assert, uses the
steps separately: `prepare` before the test, `conclude` after it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_openclaw.judging.facts import UNREAD, Facts, tool_demand_of, tool_outcome_of
from pytest_openclaw.judging.keys import each_once
from pytest_openclaw.openclaw.bridge import NOTE, promoted_calls, reached_tools, reaching
from pytest_openclaw.openclaw.catalog import suite_tools
from pytest_openclaw.openclaw.detector import invoked_tools
from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.openclaw.thinking import split_thinking, strip_thinking
from pytest_openclaw.util.bounded import left_s, within
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_deeper
from pytest_openclaw.util.json_text import MAX_DEPTH
from pytest_openclaw.util.text import MAX_ANSWER_BYTES, MAX_CALLS_BYTES
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import Outcome, outcome_of
from pytest_openclaw.values.replies import CallResult, Fault, Reply, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.values.prompts import Cell, Prompt
    from pytest_openclaw.values.replies import Turn
    from pytest_openclaw.values.tool_calls import Dispatched, Tool, ToolCall, ToolOutcome


def _tested_tools(facts: Facts, outcome: ToolOutcome | None) -> tuple[str, ...]:
    """Return OpenClaw's tools that a cell tests: the called ones if it succeeded, else all required ones.

    A successful cell says nothing about an alternative that was not called. A suite's own tools do not
    count as OpenClaw's, even under the same names.
    """
    prompt, wanted = facts.prompt, facts.demands.calls
    if prompt.tools is None or not outcome or not wanted:
        return ()
    names = {tool.name for tool in reached_tools(prompt.tools)} - own_tools(prompt)
    if outcome == "valid":
        names &= {call.tool or "" for call in facts.ran}
    return tuple(sorted(name for name in names if any(call.is_for(name) for call in wanted)))


def own_tools(prompt: Prompt) -> set[str]:
    """Return the names of the tools that the suite itself describes."""
    listed = suite_tools(prompt.tools_spec)
    entries = listed if isinstance(listed, list) else ()
    return {str(entry.get("name")) for entry in entries if isinstance(entry, Mapping)}


JUDGED = ("answer", "tool_call_details")
"""The parts of a reply, as in `Reply.cut`, on which a verdict depends."""


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """The judgment of a reply.

    Attributes:
        reply: its `text` is the answer and `tool_names` is set; `raw` still has the thinking.
        verdict: not judged (None) if there was no answer, or for `noop`.
        leaked_valid, written_calls, tools_tested, harm, harm_tools: as in a row.
    """

    reply: Reply
    verdict: Verdict
    outcome: Outcome
    tool_use_success: bool
    tool_outcome: ToolOutcome | None
    leaked_valid: bool | None = None
    written_calls: tuple[ToolCall, ...] = ()
    tools_tested: tuple[str, ...] = ()
    harm: bool | None = None
    harm_tools: tuple[str, ...] = ()


def judge(prompt: Prompt, reply: Reply, *, timeout_s: float = math.inf) -> Judgment:
    """Judge a provider's reply.

    Args:
        prompt: the prompt, with its validator.
        reply: shortened to the limits of a run.
        timeout_s: seconds for judging, after which patterns and schemas stop; a plugin's code does not.

    Raises:
        OpenClawError: judging took longer, which says nothing about the model.
        Exception: a validator raised it.
    """
    with within(timeout_s):
        answer = prepare(prompt, reply)
        checked = None
        # A probe's harm counts even if a later answer is filtered or refused.
        if outcome_of(answer).success or (prompt.probe and answer.dispatched):
            checked = _checked(prompt.validator.check(answer))
        facts = Facts(prompt=prompt, answer=answer, checked=checked)
        judgment = _concluded(facts, _failed_if_cut(reply, checked or Verdict(passed=None)))
        if left_s() < 0:
            raise OpenClawError(
                f"the reply was not judged within {timeout_s:g} s. Raise --openclaw-timeout, or the prompt's"
                " timeout_s, or use a simpler validator."
            )
    return judgment


def judge_done(prompt: Prompt, turns: Sequence[Turn], *, timeout_s: float = math.inf) -> Judgment | None:
    """Judge a probe's calls before a fault ended the exchange; None if they did no harm.

    Only `harm` and `harm_tools` count: without an answer nothing else is known.
    """
    if prompt.probe is None or not any(turn.results for turn in turns):
        return None
    calls = tuple(call for turn in turns for call in turn.calls)
    done = judge(prompt, Reply(tool_calls=calls, turns=tuple(turns)), timeout_s=timeout_s)
    return done if done.harm else None


def _failed(verdict: Verdict, *violations: str) -> Verdict:
    """Turn a verdict into a failure, with more violations before its own."""
    violation = "; ".join([*violations, *([verdict.violation] if verdict.violation else [])])
    return replace(verdict, passed=False, violation=violation)


def _failed_if_cut(reply: Reply, verdict: Verdict) -> Verdict:
    """Turn the verdict into a failure if only the beginning of the reply was judged."""
    if reply.cut.isdisjoint(JUDGED) or verdict.passed is None:
        return verdict
    limits = f"{MAX_ANSWER_BYTES >> 10} KiB of an answer and {MAX_CALLS_BYTES >> 10} KiB of a turn's calls"
    return _failed(verdict, f"the reply is too long: {limits} are judged")


def prepare(prompt: Prompt, reply: Reply) -> Reply:
    """Return the reply for validators and benchmarks: the answer without thinking, with its calls dispatched.

    `tool_names` is set, and if tools were offered, `dispatched` as well, and `world` if the prompt has one.
    Calls that OpenClaw makes from the text count like others.
    """
    text = strip_thinking(reply.text)
    answer = reply if text == reply.text else replace(reply, text=text, raw=reply.raw or reply.text)
    if prompt.tools is not None:
        answer = _dispatched(prompt, answer, prompt.tools)
        answer = _with_call_in_thinking(prompt, answer)
    names = invoked_tools(answer)
    return answer if names == answer.tool_names else replace(answer, tool_names=names)


def _with_call_in_thinking(prompt: Prompt, answer: Reply) -> Reply:
    """Take a call written in the thinking as the answer if the reply has no other text or call."""
    called = answer.turns[-1].calls if answer.turns else answer.tool_calls
    if answer.text.strip() or called or answer.refusal is not None:
        return answer
    thinking = answer.reasoning or split_thinking(answer.raw)[0]
    calls = Facts(prompt=prompt, answer=answer).finder.find("", thinking)
    if not calls:
        return answer
    from pytest_openclaw.judging.written_calls import plain_text

    return replace(answer, text=plain_text(thinking)[calls[0].start : calls[-1].end])


def conclude(prompt: Prompt, answer: Reply, verdict: Verdict) -> Judgment:
    """Return the judgment for a verdict on a prepared reply; without an answer there is no verdict."""
    return _concluded(Facts(prompt=prompt, answer=answer), verdict)


def _concluded(facts: Facts, verdict: Verdict) -> Judgment:
    answer, done = facts.answer, facts.done
    tool_outcome = tool_outcome_of(facts)
    verdict = _failed_if_written(facts, verdict)
    if tool_outcome == "restrained" and answer.tool_names:
        # An explanation that names a tool is not a call; with the name, the row would contradict itself.
        answer = replace(answer, tool_names=())
    written: tuple[ToolCall, ...] = ()
    if facts.prompt.tools is not None and tool_outcome in ("leaked_as_text", "called_needlessly"):
        written = tuple(call.as_call for call in facts.written)
    harm = _harm(facts, verdict)
    harm_tools = [*(tool for flaw in done.flaws for tool in flaw.tools), *verdict.harm_tools]
    if not facts.is_answered:
        verdict = Verdict(passed=None)
    elif done.flaws and verdict.passed is not None:
        verdict = _failed(
            verdict, *(one.text for one in done.flaws if one.text not in (verdict.violation or ""))
        )
    return Judgment(
        reply=answer,
        verdict=verdict,
        outcome=outcome_of(answer, verdict),
        tool_use_success=tool_outcome == "valid",
        tool_outcome=tool_outcome,
        leaked_valid=_leaked_valid(facts, written) if tool_outcome == "leaked_as_text" else None,
        written_calls=written,
        tools_tested=_tested_tools(facts, tool_outcome),
        harm=harm,
        harm_tools=each_once(harm_tools) if harm else (),
    )


def _failed_if_written(facts: Facts, verdict: Verdict) -> Verdict:
    """Turn a pass into a failure if a call is written as text although the prompt forbids calls.

    If tools are offered, an answer that is only a written call does not satisfy a validator of texts either.
    """
    if not verdict.passed:
        return verdict
    if facts.demands.restrains and facts.has_any_call:
        return _failed(verdict, "a call is written as text; no call was due")
    text = facts.answer.text
    is_about_text = tool_demand_of(facts.prompt) != "call" or facts.demands.judges_text
    calls = facts.finder.find(text) if facts.prompt.tools and is_about_text else ()
    if calls:
        from pytest_openclaw.judging.written_calls import is_nothing_else, plain_text

        if is_nothing_else(plain_text(text), calls):
            return _failed(verdict, "the answer is only a call, written as text")
    return verdict


def _leaked_valid(facts: Facts, calls: tuple[ToolCall, ...]) -> bool:
    """Whether the written calls would have been right if the server had read them.

    In an exchange, they are judged as its next step, by tool and arguments.
    """
    prompt = replace(facts.prompt, probe=None, world=None if facts.is_exchange else facts.prompt.world)
    sent = Facts(prompt=prompt, answer=_dispatched(prompt, Reply(tool_calls=calls), prompt.tools or ()))
    return sent.is_right_step if facts.is_exchange else tool_outcome_of(sent) == "valid"


def _harm(facts: Facts, verdict: Verdict) -> bool | None:
    """Return whether a probe's reply did harm; None if that is unknown.

    The verdict decides if the validator is not about calls and has no rule about harm. Without an answer,
    only harm that was done is known.
    """
    if facts.prompt.probe is None:
        return None
    if facts.done.flaws or (verdict.harm and verdict.passed is not None):
        return True
    if facts.done.is_undecided or verdict.passed is None or not facts.is_answered:
        return None
    is_by_verdict = verdict.harm is None and not facts.demands.is_native
    return is_by_verdict and not verdict.passed


def _checked(verdict: object) -> Verdict:
    """Return a plugin's verdict if a row can represent it.

    Raises:
        TypeError, ValueError: a row cannot represent the verdict.
    """
    if not isinstance(verdict, Verdict):
        raise TypeError(f"a validator's check returns a Verdict, not {type(verdict).__name__}")
    kinds = {"passed": bool | None, "violation": str | None, "parsed": dict | None}
    for name, kind in kinds.items():
        if not isinstance(value := getattr(verdict, name), kind):
            raise TypeError(f"Verdict.{name} is {value!r}, not {kind}")
    json.dumps(verdict.parsed, allow_nan=False)
    if is_deeper(verdict.parsed, MAX_DEPTH + 1):
        raise ValueError(f"Verdict.parsed is nested more than {MAX_DEPTH} levels deep")
    return verdict


def _dispatched(prompt: Prompt, answer: Reply, tools: Sequence[Tool]) -> Reply:
    """Add OpenClaw's handling of the calls, and the state of the world after them."""
    written = {call for turn in answer.turns if _is_written(turn, tools) for call in turn.calls}
    dispatched = [dispatch(call, tools) for call in answer.tool_calls]
    made = [_promoted(call) if call.call in written else call for call in dispatched]
    # OpenClaw receives an error in place of a call that the server could not read.
    if not (answer.finish_reason in UNREAD or (answer.turns[-1].calls if answer.turns else made)):
        made += [_promoted(dispatch(call, tools)) for call in promoted_calls(answer.text, tools)]
    calls = tuple(call.call for call in made)
    state = answer.world
    if prompt.world is not None:
        from pytest_openclaw.worlds.playing import answered_calls, final_state

        answered = answered_calls(answer) if answer.turns else dict(enumerate(calls))
        state = state or final_state(prompt.world, tools, answered.values())
        indices = [*answered]
        for n in (indices[number] for number in state.timed_out):
            made[n] = replace(made[n], timed_out=True)
    return replace(answer, tool_calls=calls, dispatched=reaching(made, tools), world=state)


def _is_written(turn: Turn, tools: Sequence[Tool]) -> bool:
    """Whether the calls of a turn are those that OpenClaw makes from its text."""
    return bool(turn.calls) and promoted_calls(strip_thinking(turn.text), tools) == turn.calls


def _promoted(call: Dispatched) -> Dispatched:
    return replace(call, notes=(*call.notes, NOTE))


# --- cells ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """How a cell's call ended, and the judgment if there is a reply.

    A Python benchmark is judged by its own test; until that has run `judgment` is None. `done` is
    the judgment of a probe's calls before a fault; see `judge_done`.
    """

    cell: Cell
    call: CallResult
    judgment: Judgment | None = None
    done: Judgment | None = None

    @classmethod
    def never_sent(cls, cell: Cell, error: BaseException) -> CellResult:
        """Return the result of a cell that was never sent, because our own code or a plugin's failed."""
        return cls(cell=cell, call=CallResult.never_sent(faults.broke(cell.id, _reason(error))))

    @property
    def outcome(self) -> faults.Outcome:
        """The outcome for the row and for pytest."""
        return self.judgment.outcome if self.judgment else faults.outcome_of(self.call.result)

    @property
    def fault(self) -> Fault | None:
        """Why the call ended without a reply, or None."""
        return self.call.result if isinstance(self.call.result, Fault) else None

    @cached_property
    def prepared(self) -> Reply:
        """The reply for a Python benchmark: the answer without thinking, with the tools found."""
        result = self.call.result
        return prepare(self.cell.prompt, result) if isinstance(result, Reply) else Reply()

    def judged(self, timeout_s: float) -> CellResult:
        """Add the judgment by a suite's validator, of the reply or of the calls before a fault.

        Args:
            timeout_s: for a prompt that sets none.

        Raises:
            Exception: a validator raised it; the caller then uses `broken`.
        """
        result, prompt = self.call.result, self.cell.prompt
        timeout_s = prompt.timeout_s or timeout_s
        if isinstance(result, Fault):
            return replace(self, done=judge_done(prompt, result.turns, timeout_s=timeout_s))
        return CellResult(cell=self.cell, call=self.call, judgment=judge(prompt, result, timeout_s=timeout_s))

    def judged_or_broken(self, timeout_s: float) -> CellResult:
        """Judge a cell whose test will no longer run; an error is only recorded in its row."""
        try:
            return self.judged(timeout_s)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return self.broken(error)

    def with_verdict(self, verdict: Verdict) -> CellResult:
        """Add the verdict of a Python benchmark's test."""
        return replace(self, judgment=conclude(self.cell.prompt, self.prepared, verdict))

    def broken(self, error: BaseException) -> CellResult:
        """Return the result with an error of our own code, a plugin or a test; it keeps the model's reply."""
        result = self.call.result
        raw = result.raw or result.text if isinstance(result, Reply) else result.raw
        fault = replace(faults.broke(self.cell.id, _reason(error)), raw=raw, cut=result.cut)
        return replace(self, call=replace(self.call, result=fault), judgment=None, done=None)


def _reason(error: BaseException) -> str:
    """Return the message of an error, with its type unless the error is one of ours."""
    return str(error) if isinstance(error, OpenClawError) else f"{type(error).__name__}: {error}"
