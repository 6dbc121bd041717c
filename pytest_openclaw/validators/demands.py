"""What validators demand of tools, and the flaws of the calls in a reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.types.protocols import NO_DEMANDS
from pytest_openclaw.validators.answer import Flaw

if TYPE_CHECKING:
    from pytest_openclaw.types.protocols import Demands, RequiredCall, Validator
    from pytest_openclaw.types.replies import Reply


def demands_of(validator: Validator | None) -> Demands:
    """Return what a validator demands of tools."""
    demands: Demands = getattr(validator, "demands", NO_DEMANDS)
    return demands


def needs_of(validator: Validator | None) -> tuple[tuple[str, str], ...]:
    """Return the types of validators that need a key of the prompt, each with that key."""
    demands = demands_of(validator)
    needs_tools = validator is not None and demands.is_native
    return demands.needs or (((validator.type, "tools"),) if validator and needs_tools else ())


def expected_tools(validator: Validator) -> tuple[str, ...] | None:
    """Return the tools that a validator expects, each once; empty means any, None that it expects none."""
    return demands_of(validator).expected_tools


def restrains(validator: Validator) -> bool:
    """Whether a validator forbids all calls."""
    return demands_of(validator).restrains


def demanded_calls(validator: Validator) -> tuple[RequiredCall, ...]:
    """Return every native call that a validator requires."""
    return demands_of(validator).calls


def judges_text(validator: Validator) -> bool:
    """Whether a validator judges the text of an answer, too, and not only native calls."""
    return demands_of(validator).judges_text


def work_flaws(validator: Validator, reply: Reply) -> list[Flaw]:
    """Return the flaws by the rules about native calls, without those about the reply's text.

    The answer at the end of an exchange is text, too. Of a validator without flaws of its own, the verdict is
    the only one.
    """
    if not demands_of(validator).is_native:
        return []
    if (own := getattr(validator, "flaws", None)) is not None:
        return [*own(reply)]
    verdict = validator.check(reply)
    if verdict.passed is not False:
        return []
    return [Flaw(verdict.violation or "failed", is_harm=verdict.harm is True, tools=verdict.harm_tools)]
