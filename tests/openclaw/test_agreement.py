"""Our loop gives, in each case of the table, the outcome observed in the real OpenClaw; the table says so."""

from __future__ import annotations

from functools import cache

import pytest

from tests.openclaw.agreement import page
from tests.openclaw.agreement.cases import all_cases
from tests.openclaw.agreement.observed import Observed, load
from tests.openclaw.agreement.outcomes import Happened, Outcome, alike, differences
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
    "without-tools-calls",
    "messages-direct",
    "messages-bridge",
    "long-read",
    "long-exec",
    "long-fetch",
)


@pytest.fixture(scope="module")
def observed() -> Observed:
    """The outcomes observed in OpenClaw."""
    return load()


@cache
def played(number: int) -> Outcome:
    """Return the outcome of a case in our loop, which two tests need."""
    return play_ours(CASES[number].values[0])


@pytest.mark.newest
@pytest.mark.xdist_group("agreement")
@pytest.mark.parametrize("number", [pytest.param(n, id=case.id) for n, case in enumerate(CASES)])
def test_our_loop_has_the_same_outcome(number, observed):
    """Each case ends as it did in OpenClaw."""
    case = CASES[number].values[0]
    real = observed.outcome(case)
    assert real is not None, "play it: python -m tests.openclaw.agreement --new"

    assert [*differences(played(number), real)] == []


@pytest.mark.newest
@pytest.mark.xdist_group("agreement")
def test_the_page_is_the_table(observed):
    """The documentation shows exactly the current cases."""
    ours = {case.id: played(n) for n, case in enumerate(all_cases())}

    assert page.PAGE.read_text("utf-8") == page.render(observed, ours)
    assert set(observed.cases) == set(ours)


SEEN = Outcome(
    verdict="passed",
    tool_outcome="valid",
    ended="answer",
    turns=((Happened(name="read", kind="ok", result="one"),), ()),
    files={"a.txt": "one"},
)


def test_a_moment_is_no_difference():
    """The moment at which OpenClaw looked at a note is normalised, and no other figure."""
    assert alike('{"observedAt": 1795379792048, "score": 12}') == '{"observedAt": 0, "score": 12}'


@pytest.mark.openclaw_cli
@pytest.mark.parametrize(
    "name", [SAMPLE[0], *(pytest.param(name, marks=pytest.mark.nightly) for name in SAMPLE[1:])]
)
def test_openclaw_does_what_the_table_says(name, observed, real_openclaw):
    """Played again, a case ends in OpenClaw as recorded, including the text of its results."""
    (case,) = (case for case in all_cases() if case.id == name)

    assert play_real(case, real_openclaw) == observed.outcome(case)
