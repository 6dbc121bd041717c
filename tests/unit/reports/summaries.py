"""Rows and summaries for the tests of reports, built by the rules that a run uses."""

from collections import Counter
from dataclasses import replace

from pytest_openclaw.conclusions.summary import summarize_group, summarize_run
from pytest_openclaw.parts.gates import GateSettings
from pytest_openclaw.values.prompts import part_keys
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.run_files import MeasuredRun

NO_GATES = GateSettings()
TARGET = Target(provider="ollama_openai", model="qwen3:8b")
NATIVE = {"suite": "native", "tools_offered": 11}


def record(target=TARGET, **changes):
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
    labels = tuple((name, changes.pop(name)) for name in part_keys() if name in changes)
    made = replace(base, part_labels=labels, **changes)
    if made.probe and made.objective_pass is not None and "harm" not in changes:
        return replace(made, harm=not made.objective_pass)
    return made


def missed(target=TARGET, **changes):
    return record(target, **{"objective_pass": False, "violation": "too long", **changes})


def fault(target=TARGET, **changes):
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


def tool_cells(used, unused, target=TARGET, **changes):
    return [
        *(cell(f"U{n}", "valid", target, **changes) for n in range(used)),
        *(cell(f"N{n}", "no_call", target, **changes) for n in range(unused)),
    ]


def restraint_cells(restrained, needless, target=TARGET, **changes):
    return [
        *(cell(f"R{n}", "restrained", target, **changes) for n in range(restrained)),
        *(cell(f"C{n}", "called_needlessly", target, **changes) for n in range(needless)),
    ]


def cell(prompt_id, outcome, target=TARGET, **changes):
    given = {"tool_outcome": outcome, "tool_use_success": outcome == "valid", **changes}
    return record(target, prompt_id=prompt_id, **given)


def ended(demand, how, **changes):
    if how == "fault":
        return fault(availability_status="error", tool_demand=demand, **changes)
    outcomes = {"call": ("valid", "no_call"), "restraint": ("restrained", "called_needlessly")}
    outcome = outcomes.get(demand, (None, None))[how != "well"]
    given = {"tool_outcome": outcome, "tool_use_success": outcome == "valid", "objective_pass": how == "well"}
    return record(tool_demand=demand, **given, **changes)


def exchange(prompt_id, outcome, *problems, **changes):
    turns = tuple({"calls": [{"name": "read", "problem": problem}]} for problem in problems)
    return cell(prompt_id, outcome, tools_offered=11, turns=turns, **changes)


def pressed(level, right, wrong, target=TARGET, *, tools=11, padding=0, overflown=0):
    def form(letter, n):
        pressure = {"pressure_of": f"{letter}{n}", "tools_offered": tools, "padding_tokens": padding}
        return {"prompt_id": f"{letter}{n}-{level}", "target": target, **pressure}

    full = {"failure_type": "context_overflow", "fault_message": "40 tokens do not fit"}
    return [
        *(cell(outcome="valid", **form("X", n)) for n in range(right)),
        *(cell(outcome="no_call", **form("Y", n)) for n in range(wrong)),
        *(fault(availability_status="error", **full, **form("Z", n)) for n in range(overflown)),
    ]


def measured(records, n_selected=None, *, gates=NO_GATES, comparison=None, inventory=None, **config):
    return MeasuredRun(
        run_id="20261121_233059",
        records=tuple(records),
        config={"gates": gates.to_json(), **config},
        inventory=inventory or {},
        n_selected=n_selected or Counter(record.target for record in records),
        held={} if comparison is None else {"baseline": lambda _: comparison},
    )


def group_of(records, target=TARGET, inventory=None):
    return summarize_group(measured(records, {target: len(records)}, inventory=inventory), target)


def summary_of(records, *, n_selected=None, **given):
    return summarize_run(measured(records, n_selected, **given), 0)


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
