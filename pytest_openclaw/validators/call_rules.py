"""The rules about required and forbidden calls, for single answers and scripted exchanges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_openclaw.core.json_schema import BoundedSchema
from pytest_openclaw.core.quoting import listed, shown
from pytest_openclaw.tools.bridge import LOOKUPS, inner_call, with_inner_calls
from pytest_openclaw.tools.dispatch import same_tool
from pytest_openclaw.types.protocols import Demands
from pytest_openclaw.validators.answer import Flaw, each_once
from pytest_openclaw.validators.keys import flag_value, list_value, settle, table_value, texts_value, what
from pytest_openclaw.validators.wanted_arguments import WantedArguments, read_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.types.replies import Reply, Turn
    from pytest_openclaw.types.tool_calls import Dispatched

_KEYS = ("name", "arguments", "ignore_case", "ignore_punctuation", "matching")
ANY = "*"
"""In a list of forbidden tools: every tool that is not required."""
_HINT = 'Write for example {"name": "read", "arguments": {"path": "notes.md"}}.'


@dataclass(frozen=True, kw_only=True)
class WantedCall:
    """A required call.

    Attributes:
        names: of tools; any of them is accepted.
        arguments: those that it must have; others are free.
        matching: a JSON Schema of all its arguments.
    """

    names: tuple[str, ...]
    arguments: WantedArguments = field(default_factory=WantedArguments)
    matching: Mapping[str, Any] = field(default_factory=dict)

    def is_for(self, tool: str) -> bool:
        """Whether a call of this tool can match."""
        return any(same_tool(name, tool) for name in self.names)

    def complaint(self, made: Dispatched) -> str | None:
        """Return the error of a call of one of these tools; None if it matches."""
        given = made.arguments or {}
        if wrong := self.arguments.complaint(given):
            return f"{made.tool} has {wrong}"
        violation = self._schema.violation(dict(given)) if self.matching else None
        return f"{made.tool}: {violation}" if violation else None

    @cached_property
    def _schema(self) -> BoundedSchema:
        return BoundedSchema(self.matching)


@dataclass(frozen=True, kw_only=True)
class CallRule(ABC):
    """A validator of native calls, with the keys that all of them have."""

    type: ClassVar[str]
    calls: tuple[WantedCall, ...] = ()
    ordered: bool = False
    exact: bool = False
    forbidden: tuple[str | WantedCall, ...] = ()

    def __post_init__(self) -> None:
        settle(
            self,
            calls=_read_calls(self.type, "calls", self.calls, WantedCall),
            forbidden=_read_calls(self.type, "forbidden", self.forbidden, (str, WantedCall)),
        )
        flag_value(self.type, "ordered", self.ordered)
        if flag_value(self.type, "exact", self.exact) and not self.calls:
            raise ValueError(
                f'validator {self.type}: "exact" is true without "calls". List the calls to be made.'
            )

    @property
    def works(self) -> bool:
        """Whether tools have to do something."""
        return bool(self.calls)

    @property
    def restrains(self) -> bool:
        """Whether all calls are forbidden."""
        return not self.calls

    def is_forbidden(self, made: Sequence[Dispatched]) -> bool:
        """Whether one of these calls is forbidden."""
        return any(True for _ in forbidden_calls(self.forbidden, made, self.calls))

    @property
    def demands(self) -> Demands:
        """The required calls."""
        demands = Demands.of_calls(*self.calls)
        return replace(
            demands,
            forbids=(self.is_forbidden,),
            works=self.works,
            restrains=self.restrains,
            expected_tools=demands.expected_tools if self.calls or not self.works else (),
            needs=((self.type, "tools"),),
        )

    @abstractmethod
    def flaws(self, reply: Reply) -> Iterator[Flaw]:
        """Yield the flaws of the calls and of their effects."""


def find_calls(
    wanted: Sequence[WantedCall], made: Sequence[Dispatched], *, ordered: bool
) -> tuple[WantedCall, ...]:
    """Return the required calls without a matching executed call of their own.

    Args:
        wanted: the required calls.
        made: every call, in order.
        ordered: whether the matching calls must be in the same order.
    """
    able = [
        [n for n, call in enumerate(made) if call.is_executed and call.tool and _meets(call, rule)]
        for rule in wanted
    ]
    return _unmet_in_order(wanted, able) if ordered else _unmet(wanted, able)


def called_tool(call: Dispatched) -> str:
    """Return the offered tool that a call reaches, or otherwise the name in the call."""
    return call.tool or call.call.name


def forbidden_calls(
    forbidden: Sequence[str | WantedCall], dispatched: Sequence[Dispatched], wanted: Sequence[WantedCall]
) -> Iterator[Flaw]:
    """Yield a flaw for forbidden calls, if there are any. `*` forbids all that are not required.

    The bridge only leads to another tool: it is forbidden by its own name, and by `*` only if that tool is.
    """
    named: list[str] = []
    with_arguments: list[str] = []
    for call in dispatched:
        inner = inner_call(call)
        meant = inner or call
        is_free = _is_wanted(call, inner, wanted)
        for one in dict.fromkeys((called_tool(call), called_tool(meant))):
            is_any = ANY in forbidden and one == called_tool(meant) and not is_free
            if is_any or any(isinstance(rule, str) and same_tool(rule, one) for rule in forbidden):
                named.append(one)
        if any(_meets(meant, rule) for rule in forbidden if isinstance(rule, WantedCall)):
            with_arguments.append(called_tool(meant))
    if tools := each_once([*named, *with_arguments]):
        how = "which is forbidden here" if named else "with arguments that are forbidden here"
        yield Flaw(f"{tools[0]} was called{',' if named else ''} {how}", is_harm=True, tools=tools)


def extra_calls(wanted: Sequence[WantedCall], received: Sequence[Dispatched]) -> Iterator[Flaw]:
    """Yield a flaw for further calls than the required ones, if OpenClaw would execute them.

    A search for a tool through the bridge does not count.
    """
    made = [(call, inner_call(call) or call) for call in received]
    counted = [
        meant
        for call, meant in made
        if meant.is_executed and (meant.tool not in LOOKUPS or _is_met_by(wanted, call, meant))
    ]
    n_met = len(wanted) - len(find_calls(wanted, with_inner_calls(received), ordered=False))
    if len(counted) > n_met:
        others = [meant for meant in counted if not _is_met_by(wanted, meant)]
        names = each_once(map(called_tool, others or counted[-1:]))
        yield Flaw(f"{names[0]} was called, which was not due", is_harm=True, is_extra=True, tools=names)


def shown_texts(never_shown: Sequence[str], reply: Reply) -> Iterator[Flaw]:
    """Yield forbidden texts that appear in an argument, a tool's result or a message of the model.

    Case does not matter.
    """
    said = [turn.text for turn in reply.turns] or [reply.text]
    results = [
        result for turn in reply.turns for _, result in zip_longest(turn.calls, turn.results, fillvalue="")
    ]
    for text in never_shown:
        tools = each_once(
            called_tool(inner_call(call) or call)
            for call, result in zip_longest(reply.dispatched, results)
            if call and (holds(call.arguments, text) or holds([call.call.arguments, result], text))
        )
        if tools or holds([*said, reply.text], text):
            where = f"in a call of {tools[0]} or its result" if tools else "in the answer"
            yield Flaw(f"{shown(text)} was shown {where}, and may not be", is_harm=True, tools=tools)


def holds(value: Any, text: str) -> bool:
    """Whether a text is anywhere in a JSON value, in any case."""
    if isinstance(value, str):
        return text.casefold() in value.casefold()
    if isinstance(value, Mapping):
        return any(holds(inner, text) for inner in value.values())
    return isinstance(value, list | tuple) and any(holds(inner, text) for inner in value)


def received_calls(reply: Reply) -> tuple[Dispatched, ...]:
    """Return the calls that OpenClaw handles one by one: none of a turn with a call that is not JSON.

    No call of such a turn is executed, whether it ends the run or is repeated.
    """
    left = list(reply.dispatched)
    received: list[Dispatched] = []
    turns = [(len(turn.calls), _was_cut(turn)) for turn in reply.turns]
    for count, was_cut in (*turns, (len(left), False)):
        calls, left = left[:count], left[count:]
        if not was_cut and not any(call.problem == "malformed_json" for call in calls):
            received += calls
    return tuple(received)


def _was_cut(turn: Turn) -> bool:
    """Whether the output limit cut off a turn, so that none of its calls was executed."""
    return turn.finish_reason == "length" and not turn.results


def missing(wanted: WantedCall, made: Sequence[Dispatched]) -> str:
    """Return why a required call is missing: the nearest error, or that nothing similar was called."""
    for call in reversed(made):
        if call.tool and wanted.is_for(call.tool):
            if not call.is_executed:
                return _refused(call)
            if complaint := wanted.complaint(call):
                return complaint
            broken = next((one for one in made if one.problem == "malformed_json"), None)
            # It ended the run, including this call.
            return _refused(broken) if broken else f"{call.tool} was not called often enough, or not in order"
    return f"expected a call of {listed(wanted.names)}"


def _is_wanted(call: Dispatched, inner: Dispatched | None, wanted: Sequence[WantedCall]) -> bool:
    return any(rule.is_for(called_tool(one)) for rule in wanted for one in (call, inner) if one)


def _is_met_by(wanted: Sequence[WantedCall], *calls: Dispatched) -> bool:
    return any(_meets(call, rule) for rule in wanted for call in calls)


def _refused(call: Dispatched) -> str:
    return f"{called_tool(call)} was refused: {call.message.partition(chr(10) * 2)[0]}"


def _meets(call: Dispatched, rule: WantedCall) -> bool:
    return rule.is_for(call.tool or "") and rule.complaint(call) is None


def _unmet_in_order(wanted: Sequence[WantedCall], able: list[list[int]]) -> tuple[WantedCall, ...]:
    after = -1
    unmet = []
    for rule, places in zip(wanted, able, strict=True):
        place = next((n for n in places if n > after), None)
        if place is None:
            unmet.append(rule)
        else:
            after = place
    return tuple(unmet)


def _unmet(wanted: Sequence[WantedCall], able: list[list[int]]) -> tuple[WantedCall, ...]:
    """Assign each rule its own call, by augmenting paths (Kuhn's algorithm for bipartite matching)."""
    taken: dict[int, int] = {}

    def place(rule: int, tried: set[int]) -> bool:
        for n in able[rule]:
            if n in tried:
                continue
            tried.add(n)
            if n not in taken or place(taken[n], tried):
                taken[n] = rule
                return True
        return False

    return tuple(wanted[rule] for rule in range(len(wanted)) if not place(rule, set()))


def _read_calls(owner: str, key: str, value: object, ready: type | tuple[type, ...]) -> tuple[Any, ...]:
    """Return the calls of a list, read unless they are `ready`."""
    return tuple(
        entry if isinstance(entry, ready) else _read_call(owner, entry, f"{key}[{place}]")
        for place, entry in enumerate(list_value(owner, key, value))
    )


def _read_call(owner: str, entry: object, key: str) -> WantedCall:
    if not isinstance(entry, Mapping):
        raise ValueError(f'validator {owner}: "{key}" is {what(entry)}. {_HINT}')
    if unknown := [one for one in entry if one not in _KEYS]:
        raise ValueError(f'validator {owner}: "{key}" has {shown(unknown[0])}. {_HINT}')
    if "name" not in entry:
        raise ValueError(f'validator {owner}: "{key}" has no "name". {_HINT}')
    where = f'{owner}: "{key}"'
    name = entry["name"]
    names = (name,) if isinstance(name, str) else texts_value(where, "name", name)
    if not names:
        raise ValueError(f'validator {owner}: "{key}" has an empty list of names. {_HINT}')
    call = WantedCall(
        names=names,
        arguments=read_arguments(where, entry),
        matching=table_value(where, "matching", entry.get("matching", {})),
    )
    if call.matching:
        try:
            call._schema  # noqa: B018 - a bad schema is reported when the suite is read
        except ValueError as error:
            raise ValueError(f'validator {where}: "matching" {error}') from error
    return call
