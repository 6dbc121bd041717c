"""`repeat` and `pass = "k of n"` on a prompt: its number of repeats, and the failures that are allowed."""

import json
from collections import Counter

import pytest

from tests.plugin.conftest import YES

pytestmark = pytest.mark.newest


def write(project, *prompts):
    project.suite([{"id": f"P{n}", "validator": YES, **prompt} for n, prompt in enumerate(prompts, 1)])


@pytest.mark.parametrize(
    ("args", "others"), [([], 1), (["--openclaw-repeat=2"], 2)], ids=["prompts-only", "with-the-option"]
)
def test_a_prompt_says_how_often_it_is_asked(project, args, others):
    """Its own number takes precedence over the option, which is for prompts without one."""
    write(
        project,
        {"prompt": "say yes", "repeat": 3},
        {"prompt": "say yes"},
        {"prompt": "say yes", "pass": "2 of 4"},
        {"prompt": "say yes", "repeat": 1},
    )

    session = project.run(*args)

    numbers = {"P1": 3, "P2": others, "P3": 4, "P4": 1}
    wanted = {(prompt, repeat) for prompt, n in numbers.items() for repeat in range(1, n + 1)}
    assert Counter((row["prompt_id"], row["repeat"]) for row in session.rows) == Counter(wanted)
    session.outcomes(passed=8 + others)
    assert session.summary["n_cells"] == 8 + others
    config = session.load("config.json")
    own = [(3, None), (None, None), (4, "2 of 4"), (1, None)]
    assert [(one["repeat"], one["pass"]) for one in config["prompts"]] == own
    assert config["targets"][0]["n_cells"] == 8 + others


def test_a_benchmark_in_python_says_it_too(project):
    """Its mark takes `repeat` and `pass_`; a parameter or a model name that ends like a repeat is not one."""
    project.write(
        "benchmarks/test_r.py",
        "import pytest\n"
        "@pytest.mark.openclaw(id='R1', prompt='miss 2', pass_='2 of 3')\n"
        "def test_r(reply): assert reply.text == 'yes'\n"
        "@pytest.mark.parametrize('route', ['r1', 'r2'])\n"
        "@pytest.mark.openclaw(id='R2', prompt='say yes')\n"
        "def test_s(reply, route): assert reply.text == 'yes'\n",
    )

    session = project.run(models="scripted/a,scripted/a-r1")

    session.outcomes(passed=8, xfailed=2)
    assert Counter((row["model"], row["prompt_id"], row["repeat"]) for row in session.rows) == Counter(
        (model, *cell)
        for model in ("a", "a-r1")
        for cell in (("R1", 1), ("R1", 2), ("R1", 3), ("R2[r1]", 1), ("R2[r2]", 1))
    )
    assert [target["n_cells"] for target in session.load("config.json")["targets"]] == [5, 5]


@pytest.mark.under_workers
def test_some_misses_are_allowed(project):
    """An allowed one is xfailed, one too many a failure; rows and rates have the true verdicts."""
    write(project, {"prompt": "miss 2", "pass": "4 of 5"}, {"prompt": "miss 2 3 5", "pass": "4 of 5"})

    session = project.run("-rx", "-v", "--junitxml=junit.xml")

    session.outcomes(passed=6, xfailed=2, failed=2)
    assert session.status == 1
    assert 'miss 1 of the 1 that pass = "4 of 5" allows' in session.text
    if not project.mode:
        assert 'missed r2, r3; pass = "4 of 5" allows 1' in session.text
    assert 'missed r2, r3, r5; pass = "4 of 5" allows 1' in session.text
    missed = {(row["prompt_id"], row["repeat"]) for row in session.rows if not row["objective_pass"]}
    assert missed == {("P1", 2), ("P2", 2), ("P2", 3), ("P2", 5)}
    assert session.summary["groups"][0]["passed"]["n_success"] == 6
    junit = (project.folder / "junit.xml").read_text()
    assert 'failures="2"' in junit
    assert 'type="pytest.xfail" message="miss 1 of the 1 that pass = &quot;4 of 5&quot; allows"' in junit


@pytest.mark.parametrize(("prompt", "n_rows"), [("miss 2", 5), ("miss 1 2", 2)])
def test_x_stops_only_at_a_failure(plain_project, prompt, n_rows):
    """`-x` continues after an allowed failure, and stops at the first beyond the limit."""
    write(plain_project, {"prompt": prompt, "pass": "4 of 5"})

    session = plain_project.run("-x")

    assert len([row for row in session.rows if row["reported"]]) == n_rows


@pytest.mark.workers
@pytest.mark.parametrize(
    ("prompt", "status"), [pytest.param("miss 2 3", 0, marks=pytest.mark.nightly), ("miss 1 2 3", 1)]
)
def test_x_stops_only_at_a_failure_over_workers(plain_project, prompt, status):
    """No worker ends at an allowed failure, though it does not know those of the others."""
    write(plain_project, {"prompt": prompt, "pass": "4 of 6"})

    session = plain_project.run("-n", "2", "-x")

    assert (session.status != 0) == bool(status)
    if not status:
        session.outcomes(passed=4, xfailed=2)


def test_lf_runs_what_has_failed(project):
    """`--lf` asks the failed repeats again, and not the allowed ones; without the others, no failure is allowed."""
    write(project, {"prompt": "miss 1 2 3", "pass": "2 of 3"}, {"prompt": "miss 1", "pass": "2 of 3"})
    project.run("--openclaw-run-id=first")

    session = project.run("--openclaw-run-id=again", "--lf")

    assert len(session.asked) == 2
    assert session.status == 1


def test_only_verdicts_are_allowed(project):
    """A fault stays an error, unavailable cells are skipped, and a conftest's own assertion is a failure."""
    project.extend_conftest(
        "\n\ndef pytest_runtest_call(item):\n"
        "    assert not item.name.startswith('P4') or not item.name.endswith('-r2]'), 'the conftest'\n"
    )
    write(
        project,
        {"prompt": "down 1", "pass": "1 of 3"},
        {"prompt": "miss 2", "pass": "2 of 3"},
        {"prompt": "gone 3", "pass": "2 of 3"},
        {"prompt": "say yes", "pass": "1 of 3"},
    )

    session = project.run("--openclaw-retries=0")

    session.outcomes(errors=1, passed=8, xfailed=1, skipped=1, failed=1)


def test_gates_see_every_miss(project):
    """An allowed failure counts for a gate; one beyond the limit is excused by `--openclaw-verdict=gate`."""
    write(project, {"prompt": "miss 1 2 3", "pass": "4 of 5"})

    lenient = project.run("--openclaw-verdict=gate", "--openclaw-min-pass-rate=0.4", "--openclaw-run-id=r")
    strict = project.run("--openclaw-verdict=gate", "--openclaw-min-pass-rate=0.5", "--openclaw-run-id=s")

    lenient.outcomes(passed=2, xfailed=1, failed=2)
    assert (lenient.status, strict.status) == (0, 1)


@pytest.mark.parametrize("prompt", ["miss 2", "miss 1 3"])
def test_a_resumed_run_counts_what_is_kept(project, prompt):
    """Kept failures are allowed or not as before; only the missing repeats are asked."""
    write(project, {"prompt": prompt, "pass": "3 of 4"}, {"prompt": "say yes"})
    first = project.run("--openclaw-run-id=r")
    kept = [line for line in first.lines if json.loads(line)["repeat"] in (1, 2)]
    (first.run_dir / "results.jsonl").write_bytes(b"".join(kept))
    (first.run_dir / "summary.json").unlink()

    again = project.run("--openclaw-resume=r", models=None)

    assert Counter(again.asked) == Counter(f"m {prompt} {seed}" for seed in (3, 4))
    assert (again.status, again.result.parseoutcomes()) == (first.status, first.result.parseoutcomes())
    assert again.summary["n_cells"] == 5
