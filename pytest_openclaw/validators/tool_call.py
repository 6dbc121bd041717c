"""The rule for native calls: what one answer must call on the wire, and with which arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.core.quoting import listed
from pytest_openclaw.tools.dispatch import same_tool
from pytest_openclaw.validators.answer import judged
from pytest_openclaw.validators.call_rules import WantedCall, find_calls, missing, read_calls, received_calls
from pytest_openclaw.validators.keys import flag_value, hint, settle, texts_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.replies import Reply, Verdict
    from pytest_openclaw.types.tool_calls import Dispatched


@dataclass(frozen=True, kw_only=True)
class ToolCalling:
    """Each of `calls` is met by a call of its own that OpenClaw would execute; none of `forbidden` is made.

    An empty list of `calls` demands that nothing at all is called. With `ordered` the calls come in this
    order; others may be between them. `*` among `forbidden` means every tool that is not demanded.
    """

    type: ClassVar[str] = "tool_call"
    calls: tuple[WantedCall, ...] = field(
        metadata=hint('List the calls, for example "calls": [{"name": "read"}]; an empty list forbids any.')
    )
    ordered: bool = False
    forbidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        settle(
            self,
            calls=read_calls(self.type, self.calls),
            ordered=flag_value(self.type, "ordered", self.ordered),
            forbidden=texts_value(self.type, "forbidden", self.forbidden),
        )

    def check(self, reply: Reply) -> Verdict:
        """Compare the calls made with those wanted."""
        made = reply.dispatched
        parsed = parsed_calls(made)
        if not self.calls:
            return judged(
                not made, f"called {listed(call.call.name for call in made)}; no call was due", parsed
            )
        if said := forbidden_call(self.forbidden, made, self.calls):
            return judged(False, said, parsed)
        unmet = find_calls(self.calls, received_calls(reply), ordered=self.ordered)
        return judged(not unmet, missing(unmet[0], made) if unmet else "", parsed)


def forbidden_call(
    forbidden: Sequence[str], made: Sequence[Dispatched], wanted: Sequence[WantedCall] = ()
) -> str | None:
    """Say which forbidden tool was called; None if none was. `*` forbids all that are not wanted."""
    for call in made:
        called = call.tool or call.call.name
        is_wanted = any(rule.is_for(called) for rule in wanted)
        if any(same_tool(name, called) or (name == "*" and not is_wanted) for name in forbidden):
            return f"{called} was called, which is forbidden here"
    return None


def parsed_calls(made: Sequence[Dispatched]) -> JsonObject:
    """Return the calls as `parsed_output` holds them."""
    return {
        "calls": [
            {"name": call.tool or call.call.name, "arguments": call.arguments, "problem": call.problem}
            for call in made
        ]
    }
