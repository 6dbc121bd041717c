"""Joins the texts and calls of an answer, without the repetitions of gateways.

Servers should send each piece once. Many gateways also send the whole text, or all calls, at the end, at the
start or with every piece; some number all calls 0, cut or repeat names, or send a new id with every piece.
`docs/reference/servers.md` lists these habits. A model may repeat itself, so a short repetition is kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from pytest_openclaw.providers.wire import load_object
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject

# A text with at least this number of different characters is not repeated by chance: "ha ha " has 3.
_DISTINCT = 6
# More calls than a row can have, and so few that comparing each with each takes no time.
MOST_CALLS = 300


@dataclass
class _Block:
    """One text as its pieces arrive.

    Attributes:
        pieces: each with whether it came with, or after, a finish reason.
        whole: the text that was sent in one piece.
        starts: whether the pieces may continue `whole`.
    """

    pieces: list[tuple[str, bool]] = field(default_factory=list)
    whole: str = ""
    starts: bool = False

    def text(self) -> str:
        text = _joined(self.pieces)
        if text == self.whole or (_is_telling(self.whole) and text.startswith(self.whole)):
            return text
        if self.whole.startswith(text):
            return self.whole
        return self.whole + text if self.starts else text


class Text:
    """One channel of an answer; true if it has a text.

    Attributes:
        whole: the text of the channel that was sent in one piece.
    """

    def __init__(self) -> None:
        self.whole = ""
        self._blocks: dict[Hashable, _Block] = {}

    def __bool__(self) -> bool:
        return bool(self._blocks or self.whole)

    def block(self, key: Hashable) -> _Block:
        """Return the block with this key."""
        return self._blocks.setdefault(key, _Block())

    def text(self) -> str:
        """Return the text so far, without repetitions by the server."""
        text = "".join([block.text() for block in self._blocks.values()])
        return self.whole if self.whole.startswith(text) else text


def _is_telling(text: str) -> bool:
    return len(set(text)) >= _DISTINCT


def _joined(pieces: Sequence[tuple[str, bool]]) -> str:
    """Join pieces; a piece that begins with all earlier text replaces this text, unless by chance."""
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
    """Whether each piece begins with the previous piece, and not by chance."""
    if not all(text.startswith(before) for before, text in pairwise(texts)):
        return False
    grown = [*dict.fromkeys(texts)]
    return len(grown) > 1 and (_is_telling(grown[-2]) or (len(grown) > 3 and len(set(grown[-1])) > 3))


def joined_values(name: str, values: list[Any]) -> Any:
    """Return the texts of a carried block as one text; of other values, return the last."""
    is_text = name in ("thinking", "signature", "text", "summary")
    if is_text and all(isinstance(value, str) for value in values):
        return _joined([(value, True) for value in values if value])
    return values[-1]


# --- tool calls ---------------------------------------------------------------------------------


#: how much of a call is read before its end, times its characters and at least; how many calls are compared
_MOST_READ, _ALWAYS_READ, _MOST_COMPARED = 8, 1_000_000, 16


@dataclass
class _Call:
    """A tool call as its fragments arrive."""

    name: str = ""
    id: str | None = None
    pieces: list[str] = field(default_factory=list)
    _read: tuple[JsonObject | None] | None = None
    _n_chars: int = 0
    _n_read: int = 0

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def value(self) -> JsonObject | None:
        """The arguments as an object; None if they are none, or not yet.

        Only a change is read again, and only so often that many fragments take linear time.
        """
        if self._read is None:
            self._n_read += self._n_chars
            is_due = self._n_read <= _MOST_READ * self._n_chars + _ALWAYS_READ
            self._read = (load_object(self.arguments) if is_due else None,)
        return self._read[0]

    def repeats(self, arguments: str) -> bool:
        """Whether the call's arguments are complete and equal to these; no text is an empty object."""
        return self.has(load_object(arguments or "{}"))

    def has(self, value: JsonObject | None, text: str = "") -> bool:
        """Whether these are the call's arguments, as an object or at least as a text."""
        is_equal = value is not None and value == (self.value if any(self.pieces) else {})
        return is_equal or (0 < len(text) == self._n_chars and text == self.arguments)

    def take(self, name: str, arguments: str, *, whole: bool) -> None:
        """Add a piece of the arguments, and until there are any, a piece of the name."""
        if name.startswith(self.name):
            self.name = name
        elif not self.pieces and name != self.name:
            self.name += name
        if not arguments or (self.pieces and not whole and self.repeats(arguments)):
            return
        # The arguments begin anew after a placeholder, or if a piece begins with everything so far, which
        # JSON itself never does.
        is_object = bool(self.pieces) and arguments.lstrip()[:1] == "{"
        is_copy = is_object and len(arguments) >= self._n_chars and arguments.startswith(self.arguments)
        if whole or is_copy or (is_object and (self.value == {} or self.arguments == "null")):
            self.pieces, self._n_chars = [], 0
        self.pieces.append(arguments)
        self._n_chars += len(arguments)
        self._read = None

    def ends_before(self, fragment: ToolCall, *, whole: bool) -> bool:
        """Whether a fragment with a tool's name, and this call's key or id, starts another call."""
        if fragment.id and self.id and (whole or fragment.id != self.id):
            return fragment.id != self.id
        # This call must have arrived whole in one piece.
        if not self.name or not fragment.arguments.strip() or len(self.pieces) != 1 or self.value is None:
            return False
        return fragment.name != self.name or not (self.value == {} or self.repeats(fragment.arguments))

    def is_repeated_by(self, fragment: ToolCall) -> bool:
        """Whether a fragment with this call's id neither begins another call nor continues the arguments."""
        if fragment.name and fragment.name != self.name:
            return False
        if not fragment.arguments or not self.pieces:
            return True
        is_empty = load_object(fragment.arguments) == {}
        return self.value is not None and (is_empty or self.repeats(fragment.arguments))


class Calls:
    """The calls of one answer, in order of their start; true if there are any."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_key: dict[Hashable, _Call] = {}
        self._by_id: dict[str | None, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, key: Hashable, fragment: ToolCall, *, whole: bool) -> None:
        """Add a fragment; see `Answer.receive_tool_call`."""
        id_, name, arguments = fragment.id, fragment.name, fragment.arguments
        known = self._by_id.get(id_)
        if known is not None and known.is_repeated_by(fragment):
            if not known.pieces or (whole and known.repeats(arguments)):
                known.take("", arguments, whole=whole)
            return
        call = known or (None if key is None else self._by_key.get(key))
        if call is None and not (name or (id_ and key is not None)) and self._calls:
            call = self._calls[-1]  # without a name, key and id it continues the latest call
        if begins := call is None or bool(name and call.ends_before(fragment, whole=whole)):
            if len(self._calls) >= MOST_CALLS:
                return
            call = _Call()
            self._calls.append(call)
        if key is not None and (begins or id_ or name):
            self._by_key[key] = call
        if id_ and call.id is None:
            call.id = id_
            self._by_id[id_] = call
        call.take(name, arguments, whole=whole)

    def add_all(self, calls: Sequence[ToolCall]) -> None:
        """Add all calls of an answer; any of them may have arrived before, in any form."""
        left = [call for call in self._calls if call.name]
        for one in calls[:MOST_CALLS]:
            value = load_object(one.arguments or "{}")
            known = [call for call in left if call.name == one.name]
            by_id = (call for call in known if one.id and call.id == one.id)
            same = (call for call in known[:_MOST_COMPARED] if call.has(value, one.arguments))  # in order
            cut = (call for call in known if call.value is None)
            if again := next(chain(by_id, same, cut), None):
                left.remove(again)
                if again.value is None:
                    again.take("", one.arguments, whole=True)
            elif one.name and len(self._calls) < MOST_CALLS:
                n_chars = len(one.arguments)
                self._calls.append(_Call(one.name, one.id, [one.arguments], _n_chars=n_chars))

    def named(self) -> tuple[ToolCall, ...]:
        """Return the calls so far, without those that have no name."""
        return tuple(
            ToolCall(name=call.name, arguments=call.arguments, id=call.id)
            for call in self._calls
            if call.name
        )
