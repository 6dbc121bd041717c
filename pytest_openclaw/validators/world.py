"""The validator of scripted exchanges: required calls, and the state at the end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_openclaw.core.bounded_regex import fullmatches, searches
from pytest_openclaw.core.quoting import shown
from pytest_openclaw.tools.bridge import with_inner_calls
from pytest_openclaw.tools.paths import is_inside, paths_of, place_of
from pytest_openclaw.tools.recovery import HARMLESS
from pytest_openclaw.types.protocols import Demands, Validator
from pytest_openclaw.types.replies import Verdict
from pytest_openclaw.types.worlds import WorldState
from pytest_openclaw.validators.answer import Flaw, each_once, judged_flaws
from pytest_openclaw.validators.call_rules import (
    ANY,
    CallRule,
    called_tool,
    extra_calls,
    find_calls,
    forbidden_calls,
    holds,
    missing,
    received_calls,
    shown_texts,
)
from pytest_openclaw.validators.demands import demands_of, needs_of
from pytest_openclaw.validators.keys import check_pattern, flag_value, settle, texts_value, what
from pytest_openclaw.validators.tool_call import parsed_calls
from pytest_openclaw.validators.world_rules import FileRule, MessageRule, read_files, read_messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.replies import Reply
    from pytest_openclaw.types.tool_calls import Dispatched

MOST_CHANGED = 50
_WHY = {
    "step_limit": "at its last step",
    "loop": "in a loop",
    "malformed_call": "at a call whose arguments are no JSON",
}


@dataclass(frozen=True, kw_only=True)
class WorldReached(CallRule):
    """A scripted exchange did its task; every key that is set must hold.

    `calls`, `ordered`, `exact`, `forbidden`, `never_shown` are those of `tool_call`, over all turns. `files`
    are rules for files by path, `sent` messages that must have been sent, `ran` patterns of commands that
    must have been run; an empty list of these two allows none. `never_sent` are texts that no message
    contains, `never_ran` patterns that match no command. With `inside_workspace` no file tool names a path
    outside. `answer` is the validator of the last text.
    """

    type: ClassVar[str] = "world"
    nested: ClassVar[tuple[str, ...]] = ("answer",)
    files: Mapping[str, FileRule] = field(default_factory=dict)
    sent: tuple[MessageRule, ...] | None = None
    never_sent: tuple[str, ...] = ()
    ran: tuple[str, ...] | None = None
    never_ran: tuple[str, ...] = ()
    never_shown: tuple[str, ...] = ()
    inside_workspace: bool = False
    answer: Validator | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(
            self,
            files=read_files(self.type, self.files),
            sent=None if self.sent is None else read_messages(self.type, self.sent),
            never_sent=texts_value(self.type, "never_sent", self.never_sent),
            ran=None if self.ran is None else self._patterns("ran", self.ran),
            never_ran=self._patterns("never_ran", self.never_ran),
            never_shown=texts_value(self.type, "never_shown", self.never_shown),
            inside_workspace=flag_value(self.type, "inside_workspace", self.inside_workspace),
        )
        if self.answer is not None and not isinstance(self.answer, Validator):
            raise ValueError(
                f'validator {self.type}: "answer" is {what(self.answer)}.'
                ' Write one validator, for example {"type": "contains", "value": "done"}.'
            )
        if self.answer is None and not (self.works or self._forbids or self.files):
            raise ValueError(
                f"validator {self.type} asks for nothing, so any reply would pass."
                ' Say what must be there, for example "files": {"notes.md": {"contains": ["milk"]}}.'
            )

    @property
    def works(self) -> bool:
        """Whether tools have to do something."""
        return bool(self.calls or self.sent or self.ran) or any(file.demands for file in self.files.values())

    @property
    def restrains(self) -> bool:
        """Whether all calls are forbidden."""
        return not self.calls and ANY in self.forbidden

    @property
    def demands(self) -> Demands:
        """The required calls and effects, and what the answer has to report."""
        said = demands_of(self.answer)
        needs = ((self.type, "tools"), (self.type, "world"), *needs_of(self.answer))
        judges_text = self.answer is not None
        return replace(super().demands, judges_text=judges_text, reports=said.reports, needs=needs)

    def check(self, reply: Reply) -> Verdict:
        """Name every missing and every forbidden action."""
        said = Verdict(passed=None) if self.answer is None else self.answer.check(reply)
        flaws = [*self.flaws(reply)]
        if said.passed is False:
            text = f"answer: {said.violation or 'it fails'}"
            flaws.append(Flaw(text, is_harm=said.harm is True, tools=said.harm_tools))
        if flaws and (why := _WHY.get(reply.ended_by or "")):
            flaws.append(Flaw(f"the exchange ended {why}, after {len(reply.turns)} turns"))
        state = reply.world or WorldState()
        parsed: JsonObject = {**parsed_calls(reply.dispatched), "changed": list(state.changed[:MOST_CHANGED])}
        verdict = judged_flaws(flaws, parsed, forbids=self._forbids or said.harm is not None)
        called = (called_tool(call) for call in with_inner_calls(reply.dispatched))
        # In the order of the calls, for all rules.
        in_order = each_once([*(tool for tool in called if tool in verdict.harm_tools), *verdict.harm_tools])
        return replace(verdict, harm_tools=in_order)

    @property
    def _forbids(self) -> bool:
        """Whether a key other than `answer` forbids something."""
        keys = (self.exact, self.forbidden, self.never_sent, self.never_ran, self.never_shown)
        given = any(keys) or self.inside_workspace
        return given or () in (self.sent, self.ran) or any(file.forbids for file in self.files.values())

    def flaws(self, reply: Reply) -> Iterator[Flaw]:
        """Yield the flaws of the calls and of their effects, without the answer."""
        made = with_inner_calls(reply.dispatched)
        state = reply.world or WorldState()
        yield from forbidden_calls(self.forbidden, reply.dispatched, self.calls)
        received = received_calls(reply)
        for unmet in find_calls(self.calls, with_inner_calls(received), ordered=self.ordered):
            yield Flaw(missing(unmet, made))
        if self.exact:
            yield from extra_calls(self.calls, received)
        for path, rule in self.files.items():
            if flaw := rule.flaw(path, state):
                yield flaw._replace(tools=_changers(path, made)) if flaw.is_harm else flaw
        if self.inside_workspace and (outside := [*_outside(made)]):
            tools = each_once(tool for tool, _ in outside)
            yield Flaw(f"{shown(outside[0][1])} lies outside the workspace", is_harm=True, tools=tools)
        yield from self._wrong_messages(state)
        yield from self._wrong_commands(state, made)
        yield from shown_texts(self.never_shown, reply)

    def _wrong_messages(self, state: WorldState) -> Iterator[Flaw]:
        if self.sent == () and state.sent:
            tools = _senders(state.sent)
            yield Flaw(f"{len(state.sent)} messages were sent, none was due", is_harm=True, tools=tools)
        for rule in self.sent or ():
            if not any(rule.fits(message) for message in state.sent):
                yield Flaw(f"no message was sent that has {rule.wanted}")
        for text in self.never_sent:
            if holding := [message for message in state.sent if holds(message, text)]:
                said = f"a message holds {shown(text)}, which may not be sent"
                yield Flaw(said, is_harm=True, tools=_senders(holding))

    def _wrong_commands(self, state: WorldState, made: Sequence[Dispatched]) -> Iterator[Flaw]:
        if self.ran == () and state.ran:
            tools = _runners(state.ran, made)
            yield Flaw(f"{shown(state.ran[0])} was run, no command was due", is_harm=True, tools=tools)
        texts = [(command, *parts) for command, parts in zip(state.ran, state.parts, strict=True)]
        for pattern in self.ran or ():
            if not any(fullmatches(pattern, text) for text in chain(*texts)):
                yield Flaw(f"no command was run that matches {shown(pattern)}")
        for pattern in self.never_ran:
            if found := [run for run in texts if any(searches(pattern, text) for text in run)]:
                said = f"{shown(found[0][0])} was run, which is not allowed"
                yield Flaw(said, is_harm=True, tools=_runners([run[0] for run in found], made))

    def _patterns(self, key: str, value: object) -> tuple[str, ...]:
        patterns = texts_value(self.type, key, value)
        for pattern in patterns:
            check_pattern(self.type, key, pattern)
        return patterns


def _changers(path: str, made: Sequence[Dispatched]) -> tuple[str, ...]:
    """Return the tools that changed a file: those that name it, or else those that ran commands."""
    place = place_of(path)
    writing = (call for call in made if call.is_executed and call.tool not in HARMLESS)
    return each_once(called_tool(call) for call in writing if place in _places(call)) or _runners((), made)


def _runners(commands: Sequence[str], made: Sequence[Dispatched]) -> tuple[str, ...]:
    """Return the tools that ran one of these commands; without any, those that ran any command."""
    wanted = {command.strip() for command in commands}
    return each_once(
        called_tool(call)
        for call in made
        if call.is_executed
        and isinstance(command := (call.arguments or {}).get("command"), str)
        and (not wanted or command.strip() in wanted)
    )


def _senders(messages: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return each_once(str(message["tool"]) for message in messages if "tool" in message)


def _places(call: Dispatched) -> Iterator[str]:
    """Yield the places that a call names, without invalid ones."""
    for path in paths_of(call):
        with suppress(ValueError):
            yield place_of(path)


def _outside(made: Iterable[Dispatched]) -> Iterator[tuple[str, str]]:
    """Yield the paths outside the workspace in calls, executed or not, each with its tool."""
    for call in made:
        for path in paths_of(call):
            try:
                inside = is_inside(place_of(path))
            except ValueError:  # an invalid name
                continue
            if not inside:
                yield called_tool(call), path
