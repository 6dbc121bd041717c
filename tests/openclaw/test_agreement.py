"""Our loop does, in each case of the table, what the real OpenClaw was seen to do; the table says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.openclaw.agreement import page
from tests.openclaw.agreement.cases import all_cases
from tests.openclaw.agreement.observed import Observed, load
from tests.openclaw.agreement.outcomes import Happened, Outcome, alike, differences, other_words
from tests.openclaw.agreement.play import play_ours, play_real

CASES = [pytest.param(case, id=case.id) for case in all_cases()]
SAMPLE = (
    "A10-right-2",
    "names-alike",
    "edit-tolerance",
    "ends-empty",
    "written-bracket",
    "json-one-of-two",
    "loop-found-out",
)


@pytest.fixture(scope="module")
def observed() -> Observed:
    """What OpenClaw was seen to do."""
    return load()


@pytest.mark.newest
@pytest.mark.parametrize("case", CASES)
def test_our_loop_comes_to_the_same(case, observed):
    """Each case ends as it did in OpenClaw."""
    real = observed.outcome(case)
    assert real is not None, "play it: python -m tests.openclaw.agreement --new"

    assert [*differences(play_ours(case), real)] == []


@pytest.mark.newest
def test_the_page_is_the_table(observed):
    """The documentation shows the cases as they are now, and no other."""
    ours = {case.id: play_ours(case) for case in all_cases()}

    assert page.PAGE.read_text("utf-8") == page.render(observed, ours)
    assert set(observed.cases) == set(ours)


SEEN = Outcome(
    verdict="passed",
    tool_outcome="valid",
    ended="answer",
    turns=((Happened(name="read", kind="ok", told="one"),), ()),
    files={"a.txt": "one"},
)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        pytest.param({}, [], id="the-same"),
        pytest.param(
            {"verdict": "failed"}, ["verdict: passed in our loop, failed in OpenClaw"], id="verdict"
        ),
        pytest.param(
            {"tool_outcome": None}, ["tool outcome: valid in our loop, None in OpenClaw"], id="tool-outcome"
        ),
        pytest.param({"ended": "loop"}, ["ended: answer in our loop, loop in OpenClaw"], id="ending"),
        pytest.param({"turns": SEEN.turns[:1]}, ["turns: 2 in our loop, 1 in OpenClaw"], id="turns"),
        pytest.param(
            {"turns": ((Happened(name="read", kind="error", told="one"),), ())},
            ["turn 1: read ok in our loop, read error in OpenClaw"],
            id="kind",
        ),
        pytest.param(
            {"turns": ((), ())}, ["turn 1: read ok in our loop, no call in OpenClaw"], id="no-such-call"
        ),
        pytest.param({"files": {}}, ['a.txt: "one" in our loop, null in OpenClaw'], id="file-gone"),
        pytest.param(
            {"files": {"a.txt": "one", "b.txt": "B"}},
            ['b.txt: null in our loop, "B" in OpenClaw'],
            id="another-file",
        ),
        pytest.param({"turns": ((Happened(name="read", kind="ok", told="two"),), ())}, [], id="words-alone"),
    ],
)
def test_what_differs_is_told(changes, told):
    """Anything of an outcome that differs is told in words; what the model heard is told apart."""
    other = replace(SEEN, **changes)

    assert [*differences(SEEN, other)] == told
    assert [*other_words(SEEN, other)] == ([("read", "one", "two")] if "two" in repr(changes) else [])


def test_an_outcome_is_kept_whole():
    """What is kept of an outcome gives the same outcome again."""
    assert Outcome.of_json(SEEN.to_json()) == SEEN


def test_a_moment_is_no_difference():
    """When OpenClaw looked at a note is made equal, and no other figure."""
    assert alike('{"observedAt": 1795379792048, "score": 12}') == '{"observedAt": 0, "score": 12}'


@pytest.mark.openclaw_cli
@pytest.mark.parametrize(
    "name", [SAMPLE[0], *(pytest.param(name, marks=pytest.mark.nightly) for name in SAMPLE[1:])]
)
def test_openclaw_does_what_the_table_says(name, observed, real_openclaw):
    """Played anew, a case ends in OpenClaw as it is kept, down to what the model is told."""
    (case,) = (case for case in all_cases() if case.id == name)

    assert play_real(case, real_openclaw) == observed.outcome(case)
