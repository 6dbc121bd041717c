"""`gate`: checks a stored run against gates, and writes the result into the run."""

import json

import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.parts.gates import GateLine, GateSettings
from tests.run_files import validator_of
from tests.unit.reports.summaries import fault
from tests.unit.runs.stored_runs import SUITE, A, B, files_of, load, row, store


@pytest.fixture
def runs(project):
    """Runs of 10 cells, good and bad, with and without their own gates."""
    folder = project / "runs"

    def rows(n_passed, *targets, **changes):
        return [
            row(target, f"P{n}", **{"objective_pass": n < n_passed, **changes})
            for target in targets
            for n in range(10)
        ]

    lines = (GateLine(target="lab/b*", changes={"min_pass_rate": None}),)
    store(folder / "good", rows(9, A))
    store(folder / "bad", rows(1, A))
    store(folder / "harmful", [*rows(9, A), row(A, "S1", probe="secret", harm=True, objective_pass=False)])
    store(folder / "own", rows(9, A, B), gates=GateSettings.of(min_pass_rate=0.95, by_target=lines).to_json())
    store(folder / "began-with-a-baseline", rows(9, A), gates=GateSettings.of(fail_on="regression").to_json())
    store(folder / "different", rows(9, A), gates=None)
    store(folder / "away", [fault(A, prompt_id=f"P{n}", suite=SUITE) for n in range(10)])
    store(folder / "torn", rows(10, A)[:8], n_selected={A: 10})
    return folder


TABLE = [
    pytest.param(["good", "--min-pass-rate=0.9"], 0, "gate passed       min-pass-rate 0.9, lab/a: 9 of 10 judged cells passed (90.0 %), 90.0 % wanted", id="passed"),
    pytest.param(["bad", "--min-pass-rate=0.9"], 1, "gate FAILED       min-pass-rate 0.9, lab/a: 1 of 10 judged cells passed (10.0 %), 90.0 % wanted", id="failed"),
    pytest.param(["good", "--min-pass-rate=0.85", "--gate-conclusive"], 10, "gate NO VERDICT   min-pass-rate 0.85, lab/a: not conclusive: 9 of 10", id="not-its-whole-interval"),
    pytest.param(["away", "--min-pass-rate=0.9"], 10, "gate NO VERDICT   min-pass-rate 0.9, lab/a: nothing was answered: ollama_openai: nothing answers", id="nothing-answered"),
    pytest.param(["torn", "--min-pass-rate=0.5"], 10, "gate NO VERDICT   min-pass-rate 0.5, lab/a: 8 of 8 judged cells passed (100.0 %), 50.0 % wanted, but 2 of 10 cells were not asked", id="unfinished"),
    pytest.param(["own"], 1, "gate FAILED       min-pass-rate 0.95, lab/a: 9 of 10", id="its-own"),
    pytest.param(["harmful", "--require-safe"], 1, "gate FAILED       require-safe, lab/a: did harm in 1 of 1 probe: ", id="harm"),
    pytest.param(["good", "--require-safe"], 10, "gate NO VERDICT   require-safe, lab/a: no answered cell counts for it", id="no-probe"),
    pytest.param(["good", "--gates=*A: min-pass-rate=0.95", "--gates=x/*: require-tier=1"], 1, "no such target    openclaw_gates: x/* fits none of this run", id="lines"),
    pytest.param(["bad", "--baseline=good", "--fail-on=regression"], 1, "gate FAILED       fail-on-regression, lab/a: worse: 9 -> 1 of 10 cells passed, p 0.0078", id="regression"),
    pytest.param(["good", "--baseline=bad", "--fail-on=regression"], 0, "better            lab/a: 1/10 -> 9/10, p 0.0078", id="better"),
    pytest.param(["bad", "--baseline=good", "--min-pass-rate=0.1"], 0, "worse             lab/a: 9/10 -> 1/10, p 0.0078", id="reported-but-no-gate"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "status", "line"), TABLE)
def test_a_run_is_checked_against_gates(runs, words, status, line, command):
    """Each gate has one line, the verdict comes last, JSON has the same; without --write the run is unchanged."""
    before = files_of(runs / words[0])

    shown = command("gate", *words, status=status).out.splitlines()
    data = command.json("gate", *words, status=status)

    assert any(one.startswith(line) for one in shown), shown
    verdict = {0: "passed", 1: "failed", 10: "no verdict"}[status]
    assert shown[-1] == verdict
    assert list(data) == ["run", "verdict", "gates", "unmatched_gates", "comparison", "wrote", "notes"]
    assert data["verdict"].replace("_", " ") == verdict
    assert files_of(runs / words[0]) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["good"], "it has no gate of its own; name one, for example --min-pass-rate 0.9", id="none"),
        pytest.param(["different"], "its parts had different gates; name those that count", id="different"),
        pytest.param(["good", "--gates=x/*: require-tier=1"], "no gate applies to any of its targets (x/*)", id="no-target"),
        pytest.param(["good", "--fail-on=regression"], "needs a run to compare with: add --baseline RUN", id="no-baseline"),
        pytest.param(["began-with-a-baseline"], "needs a run to compare with: add --baseline RUN", id="its-own-needs-one"),
        pytest.param(["good", "--baseline=good", "--fail-on=regression"], "name the one to compare it with", id="itself"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_checked_is_refused(runs, words, message, command):
    """Exit status 4, which is not a verdict on the model, and a line with the hint."""
    assert message in command.refused("gate", *words)


def test_the_written_summary_has_gates_and_comparison(runs):
    """Summary and reports are rewritten; rows and config stay, and a second run writes the same."""
    before = files_of(runs / "bad")
    words = ["gate", "bad", "--baseline=good", "--fail-on=regression", "--min-pass-rate=0.05", "--write"]

    assert main(words) == 1

    after = files_of(runs / "bad")
    assert {name: after[name] for name in before} == before
    summary = load(runs / "bad", "summary.json")
    validator_of("summary").validate(summary)
    rulings = {gate["gate"]: gate["ruling"] for gate in summary["gates"]}
    assert rulings == {"min-pass-rate": "passed", "fail-on-regression": "failed"}
    assert (summary["verdict"], summary["comparison"]["baseline"]) == ("failed", "good")
    assert "- gate FAILED: fail-on-regression, lab/a: worse: 9 -&gt; 1 of 10" in after["summary.md"].decode()
    assert main(words) == 1
    again = load(runs / "bad", "summary.json")
    assert {**again, "generated_at_ms": 0} == {**summary, "generated_at_ms": 0}


def test_facts_of_the_old_summary_are_kept(runs):
    """A session's budget and its environment snapshots, which are in files of their own, are kept."""
    spent = {"budget_usd": 5.0, "spent_usd": 1.5, "n_not_asked": 0}
    snapshots = {(A, "before"): {"taken_at_ms": 1, "load_1min": 0.5}}
    store(runs / "dear", [row(A, "P1")], snapshots=snapshots)
    assert main(["gate", "dear", "--min-pass-rate=0.5", "--write"]) == 0
    summary = load(runs / "dear", "summary.json")
    (runs / "dear/summary.json").write_text(json.dumps({**summary, "budget": spent}))

    assert main(["gate", "dear", "--min-pass-rate=0.5", "--write"]) == 0

    summary = load(runs / "dear", "summary.json")
    assert summary["budget"] == spent
    assert summary["groups"][0]["resources_before"] == snapshots[A, "before"]
