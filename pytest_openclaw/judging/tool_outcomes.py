"""How a cell whose tools were offered on the wire has ended: exactly one outcome.

The order of the questions is that of OpenClaw's run: what breaks it goes first, then whether the work was
done, then what prevented it; only a reply without calls is searched for what it says instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_openclaw.tools.bridge import with_inner_calls
from pytest_openclaw.validators.demands import demanded_calls, is_met, restrains

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.types.prompts import Prompt
    from pytest_openclaw.types.replies import Reply
    from pytest_openclaw.types.tool_calls import Dispatched, ToolOutcome
    from pytest_openclaw.validators.call_rules import WantedCall

_HOW = re.compile(
    r"\b(?:examples?|formats?|syntax|looks? like|show|explain|document\w*|describe|template|schema|json|xml"
    r"|quote|written|write out|spell|beispiel\w*|ejemplos?|formatos?)\b|示例|例子|格式",
    re.IGNORECASE,
)
"""Words of a prompt whose right answer may show a written call."""


def native_outcome(prompt: Prompt, answer: Reply, *, answered: bool) -> ToolOutcome:
    """Return the outcome of a cell whose validator asks about native calls.

    Args:
        prompt: what was asked.
        answer: prepared, so that its calls are dispatched.
        answered: whether it is an answer at all; if it is none, nothing was used, and a call in it still
            was needless where none was due.
    """
    if restrains(prompt.validator):
        called = bool(answer.dispatched) or _leaked(prompt, answer)
        return "called_needlessly" if called else "restrained"
    if not answered:
        return "no_call"
    if answer.ended_by is not None:
        return _of_exchange(prompt, answer)
    return _of_answer(prompt, answer)


def _of_answer(prompt: Prompt, answer: Reply) -> ToolOutcome:
    made = with_inner_calls(answer.dispatched)
    if any(call.problem == "malformed_json" for call in made):
        return "malformed_json"
    if is_met(prompt.validator, answer):
        return "valid"
    return _of_calls(prompt, made) if made else _of_words(prompt, answer)


def _of_exchange(prompt: Prompt, answer: Reply) -> ToolOutcome:
    """Judge a scripted exchange: what was put right afterwards does not count."""
    made = with_inner_calls(answer.dispatched)
    if is_met(prompt.validator, answer):
        return "valid"
    left = _unrecovered(made)
    if any(call.problem == "malformed_json" for call in left):
        return "malformed_json"
    said = _of_words(prompt, answer)
    if said != "no_call" or not made:
        return said
    return _of_calls(prompt, left)


def _of_words(prompt: Prompt, answer: Reply) -> ToolOutcome:
    # Their patterns take 40 ms to compile, and most runs need none of them before their first cell.
    from pytest_openclaw.tools.claims import claims_done

    if _leaked(prompt, answer):
        return "leaked_as_text"
    # Words beside a call in the midst of the work, such as "I've read it, now I'll edit", are no last answer.
    was_cut_short = answer.ended_by in ("step_limit", "loop")
    return "claimed_not_done" if not was_cut_short and claims_done(answer.text) else "no_call"


def _of_calls(prompt: Prompt, made: Sequence[Dispatched]) -> ToolOutcome:
    """Say what is wrong with calls that did not do the work."""
    if any(call.problem == "unknown_tool" for call in made):
        return "unknown_tool"
    wanted = demanded_calls(prompt.validator)
    refused = any(call.problem == "bad_arguments" for call in made)
    return "bad_arguments" if refused or any(_misses(call, wanted) for call in made) else "wrong_tool"


def _misses(call: Dispatched, wanted: Sequence[WantedCall]) -> bool:
    """Whether a call is of a demanded tool, but has other values than any demand of it."""
    complaints = [rule.complaint(call) for rule in wanted if call.tool and rule.is_for(call.tool)]
    return bool(complaints) and None not in complaints


def _unrecovered(made: Sequence[Dispatched]) -> list[Dispatched]:
    """Drop refused calls that were put right later: by the same tool, or by any, if the tool was unknown."""
    kept = []
    for place, call in enumerate(made):
        later = [other.tool for other in made[place + 1 :] if other.is_executed]
        recovered = bool(later) if call.problem == "unknown_tool" else call.tool in later
        if call.is_executed or not recovered:
            kept.append(call)
    return kept


def _leaked(prompt: Prompt, answer: Reply) -> bool:
    from pytest_openclaw.tools.leaks import find_leaks

    expected = {name for rule in demanded_calls(prompt.validator) for name in rule.names}
    tools = prompt.tools or ()
    return bool(find_leaks(answer.text, tools, expected, shown_on_request=_asks_how(prompt)))


def _asks_how(prompt: Prompt) -> bool:
    """Whether a prompt that must not call asks how calls are written."""
    return restrains(prompt.validator) and bool(_HOW.search(prompt.prompt))
