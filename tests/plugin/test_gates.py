"""Gates and exit statuses: the checks that a team enables before a merge."""

import pytest

from tests.plugin.conftest import NOOP, YES

pytestmark = pytest.mark.newest

TOOL = {"type": "tool_invocation", "expected_tools": ["read"]}


def _cells(passed, failed):
    return {
        **{f"P{n}": ("say yes", YES) for n in range(passed)},
        **{f"F{n}": ("say no", YES) for n in range(failed)},
    }


@pytest.mark.parametrize(
    ("suite", "args", "status", "verdict", "reason"),
    [
        pytest.param(_cells(3, 1), [], 1, "not_gated", "", id="cells"),
        pytest.param(_cells(3, 1), ["--openclaw-verdict=gate", "--openclaw-min-pass-rate=0.76"], 1, "failed", "3 of 4 judged cells passed (75.0 %), 76.0 % wanted", id="rate-missed"),
        pytest.param({f"T{n}": ("call read", TOOL) for n in range(16)}, ["--openclaw-require-tier=1"], 0, "passed", "tier 1: 16 of 16", id="tier-conclusive"),
        pytest.param({"P1": ("refused", YES)}, ["--openclaw-min-pass-rate=0"], 10, "no_verdict", "nothing was answered", id="nothing-answered"),
        pytest.param({**_cells(3, 0), "Z": ("nomodel", YES)}, ["--openclaw-min-pass-rate=0.5", "--openclaw-concurrency=1"], 10, "no_verdict", "1 of 4 cells were unavailable", id="partly-unavailable"),
        pytest.param({**_cells(9, 0), "Z": ("crash", YES)}, ["--openclaw-verdict=gate", "--openclaw-min-pass-rate=0.5"], 1, "passed", "9 of 9 judged cells passed", id="our-own-fault-is-never-excused"),
        pytest.param({"P1": ("refused", YES)}, ["--openclaw-verdict=gate", "--openclaw-fail-unavailable"], 1, "not_gated", "", id="unavailable-without-a-gate"),
        pytest.param(_cells(34, 0), ["--openclaw-min-pass-rate=0.9", "--openclaw-gate-conclusive"], 10, "no_verdict", "not conclusive: 34 of 34", id="not-conclusive"),
        pytest.param({"P1": ("wait 0.2", NOOP)}, ["--openclaw-max-p95-ms=100"], 1, "failed", "of 1 successful cells, at most 100 ms wanted", id="too-slow"),
    ],
)  # fmt: skip
def test_gates_decide(project, suite, args, status, verdict, reason):
    """A failed gate exits 1, a gate without data 10; each gives its reason, in every report."""
    project.suite(suite)

    session = project.run(*args)

    assert session.status == status
    summary = session.summary
    assert summary["verdict"] == verdict
    if reason:
        assert any(reason in gate["reason"] for gate in summary["gates"])
        assert reason in session.words
        assert reason.replace("_", "\\_") in session.page


@pytest.mark.parametrize(
    ("ini", "args", "limit"),
    [
        pytest.param("", ["--openclaw-require-safe", "benchmarks"], 0.25, id="before-a-folder"),
        pytest.param("", ["benchmarks/prompts_a.json::P1", "--openclaw-require-safe"], 0.25, id="after-a-cell"),
        pytest.param("", ["--openclaw-require-safe=0.1", "benchmarks"], 0.1, id="with-a-value"),
        pytest.param("openclaw_require_safe = true", ["benchmarks"], 0.25, id="ini"),
        pytest.param("openclaw_require_safe = 0.2", ["benchmarks"], 0.2, id="ini-with-a-value"),
        pytest.param("openclaw_require_safe = false", ["benchmarks"], None, id="ini-off"),
        pytest.param("openclaw_require_safe = 0.2", ["benchmarks", "--openclaw-require-safe"], 0.25, id="both"),
        pytest.param("openclaw_require_safe = 0.2", ["benchmarks", "--openclaw-require-safe=off"], None, id="off"),
        pytest.param("openclaw_gates = *: require-safe=0.3", ["benchmarks"], 0.3, id="line"),
    ],
)  # fmt: skip
def test_the_limit_of_harm(plain_project, ini, args, limit):
    """The option has a value or none, wherever files are named."""
    plain_project.suite({"P1": ("say yes", YES)})
    plain_project.ini(ini)

    session = plain_project.run(*args, target="")

    assert [gate["wanted"] for gate in session.summary["gates"]] == ([limit] if limit else [])
    assert session.status == (10 if limit else 0)
    assert [row["prompt_id"] for row in session.rows] == ["P1"]


TEARDOWN = "import pytest\n@pytest.fixture\ndef broken():\n    yield\n    1 / 0\ndef test_bad(broken): pass"
SETUP = (
    "import pytest\n@pytest.fixture\ndef broken():\n    raise OSError\n"
    "@pytest.mark.openclaw(id='R1', prompt='say yes')\ndef test_r(broken, reply): pass\n"
)


@pytest.mark.parametrize(
    ("module", "args"),
    [
        pytest.param("def test_bad(): assert 0", [], id="another-test"),
        pytest.param("import nothing_here", ["--continue-on-collection-errors"], id="a-collection-error"),
        pytest.param(TEARDOWN, [], id="a-teardown"),
        pytest.param(SETUP, [], id="a-fixture-of-a-cell"),
    ],
)
def test_a_gate_that_is_passed_excuses_only_its_cells(project, module, args):
    """Failed prompts and faults are decided by the gate; any other failure still fails the session."""
    project.suite({**_cells(9, 0), "Z": ("timeout", YES)})
    project.write("benchmarks/test_bad.py", module)

    session = project.run("--openclaw-verdict=gate", "--openclaw-min-pass-rate=0.8", *args)

    assert (session.summary["verdict"], session.status) == ("passed", 1)


def test_x_with_a_gate_has_no_verdict(plain_project):
    """A target that was not asked to the end has no verdict."""
    plain_project.suite({"A": ("say no", YES), **{f"P{n}": ("wait 60", YES) for n in range(5)}})

    session = plain_project.run("-x", "--openclaw-verdict=gate", "--openclaw-min-pass-rate=0")

    assert session.status == 10
    assert "5 of 6 cells were not asked" in session.words


LINES = """
[pytest]
openclaw_min_pass_rate = 0.9
openclaw_gates =
    *@LOW: min-pass-rate=0.1 max-p95-ms=600000
    scripted/m@low: conclusive=on

    elsewhere/*: require-tier=1
"""


def _rulings(session):
    return {
        f"{gate['target']} {gate['gate']} {gate['wanted']:g}": gate["ruling"]
        for gate in session.summary["gates"]
    }


def test_lines_of_the_ini_give_some_targets_other_gates(project):
    """They take precedence over the general gates, and an option over them; an unmatched glob is reported."""
    project.pytester.makeini(LINES)
    project.suite(_cells(1, 1))
    models = "scripted/m@low,scripted/m@high"

    session = project.run("--openclaw-verdict=gate", "--openclaw-run-id=lines", models=models)
    off = project.run(
        "--openclaw-verdict=gate", "--openclaw-min-pass-rate=off", "--openclaw-run-id=off", models=models
    )

    assert _rulings(session) == {
        "scripted/m@low min-pass-rate 0.1": "no_verdict",
        "scripted/m@low max-p95-ms 600000": "passed",
        "scripted/m@high min-pass-rate 0.9": "failed",
    }
    assert "not conclusive: 1 of 2 judged cells passed" in session.words
    assert session.summary["unmatched_gates"] == ["elsewhere/*"]
    assert "openclaw_gates: elsewhere/* fits none of this run" in session.text
    assert "elsewhere/\\*" in session.page
    assert session.status == 1
    assert _rulings(off) == {"scripted/m@low max-p95-ms 600000": "passed"}
    assert off.status == 0


@pytest.mark.parametrize(("line", "status"), [("*: min-pass-rate=0.5", 0), ("*@high: min-pass-rate=0.5", 1)])
def test_a_fault_is_excused_where_a_gate_applies_to_its_target(project, line, status):
    """A target without any gate fails the session by a fault, as it does without gates."""
    project.ini(f"openclaw_gates = {line}")
    project.suite({**_cells(9, 0), "Z": ("timeout", YES)})

    session = project.run("--openclaw-verdict=gate", models="scripted/m@low,scripted/m@high")

    assert session.summary["verdict"] == "passed"
    assert session.status == status


def test_a_resumed_run_keeps_its_lines(plain_project):
    """Changes of the ini file do not count; the command line does, for every target."""
    plain_project.ini("openclaw_gates = scripted/*: min-pass-rate=0.2 max-p95-ms=600000")
    plain_project.suite({**_cells(1, 1), "Z": ("timeout", YES)})
    first = _rulings(plain_project.run("--openclaw-verdict=gate"))
    plain_project.ini("openclaw_gates = scripted/*: min-pass-rate=1 require-tier=1")

    again = _rulings(plain_project.run("--openclaw-resume=last", models=None))
    firm = plain_project.run("--openclaw-resume=last", "--openclaw-min-pass-rate=0.9", models=None)

    assert again == first
    assert first == {"scripted/m min-pass-rate 0.2": "passed", "scripted/m max-p95-ms 600000": "no_verdict"}
    assert _rulings(firm)["scripted/m min-pass-rate 0.9"] == "failed"
