"""Finds a validator's requirements for tools: expected tools, required calls, or no calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.validators.answer import each_once
from pytest_openclaw.validators.call_rules import ANY, CallRule
from pytest_openclaw.validators.combine import AllOf, AnyOf, Not
from pytest_openclaw.validators.reports_failure import ReportsFailure
from pytest_openclaw.validators.tool_invocation import ToolInvocation

if TYPE_CHECKING:
    from pytest_openclaw.types.protocols import Validator
    from pytest_openclaw.types.replies import Reply
    from pytest_openclaw.validators.answer import Flaw
    from pytest_openclaw.validators.call_rules import WantedCall

CALL_RULES = frozenset({"tool_call", "world"})
"""The types of validators that judge native calls."""


def expected_tools(validator: Validator) -> tuple[str, ...] | None:
    """Return the tools that a validator expects, each once; empty means any, None that it expects none.

    Looks into `all_of` and `any_of`, but not into `not`, which inverts it.
    """
    if isinstance(validator, ToolInvocation):
        return each_once(validator.expected_tools)
    if isinstance(validator, CallRule):
        return (
            each_once(name for call in validator.calls for name in call.names) if validator.demands else None
        )
    if not isinstance(validator, AllOf | AnyOf):
        return None
    parts = [tools for part in validator.validators if (tools := expected_tools(part)) is not None]
    if not parts:
        return None
    if isinstance(validator, AnyOf) and () in parts:
        return ()
    return each_once(name for tools in parts for name in tools)


def restrains(validator: object) -> bool:
    """Whether a validator forbids all calls: by itself or within an `all_of`."""
    if isinstance(validator, AllOf):
        return any(restrains(part) for part in validator.validators)
    if isinstance(validator, CallRule):
        return not validator.calls and (validator.type == "tool_call" or ANY in validator.forbidden)
    inner = validator.validator if isinstance(validator, Not) else None
    return isinstance(inner, ToolInvocation) and not inner.expected_tools


def call_rules(validator: object) -> tuple[CallRule, ...]:
    """Return the rules about native calls in a validator."""
    if isinstance(validator, CallRule):
        return (validator,)
    if isinstance(validator, AllOf | AnyOf):
        return tuple(rule for part in validator.validators for rule in call_rules(part))
    return ()


def demanded_calls(validator: object) -> tuple[WantedCall, ...]:
    """Return every call that a rule of a validator requires."""
    return tuple(call for rule in call_rules(validator) for call in rule.calls)


def demands_work(validator: object) -> bool:
    """Whether a rule of a validator requires that tools do something."""
    return any(rule.demands for rule in call_rules(validator))


def judges_text(validator: object) -> bool:
    """Whether a validator judges the text of an answer, too, and not only native calls."""
    if isinstance(validator, AllOf | AnyOf):
        return any(map(judges_text, validator.validators))
    return not isinstance(validator, CallRule) or getattr(validator, "answer", None) is not None


def work_flaws(validator: object, reply: Reply) -> list[Flaw]:
    """Return the flaws by the rules about native calls, without those about the reply's text.

    The answer at the end of an exchange is text, too. Of alternatives the nearest is used.
    """
    return [*(_flaws(validator, reply) or ())]


def due_reports(validator: object) -> tuple[ReportsFailure, ...]:
    """Return the rules by which the last text has to report a failure, beside a rule about native calls."""
    if isinstance(validator, ReportsFailure):
        return (validator,)
    if isinstance(validator, AllOf):
        return tuple(rule for part in validator.validators for rule in due_reports(part))
    return due_reports(getattr(validator, "answer", None)) if isinstance(validator, CallRule) else ()


def _flaws(validator: object, reply: Reply) -> list[Flaw] | None:
    if isinstance(validator, CallRule):
        return [*validator.flaws(reply)]
    if not isinstance(validator, AllOf | AnyOf):
        return None
    parts = [flaws for part in validator.validators if (flaws := _flaws(part, reply)) is not None]
    if isinstance(validator, AllOf) and parts:
        return [flaw for flaws in parts for flaw in flaws]
    # An alternative in which something is only missing is nearer than one in which harm was done.
    return min(parts, key=lambda flaws: (bool(flaws), all(flaw.is_harm for flaw in flaws)), default=None)
