"""Our loop gives, in each case of the table, the outcome observed in the real OpenClaw; the table says so."""

from functools import cache

import pytest

from tests.openclaw.agreement import page
from tests.openclaw.agreement.cases import all_cases
from tests.openclaw.agreement.outcomes import alike, differences, load
from tests.openclaw.agreement.play import play_ours, play_real

CASES = {case.id: case for case in all_cases()}
# Each is played again in OpenClaw every night.
SAMPLE = (
    *("names-alike", "edit-tolerance", "ends-empty", "written-bracket", "json-one-of-two", "loop-found-out"),
    *("without-tools-calls", "messages-direct", "long-read", "long-exec", "long-fetch"),
)


@pytest.fixture(scope="module")
def observed():
    return load()


@cache
def played(name):
    return play_ours(CASES[name])


@pytest.mark.newest
@pytest.mark.xdist_group("agreement")
@pytest.mark.parametrize("name", CASES)
def test_our_loop_has_the_same_outcome(name, observed):
    """Each case ends as it did in OpenClaw."""
    real = observed.outcome(CASES[name])
    assert real is not None, "play it: python -m tests.openclaw.agreement --new"

    assert [*differences(played(name), real)] == []


@pytest.mark.newest
@pytest.mark.xdist_group("agreement")
def test_the_page_is_the_table(observed):
    """The documentation shows exactly the current cases."""
    ours = {name: played(name) for name in CASES}

    assert page.PAGE.read_text("utf-8") == page.render(observed, ours)
    assert set(observed.cases) == set(ours)


def test_a_time_is_not_a_difference():
    """The time at which OpenClaw looked at a note is made equal, and no other figure."""
    assert alike('{"observedAt": 1795379792048, "score": 12}') == '{"observedAt": 0, "score": 12}'


@pytest.mark.openclaw_cli
@pytest.mark.parametrize(
    "name", ["A10-right-2", *(pytest.param(name, marks=pytest.mark.nightly) for name in SAMPLE)]
)
def test_openclaw_answers_as_recorded(name, observed, real_openclaw):
    """Played again, a case ends in OpenClaw as recorded, including the text of its results."""
    assert play_real(CASES[name], real_openclaw) == observed.outcome(CASES[name])
