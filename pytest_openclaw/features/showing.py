"""Prepares cells of a stored run for display: on a page beside those of a baseline, or one cell as text.

Finds OpenClaw's names for the targets of a stored run, and whether they are served locally.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers.address import is_loopback
from pytest_openclaw.reports.cells import Opened
from pytest_openclaw.reports.html.pieces import Shown, ShownBaseline, ShownRun
from pytest_openclaw.runs.summaries import stored_summary, summary_of
from pytest_openclaw.stats.significance import sample_of
from pytest_openclaw.suites.cells import tools_sha256
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.requests import OPENCLAW_ITSELF
from pytest_openclaw.values.rows import call_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.runs.reading import IndexedRow, Part, PromptKey
    from pytest_openclaw.stats.comparison import ComparedRuns
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import CellKey, Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import Tool


MOST_CELLS = 20_000
"""Cells of a page; it has about a kilobyte of each, which a browser loads at once."""
_ONE_BLOCK = re.compile(r"\s*<(\w+)>\n?(.*?)\n?</\1>\s*", re.DOTALL)
TORN = "The last line of the rows was torn when the run was killed, and is left out."


def show_run(
    part: Part, baseline: Part | None, *, now_ms: int, comparison: ComparedRuns | None = None
) -> ShownRun:
    """Return the run with its cells, and its figures computed from its rows.

    Of a run with more than `MOST_CELLS` a sample is shown; all figures are those of the whole run.

    Args:
        part: the run.
        baseline: an older run, whose rows are shown beside those of the same cells.
        comparison: with that baseline; None shows the one in the run's summary, if any.
        now_ms: for a run that was killed before it wrote its summary.

    """
    rows = part.rows_in_order
    records = [row.record for row in rows]
    written = stored_summary(part.run.path) or {}
    summary = replace(summary_of(part, records), generated_at_ms=written.get("generated_at_ms", now_ms))
    if comparison:
        summary = replace(summary, comparison=comparison)
    before = baseline.rows if baseline else {}
    places = sample_of(records, MOST_CELLS)
    shown = [rows[place] for place in places]
    definitions = _definitions_of(shown, part) if len(shown) < len(rows) else part.prompts
    tools = {key: offered_tools(definition) for key, definition in definitions.items()}

    def cell(row: IndexedRow) -> Shown:
        record, older = row.whole, before.get(row.record.key)
        known = tools.get((record.suite, record.prompt_id))
        return Shown(record=record, tools=known, before=older.whole if older else None)

    return ShownRun(
        summary=summary,
        cells=[*map(cell, shown)],
        unshown=_others(records, places, before),
        prompts=list(definitions.values()),
        config=part.run.config,
        inventory=part.run.inventory,
        earlier=_earlier(part, baseline),
        notes=[TORN] if part.run.torn else [],
    )


def _definitions_of(rows: Iterable[IndexedRow], part: Part) -> dict[PromptKey, JsonObject]:
    shown = {(row.record.suite, row.record.prompt_id) for row in rows}
    return {key: definition for key, definition in part.prompts.items() if key in shown}


def _others(
    records: Sequence[Record], places: Sequence[int], before: Mapping[CellKey, IndexedRow]
) -> list[tuple[Record, Record | None]]:
    """Return the rows of the cells that are not shown, each with that of the baseline."""
    if len(places) == len(records):
        return []
    shown = set(places)
    return [
        (record, before[record.key].record if record.key in before else None)
        for place, record in enumerate(records)
        if place not in shown
    ]


def offered_tools(definition: Mapping[str, Any]) -> tuple[Tool, ...] | None:
    """Return the tools that a prompt offered; None if it offered none, or they have changed."""
    if definition.get("tools") is None:
        return None
    try:
        tools = read_tools(definition["tools"])
    except ValueError:  # a name that is no longer in the catalog
        return None
    return tools if tools_sha256(tools) == definition.get("tools_sha256") else None


def _earlier(part: Part, baseline: Part | None) -> ShownBaseline | None:
    if baseline is None:
        return None
    return ShownBaseline(
        run_id=baseline.run.run_id, gone=[key for key in baseline.rows if key not in part.rows]
    )


def open_record(record: Record, definition: JsonObject) -> Opened:
    """Return the parts of a row's texts.

    Args:
        record: the row.
        definition: of its prompt in `config.json`; empty if there is none.

    """
    answer = strip_thinking(record.raw_output)
    thinking = record.raw_output[: len(record.raw_output) - len(answer)]
    alone = _ONE_BLOCK.fullmatch(thinking)
    tools = offered_tools(definition)
    return Opened(
        thinking=alone[2] if alone else thinking,
        answer=answer,
        calls=[_opened(call, tools) for call in record.tool_call_details],
    )


def _opened(call: Mapping[str, Any], tools: tuple[Tool, ...] | None) -> JsonObject:
    opened = {"name": call["name"], "arguments": call["arguments"], "problem": None, "told": None}
    if tools is None:
        return opened
    made = dispatch(call_of(call), tools)
    text = "\n".join([*([made.message] if made.message else []), *made.notes])
    return {**opened, "problem": made.problem, "told": text or None}


OPENCLAW_PROVIDERS = {
    "ollama_native": "ollama",
    "ollama_openai": "ollama",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini": "google",
    "claude_code_cli": "anthropic",
}
PROVIDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A provider's name in OpenClaw, which ends before the first `/` of a ref."""
ELSEWHERE = frozenset({"openai_responses", "anthropic_messages", "gemini", "claude_code_cli"})
"""Kinds that are not local if no address is known."""
_REMARKS = {
    "ollama_openai": "it was asked at /v1, and OpenClaw asks Ollama at /api/chat: ask ollama_native too; if "
    "this is no Ollama, name OpenClaw's provider by --provider ollama_openai=NAME",
    "claude_code_cli": "it was asked through the Claude CLI; run by OpenClaw through that CLI, the CLI's own "
    "tools ignore the policies of OpenClaw",
    "llama_cpp": "the embedded engine is no provider of OpenClaw; if one of its own serves this model, name "
    "it by --provider llama_cpp=NAME",
}


@dataclass(frozen=True, kw_only=True)
class Ref:
    """A target's name in OpenClaw.

    Attributes:
        name: `provider/model`; None if there is none.
        is_local: whether it is served on this machine or network, or at an unknown place.
        rank: 1 if OpenClaw reaches this provider in another way, else 0.
        remarks: what to check about the name.

    """

    name: str | None
    is_local: bool
    rank: int = 0
    remarks: tuple[str, ...] = ()


def check_overrides(overrides: Mapping[str, str], targets: Mapping[Target, object]) -> None:
    """Reject a name for a provider that the run has not used.

    Raises:
        OpenClawError: there is such a name; the message lists the run's providers.

    """
    asked = sorted({target.provider for target in targets})
    for ours, theirs in overrides.items():
        if ours not in asked:
            known = ", ".join(asked)
            raise OpenClawError(f"--provider {ours}={theirs}: the run has no provider {ours}; it has {known}")


def ref_of(target: Target, config: JsonObject, overrides: Mapping[str, str]) -> Ref:
    """Return the name of a target.

    Args:
        target: of the run.
        config: the run's `config.json`.
        overrides: our provider → OpenClaw's, as set by the user.

    """
    ours = target.provider
    is_local = _is_local(ours, config)
    if ours in overrides:
        return Ref(name=f"{overrides[ours]}/{target.model}", is_local=is_local, rank=_rank(ours))
    if ours == OPENCLAW_ITSELF:
        return Ref(name=target.model, is_local=is_local, rank=_rank(ours))
    remarks = (_REMARKS[ours],) if ours in _REMARKS else ()
    if theirs := OPENCLAW_PROVIDERS.get(ours):
        name = f"{theirs}/{target.model}"
        return Ref(name=name, is_local=is_local, rank=_rank(ours), remarks=remarks)
    if remarks:
        return Ref(name=None, is_local=is_local, remarks=remarks)
    if not PROVIDER_ID.fullmatch(ours):
        remark = f"{ours} can be no provider's name there; give one by --provider {ours}=NAME"
        return Ref(name=None, is_local=is_local, remarks=(remark,))
    remark = (
        f"{ours} is the name in this run; if OpenClaw's provider has another, give --provider {ours}=NAME"
    )
    return Ref(name=f"{ours}/{target.model}", is_local=is_local, remarks=(remark,))


def _rank(provider: str) -> int:
    return int(provider in ("ollama_openai", "claude_code_cli"))


def _is_local(provider: str, config: JsonObject) -> bool:
    described = list(_described(provider, config))
    addresses = [url for one in described if isinstance(url := one.get("base_url"), str)]
    if addresses:
        return any(map(_is_near, addresses))
    kinds = {one.get("kind") or provider for one in described} or {provider}
    return not kinds <= ELSEWHERE


def _described(provider: str, config: JsonObject) -> Iterator[JsonObject]:
    """Yield a run's settings of a provider; of a merged run, those of each part."""
    for one in config.get("parts") or (config,):
        found = one["providers"].get(provider)
        if isinstance(found, dict):
            yield found


def _is_near(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return True
    try:
        return is_loopback(host) or ipaddress.ip_address(host.partition("%")[0]).is_private
    except ValueError:  # a host name: without a dot, or of the local network, it is local
        return "." not in host.rstrip(".") or host.rstrip(".").endswith((".local", ".lan", ".internal"))
