"""Rows and summaries for the tests of the reports, built by the rules that a run uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_openclaw.records import Record, Target
from pytest_openclaw.settings import Gates
from pytest_openclaw.stats.summarising import summarise_run
from pytest_openclaw.stats.summary import Summary, group_records

NO_GATES = Gates()
TARGET = Target(provider="ollama_openai", model="qwen3:8b")


def record(target: Target = TARGET, **changes: Any) -> Record:
    """A passed row of 100 ms."""
    base = Record(
        run_id="r",
        provider=target.provider,
        model=target.model,
        thinking_level=target.thinking_level,
        prompt_id="P1",
        prompt_name="one",
        availability_status="ok",
        started_at_ms=1000,
        ended_at_ms=1100,
        e2e_ms=100,
        ttft_ms=20,
        success=True,
        objective_pass=True,
        output_tokens=9,
        tokens_per_s=100.0,
        suite="s",
    )
    return replace(base, **changes)


def missed(target: Target = TARGET, **changes: Any) -> Record:
    """An answered row with a violation."""
    return record(target, **{"objective_pass": False, "violation": "too long", **changes})


def fault(target: Target = TARGET, **changes: Any) -> Record:
    """A row without an answer, because nobody was there."""
    given = {
        "availability_status": "skipped_unavailable",
        "success": False,
        "objective_pass": None,
        "failure_type": "connect_error",
        "fault_message": "ollama_openai: nothing answers at http://127.0.0.1:11434/v1 (refused).",
        "ttft_ms": None,
        "output_tokens": None,
        **changes,
    }
    return record(target, **given)


def tool_cells(used: int, unused: int, target: Target = TARGET) -> list[Record]:
    """Answered tool cells."""
    return [
        *(record(target, tool_outcome="valid", tool_use_success=True) for _ in range(used)),
        *(record(target, tool_outcome="no_call") for _ in range(unused)),
    ]


def summary_of(
    records: Sequence[Record], *, n_selected: Mapping[Target, int] | None = None, gates: Gates = NO_GATES
) -> Summary:
    """The summary of a run that selected as many cells as there are rows, unless it says otherwise."""
    groups_of = group_records(records)
    n_selected = n_selected or {target: len(rows) for target, rows in groups_of.items()}
    return summarise_run(records, n_selected, gates, {}, run_id="20261121_233059", generated_at_ms=0)
