"""The rule for native calls: what one answer must call on the wire, and with which arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.core.quoting import listed
from pytest_openclaw.tools.bridge import inner_call, with_inner_calls
from pytest_openclaw.tools.dispatch import same_tool
from pytest_openclaw.validators.answer import Flaw, each_once, judged_flaws
from pytest_openclaw.validators.call_rules import (
    ANY,
    WantedCall,
    called_tool,
    find_calls,
    missing,
    read_calls,
    received_calls,
)
from pytest_openclaw.validators.keys import flag_value, hint, settle, texts_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.replies import Reply, Verdict
    from pytest_openclaw.types.tool_calls import Dispatched


@dataclass(frozen=True, kw_only=True)
class ToolCalling:
    """Each of `calls` is met by a call of its own that OpenClaw would execute; none of `forbidden` is made.

    An empty list of `calls` demands that nothing at all is called. With `ordered` the calls come in this
    order; others may be between them. `*` among `forbidden` means every tool that is not demanded. A call
    over the bridge counts as the call that it carries.
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
        return judged_flaws(
            [*self._flaws(reply)][:1], parsed_calls(made), forbids=bool(self.forbidden) or not self.calls
        )

    def _flaws(self, reply: Reply) -> Iterator[Flaw]:
        if not self.calls:
            if reply.dispatched:
                called = each_once(called_tool(inner_call(call) or call) for call in reply.dispatched)
                text = f"called {listed(call.call.name for call in reply.dispatched)}; no call was due"
                yield Flaw(text, is_harm=True, tools=called)
            return
        yield from forbidden_calls(self.forbidden, reply.dispatched, self.calls)
        unmet = find_calls(self.calls, with_inner_calls(received_calls(reply)), ordered=self.ordered)
        if unmet:
            yield Flaw(missing(unmet[0], with_inner_calls(reply.dispatched)))


def forbidden_calls(
    forbidden: Sequence[str], dispatched: Sequence[Dispatched], wanted: Sequence[WantedCall]
) -> Iterator[Flaw]:
    """Yield that forbidden tools were called, if any was. `*` forbids all that are not wanted.

    The bridge is a way to the tool that was meant: it is forbidden by its own name, and by `*` only where
    the tool is.
    """
    found = []
    for call in dispatched:
        meant = called_tool(inner_call(call) or call)
        is_wanted = any(rule.is_for(name) for rule in wanted for name in (meant, called_tool(call)))
        for name in dict.fromkeys((called_tool(call), meant)):
            is_any = ANY in forbidden and name == meant and not is_wanted
            if is_any or any(same_tool(one, name) for one in forbidden):
                found.append(name)
    if found:
        yield Flaw(f"{found[0]} was called, which is forbidden here", is_harm=True, tools=each_once(found))


def parsed_calls(made: Sequence[Dispatched]) -> JsonObject:
    """Return the calls as `parsed_output` holds them."""
    return {
        "calls": [
            {"name": called_tool(call), "arguments": call.arguments, "problem": call.problem} for call in made
        ]
    }
