"""The seed's tool validator, and what it says about a prompt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.tools import invoked_tools
from pytest_openclaw.validators.answer import judged, listed
from pytest_openclaw.validators.combine import AllOf, AnyOf, Not
from pytest_openclaw.validators.keys import mend, settle, texts_value

if TYPE_CHECKING:
    from pytest_openclaw.protocols import Validator
    from pytest_openclaw.records import Reply, Verdict


@dataclass(frozen=True, kw_only=True)
class ToolInvocation:
    """At least one of `expected_tools` is invoked, natively or in the text; names compare without case.

    With an empty list any invoked tool passes.
    """

    type: ClassVar[str] = "tool_invocation"
    expected_tools: tuple[str, ...] = field(
        metadata=mend('List the tools of which one must be invoked, for example "expected_tools": ["free"].')
    )

    def __post_init__(self) -> None:
        settle(self, expected_tools=texts_value(self.type, "expected_tools", self.expected_tools))

    def check(self, reply: Reply) -> Verdict:
        """Compare the tools invoked with those expected."""
        invoked = invoked_tools(reply)
        names = {name.lower() for name in invoked}
        wanted = {name.lower() for name in self.expected_tools}
        passed = bool(names & wanted) if wanted else bool(names)
        expected = f"one of {listed(self.expected_tools)}" if wanted else "any tool"
        violation = f"invoked: {listed(invoked, 'no tool')}; expected: {expected}"
        return judged(passed, violation, {"tools": list(invoked)})


def expected_tools(validator: Validator) -> tuple[str, ...] | None:
    """Return the tools that a validator expects, each once; empty means any, None that it asks for none.

    Looks into `all_of` and `any_of`, and not into `not`, which asks for the contrary.
    """
    if isinstance(validator, ToolInvocation):
        return tuple(dict.fromkeys(validator.expected_tools))
    if not isinstance(validator, AllOf | AnyOf):
        return None
    parts = [tools for part in validator.validators if (tools := expected_tools(part)) is not None]
    if not parts:
        return None
    if isinstance(validator, AnyOf) and () in parts:
        return ()
    return tuple(dict.fromkeys(name for tools in parts for name in tools))


def restrains(validator: Validator) -> bool:
    """Whether a validator demands that no tool at all is invoked: by itself or within an `all_of`."""
    if isinstance(validator, AllOf):
        return any(restrains(part) for part in validator.validators)
    inner = validator.validator if isinstance(validator, Not) else None
    return isinstance(inner, ToolInvocation) and not inner.expected_tools
