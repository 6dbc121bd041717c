"""Joins native tool calls from the fragments that servers send.

The API numbers the calls of an answer and sends each id and name once. Some servers omit numbers or ids,
number all calls 0, repeat names, ids or all arguments, or send a new id with every fragment.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_openclaw.core.text import valid_text
from pytest_openclaw.providers.wire_errors import load_object
from pytest_openclaw.types.tool_calls import ToolCall

# Longer arguments are not compared; a repetition may differ from the original in its escapes.
_MOST_LONGER = 8


@dataclass
class _Call:
    """A tool call as its fragments arrive."""

    name: str = ""
    id: str | None = None
    pieces: list[str] = field(default_factory=list)
    length: int = 0

    def take(self, arguments: str, *, whole: bool) -> None:
        """Add a piece of the arguments, or replace the pieces by all of them."""
        if not arguments or (not whole and self.is_repeated_by(arguments)):
            return
        if whole or self.is_placeholder_before(arguments):
            self.pieces, self.length = [], 0
        self.pieces.append(arguments)
        self.length += len(arguments)

    def is_repeated_by(self, arguments: str) -> bool:
        """Whether the arguments are complete, and these repeat them."""
        if not self.pieces or self.length > _MOST_LONGER * (len(arguments) + 1):
            return False
        again = load_object(arguments)
        return again is not None and again == load_object("".join(self.pieces))

    def is_placeholder_before(self, arguments: str) -> bool:
        """Whether the arguments so far are an empty object, a placeholder for those that start now."""
        return self.length < 4 and load_object("".join(self.pieces)) == {} and arguments.lstrip()[:1] == "{"

    def ends_before(self, name: str, arguments: str) -> bool:
        """Whether a fragment with a tool's name starts another call: this one arrived whole in one piece."""
        if not arguments.strip() or len(self.pieces) != 1:
            return False
        own = load_object(self.pieces[0])
        if own is None:
            return False
        return name != self.name or (own != {} and own != load_object(arguments))


class ToolFragments:
    """The calls of one answer; true if there are any."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_key: dict[int | str, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def receive(
        self,
        key: int | str | None,
        id: str | None,  # noqa: A002 - the wire's own word
        name: str | None,
        arguments: str,
        *,
        whole: bool,
    ) -> None:
        """Add a fragment; see `Exchange.receive_tool_call`."""
        call = self._found(key, id, name)
        if begins := call is None or (name and _begins_another(call, id, name, arguments, whole=whole)):
            call = _Call()
            self._calls.append(call)
        if key is not None and (begins or id or name):
            self._by_key[key] = call
        if id and call.id is None:
            call.id = id
            self._by_id[id] = call
        call.name = call.name or name or ""
        call.take(arguments, whole=whole)

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in order of their start; one without a name is ignored."""
        return tuple(_tool_call(call) for call in self._calls if call.name)

    def _found(self, key: int | str | None, id: str | None, name: str | None) -> _Call | None:  # noqa: A002
        """Return the call to which a fragment belongs; None if there is none yet."""
        latest = self._calls[-1] if self._calls else None
        by_id = self._by_id.get(id) if id else None
        if key is None:
            # Every call starts with a name.
            return by_id or (None if name else latest)
        # The events of one item may have different keys but share an id; a number is more reliable.
        known = self._by_key.get(key) or (by_id if isinstance(key, str) else None)
        return known or (None if id or name else latest)


def _begins_another(call: _Call, id: str | None, name: str, arguments: str, *, whole: bool) -> bool:  # noqa: A002
    """Whether a fragment with a tool's name, and the key or id of `call`, starts another call."""
    if id and call.id:
        if id != call.id:
            return True
        if whole:
            return False
    return bool(call.name) and call.ends_before(name, arguments)


def _tool_call(call: _Call) -> ToolCall:
    return ToolCall(
        name=valid_text(call.name),
        arguments=valid_text("".join(call.pieces)),
        id=valid_text(call.id) if call.id else None,
    )
