"""What each target of a stored run has shown beside its tools: on heartbeats, and on text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_openclaw.stats.proofs import proof_of
from pytest_openclaw.stats.routing import Proofs
from pytest_openclaw.stats.tool_use import is_apart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stored.parts import PromptKey
    from pytest_openclaw.types.records import Record

HEARTBEAT = "heartbeat"
"""The tag of prompts that ask for what a heartbeat asks."""


def proofs_of(records: Sequence[Record], prompts: Mapping[PromptKey, JsonObject]) -> Proofs:
    """Return what the rows of one target prove.

    Args:
        records: its rows.
        prompts: definitions by suite and id.
    """
    texts = [record for record in records if record.availability_status == "ok" and _is_judged_text(record)]
    return Proofs(
        heartbeat=proof_of(
            (one for one in texts if HEARTBEAT in _tags(prompts.get((one.suite, one.prompt_id), {}))),
            _has_passed,
        ),
        text=proof_of(texts, _has_passed),
    )


def _is_judged_text(record: Record) -> bool:
    """Whether a row is of a prompt that has nothing to do with tools, and could have failed."""
    is_text = record.tools_offered is None and record.tool_outcome is None and not is_apart(record)
    return is_text and (record.objective_pass is not None or not record.success)


def _has_passed(record: Record) -> bool:
    return record.objective_pass is True


def _tags(definition: JsonObject) -> Sequence[Any]:
    """The tags of a definition; a config that somebody else wrote may hold anything there."""
    tags = definition.get("tags")
    return tags if isinstance(tags, list) else []
