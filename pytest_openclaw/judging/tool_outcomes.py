"""Decides the one outcome of a tool cell.

The checks are in the order of OpenClaw's run: whether the work was done, and nothing else; what ended the run
early; what the model wrote instead of a call; what was wrong with its calls; what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.judging.keys import demands_of, work_flaws
from pytest_openclaw.openclaw.bridge import with_inner_calls
from pytest_openclaw.openclaw.thinking import split_thinking, strip_thinking
from pytest_openclaw.values.replies import MALFORMED_CALL, UNEXPECTED_CALL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.judging.written_forms import WrittenCall
    from pytest_openclaw.values.prompts import Prompt
    from pytest_openclaw.values.protocols import RequiredCall
    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.tool_calls import Dispatched, ToolDemand, ToolOutcome

_UNREAD: Mapping[str | None, ToolOutcome] = {
    MALFORMED_CALL: "malformed_json",
    UNEXPECTED_CALL: "unknown_tool",
}


def expected_tools_of(prompt: Prompt) -> tuple[str, ...] | None:
    """Return the tools of which one must be invoked; empty means any tool, None that none is required.

    The validator's own list has precedence, so that verdict and tool use agree; a prompt that must not
    call expects nothing.
    """
    if demands_of(prompt.validator).restrains:
        return None
    named = demands_of(prompt.validator).expected_tools
    return prompt.expected_tool_calls if named is None else named


def tool_demand_of(prompt: Prompt) -> ToolDemand:
    """Return what a prompt requires of tools; an answer has a `tool_outcome` unless that is nothing."""
    if demands_of(prompt.validator).restrains:
        return "restraint"
    if _is_native(prompt):
        return "call" if demands_of(prompt.validator).works else "none"
    return "none" if expected_tools_of(prompt) is None else "call"


def tool_outcome_of(prompt: Prompt, answer: Reply, *, answered: bool) -> ToolOutcome | None:
    """Return the outcome of a cell; None for a prompt that requires nothing of tools.

    Args:
        prompt: of the cell.
        answer: prepared, so that its calls are dispatched and `tool_names` is filled.
        answered: whether it is an answer at all; otherwise no tool was used, but a call is still needless
            if none was allowed.
    """
    demand = tool_demand_of(prompt)
    if demand == "none":
        return None
    if demand == "restraint":
        return "called_needlessly" if called_needlessly(prompt, answer) else "restrained"
    if not answered:
        return _UNREAD.get(answer.finish_reason, "no_call")
    return _of_work(prompt, answer) if _is_native(prompt) else _of_text(prompt, answer)


def called_needlessly(prompt: Prompt, answer: Reply) -> bool:
    """Whether a prompt that must not call has led to a call, on the wire or written as text."""
    if _is_native(prompt):
        return bool(answer.dispatched) or is_unread(answer) or is_leaked(prompt, answer)
    return bool(answer.tool_names)


def is_unread(answer: Reply) -> bool:
    """Whether the server could not read a call, or knew no such tool; the text is what the model wrote."""
    return answer.finish_reason in _UNREAD


def is_leaked(prompt: Prompt, answer: Reply) -> bool:
    """Whether a call is written as text, in any turn."""
    return bool(written_calls(prompt, answer))


def written_calls(prompt: Prompt, answer: Reply) -> tuple[WrittenCall, ...]:
    """Return the calls that the last turn with any has in its text or its thinking.

    A server may leave the text of a call that it has read: it is not counted again.
    """
    for turn in reversed(answer.turns):
        called = {call.name.casefold() for call in turn.calls}
        thinking = "" if called else _thinking(turn.text, turn.reasoning)
        calls = calls_written_in(prompt, strip_thinking(turn.text), thinking)
        if kept := tuple(call for call in calls if call.name.casefold() not in called):
            return kept
    return calls_written_in(prompt, answer.text, _thinking(answer.raw, answer.reasoning))


def calls_written_in(prompt: Prompt, text: str, thinking: str = "") -> tuple[WrittenCall, ...]:
    """Return the calls that an answer to a prompt, without its thinking, makes in writing."""
    from pytest_openclaw.judging.written_calls import asked_by, find_written_calls

    expected = {name for rule in demands_of(prompt.validator).calls for name in rule.names}
    said = (prompt.prompt, *prompt.turns, prompt.system or "")
    asked = asked_by(said, may_show=tool_demand_of(prompt) != "call")
    return find_written_calls(text, prompt.tools or (), expected, asked=asked, thinking=thinking)


def is_only_a_call(prompt: Prompt, text: str) -> bool:
    """Whether an answer is nothing but a call in writing."""
    from pytest_openclaw.judging.written_calls import is_nothing_else

    calls = calls_written_in(prompt, text)
    return bool(calls) and is_nothing_else(text, calls)


def is_right_step(prompt: Prompt, made: Sequence[Dispatched]) -> bool:
    """Whether calls with which an exchange goes on would be executed, and lead to its goal."""
    wanted = demands_of(prompt.validator).calls
    calls = with_inner_calls(made)
    harms = any(is_forbidden(made) for is_forbidden in demands_of(prompt.validator).forbids)
    leads = not wanted or any(rule.is_for(call.tool or "") for call in calls for rule in wanted)
    misses = any(_misses(call, wanted) for call in calls)
    return leads and not harms and not misses and all(call.is_executed for call in calls)


def _thinking(raw: str, reasoning: str) -> str:
    return reasoning or split_thinking(raw)[0]


def _is_native(prompt: Prompt) -> bool:
    return prompt.tools is not None and demands_of(prompt.validator).is_native


def _of_text(prompt: Prompt, answer: Reply) -> ToolOutcome:
    """Judge tools found in the text, and calls on the wire without a rule about native calls."""
    expected = {name.casefold() for name in expected_tools_of(prompt) or ()}
    invoked = {name.casefold() for name in answer.tool_names}
    if invoked and (not expected or not expected.isdisjoint(invoked)):
        return "valid"
    return "wrong_tool" if invoked else "no_call"


def _of_work(prompt: Prompt, answer: Reply) -> ToolOutcome:
    """Judge calls on the wire, by a decision list."""
    made = with_inner_calls(answer.dispatched)
    flaws = work_flaws(prompt.validator, answer)
    wanted = demands_of(prompt.validator).calls
    is_exchange = answer.ended_by is not None
    left = _unrecovered(made) if is_exchange else made
    ran = [call for call in made if call.is_executed]
    problems = {call.problem for call in left}
    has_started = any(rule.is_for(call.tool or "") for call in ran for rule in wanted) or (ran and not wanted)
    misses = [call for call in left if _misses(call, wanted)]
    hides = any(rule.check(answer).passed is False for rule in demands_of(prompt.validator).reports)
    if not flaws and not (hides and ran):
        return "valid" if ran else "no_call"
    if flaws and all(flaw.is_harm for flaw in flaws):
        return "extra_call" if all(flaw.is_extra for flaw in flaws) else "forbidden_call"
    if "malformed_json" in problems:
        return "malformed_json"
    if (is_exchange or not made) and is_leaked(prompt, answer):
        return "leaked_as_text"
    if unread := _UNREAD.get(answer.finish_reason):
        return unread
    if (is_exchange or not made) and _claims(prompt, answer):
        return "claimed_not_done"
    if not made:
        return "no_call"
    if "unknown_tool" in problems:
        return "unknown_tool"
    if "bad_arguments" in problems or misses:
        return "bad_arguments"
    if not has_started:
        return "wrong_tool"
    # A call that fails is tried again to the end: the loop is where the steps went.
    is_used_up = answer.ended_by == "step_limit" or (hides and answer.ended_by == "loop")
    return "out_of_steps" if is_used_up else "unfinished"


def _claims(prompt: Prompt, answer: Reply) -> bool:
    # Text beside a call during the work, such as "I've read it, now I'll edit", is not the last answer.
    if answer.ended_by in ("step_limit", "loop"):
        return False
    if any(rule.is_hidden(answer) for rule in demands_of(prompt.validator).reports):
        return True
    # Their patterns take 40 ms to compile, and most runs need none of them before their first cell.
    from pytest_openclaw.openclaw.claims import claims_done, mentions_error

    results = [result for turn in (*prompt.messages, *answer.turns) for result in turn.results]
    n_calls = sum(len(turn.calls) for turn in prompt.messages) + len(answer.dispatched)
    # A call without a result was refused, or its result is not known: either may be an error.
    may_have_failed = len(results) < n_calls or any(call.problem for call in answer.dispatched)
    if may_have_failed or any(map(mentions_error, results)):
        return claims_done(answer.text, "failed")
    return claims_done(answer.text, "fine" if n_calls else "none")


def _misses(call: Dispatched, wanted: Sequence[RequiredCall]) -> bool:
    """Whether a call is of a required tool, but has other values than every rule for it."""
    complaints = [rule.complaint(call) for rule in wanted if call.tool and rule.is_for(call.tool)]
    return bool(complaints) and None not in complaints


def _unrecovered(made: Sequence[Dispatched]) -> list[Dispatched]:
    """Drop refused calls that were corrected later: with the same tool, or any, if the tool was unknown."""
    kept = []
    for place, call in enumerate(made):
        later = [other.tool for other in made[place + 1 :] if other.is_executed]
        recovered = bool(later) if call.problem == "unknown_tool" else call.tool in later
        if call.is_executed or not recovered:
            kept.append(call)
    return kept
