"""Joins texts, tool calls and carried blocks from the pieces that servers send.

Servers should send each piece once. Many gateways also send the whole text, or all calls, at the end, at the
start or with every piece; some number all calls 0, cut or repeat names, or send a new id with every piece.
`docs/explanation/servers.md` lists these habits. A model may repeat itself, so a short repetition is kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_openclaw.providers.wire_errors import load_object
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pytest_openclaw.util.json_types import JsonObject

# Different characters of a text that a model does not repeat by chance: "ha ha " has 3.
_DISTINCT = 6
# Longer arguments are not compared; a repetition may differ from the original in its escapes.
_MOST_LONGER = 8


# --- texts --------------------------------------------------------------------------------------


@dataclass
class _Block:
    """One text as its pieces arrive.

    Attributes:
        pieces: each with whether it came with, or after, a finish reason.
        start: the text with which its server announced it.
        whole: the text that its server calls complete.

    """

    pieces: list[tuple[str, bool]] = field(default_factory=list)
    start: str = ""
    whole: str = ""

    def text(self) -> str:
        text = _joined(self.pieces)
        # The start is a copy of the text, or its first piece.
        if self.start and not (
            text == self.start or (_is_telling(self.start) and text.startswith(self.start))
        ):
            text = self.start + text
        return self.whole if self.whole.startswith(text) else text


class Text:
    """One channel of an answer; true if it has a text."""

    def __init__(self) -> None:
        self._blocks: dict[Hashable, _Block] = {}
        self._choice: int | None = None
        self._message = ""

    def __bool__(self) -> bool:
        return bool(self._blocks or self._message)

    def add(self, piece: str, *, key: Hashable = None, choice: int = 0, at_end: bool = False) -> bool:
        """Add a piece of the text with this key; of several choices only the first with a text is read.

        Returns:
            Whether it was read.

        """
        if not self._is_read(choice):
            return False
        self._blocks.setdefault(key, _Block()).pieces.append((piece, at_end))
        return True

    def announce(self, text: str, *, key: Hashable = None) -> None:
        """Add the text with which a block starts."""
        block = self._blocks.get(key)
        if block is not None and block.pieces:
            self.complete(text, key=key)
        elif block is not None or not self._is_copy(text):
            self._blocks.setdefault(key, _Block()).start = text

    def complete(self, text: str, *, key: Hashable = None) -> None:
        """Add a whole text, of which pieces may have arrived."""
        block = self._blocks.get(key)
        if block is None and self._is_copy(text):
            return
        block = self._blocks.setdefault(key, _Block())
        block.whole = max(block.whole, text, key=len)

    def complete_all(self, text: str, *, choice: int = 0) -> None:
        """Add the whole text of the channel, of which any part may have arrived."""
        if self._is_read(choice):
            self._message = max(self._message, text, key=len)

    def text(self) -> str:
        """Return the text so far, without repetitions by the server."""
        text = "".join([block.text() for block in self._blocks.values()])
        return valid_text(self._message if self._message.startswith(text) else text)

    def _is_read(self, choice: int) -> bool:
        if self._choice is None:
            self._choice = choice
        return self._choice == choice

    def _is_copy(self, text: str) -> bool:
        """Whether a text whose key is new is a streamed one; some gateways change keys on the way."""
        streamed = [block.text() for block in self._blocks.values() if not block.whole]
        return bool(streamed) and (text in streamed or text == "".join(streamed))


def _is_telling(text: str) -> bool:
    return len(set(text)) >= _DISTINCT


def _joined(pieces: Sequence[tuple[str, bool]]) -> str:
    """Join pieces; a piece that begins with all text before it replaces it, if that is not by chance."""
    texts = [piece for piece, _ in pieces]
    if len(texts) < 2:
        return "".join(texts)
    if _is_cumulative(texts):
        return texts[-1]
    parts: list[str] = []
    length = 0
    for number, (piece, at_end) in enumerate(pieces):
        if number and len(piece) >= length and (number > 1 or at_end):
            before = "".join(parts)
            if piece.startswith(before) and _is_telling(before):
                parts, length = [], 0
        parts.append(piece)
        length += len(piece)
    return "".join(parts)


def _is_cumulative(texts: Sequence[str]) -> bool:
    """Whether each piece begins with the one before it, and this is not by chance."""
    grown = [texts[0]]
    for before, text in pairwise(texts):
        if not text.startswith(before):
            return False
        if text != before:
            grown.append(text)
    if len(grown) < 2:
        return False
    return _is_telling(grown[-2]) or (len(grown) > 3 and len(set(grown[-1])) > 3)


# --- tool calls ---------------------------------------------------------------------------------


@dataclass
class _Call:
    """A tool call as its fragments arrive."""

    name: str = ""
    id: str | None = None
    pieces: list[str] = field(default_factory=list)
    length: int = 0

    def arguments(self) -> str:
        return "".join(self.pieces)

    def take_name(self, name: str) -> None:
        """Add a name, or a piece of one as long as there are no arguments."""
        if name.startswith(self.name):
            self.name = name
        elif not self.pieces and name != self.name:
            self.name += name

    def take(self, arguments: str, *, whole: bool) -> None:
        """Add a piece of the arguments, or replace the pieces by all of them."""
        if not arguments or (not whole and self.is_repeated_by(arguments)):
            return
        if whole or self.is_placeholder_before(arguments) or self._is_begun_by(arguments):
            self.pieces, self.length = [], 0
        self.pieces.append(arguments)
        self.length += len(arguments)

    def is_repeated_by(self, arguments: str) -> bool:
        """Whether the arguments are complete, and these repeat them."""
        if not self.pieces or self.length > _MOST_LONGER * (len(arguments) + 1):
            return False
        again = load_object(arguments)
        return again is not None and again == load_object(self.arguments())

    def is_placeholder_before(self, arguments: str) -> bool:
        """Whether the arguments so far are an empty object, a placeholder for those that start now."""
        return self.length < 4 and load_object(self.arguments()) == {} and arguments.lstrip()[:1] == "{"

    def _is_begun_by(self, arguments: str) -> bool:
        """Whether a piece has all pieces before it; JSON never continues with its own beginning."""
        if arguments[:1] != "{" or not 0 < self.length <= len(arguments):
            return False
        return arguments.startswith(self.arguments())

    def ends_before(self, name: str, arguments: str) -> bool:
        """Whether a fragment with a tool's name starts another call: this one arrived whole in one piece."""
        if not arguments.strip() or len(self.pieces) != 1:
            return False
        own = load_object(self.pieces[0])
        if own is None:
            return False
        return name != self.name or (own != {} and own != load_object(arguments))

    def is_twin(self, name: str | None, arguments: str) -> bool:
        """Whether a fragment with this call's id says nothing new."""
        if name and name != self.name:
            return False
        if not arguments or not self.pieces:
            return True
        is_complete = load_object(self.arguments()) is not None
        return is_complete and (load_object(arguments) == {} or self.is_repeated_by(arguments))


class ToolFragments:
    """The calls of one answer; true if there are any."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_key: dict[Hashable, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._by_both: dict[tuple[Hashable, str], _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def receive(
        self,
        key: Hashable,
        id: str | None,  # noqa: A002 - the wire's own word
        name: str | None,
        arguments: str,
        *,
        whole: bool,
    ) -> None:
        """Add a fragment; see `Exchange.receive_tool_call`."""
        known = self._by_id.get(id) if id else None
        if known is not None and known.is_twin(name, arguments):
            is_new = not known.pieces or (whole and known.is_repeated_by(arguments))
            known.take(arguments if is_new else "", whole=whole)
            return
        call = self._found(key, id, name)
        if begins := call is None or (name and _begins_another(call, id, name, arguments, whole=whole)):
            call = _Call()
            self._calls.append(call)
        if key is not None and (begins or id or name):
            self._by_key[key] = call
        if id:
            self._by_both[key, id] = call
            if call.id is None:
                call.id = id
                self._by_id[id] = call
        if name:
            call.take_name(name)
        call.take(arguments, whole=whole)

    def receive_all(self, calls: Sequence[ToolCall]) -> None:
        """Add all calls of an answer, of which any may have arrived, in any form."""
        left = [call for call in self._calls if call.name]
        for one in calls:
            if (again := _match(one, left)) is not None:
                left.remove(again)
                if load_object(again.arguments()) is None:
                    again.take(one.arguments, whole=True)
                continue
            if one.name:
                call = _Call(name=one.name, id=one.id)
                call.take(one.arguments, whole=True)
                self._calls.append(call)

    def is_repeated_by(self, calls: Sequence[ToolCall], *, at_end: bool) -> bool:
        """Whether a list of calls repeats all calls so far; a single one may be made again by the model."""
        mine = self.tool_calls()
        if len(calls) != len(mine) or not calls or not (len(calls) > 1 or at_end):
            return False
        has_other_id = len(calls) == 1 and calls[0].id and mine[0].id not in (None, calls[0].id)
        return not has_other_id and all(map(_is_same, mine, calls))

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in order of their start; one without a name is ignored."""
        return tuple(_tool_call(call) for call in self._calls if call.name)

    def _found(self, key: Hashable, id: str | None, name: str | None) -> _Call | None:  # noqa: A002
        """Return the call to which a fragment belongs; None if there is none yet."""
        latest = self._calls[-1] if self._calls else None
        by_id = self._by_id.get(id) if id else None
        if key is None:
            # Every call starts with a name.
            return by_id or (None if name else latest)
        if id and (both := self._by_both.get((key, id))):
            return both
        # The events of one item may have different keys but share an id; a number is more reliable.
        known = self._by_key.get(key) or (by_id if isinstance(key, str) else None)
        return known or (None if id or name else latest)


def _match(one: ToolCall, left: Sequence[_Call]) -> _Call | None:
    """Return the call that a call of a complete list repeats."""
    left = [call for call in left if call.name == one.name]
    by_id = [call for call in left if one.id and call.id == one.id]
    same = [call for call in left if call.arguments() == one.arguments or call.is_repeated_by(one.arguments)]
    cut = [call for call in left if load_object(call.arguments()) is None]
    return next(iter(by_id or same or cut), None)


def _is_same(mine: ToolCall, other: ToolCall) -> bool:
    if mine.name != other.name:
        return False
    arguments = load_object(mine.arguments or "{}")
    return arguments is not None and arguments == load_object(other.arguments or "{}")


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
        arguments=valid_text(call.arguments()),
        id=valid_text(call.id) if call.id else None,
    )


def arguments_text(arguments: Any) -> str:
    """Return the JSON text of arguments, which some servers send as an object."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False)


# --- carried blocks -----------------------------------------------------------------------------


class CarriedBlocks:
    """Blocks that an API wants back unchanged in later requests, such as signed thoughts."""

    def __init__(self) -> None:
        self._blocks: list[dict[str, list[Any]]] = []
        self._by_key: dict[Hashable, dict[str, list[Any]]] = {}

    def receive(self, piece: JsonObject, key: Hashable) -> None:
        """Add a piece of a block; see `Exchange.receive_block`."""
        block = None if key is None else self._by_key.get(key)
        if block is None:
            block = {}
            self._blocks.append(block)
            if key is not None:
                self._by_key[key] = block
        for name, value in piece.items():
            block.setdefault(name, []).append(value)

    def blocks(self) -> tuple[JsonObject, ...]:
        """Return the blocks in the order in which they began."""
        return tuple(
            {name: _joined_values(name, values) for name, values in block.items()}
            for block in self._blocks
            if block
        )


def _joined_values(name: str, values: list[Any]) -> Any:
    """Return texts as one text, and of other values the last."""
    if name in ("text", "thinking", "signature") and all(isinstance(value, str) for value in values):
        return valid_text(_joined([(value, True) for value in values if value]))
    return values[-1]
