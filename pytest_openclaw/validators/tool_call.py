"""The validator of native calls: the calls that one answer must make on the wire, with their arguments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.core.quoting import listed
from pytest_openclaw.tools.bridge import inner_call, with_inner_calls
from pytest_openclaw.validators.answer import Flaw, each_once, judged_flaws
from pytest_openclaw.validators.call_rules import (
    CallRule,
    WantedCall,
    called_tool,
    extra_calls,
    find_calls,
    forbidden_calls,
    missing,
    received_calls,
    shown_texts,
)
from pytest_openclaw.validators.keys import hint, settle, texts_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.replies import Reply, Verdict
    from pytest_openclaw.types.tool_calls import Dispatched


@dataclass(frozen=True, kw_only=True)
class ToolCalling(CallRule):
    """Each of `calls` has its own matching call that OpenClaw would execute; none of `forbidden` is made.

    An empty list of `calls` requires that nothing is called. With `ordered` the calls come in this
    order; others may be between them. With `exact` no others are executed. `*` among `forbidden` means every
    tool that is not required. `never_shown` are texts that appear in no argument, in no result of a tool and
    in no message of the model, in any case. A call through the bridge counts as the call that it carries.
    """

    type: ClassVar[str] = "tool_call"
    calls: tuple[WantedCall, ...] = field(
        metadata=hint('List the calls, for example "calls": [{"name": "read"}]; an empty list forbids any.')
    )
    never_shown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, never_shown=texts_value(self.type, "never_shown", self.never_shown))

    def check(self, reply: Reply) -> Verdict:
        """Compare the calls with the required ones; the first flaw is the violation."""
        flaws = [*self.flaws(reply)]
        forbids = bool(self.forbidden or self.exact or self.never_shown) or not self.calls
        verdict = judged_flaws(flaws, parsed_calls(reply.dispatched), forbids=forbids)
        return replace(verdict, violation=flaws[0].text) if flaws else verdict

    def flaws(self, reply: Reply) -> Iterator[Flaw]:
        """Yield the flaws of the calls, harm first."""
        if not self.calls and reply.dispatched:
            called = each_once(called_tool(inner_call(call) or call) for call in reply.dispatched)
            text = f"called {listed(call.call.name for call in reply.dispatched)}; no call was due"
            yield Flaw(text, is_harm=True, tools=called)
        yield from forbidden_calls(self.forbidden, reply.dispatched, self.calls) if self.calls else ()
        yield from shown_texts(self.never_shown, reply)
        received = received_calls(reply)
        unmet = find_calls(self.calls, with_inner_calls(received), ordered=self.ordered)
        if unmet:
            yield Flaw(missing(unmet[0], with_inner_calls(reply.dispatched)))
        if self.exact:
            yield from extra_calls(self.calls, received)


def parsed_calls(made: Sequence[Dispatched]) -> JsonObject:
    """Return the calls for `parsed_output`."""
    return {
        "calls": [
            {"name": called_tool(call), "arguments": call.arguments, "problem": call.problem} for call in made
        ]
    }
