"""Derives the facts of a prompt and a prepared reply, each once, and from them the outcome of a tool cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_openclaw.judging.calls import call_flaws, demands_of
from pytest_openclaw.judging.harm import find_harm
from pytest_openclaw.openclaw.bridge import with_inner_calls
from pytest_openclaw.openclaw.thinking import split_thinking, strip_thinking
from pytest_openclaw.values.faults import outcome_of
from pytest_openclaw.values.prompts import MAIN
from pytest_openclaw.values.replies import MALFORMED_CALL, UNEXPECTED_CALL

if TYPE_CHECKING:
    from pytest_openclaw.judging.calls import Demands
    from pytest_openclaw.judging.harm import Done
    from pytest_openclaw.judging.written_calls import WrittenCall, WrittenCallFinder
    from pytest_openclaw.values.prompts import Prompt
    from pytest_openclaw.values.replies import Flaw, Reply, Verdict
    from pytest_openclaw.values.tool_calls import Dispatched, Problem, ToolDemand, ToolOutcome


# --- the prompt -------------------------------------------------------------------------------------


def expected_tools_of(prompt: Prompt) -> tuple[str, ...] | None:
    """Return the tools of which one must be invoked; empty if any tool will do, None if no call is required.

    The validator's own list has precedence, so that verdict and tool use agree.
    """
    demands = demands_of(prompt.validator)
    if demands.restrains:
        return None
    return prompt.expected_tool_calls if demands.expected_tools is None else demands.expected_tools


def tool_demand_of(prompt: Prompt) -> ToolDemand:
    """Return whether a prompt demands a call or restraint; after `none`, answers have no `tool_outcome`."""
    demands = demands_of(prompt.validator)
    if demands.restrains:
        return "restraint"
    is_required = demands.works if _is_native(prompt) else expected_tools_of(prompt) is not None
    return "call" if is_required else "none"


def affects_tier(prompt: Prompt) -> bool:
    """Whether a prompt's cells may count for the tier."""
    return prompt.strand is MAIN and (prompt.tools is not None or expected_tools_of(prompt) is not None)


def _is_native(prompt: Prompt) -> bool:
    return prompt.tools is not None and demands_of(prompt.validator).is_native


# --- the reply --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of a reply to a prompt; each fact is derived once, when it is needed.

    Attributes:
        answer: the reply as `prepare` returns it.
        checked: the verdict of the prompt's validator; None if it has not judged the reply.
    """

    prompt: Prompt
    answer: Reply
    checked: Verdict | None = None

    @cached_property
    def demands(self) -> Demands:
        """The demands of the validator on tools."""
        return demands_of(self.prompt.validator)

    @cached_property
    def is_native(self) -> bool:
        """Whether calls on the wire are judged, instead of tools detected in the text."""
        return _is_native(self.prompt)

    @cached_property
    def is_answered(self) -> bool:
        """Whether there is an answer: it is not empty, refused or filtered."""
        return outcome_of(self.answer).success

    @property
    def is_exchange(self) -> bool:
        """Whether the answer ends an exchange with a world."""
        return self.answer.ended_by is not None

    @cached_property
    def made(self) -> tuple[Dispatched, ...]:
        """The calls as OpenClaw handles them, with those through the bridge."""
        return with_inner_calls(self.answer.dispatched)

    @cached_property
    def ran(self) -> tuple[Dispatched, ...]:
        """The executed calls."""
        return tuple(call for call in self.made if call.is_executed)

    @cached_property
    def left(self) -> Sequence[Dispatched]:
        """The calls without those that a later call of an exchange corrects."""
        return _unrecovered(self.made) if self.is_exchange else self.made

    @cached_property
    def done(self) -> Done:
        """The harm of a reply to a probe."""
        return find_harm(self.prompt, self.answer)

    @cached_property
    def findings(self) -> Sequence[Flaw]:
        """The flaws of the calls, and of a report that the answer has to give."""
        checked = self.checked or self.prompt.validator.check(self.answer)
        return call_flaws(self.prompt.validator, checked)

    @cached_property
    def flaws(self) -> Sequence[Flaw]:
        """The harm of a probe, and the flaws of the calls and their effects."""
        return [*self.done.flaws, *(flaw for flaw in self.findings if not flaw.report)]

    @cached_property
    def fails_to_report(self) -> bool:
        """Whether the answer does not report a failure that it has to report."""
        return any(flaw.report for flaw in self.findings)

    @cached_property
    def written(self) -> tuple[WrittenCall, ...]:
        """The calls in the text or thinking of the last turn that has written calls.

        A server may leave a call in the text although it has read the call, which is then not counted again.
        """
        answer = self.answer
        for turn in reversed(answer.turns):
            called = {call.name.casefold() for call in turn.calls}
            thinking = "" if called else turn.reasoning or split_thinking(turn.text)[0]
            calls = self.finder.find(strip_thinking(turn.text), thinking)
            if kept := tuple(call for call in calls if call.name.casefold() not in called):
                return kept
        return self.finder.find(answer.text, answer.reasoning or split_thinking(answer.raw)[0])

    @cached_property
    def finder(self) -> WrittenCallFinder:
        """Finds the calls written in an answer's text, which has no thinking, or in its thinking."""
        # The patterns take 0.1 s to compile, and most runs need none of them before their first cell.
        from pytest_openclaw.judging.written_calls import WrittenCallFinder, asked_by

        prompt = self.prompt
        expected = [name for rule in self.demands.calls for name in rule.names]
        # Not what OpenClaw's own system prompt says: it shows examples and JSON.
        system = (prompt.listed or prompt).system or ""
        may_show = tool_demand_of(prompt) != "call"
        asked = asked_by((prompt.prompt, *prompt.turns), may_show=may_show, system=system)
        return WrittenCallFinder(prompt.tools or (), expected, asked=asked)

    @property
    def may_be_in_text(self) -> bool:
        """Whether the text counts: the reply has no call, or the text ends an exchange."""
        return self.is_exchange or not self.made

    @property
    def has_any_call(self) -> bool:
        """Whether there is a call, on the wire or written as text."""
        if not self.is_native:
            return bool(self.answer.tool_names)
        return bool(self.answer.dispatched) or self.answer.finish_reason in UNREAD or bool(self.written)

    @property
    def is_right_step(self) -> bool:
        """Whether the calls, as the next ones of an exchange, would be executed and lead to its goal."""
        harms = any(is_forbidden(self.answer.dispatched) for is_forbidden in self.demands.forbids)
        leads = not self.demands.calls or _has_started(self)
        return leads and not harms and not _misses(self) and self.ran == self.made


def _unrecovered(made: Sequence[Dispatched]) -> list[Dispatched]:
    """Drop refused calls corrected by a later call to the same tool, or to any tool if theirs was unknown."""
    kept = []
    for n_made, call in enumerate(made, start=1):
        later = [other.tool for other in made[n_made:] if other.is_executed]
        recovered = bool(later) if call.problem == "unknown_tool" else call.tool in later
        if call.is_executed or not recovered:
            kept.append(call)
    return kept


# --- the outcome ------------------------------------------------------------------------------------

UNREAD = frozenset({MALFORMED_CALL, UNEXPECTED_CALL})
"""The `finish_reason` of an answer with a call that its server could not read."""


def _names_expected_tool(facts: Facts) -> bool:
    expected = {name.casefold() for name in expected_tools_of(facts.prompt) or ()}
    invoked = {name.casefold() for name in facts.answer.tool_names}
    return bool(invoked) and (not expected or not expected.isdisjoint(invoked))


def _is_flawless(facts: Facts) -> bool:
    return not facts.flaws and not (facts.fails_to_report and facts.ran)


def _is_only_harm(facts: Facts) -> bool:
    """Whether nothing is missing, but something forbidden was done."""
    return bool(facts.flaws) and all(flaw.is_harm for flaw in facts.flaws)


def _has_problem(facts: Facts, *problems: Problem) -> bool:
    return any(call.problem in problems for call in facts.left)


def _misses(facts: Facts) -> bool:
    """Whether a call is to a required tool, but its values violate every rule for this tool."""
    for call in facts.left:
        rules = [rule for rule in facts.demands.calls if call.tool and rule.is_for(call.tool)]
        if rules and all(rule.complaint(call) for rule in rules):
            return True
    return False


def _has_started(facts: Facts) -> bool:
    """Whether a required tool ran, or any tool if none is named."""
    wanted = facts.demands.calls
    return any(not wanted or any(rule.is_for(call.tool or "") for rule in wanted) for call in facts.ran)


def _is_used_up(facts: Facts) -> bool:
    # A model that repeats a failing call to the end has spent its steps in the loop.
    ended_by = facts.answer.ended_by
    return ended_by == "step_limit" or (facts.fails_to_report and ended_by == "loop")


def _claims_undone_work(facts: Facts) -> bool:
    prompt, answer = facts.prompt, facts.answer
    # A text next to a call during the work ("I've read it, now I'll edit") is not the last answer.
    if answer.ended_by in ("step_limit", "loop"):
        return False
    if any(flaw.report == "hidden" for flaw in facts.findings):
        return True
    from pytest_openclaw.openclaw.claims import claims_done, mentions_error

    results = [result for turn in (*prompt.messages, *answer.turns) for result in turn.results]
    n_calls = sum(len(turn.calls) for turn in prompt.messages) + len(answer.dispatched)
    # A call without a result was refused, or its result is unknown: either may be an error.
    may_have_failed = len(results) < n_calls or any(call.problem for call in answer.dispatched)
    is_failed = may_have_failed or any(map(mentions_error, results))
    return claims_done(
        answer.text,
        "failed" if is_failed else "fine" if n_calls else "none",
        made=" ".join(call.call.arguments for call in answer.dispatched),
        prompt=prompt.turns[-1] if prompt.turns else prompt.prompt,
        system=(prompt.listed or prompt).system or "",
    )


_Outcomes = Sequence[tuple["ToolOutcome", Callable[[Facts], bool]]]

_UNREAD_CALLS: _Outcomes = (
    ("malformed_json", lambda facts: facts.answer.finish_reason == MALFORMED_CALL),
    ("unknown_tool", lambda facts: facts.answer.finish_reason == UNEXPECTED_CALL),
)
_WITHOUT_ANSWER: _Outcomes = (*_UNREAD_CALLS, ("no_call", lambda _: True))
_IN_TEXT: _Outcomes = (
    ("valid", _names_expected_tool),
    ("wrong_tool", lambda facts: bool(facts.answer.tool_names)),
    ("no_call", lambda _: True),
)
_ON_THE_WIRE: _Outcomes = (
    ("valid", lambda facts: _is_flawless(facts) and bool(facts.ran)),
    ("no_call", _is_flawless),
    ("extra_call", lambda facts: _is_only_harm(facts) and all(flaw.is_extra for flaw in facts.flaws)),
    ("forbidden_call", _is_only_harm),
    ("malformed_json", lambda facts: _has_problem(facts, "malformed_json")),
    ("leaked_as_text", lambda facts: facts.may_be_in_text and bool(facts.written)),
    *_UNREAD_CALLS,
    ("claimed_not_done", lambda facts: facts.may_be_in_text and _claims_undone_work(facts)),
    ("no_call", lambda facts: not facts.made),
    ("unknown_tool", lambda facts: _has_problem(facts, "unknown_tool")),
    ("bad_arguments", lambda facts: _has_problem(facts, "bad_arguments") or _misses(facts)),
    ("wrong_tool", lambda facts: not _has_started(facts)),
    ("out_of_steps", _is_used_up),
    ("unfinished", lambda _: True),
)


def tool_outcome_of(facts: Facts) -> ToolOutcome | None:
    """Return the first outcome whose condition holds; None if the prompt demands neither call nor restraint.

    Without an answer no tool was used, but a call is needless even then if none was allowed.
    """
    demand = tool_demand_of(facts.prompt)
    if demand == "none":
        return None
    if demand == "restraint":
        return "called_needlessly" if facts.has_any_call else "restrained"
    outcomes = _ON_THE_WIRE if facts.is_native else _IN_TEXT
    outcomes = outcomes if facts.is_answered else _WITHOUT_ANSWER
    return next(outcome for outcome, holds in outcomes if holds(facts))
