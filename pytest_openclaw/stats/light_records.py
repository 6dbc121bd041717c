"""Records without their texts: a run of a million cells fits into memory."""

from __future__ import annotations

from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from pytest_openclaw.stats.tool_use import bare_turns
from pytest_openclaw.types.records import Record

LEFT_OUT: dict[str, Any] = {
    "raw_output": "", "parsed_output": None, "tool_call_details": (), "tool_notes": (), "images": None,
    "extra": {},
}  # fmt: skip
"""The texts, with the values that they have here: no figure depends on them."""
_APART = {*LEFT_OUT, "turns", "reruns"}
_KEPT = tuple(one.name for one in fields(Record) if one.name not in _APART)
_kept_of = attrgetter(*_KEPT)


def without_texts(record: Record) -> Record:
    """Return a record without what is `LEFT_OUT`; of turns it keeps what became of each call."""
    return replace(record, **LEFT_OUT, turns=bare_turns(record.turns))


class LightRecords:
    """Makes records without texts that share equal values: each takes about a kilobyte."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def of(self, record: Record) -> Record:
        """Return `without_texts(record)`."""
        share, turns = self._known.setdefault, bare_turns(record.turns)
        kept = [share(value, value) if type(value) in (str, tuple) else value for value in _kept_of(record)]
        return Record(
            **dict(zip(_KEPT, kept, strict=True)),
            **LEFT_OUT,
            turns=turns and share(repr(turns), turns),
            reruns=record.reruns,
        )
