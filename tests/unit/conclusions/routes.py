"""Rows for the tests of routes and roles."""

from pytest_openclaw.values.requests import Target
from tests.unit.reports.summaries import missed, record, restraint_cells, tool_cells

NATIVE = {"suite": "native", "tools_offered": 11}


def target(model, level=None):
    return Target(provider="ollama_native", model=model, thinking_level=level)


def rows_of(tier, one, *, tools=("read",), **changes):
    """Native rows that settle a tier, and for Tier 1 restraint; right cells test `tools`, wrong ones exec."""
    used, unused = {1: (40, 0), 2: (60, 33), 3: (4, 36)}[tier]
    given = {**NATIVE, **changes}
    return [
        *tool_cells(used, 0, one, **given, tools_tested=tools),
        *tool_cells(0, unused, one, **given, tools_tested=("exec",)),
        *restraint_cells(40 if tier == 1 else 0, 0, one, **given),
    ]


def role_rows(role, right, wrong, one, **changes):
    given = {"role": role, "suite": f"prompts_role_{role}.toml", **changes}
    return [
        *(record(one, prompt_id=f"A{n}", **given) for n in range(right)),
        *(missed(one, prompt_id=f"B{n}", **given) for n in range(wrong)),
    ]
