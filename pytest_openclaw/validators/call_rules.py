"""Which calls had to be made: the rule that single answers and scripted exchanges have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.json_schema import BoundedSchema
from pytest_openclaw.core.json_text import same
from pytest_openclaw.core.quoting import listed, shown
from pytest_openclaw.tools.dispatch import same_tool
from pytest_openclaw.validators.answer import BLANKS
from pytest_openclaw.validators.keys import list_value, table_value, texts_value, what

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Reply, Turn
    from pytest_openclaw.types.tool_calls import Dispatched

_KEYS = ("name", "arguments", "matching")
ANY = "*"
"""In a list of forbidden tools: every tool that is not demanded."""
_PATHS = ("path", "workdir")
_HINT = 'Write for example {"name": "read", "arguments": {"path": "notes.md"}}.'


@dataclass(frozen=True, kw_only=True)
class WantedCall:
    """A call that must be made.

    Attributes:
        names: of tools; any of them will do.
        arguments: values that it must have; others are free.
        matching: a JSON Schema of all its arguments.
    """

    names: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    matching: Mapping[str, Any] = field(default_factory=dict)

    def is_for(self, tool: str) -> bool:
        """Whether a call of this tool could be meant."""
        return any(same_tool(name, tool) for name in self.names)

    def complaint(self, made: Dispatched) -> str | None:
        """Say what is wrong with a call of one of these tools; None if it will do."""
        given = made.arguments or {}
        for name, value in self.arguments.items():
            if name not in given:
                return f"{made.tool} has no {name}, which should be {_short(value)}"
            if not _equal(name, given[name], value):
                return f"{made.tool} has {name} {_short(given[name])}, not {_short(value)}"
        violation = self._schema.violation(dict(given)) if self.matching else None
        return f"{made.tool}: {violation}" if violation else None

    @cached_property
    def _schema(self) -> BoundedSchema:
        return BoundedSchema(self.matching)


def read_calls(owner: str, value: object) -> tuple[WantedCall, ...]:
    """Return the calls that a suite demands.

    Raises:
        ValueError: names the validator and the key, with a hint.
    """
    return tuple(_read_call(owner, entry) for entry in list_value(owner, "calls", value))


def find_calls(
    wanted: Sequence[WantedCall], made: Sequence[Dispatched], *, ordered: bool
) -> tuple[WantedCall, ...]:
    """Return the wanted calls that no call of their own meets, among those that are executed.

    Args:
        wanted: what must be called.
        made: every call, in order.
        ordered: the calls that meet them are in the same order.
    """
    able = [
        [n for n, call in enumerate(made) if call.is_executed and call.tool and _meets(call, rule)]
        for rule in wanted
    ]
    return _unmet_in_order(wanted, able) if ordered else _unmet(wanted, able)


def called_tool(call: Dispatched) -> str:
    """Return the offered tool that a call reaches, or else the name that it calls."""
    return call.tool or call.call.name


def received_calls(reply: Reply) -> tuple[Dispatched, ...]:
    """Return the calls that OpenClaw looks at one by one: none of a turn in which one is no JSON.

    Of such a turn none is carried out, whether it ends the run or the model is asked again.
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
    """Whether the model had come to the end of its room in a turn, of which nothing was carried out."""
    return turn.finish_reason == "length" and not turn.results


def missing(wanted: WantedCall, made: Sequence[Dispatched]) -> str:
    """Say why a wanted call was not found: the nearest complaint, or that nothing like it was called."""
    for call in reversed(made):
        if call.tool and wanted.is_for(call.tool):
            if not call.is_executed:
                return _refused(call)
            if complaint := wanted.complaint(call):
                return complaint
            broken = next((one for one in made if one.problem == "malformed_json"), None)
            # It ended the run, this call with it.
            return _refused(broken) if broken else f"{call.tool} was not called often enough, or not in order"
    return f"expected a call of {listed(wanted.names)}"


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
    """Give each rule a call of its own, by augmenting paths (Kuhn's algorithm for bipartite matching)."""
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


def _read_call(owner: str, entry: object) -> WantedCall:
    if not isinstance(entry, Mapping):
        raise ValueError(f'validator {owner}: "calls" holds {what(entry)}. {_HINT}')
    if unknown := [key for key in entry if key not in _KEYS]:
        raise ValueError(f'validator {owner}: a call in "calls" has {shown(unknown[0])}. {_HINT}')
    if "name" not in entry:
        raise ValueError(f'validator {owner}: a call in "calls" has no "name". {_HINT}')
    name = entry["name"]
    names = (name,) if isinstance(name, str) else texts_value(owner, "name", name)
    if not names:
        raise ValueError(f'validator {owner}: a call in "calls" has an empty list of names. {_HINT}')
    call = WantedCall(
        names=names,
        arguments=table_value(owner, "arguments", entry.get("arguments", {})),
        matching=table_value(owner, "matching", entry.get("matching", {})),
    )
    if call.matching:
        try:
            call._schema  # noqa: B018 - a bad schema is reported when the suite is read
        except ValueError as error:
            raise ValueError(f'validator {owner}: "matching" {error}') from error
    return call


def _equal(name: str, given: object, wanted: object) -> bool:
    if not (isinstance(given, str) and isinstance(wanted, str)):
        return same(given, wanted)
    given, wanted = given.strip(BLANKS), wanted.strip(BLANKS)
    if name in _PATHS:  # ./notes/ is notes
        given, wanted = normpath(given), normpath(wanted)
    return given == wanted


def _short(value: object) -> str:
    return shown(json.dumps(value, ensure_ascii=False))[1:-1]
