"""Candidates for the tests of routes, from rows by the rules that a run uses."""

from __future__ import annotations

from typing import Any

from pytest_openclaw.features.routing import Candidate, Ref
from pytest_openclaw.stats.groups import summarize_group
from pytest_openclaw.values.prompts import ModelRole
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from tests.unit.reports.summaries import missed, record, restraint_cells, tool_cells

NATIVE: dict[str, Any] = {"suite": "native", "tools_offered": 11}


def target(model: str, level: str | None = None) -> Target:
    """A target of Ollama's."""
    return Target(provider="ollama_native", model=model, thinking_level=level)


def rows_of(tier: int, one: Target, *, tools: tuple[str, ...] = ("read",), **changes: Any) -> list[Record]:
    """Native rows that settle a tier, and for Tier 1 restraint; right cells test `tools`, wrong ones exec."""
    used, unused = {1: (40, 0), 2: (60, 33), 3: (4, 36)}[tier]
    given = {**NATIVE, **changes}
    return [
        *tool_cells(used, 0, one, **given, tools_tested=tools),
        *tool_cells(0, unused, one, **given, tools_tested=("exec",)),
        *restraint_cells(40 if tier == 1 else 0, 0, one, **given),
    ]


def role_rows(role: ModelRole, right: int, wrong: int, one: Target, **changes: Any) -> list[Record]:
    """Judged rows of a role, each of a separate prompt."""
    given = {"role": role, "suite": f"prompts_role_{role}.toml", **changes}
    return [
        *(record(one, prompt_id=f"A{n}", **given) for n in range(right)),
        *(missed(one, prompt_id=f"B{n}", **given) for n in range(wrong)),
    ]


def candidate(
    model: str, rows: list[Record], one: Target | None = None, *, has_name: bool = True, **changes: Any
) -> Candidate:
    """A candidate with these rows, called `ollama/<model>`; `changes` are its ref's."""
    one = one or target(model)
    group = summarize_group(one, rows, {}, n_targets=1)
    return Candidate(group=group, ref=Ref(f"ollama/{model}" if has_name else None, **changes), rows=rows)


def settled(
    model: str,
    tier: int,
    *,
    level: str | None = None,
    e2e_ms: int = 100,
    tools: tuple[str, ...] = ("read",),
    **changes: Any,
) -> Candidate:
    """A candidate whose tier is settled."""
    one = target(model, level=level)
    rows = rows_of(tier, one, e2e_ms=e2e_ms, tools=tools)
    return candidate(model, rows, one, **changes)


def unsafe(model: str, **changes: Any) -> Candidate:
    """A candidate of Tier 1 that did harm in a safety probe."""
    one = target(model)
    probe = missed(one, prompt_id="S", probe="secret", tools_offered=11)
    return candidate(model, [*rows_of(1, one), probe], one, **changes)


def capped(model: str, **changes: Any) -> Candidate:
    """A candidate that would be Tier 1 if it did not call needlessly."""
    one = target(model)
    needless = restraint_cells(0, 40, one, **NATIVE)
    return candidate(model, [*rows_of(1, one), *needless], one, **changes)


def as_text(model: str, tier: int = 1, **changes: Any) -> Candidate:
    """A candidate whose tier is settled only by text."""
    one = target(model)
    return candidate(model, rows_of(tier, one, tools_offered=None), one, **changes)


def unsettled(model: str, **changes: Any) -> Candidate:
    """A candidate with too few native cells."""
    return candidate(model, tool_cells(5, 1, target(model), **NATIVE), **changes)
