"""Evidence about each target of a stored run beside its tier: by tool, on heartbeats, on text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_openclaw.stats.rates import clusters_of
from pytest_openclaw.stats.routing import Proof, Proofs
from pytest_openclaw.stats.tool_use import did_right, is_apart
from pytest_openclaw.suites.offered import said_tools
from pytest_openclaw.tools.bridge import name_of
from pytest_openclaw.tools.catalogue import CALL
from pytest_openclaw.tools.dispatch import same_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stored.parts import PromptKey
    from pytest_openclaw.types.records import Record

HEARTBEAT = "heartbeat"
"""The tag of prompts with the task of a heartbeat."""
_CALL_RULES = ("tool_call", "world")
_COMBINED = ("all_of", "any_of")


def proofs_of(
    records: Sequence[Record], prompts: Mapping[PromptKey, JsonObject], known_tools: Collection[str]
) -> Proofs:
    """Return the evidence in the rows of one target.

    Args:
        records: its rows.
        prompts: definitions by suite and id.
        known_tools: names of the release's tools; a suite's own tools are not counted.
    """
    answered = [record for record in records if record.availability_status == "ok"]
    texts = [record for record in answered if _is_judged_text(record)]
    return Proofs(
        tools=_tool_proofs(answered, prompts, known_tools),
        heartbeat=_proof(
            (one for one in texts if HEARTBEAT in _tags(prompts.get((one.suite, one.prompt_id), {}))),
            _has_passed,
        ),
        text=_proof(texts, _has_passed),
    )


def demanded_tools(definition: JsonObject, known_tools: Collection[str]) -> tuple[str, ...]:
    """Return the tools of OpenClaw that a prompt's validator requires, alternatives included."""
    own = [
        tool.get("name") for tool in _listed(said_tools(definition.get("tools"))) if isinstance(tool, dict)
    ]
    named = {
        known
        for name in _called(definition.get("validator"))
        for known in known_tools
        if same_tool(name, known) and not any(isinstance(one, str) and same_tool(one, known) for one in own)
    }
    return tuple(sorted(named))


def _tool_proofs(
    answered: Iterable[Record], prompts: Mapping[PromptKey, JsonObject], known_tools: Collection[str]
) -> dict[str, Proof]:
    cells: dict[str, list[Record]] = {}
    for record in answered:
        if record.tools_offered is None or not record.tool_outcome or is_apart(record):
            continue
        called = _executed(record)
        for tool in demanded_tools(prompts.get((record.suite, record.prompt_id), {}), known_tools):
            # A success counts for the tools that were called, a failure against all required ones.
            if not did_right(record) or any(same_tool(tool, name) for name in called):
                cells.setdefault(tool, []).append(record)
    return {tool: _proof(found, did_right) for tool, found in sorted(cells.items())}


def _executed(record: Record) -> list[str]:
    """Return the tools that a cell called, also through the bridge; not those that its text only names.

    In an exchange, calls that were refused do not count.
    """
    turns = (turn for turn in record.turns or () if isinstance(turn, dict))
    details = [call for turn in turns for call in _listed(turn.get("calls"))] or record.tool_call_details
    calls = [call for call in details if isinstance(call, dict) and call.get("problem") is None]
    if not details:  # OpenClaw made the calls of the text
        return list(record.tool_calls)
    names = [name for call in calls if isinstance(name := call.get("name"), str)]
    return [*names, *(inner for call in calls if (inner := _carried(call)))]


def _carried(call: JsonObject) -> str | None:
    """Return the tool that a call through the bridge reaches."""
    name, arguments = call.get("name"), call.get("arguments")
    if not (isinstance(name, str) and isinstance(arguments, str) and same_tool(name, CALL)):
        return None
    try:
        carried = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    tool_id = carried.get("id") if isinstance(carried, dict) else None
    return name_of(tool_id) if isinstance(tool_id, str) else None


def _proof(records: Iterable[Record], is_right: Callable[[Record], bool]) -> Proof:
    prompts = clusters_of(records, is_right)
    return Proof(
        n=sum(prompt.n for prompt in prompts),
        n_right=sum(prompt.n_success for prompt in prompts),
        n_prompts=len(prompts),
        n_right_prompts=sum(2 * prompt.n_success > prompt.n for prompt in prompts),
    )


def _is_judged_text(record: Record) -> bool:
    """Whether a row belongs to a prompt without tools and was judged."""
    is_text = record.tools_offered is None and record.tool_outcome is None and not is_apart(record)
    return is_text and (record.objective_pass is not None or not record.success)


def _has_passed(record: Record) -> bool:
    return record.objective_pass is True


def _tags(definition: JsonObject) -> Sequence[Any]:
    return _listed(definition.get("tags"))


def _called(validator: object) -> Iterator[str]:
    if not isinstance(validator, dict):
        return
    if validator.get("type") in _CALL_RULES:
        calls = (call for call in _listed(validator.get("calls")) if isinstance(call, dict))
        for name in (call.get("name") for call in calls):
            yield from (one for one in (_listed(name) or [name]) if isinstance(one, str))
    elif validator.get("type") in _COMBINED:
        for part in _listed(validator.get("validators")):
            yield from _called(part)


def _listed(value: Any) -> list[Any]:
    """Return a value if it is a list, else an empty one; a foreign row or config may contain anything."""
    return value if isinstance(value, list) else []
