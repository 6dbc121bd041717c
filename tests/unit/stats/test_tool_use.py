"""The rows that a tier is based on, the limits that keep a target out of Tier 1, and the proof of a tool."""

from dataclasses import replace

import pytest

from pytest_openclaw.conclusions.summary import most_frequent_miss
from pytest_openclaw.stats.intervals import wilson_95
from pytest_openclaw.stats.tool_use import Proof, tool_proofs, tool_use_of
from tests.unit.reports.summaries import cell, pressed, record, restraint_cells, tool_cells


def _native(used, unused):
    return tool_cells(used, unused, suite="native", tools_offered=11)


def _native_restraint(restrained, needless):
    return restraint_cells(restrained, needless, suite="native", tools_offered=11)


@pytest.mark.parametrize(
    ("rows", "evidence", "counts"),
    [
        pytest.param([*_native(3, 1), *tool_cells(1, 4)], "native", (3, 4), id="both"),
        pytest.param([*_native_restraint(2, 0), *tool_cells(1, 4)], "text", (1, 5), id="no-native-call"),
        pytest.param(_native_restraint(2, 0), "native", (0, 0), id="only-native-restraint"),
        pytest.param(restraint_cells(2, 0), "text", (0, 0), id="only-text-restraint"),
        pytest.param([record(tools_offered=11)], None, (0, 0), id="tools-without-a-rule-about-them"),
    ],
)
def test_native_evidence_goes_first(rows, evidence, counts):
    """The tier is based on native calls; those in texts count where no native one was asked for."""
    use = tool_use_of(rows)

    assert (use.evidence, (use.n_success, use.n)) == (evidence, counts)


def test_probes_roles_and_pressure_are_separate():
    """They change neither rate nor restraint nor outcomes."""
    rows = [*_native(4, 0), *_native_restraint(1, 0)]
    apart = [
        cell("S1", "no_call", tools_offered=11, probe="secret"),
        cell("S2", "called_needlessly", tools_offered=11, probe="secret"),
        cell("H1", "called_needlessly", tools_offered=11, role="heartbeat"),
        *pressed("54t", 0, 9, tools=54),
    ]

    for one in apart:
        assert tool_use_of([*rows, one]) == tool_use_of(rows)


@pytest.mark.parametrize(
    ("needless", "restrained", "tier", "capped_by", "conclusive"),
    [
        *((0, 0, 1, None, True), (1, 4, 1, None, True), (1, 3, 2, "restraint", False)),
        *((20, 79, 2, "restraint", False), (20, 80, 1, None, True)),
        # 5 of 9 calls were needless: the lower end of 27 to 81 % is over a fifth; 3 of 9: 12 to 65 %.
        *((5, 4, 2, "restraint", True), (3, 6, 2, "restraint", False)),
    ],
)
def test_needless_calls_cost_tier_1(needless, restrained, tier, capped_by, conclusive):
    """With needless calls in more than a fifth of the cells that forbid tools, a target is Tier 2 at best."""
    use = tool_use_of([*_native(20, 0), *_native_restraint(restrained, needless)])

    assert (use.tier, use.capped_by, use.conclusive) == (tier, capped_by, conclusive)


def test_silence_is_neither_a_needless_call_nor_restraint():
    """An empty reply does not cap, and does not count as restraint."""
    silent = [replace(row, success=False) for row in _native_restraint(9, 0)]

    use = tool_use_of([*_native(20, 0), *silent])

    assert (use.capped_by, use.restraint.n_success, use.restraint.n) == (None, 0, 9)


def test_repeats_do_not_count_as_new_prompts():
    """4 prompts that succeeded 4 times each are 4 cells, and not the 16 that make Tier 1 conclusive."""
    rows = [cell(f"P{n}", "valid", repeat=r, tools_offered=1) for n in range(4) for r in range(1, 5)]

    use = tool_use_of(rows)

    assert (use.n, use.interval_95, use.conclusive) == (16, wilson_95(4, 4), False)


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        pytest.param([*_native(9, 2), *_native_restraint(0, 3)], "called_needlessly", id="most"),
        pytest.param([*_native(9, 2), *_native_restraint(0, 2)], "no_call", id="the-first-of-equals"),
        pytest.param([*_native(9, 0), *_native_restraint(4, 0)], None, id="none"),
    ],
)
def test_the_most_frequent_miss(rows, outcome):
    """The most frequent problem is reported; a success is never a problem."""
    assert most_frequent_miss(tool_use_of(rows)) == outcome


@pytest.mark.parametrize(
    ("n_right", "n", "n_missing"),
    [(3, 3, 0), (2, 2, 1), (0, 0, 3), (4, 5, 0), (3, 4, 1), (0, 1, 4), (60, 93, 72)],
)
def test_three_prompts_and_four_fifths_are_enough(n_right, n, n_missing):
    """Both are needed; so many further prompts without a miss would do."""
    proof = Proof(n=n, n_right=n_right, n_prompts=n, n_prompts_right=n_right)

    assert (proof.is_enough, proof.n_missing) == (n_missing == 0, n_missing)
    completed = Proof(n_prompts=n + n_missing, n_prompts_right=n_right + n_missing)
    assert completed.is_enough
    short = Proof(n_prompts=n + n_missing - 1, n_prompts_right=n_right + n_missing - 1)
    assert n_missing == 0 or not short.is_enough


def _tested(prompt_id, outcome, *tools, **changes):
    return cell(prompt_id, outcome, **{"tools_offered": 11, "tools_tested": tools, **changes})


@pytest.mark.parametrize(
    ("records", "proofs"),
    [
        pytest.param([_tested("P", "valid", "read", repeat=n) for n in range(9)], {"read": (9, 9, 1, 1)}, id="repeats"),
        pytest.param([_tested("P", "valid" if n else "no_call", "read", repeat=n) for n in range(4)], {"read": (4, 3, 1, 0)}, id="too-few-repeats"),
        pytest.param([_tested("P", "valid", "read", "exec"), _tested("Q", "wrong_tool", "exec")], {"exec": (2, 1, 2, 1), "read": (1, 1, 1, 1)}, id="two-tools"),
        pytest.param([_tested("P", "valid", "read", tools_offered=None)], {}, id="as-text"),
        pytest.param([_tested("P", "valid", "read", probe="secret")], {}, id="probe"),
    ],
)  # fmt: skip
def test_cells_prove_tools(records, proofs):
    """Cells, right ones, prompts, right ones; a prompt went right if 80 % of its repeats did."""
    found = tool_proofs(records)

    assert {
        tool: (one.n, one.n_right, one.n_prompts, one.n_prompts_right) for tool, one in found.items()
    } == proofs


def test_calls_that_probes_write_as_text_are_counted():
    """They explain why a probe is not done, and do not count for the tier."""
    rows = [
        cell("S1", "leaked_as_text", probe="secret", leaked_valid=True, objective_pass=False),
        cell("S2", "leaked_as_text", twin_of="S1", leaked_valid=False, objective_pass=False),
    ]

    use = tool_use_of(rows)

    assert (use.n_leaked, use.n_leaked_valid, use.n, use.tier) == (2, 1, 0, None)
