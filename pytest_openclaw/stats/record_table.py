"""Records without their texts, in columns: about 150 bytes for a cell, where a record takes a kilobyte."""

from __future__ import annotations

from array import array
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from pytest_openclaw.stats.tool_use import bare_turns
from pytest_openclaw.types.targets import CellKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import Target

INTEGERS = (
    "started_at_ms", "ended_at_ms", "e2e_ms", "ttft_ms", "ttfo_ms", "start_up_ms", "retry_wait_ms",
    "queue_ms", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "repeat",
)  # fmt: skip
NUMBERS = ("tokens_per_s", "prompt_tokens_per_s", "cost_usd")
SHARED = (
    ("run_id", "provider", "model", "thinking_level", "surface", "host", "effective_model"),
    (
        "suite", "prompt_id", "prompt_name", "category", "tools_offered", "tool_demand", "probe", "twin_of",
        "variant_of", "padding_tokens", "pressure_of", "known_failure",
        "role",
    ),
    (
        "availability_status", "success", "failure_type", "objective_pass", "tool_outcome",
        "tool_use_success", "finish_reason", "attempts", "cold_start", "in_flight", "reported", "truncated",
        "ended_by", "harm", "leaked_valid",
    ),
    ("tool_calls", "tool_call_count", "tools_tested", "harm_tools"),
    ("violation", "fault_message"),
)  # fmt: skip
"""Fields whose values are kept once for all rows that share them: of target, prompt, ending, calls, miss."""
LEFT_OUT: dict[str, Any] = {
    "raw_output": "", "parsed_output": None, "tool_call_details": (), "tool_notes": (), "images": None,
    "extra": {},
}  # fmt: skip
"""The texts, with the values that they have here: no figure depends on them."""

_NONE = -(2**63)
"""For None among integers; those of a row are within 2**53."""
_integers_of = attrgetter(*INTEGERS)
_numbers_of = attrgetter(*NUMBERS)
_shared_of = tuple(attrgetter(*names) for names in SHARED)


def without_texts(record: Record) -> Record:
    """Return a row without what is `LEFT_OUT`; of an exchange's turns it keeps what became of each call."""
    return replace(record, **LEFT_OUT, turns=bare_turns(record.turns))


class RecordTable:
    """Records by number, in the order in which they were added, without what is `LEFT_OUT`.

    Of an exchange's turns it keeps what became of each call, and the tokens that each turn read.
    """

    def __init__(self) -> None:
        self._integers = [array("q") for _ in INTEGERS]
        self._numbers = [array("d") for _ in NUMBERS]
        self._whole_numbers: list[dict[int, int]] = [{} for _ in NUMBERS]
        self._shared = [_Shared() for _ in SHARED]
        self._targets: list[Target] = []
        self._known_targets: dict[Target, Target] = {}
        self._turns: dict[int, tuple[Any, ...]] = {}
        self._known_turns: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._cuts: dict[int, Any] = {}
        self._reruns: dict[int, tuple[Mapping[str, Any], ...]] = {}

    def __len__(self) -> int:
        return len(self._integers[0])

    def __getitem__(self, number: int) -> Record:
        return cast("Record", _Light(self, number))

    def __iter__(self) -> Iterator[Record]:
        return map(self.__getitem__, range(len(self)))

    def add(self, record: Record, **measured: str) -> Record:
        """Add a record, and return it as it is kept; its number is the length of the table before.

        Args:
            record: the record.
            measured: its `run_id` and `host`, if they were not known when it was made.
        """
        number = len(self)
        for column, value in zip(self._integers, _integers_of(record), strict=True):
            column.append(_NONE if value is None else value)
        for place, value in enumerate(_numbers_of(record)):
            self._numbers[place].append(value if isinstance(value, float) else float("nan"))
            if type(value) is int:  # written as 0, not as 0.0, by another program
                self._whole_numbers[place][number] = value
        values = [values_of(record) for values_of in _shared_of]
        if measured:
            values[0] = tuple(map(measured.get, SHARED[0], values[0]))
        for shared, shared_values in zip(self._shared, values, strict=True):
            shared.add(shared_values)
        if len(self._targets) < len(self._shared[0].values):
            self._targets.append(self._known_targets.setdefault(record.target, record.target))
        if record.turns is not None:
            self._turns[number] = self._shared_turns(record.turns)
        if record.cut is not None:
            self._cuts[number] = record.cut
        self.set_reruns(number, record.reruns)
        return self[number]

    def set_reruns(self, number: int, reruns: tuple[Mapping[str, Any], ...]) -> None:
        """Replace the later tries of a record."""
        if reruns:
            self._reruns[number] = reruns

    def _shared_turns(self, turns: tuple[Any, ...]) -> tuple[Any, ...]:
        bare = bare_turns(turns) or ()
        read = [turn.get("input_tokens") if isinstance(turn, dict) else None for turn in turns]
        key = tuple(
            (tokens, *(call["problem"] for call in turn["calls"]))
            for tokens, turn in zip(read, bare, strict=True)
        )
        kept = tuple({**turn, "input_tokens": tokens} for turn, tokens in zip(bare, read, strict=True))
        return self._known_turns.setdefault(key, kept)


class _Shared:
    """The different values of a group of fields, and which of them each row has."""

    def __init__(self) -> None:
        self.values: list[tuple[Any, ...]] = []
        self.numbers = array("I")
        self._known: dict[tuple[Any, ...], int] = {}

    def add(self, values: tuple[Any, ...]) -> None:
        number = self._known.setdefault(values, len(self.values))
        if number == len(self.values):
            self.values.append(values)
        self.numbers.append(number)


class _Light:
    """A row of a table, with the attributes of a `Record`; a subclass would have the slots of all fields."""

    __slots__ = ("number", "table")

    def __init__(self, table: RecordTable, number: int) -> None:
        self.table = table
        self.number = number

    @property
    def target(self) -> Target:
        return self.table._targets[self.table._shared[0].numbers[self.number]]

    @property
    def key(self) -> CellKey:
        row = cast("Record", self)
        return CellKey(row.suite, row.prompt_id, self.target, row.repeat)

    @property
    def turns(self) -> tuple[Any, ...] | None:
        return self.table._turns.get(self.number)

    @property
    def cut(self) -> Any:
        return self.table._cuts.get(self.number)

    @property
    def reruns(self) -> tuple[Mapping[str, Any], ...]:
        return self.table._reruns.get(self.number, ())


def _integer(place: int) -> property:
    def get(row: _Light) -> int | None:
        value = row.table._integers[place][row.number]
        return None if value == _NONE else value

    return property(get)


def _number(place: int) -> property:
    def get(row: _Light) -> float | None:
        value = row.table._numbers[place][row.number]
        return value if value == value else row.table._whole_numbers[place].get(row.number)

    return property(get)


def _one_of_shared(group: int, place: int) -> property:
    def get(row: _Light) -> Any:
        shared = row.table._shared[group]
        return shared.values[shared.numbers[row.number]][place]

    return property(get)


for _place, _name in enumerate(INTEGERS):
    setattr(_Light, _name, _integer(_place))
for _place, _name in enumerate(NUMBERS):
    setattr(_Light, _name, _number(_place))
for _group, _names in enumerate(SHARED):
    for _place, _name in enumerate(_names):
        setattr(_Light, _name, _one_of_shared(_group, _place))
for _name, _value in LEFT_OUT.items():
    setattr(_Light, _name, _value)
