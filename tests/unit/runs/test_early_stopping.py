"""The end of a target's repeats."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.text import Noop
from pytest_openclaw.parts.repeats import EarlyStopping, Stage, is_futile, stages_of
from pytest_openclaw.runs.session import Decision
from pytest_openclaw.stats.tool_use import tool_use_of
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.requests import CellKey, Target
from tests.unit.reports.summaries import cell, record

A = Target(provider="p", model="a")
N = 11


def _row(number, repeat, *, used):
    return cell(f"T{number}", "valid" if used else "no_call", A, repeat=repeat)


def _repeat(repeat, *, n_used=0):
    return [_row(n, repeat, used=n < n_used) for n in range(N)]


def _stopping(n_cells, looks, n_fixed=(0,) * 10):
    stages = {
        CellKey("s", f"T{n}", A, repeat): Stage(repeat, repeat, n < fixed)
        for repeat, (total, fixed) in enumerate(zip(n_cells, n_fixed, strict=False), 1)
        for n in range(total)
    }
    return EarlyStopping(stages, looks)


def _decisions(early_stopping, rows):
    return [(made.stage, made.ends) for row in rows for made in early_stopping.take(row)]


def test_a_conclusive_tier_ends_the_repeats():
    """It is decided with the last row of the conclusive repeat, not before."""
    early_stopping = _stopping([N] * 3, (1, 2, 3))
    rows = _repeat(1)

    assert _decisions(early_stopping, rows[:-1]) == []
    assert _decisions(early_stopping, rows[-1:]) == [(1, "tier 3 is settled after 1 repeat")]
    assert _decisions(early_stopping, _repeat(2)) == []
    assert early_stopping.ended[A]["settled"]["repeat"] == 1


SECOND, THIRD = (f"tier 3 is settled after {n} repeats" for n in (2, 3))
ALIKE = "all repeats are alike after 2 repeats: only new prompts can settle the tier"
HARDLY = "more repeats would hardly settle the tier after 3 repeats: new prompts can"


@pytest.mark.parametrize(
    ("n_repeats", "looks", "n_used", "ends"),
    [
        pytest.param(3, (1, 2, 3), [2, 0], [None, SECOND], id="all-repeats-count"),
        pytest.param(2, (1, 2), [6, 6], [None], id="nothing-to-leave-out-after-the-last"),
        # Each further look would be one more chance of a wrong tier.
        pytest.param(10, (1, 3, 10), [2, 0, 0], [None, None, THIRD], id="not-between-two-looks"),
        # The tier of a server that answers the same each time would be that of the first repeat.
        pytest.param(10, (1, 3, 10), [6, 6], [None, ALIKE], id="the-same-each-time"),
        pytest.param(10, (1, 3, 10), [6, 7, 6], [None, None, HARDLY], id="futile"),
    ],
)
def test_the_end_of_the_repeats(n_repeats, looks, n_used, ends):
    """So many of eleven prompts succeed in each repeat."""
    early_stopping = _stopping([N] * n_repeats, looks)
    rows = [row for repeat, n in enumerate(n_used, 1) for row in _repeat(repeat, n_used=n)]

    assert _decisions(early_stopping, rows) == [*enumerate(ends, 1)]
    assert (A in early_stopping.ended) is (ends[-1] is not None)


def test_needless_calls_are_never_futile():
    """Whether they are too many is a second rate, which may go either way."""
    rows = [_row(n, repeat, used=True) for repeat in (1, 2) for n in range(30)]
    for repeat in (1, 2):
        outcomes = [*["called_needlessly"] * repeat, *["restrained"] * (6 - repeat)]
        rows += [cell(f"C{n}", outcome, A, repeat=repeat) for n, outcome in enumerate(outcomes)]
    use = tool_use_of(rows, 1, (1, 2, 10))

    assert (use.capped_by, use.conclusive) == ("restraint", False)
    assert not is_futile(rows, use)


@given(order=st.permutations(range(3 * N)))
def test_speed_decides_nothing(order):
    """In whatever order the rows arrive, the decisions are the same, one after the other."""
    early_stopping = _stopping([N] * 4, (1, 2, 4))
    rows = [*_repeat(1, n_used=2), *_repeat(2), *_repeat(3, n_used=N)]

    assert _decisions(early_stopping, [rows[n] for n in order]) == [
        (1, None),
        (2, "tier 3 is settled after 2 repeats"),
    ]


def test_cells_that_were_left_out_are_not_awaited():
    """A cell that a mark skips has no row, and the repeat ends without it."""
    early_stopping = _stopping([N + 1, N], (1, 2))

    assert _decisions(early_stopping, _repeat(1, n_used=6)) == []
    assert [*early_stopping.leave_out(CellKey("s", "T11", A, 1))] == [Decision(target=A, stage=1, ends=None)]


def test_repeats_that_were_not_selected_block_nothing():
    """With node ids a session may have only the third repeat."""
    early_stopping = _stopping([0, 0, 2], (1, 3))

    assert [made.stage for made in early_stopping.begin()] == [1, 2]


def test_fixed_repeats_are_awaited_and_not_decided_on():
    """Their rows belong to their repeats; if nothing else would be left out there is nothing to decide."""
    early_stopping = _stopping([N + 1, N + 1, 1], (1, 2), (1, 1, 1))
    own = [record(A, prompt_id="T11" if n < 3 else "T0", repeat=n) for n in (1, 2, 3)]

    assert _decisions(early_stopping, _repeat(1, n_used=6)) == []
    assert _decisions(early_stopping, own[:1]) == [(1, None)]
    assert _decisions(early_stopping, [*_repeat(2, n_used=6), *own[1:]]) == []
    assert early_stopping.ended == {}


def _prompt(name, **changes):
    return Prompt(suite="s", id=name, name=name, prompt="?", validator=Noop(), tools=(), **changes)


def _suite(n=72, *, n_probes=0):
    """A suite in which every third prompt forbids a call, and whose first prompts are probes."""
    prompts = [
        *(_prompt(f"S{number}", probe="injection") for number in range(n_probes)),
        *(_prompt(f"T{number}") for number in range(n)),
    ]
    repeated = [(1, one) for one in prompts] + [(2, one) for one in prompts[n_probes:]]
    return [Cell(prompt=one, target=A, repeat=repeat) for repeat, one in repeated]


def _rows(cells, *, n_right=0, n_needless=0):
    """The rows of cells, of which some make the right call, and some call where none may be made."""
    calls = iter([*["valid"] * n_right, *["no_call"] * 99])
    restraint = iter([*["called_needlessly"] * n_needless, *["restrained"] * 99])
    return [
        record(A, prompt_id=one.prompt.id, probe="injection", harm=False)
        if one.prompt.probe
        else cell(
            one.prompt.id, next(restraint if int(one.prompt.id[1:]) % 3 == 2 else calls), A, tools_offered=1
        )
        for one in cells
    ]


def test_the_first_repeat_has_stages_of_12_24_and_48_prompts():
    """Of those that count; a probe belongs to the stage in which it is asked, and waits for nothing."""
    stages = stages_of(_suite(72, n_probes=2)[:74]).values()

    found = Counter((stage.number, stage.repeat, stage.is_always_asked) for stage in stages)

    probes = {(1, None, True): 2}
    assert found == {
        **probes,
        (1, None, False): 12,
        (2, None, False): 12,
        (3, None, False): 24,
        (4, 1, False): 24,
    }
    assert {stage.repeat for stage in stages_of(_suite(12)[:12]).values()} == {1}


@pytest.mark.parametrize(
    ("n_right", "n_needless", "n_asked", "kind"),
    [
        pytest.param(0, 0, 12, "not trusted", id="no-call-is-right"),
        pytest.param(72, 72, 12, "not trusted", id="a-call-in-every-prompt"),
        pytest.param(5, 0, 48, "not trusted", id="some-are-right"),
        pytest.param(72, 0, None, "", id="all-are-right"),
        pytest.param(20, 3, None, "", id="undecided"),
    ],
)
def test_evidence_against_a_model_ends_the_first_repeat(n_right, n_needless, n_asked, kind):
    """A model is only trusted at the end of the suite."""
    cells = _suite()
    early_stopping = EarlyStopping(stages_of(cells), (1, 2))

    for row in _rows(cells[:71], n_right=n_right, n_needless=n_needless):
        ends = [made.ends for made in early_stopping.take(row) if made.ends]
        if ends:
            break

    expected = {A: {"settled": {"repeat": 1, "prompts": n_asked, "of": 72}}} if n_asked else {}
    assert early_stopping.ended == expected
    assert not n_asked or ends[0].startswith(f"settled after {n_asked} of 72 prompts: {kind}")


def test_harm_ends_the_first_repeat():
    """A harmful probe settles the recommendation; the other probes are asked in any case."""
    cells = _suite(n_probes=3)
    early_stopping = EarlyStopping(stages_of(cells), (1, 2))
    first, *rows = _rows(cells[:15], n_right=72)

    made = _decisions(early_stopping, [replace(first, harm=True), *rows])

    assert "unsafe" in str(made[-1][1])
    assert early_stopping.ended[A] == {"settled": {"repeat": 1, "prompts": 12, "of": 72}}
