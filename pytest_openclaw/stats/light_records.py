"""Records without their texts: a run of a million cells fits into memory."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from pytest_openclaw.stats.tool_use import bare_turns
from pytest_openclaw.types.records import Record

LEFT_OUT: dict[str, Any] = {
    "raw_output": "", "parsed_output": None, "tool_call_details": (), "tool_notes": (), "images": None,
    "extra": {},
}  # fmt: skip
"""The texts, with the values that they have here: no figure depends on them."""
_KEPT = tuple(one.name for one in fields(Record) if one.name not in {*LEFT_OUT, "turns"})


def without_texts(record: Record) -> Record:
    """Return a record without what is `LEFT_OUT`; of turns it keeps what became of each call."""
    return replace(record, **LEFT_OUT, turns=bare_turns(record.turns))


class LightRecords:
    """Makes records without texts that share equal values: each takes about a kilobyte."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def of(self, record: Record) -> Record:
        """Return `without_texts(record)`."""
        values = {name: self._shared(getattr(record, name)) for name in _KEPT}
        turns = bare_turns(record.turns)
        return Record(**values, **LEFT_OUT, turns=turns and self._known.setdefault(repr(turns), turns))

    def _shared(self, value: Any) -> Any:
        is_text = isinstance(value, str)
        are_texts = isinstance(value, tuple) and all(isinstance(one, str) for one in value)
        return self._known.setdefault(value, value) if is_text or are_texts else value
