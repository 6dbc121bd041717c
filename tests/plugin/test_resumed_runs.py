"""A resumed run: the rows that it keeps, the cells that it asks again, and when it is refused."""

import json
from collections import Counter

import pytest

from pytest_openclaw.runs.directory import RunDirectory
from tests.plugin.conftest import NOOP, YES
from tests.plugin.school import SUITE, TEACHER, begin, cut, resume, timeless

pytestmark = pytest.mark.newest


@pytest.fixture
def school(project):
    project.extend_conftest(TEACHER)
    return project


@pytest.fixture
def plain_school(plain_project):
    plain_project.extend_conftest(TEACHER)
    return plain_project


@pytest.mark.under_workers
def test_only_missing_cells_are_asked(school):
    """Kept rows stay byte for byte, the rest is asked once, and every cell ends with one row."""
    school.suite(SUITE)
    begin(school)
    cut(school, 2, torn=b'{"record_type": "resu')
    kept = school.stored("r").lines[:2]
    done = {json.loads(line)["prompt_name"] for line in kept}

    session = resume(school)

    assert session.lines[:2] == kept
    assert sorted(row["prompt_id"] for row in session.rows) == sorted(SUITE)
    asked = [f"a {text}" for name, (text, _) in SUITE.items() if name not in done]
    assert Counter(session.asked) == Counter(["warm-up a", "fingerprint a", *asked])
    session.outcomes(passed=2, failed=3)
    assert session.status == 1
    assert session.summary["state"] == "finished"


@pytest.mark.parametrize("n", [0, 3, 5])
def test_a_resumed_run_equals_an_uninterrupted_one(plain_school, n):
    """Wherever it was cut, the summary is the same except for times, and so is pytest's output."""
    plain_school.suite(SUITE)
    whole = begin(plain_school, models="teacher/a,teacher/b@low")
    expected, config, rows = timeless(whole.summary), whole.load("config.json"), whole.lines
    files = {path.name for path in whole.run_dir.iterdir()}
    cut(plain_school, 2 * n, torn=rows[2 * n][:-9] if n < 5 else b"")

    again = resume(plain_school)

    assert timeless(again.summary) == expected
    assert again.load("config.json") == config
    assert (again.status, again.result.parseoutcomes()) == (whole.status, whole.result.parseoutcomes())
    assert {path.name for path in again.run_dir.iterdir()} == files


def test_unanswered_cells_are_asked_again(school):
    """Faults and unavailable cells lose their rows; rows after them stay where they are."""
    school.suite(SUITE)
    (school.folder / "down.txt").write_text("yes\nmaybe")
    first = begin(school, "--openclaw-retries=0")
    first.outcomes(failed=3, errors=2)
    assert "--openclaw-resume=r" in first.text.split("\nnext ")[1].splitlines()[0]
    kept = [line for line in first.lines if json.loads(line)["availability_status"] == "ok"]
    (school.folder / "down.txt").unlink()

    session = resume(school)

    assert session.lines[:3] == kept
    assert len(session.rows) == 5
    assert {word for word in session.asked if word.startswith("a ")} == {"a say yes", "a say maybe"}
    session.outcomes(passed=2, failed=3)
    assert "\nnext " not in session.text
    after = session.run_dir / "resources_teacher__a_after.txt"
    last_asked = max(row["ended_at_ms"] for row in session.rows)
    taken_at_ms = session.summary["groups"][0]["resources_after"]["taken_at_ms"]
    assert taken_at_ms >= last_asked
    assert str(taken_at_ms) in after.read_text()


def test_a_kept_failure_is_reported_again(school):
    """With its reason, and that no request was sent."""
    school.suite({"P1": ("say no", YES), "P2": ("say ", NOOP)})
    begin(school)

    session = resume(school, "-v")

    assert session.text.count("  kept    from run r, not asked again") == 2
    assert 'P1 P1: "no" is not "yes"' in session.text
    assert session.asked == []


PYTHON = """
import pathlib
import pytest

def note(word):
    with open(pathlib.Path(__file__).parent.parent / "ran.txt", "a") as file:
        file.write(word + "\\n")

@pytest.fixture
def costly(reply):
    note("fixture")
    return reply.text.upper()

@pytest.mark.openclaw(id="R1", prompt="say yes")
def test_passes(costly):
    note("R1")
    assert costly == "YES"

@pytest.mark.openclaw(id="R2", prompt="say no")
def test_fails(reply):
    note("R2")
    assert reply.text == "yes", "it is not yes"

@pytest.mark.openclaw(id="R3", prompt="say perhaps")
def test_late(reply):
    note("R3")
"""


def test_a_kept_python_benchmark_is_not_run_again(school):
    """Neither its test nor a fixture runs; its verdict is reported again, with its assertion's message."""
    school.write("benchmarks/test_python.py", PYTHON)
    first = begin(school)
    ran = school.folder / "ran.txt"
    ran.unlink()
    rest = b"".join(line for line in first.lines if b'"R3"' not in line)
    (first.run_dir / "results.jsonl").write_bytes(rest)

    session = resume(school, "-v")

    assert ran.read_text().split() == ["R3"]
    assert set(session.asked) == {"warm-up a", "a say perhaps", "fingerprint a"}
    first.outcomes(passed=2, failed=1)
    session.outcomes(passed=2, failed=1)
    assert "R2 test_fails: it is not yes" in session.text
    assert "not asked again" in session.text
    assert {prompt["id"] for prompt in session.load("config.json")["prompts"]} == {"R1", "R2", "R3"}


def test_a_changed_python_benchmark_is_refused(school):
    """This holds under workers too, whose controller does not read Python files; no request is sent."""
    school.write("benchmarks/test_python.py", PYTHON)
    begin(school)
    cut(school, 0)
    school.write("benchmarks/test_python.py", PYTHON.replace("say perhaps", "say surely"))

    session = resume(school)

    session.is_refused("benchmarks/test_python.py: prompt R3: its prompt has changed")
    assert "cells were selected" not in session.text


def test_targets_and_stream_come_from_the_run(school):
    """`--openclaw-resume=last` is enough: a `*` keeps its models, whatever the ini says now."""
    school.suite({"P1": ("say yes", YES)})
    first = begin(school, "--openclaw-stream=off", models="teacher/*")
    config = first.load("config.json")
    cut(school, 1)
    (missing,) = {"a", "b"} - {json.loads(line)["model"] for line in first.lines}
    school.ini("openclaw_models = teacher/c", "openclaw_stream = on")

    session = school.run("--openclaw-resume=last", models=None)

    session.outcomes(passed=2)
    assert "openclaw: teacher/b, teacher/a; r continues, 1 cell kept" in session.text
    assert sorted(session.asked) == sorted(
        [f"warm-up {missing}", f"fingerprint {missing}", f"{missing} say yes"]
    )
    assert (school.folder / "streamed.txt").read_text().split() == ["False"] * 3
    assert session.load("config.json") == config


CHANGES = [
    pytest.param({}, ["-k", "P1 or P2"], "prompts_a.json: prompt P3 is not selected now, or was removed", id="fewer"),
    pytest.param({}, ["--openclaw-models=teacher/b"], "leave --openclaw-models out", id="other-target"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "args", "message"), CHANGES)
def test_another_run_is_refused(school, changes, args, message):
    """Exit status 4, with the changed setting and its place; no request is sent and no file is changed."""
    school.suite(SUITE)
    run = begin(school).run_dir
    cut(school, 2, torn=b"{")
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    school.suite({**SUITE, **changes})

    session = resume(school, *args)

    session.is_refused(message)
    assert "No request was sent." in session.text
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_listing_a_resumed_run_touches_nothing(plain_school):
    """`--collect-only` shows the run's cells; its directory may even be in use."""
    plain_school.suite(SUITE)
    run = begin(plain_school).run_dir
    cut(plain_school, 2)
    before = plain_school.stored("r").lines

    with RunDirectory(run):
        session = resume(plain_school, "--collect-only", "-q")

    assert session.status == 0
    assert "P5[teacher/a]" in session.text
    assert session.lines == before
