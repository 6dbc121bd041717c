"""`xfail` on a prompt: pytest's own expected failures, by target."""

import re

import pytest

from pytest_openclaw.cli import main
from tests.plugin.conftest import YES

pytestmark = pytest.mark.newest

TOO_SMALL = {"target": "*/SMALL*", "reason": "too small for this"}


def write(project, *prompts):
    project.suite([{"id": f"P{n}", "validator": YES, **prompt} for n, prompt in enumerate(prompts, 1)])


def test_a_known_failure_is_expected(project):
    """The glob selects targets; an unexpected pass is pytest's own, and in row, summary, page and terminal."""
    write(
        project,
        {"prompt": "say yes", "xfail": TOO_SMALL},
        {"prompt": "say no", "xfail": [TOO_SMALL]},
        {"prompt": "say no"},
    )

    session = project.run("-rx", "--junitxml=junit.xml", models="scripted/small-1b,scripted/large")

    session.outcomes(xpassed=1, xfailed=1, failed=3, passed=1)
    assert "P2[scripted/small-1b] - too small for this" in session.text
    assert "known failures    1 as expected; passing now: P1" in session.text
    assert "passing now: P1" in session.page
    about = [line for line in session.text.splitlines() if "P3[scripted/small-1b]" in line]
    assert len(about) == 1
    rows = {(row["prompt_id"], row["model"]): row for row in session.rows}
    assert rows["P2", "small-1b"]["objective_pass"] is False
    assert rows["P2", "small-1b"]["known_failure"] == "too small for this"
    assert rows["P2", "large"]["known_failure"] is None
    groups = {group["model"]: group for group in session.summary["groups"]}
    assert groups["small-1b"]["passed"] == groups["large"]["passed"]
    shared = {
        "suite": "benchmarks/prompts_a.json",
        "target": "scripted/small-1b",
        "reason": "too small for this",
    }
    assert sorted(session.summary["known_failures"], key=lambda one: one["prompt_id"]) == [
        {**shared, "prompt_id": "P1", "n": 1, "n_missed": 0},
        {**shared, "prompt_id": "P2", "n": 1, "n_missed": 1},
    ]
    assert 'message="too small for this"' in (project.folder / "junit.xml").read_text()


STRICTNESS = [
    pytest.param(True, "", 1, id="strict"),
    pytest.param(False, "xfail_strict = true", 0, id="not-strict-whatever-the-ini-says"),
    pytest.param(None, "xfail_strict = true", 1, id="the-ini-says-strict"),
    pytest.param(None, "", 0, id="nothing-says-strict"),
]


@pytest.mark.parametrize(("strict", "ini", "n_failed"), STRICTNESS)
def test_a_strict_one_must_fail(plain_project, strict, ini, n_failed):
    """`strict`, or the ini if the suite has none, makes an unexpected pass a failure, as pytest does."""
    plain_project.ini(ini)
    write(plain_project, {"prompt": "say yes", "xfail": {**TOO_SMALL, "strict": strict}})

    session = plain_project.run(models="scripted/small")

    session.outcomes(failed=n_failed, xpassed=1 - n_failed)
    assert ("[XPASS(strict)] too small for this" in session.text) == bool(n_failed)


def test_an_unexpected_pass_is_a_verdict(project):
    """`--openclaw-verdict=gate` lets the gates decide over it; a resumed run reports all of it again."""
    small = {**TOO_SMALL, "strict": True}
    write(project, {"prompt": "say yes", "xfail": small}, {"prompt": "say no", "xfail": small})

    by_gates = project.run("--openclaw-verdict=gate", "--openclaw-run-id=s", models="scripted/small")
    again = project.run("--openclaw-resume=s", models=None)

    by_gates.outcomes(failed=1, xfailed=1)
    again.outcomes(failed=1, xfailed=1)
    assert (by_gates.status, again.status) == (0, 0)


def test_faults_and_empty_replies(project):
    """A fault stays an error or a skip; an empty or filtered reply counts as the expected failure."""
    prompts = ("timeout", "crash", "say ", "filtered", "refused")
    write(project, *({"prompt": prompt, "xfail": {"reason": "too hard"}} for prompt in prompts))

    session = project.run("--openclaw-retries=0", "--openclaw-concurrency=1")

    session.outcomes(errors=2, skipped=1, xfailed=2)
    assert session.status == 1
    assert {one["prompt_id"] for one in session.summary["known_failures"]} == {"P3", "P4"}


PYTHON = """
import pytest

@pytest.mark.xfail(reason="not yet", raises=AssertionError)
@pytest.mark.openclaw(id="R1", prompt="say no")
def test_one(reply):
    assert reply.text == "yes"

@pytest.mark.xfail(reason="not yet")
@pytest.mark.openclaw(id="R2", prompt="say yes")
def test_two(reply):
    assert reply.text == "yes"

@pytest.mark.xfail(reason="not yet", strict=True)
@pytest.mark.openclaw(id="R3", prompt="say yes")
def test_three(reply):
    assert reply.text == "yes"

@pytest.mark.openclaw(id="R4", prompt="say no")
def test_four(reply):
    if reply.text != "yes":
        pytest.xfail("said in the test")

@pytest.mark.xfail(reason="not yet", raises=AssertionError)
@pytest.mark.openclaw(id="R5", prompt="say ")
def test_five(reply):
    raise RuntimeError("not reached")

@pytest.mark.xfail(reason="not yet", raises=AssertionError)
@pytest.mark.openclaw(id="R6", prompt="timeout")
def test_six(reply):
    raise RuntimeError("not reached")
"""


def test_in_python_it_is_pytests_own_mark(project):
    """Its reason is in the row, an empty reply is a failure, and a resumed run reports the same."""
    project.write("benchmarks/test_r.py", PYTHON)
    words = ("--openclaw-verdict=gate", "--openclaw-retries=0")

    first = project.run("--openclaw-run-id=r", *words)
    again = project.run("--openclaw-resume=r", *words, models=None)

    first.outcomes(xfailed=3, xpassed=1, failed=1, errors=1)
    assert {row["prompt_id"]: row["known_failure"] for row in first.rows} == {
        "R1": "not yet", "R2": "not yet", "R3": "not yet", "R4": "said in the test", "R5": "not yet", "R6": None,
    }  # fmt: skip
    assert first.status == again.status == 1
    assert again.result.parseoutcomes() == first.result.parseoutcomes()


def test_a_rescored_run_expects_what_the_suite_expects_today(plain_project, capsys):
    """A failure that has become known since is expected now, and one that is fixed is an unexpected pass."""
    write(plain_project, {"prompt": "say no"}, {"prompt": "say yes", "xfail": {"reason": "too hard"}})
    plain_project.run("--openclaw-run-id=r")
    write(plain_project, {"prompt": "say no", "xfail": {"reason": "known now"}}, {"prompt": "say yes"})

    assert main(["rescore", "r"]) == 0

    assert re.search("known failures +1 as expected", capsys.readouterr().out)
    again = plain_project.stored("r-rescored")
    assert [row["known_failure"] for row in again.rows] == ["known now", None]
    reasons = [
        prompt["xfail"] and prompt["xfail"][0]["reason"] for prompt in again.load("config.json")["prompts"]
    ]
    assert reasons == ["known now", None]
