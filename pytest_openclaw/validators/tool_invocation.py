"""The seed's tool validator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.core.quoting import listed
from pytest_openclaw.tools.invoked import invoked_tools
from pytest_openclaw.types.protocols import Demands
from pytest_openclaw.validators.answer import each_once, judged
from pytest_openclaw.validators.keys import hint, settle, texts_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.types.replies import Reply, Verdict


@dataclass(frozen=True, kw_only=True)
class ToolInvocation:
    """At least one of `expected_tools` is invoked, natively or in the text; names compare without case.

    With an empty list any invoked tool passes.
    """

    type: ClassVar[str] = "tool_invocation"
    expected_tools: tuple[str, ...] = field(
        metadata=hint('List the tools of which one must be invoked, for example "expected_tools": ["free"].')
    )

    def __post_init__(self) -> None:
        settle(self, expected_tools=texts_value(self.type, "expected_tools", self.expected_tools))

    def check(self, reply: Reply) -> Verdict:
        """Compare the tools invoked with those expected."""
        invoked = invoked_tools(reply)
        expected = f"one of {listed(self.expected_tools)}" if self.expected_tools else "any tool"
        violation = f"invoked: {listed(invoked, 'no tool')}; expected: {expected}"
        found = invoked_of(self.expected_tools, reply)
        return judged(bool(found), violation, {"tools": list(invoked)})

    @property
    def demands(self) -> Demands:
        """One of the tools, on the wire or in the text."""
        expected = each_once(self.expected_tools)
        return Demands(expected_tools=expected, passes_with_any_tool=not expected)


def invoked_of(expected_tools: Sequence[str], reply: Reply) -> tuple[str, ...]:
    """Return the invoked tools that are among the expected ones; all of them if none is named."""
    wanted = {name.lower() for name in expected_tools}
    return tuple(name for name in invoked_tools(reply) if not wanted or name.lower() in wanted)
