"""Gates and exit statuses: what a team switches on before a merge."""

from __future__ import annotations

from typing import Any

import pytest

YES = {"type": "exact", "value": "yes"}
TOOL = {"type": "tool_invocation", "expected_tools": ["read"]}


def _cells(passed: int, failed: int) -> dict[str, Any]:
    return {
        **{f"P{n}": ("say yes", YES) for n in range(passed)},
        **{f"F{n}": ("say no", YES) for n in range(failed)},
    }


def _tools(used: int, unused: int) -> dict[str, Any]:
    return {
        **{f"T{n}": ("call read", TOOL) for n in range(used)},
        **{f"U{n}": ("say nothing of the kind", TOOL) for n in range(unused)},
    }


@pytest.mark.parametrize(
    ("suite", "args", "status", "verdict", "reason"),
    [
        pytest.param(_cells(3, 1), ["--openclaw-verdict=gate"], 0, "not_gated", "", id="gate-alone-no-gate"),
        pytest.param(_cells(3, 1), [], 1, "not_gated", "", id="cells"),
        pytest.param(_cells(3, 1), ["--openclaw-verdict=gate", "--openclaw-min-pass-rate=0.75"], 0, "passed", "3 of 4 judged cells passed", id="rate-reached"),
        pytest.param(_cells(3, 1), ["--openclaw-verdict=gate", "--openclaw-min-pass-rate=0.76"], 1, "failed", "3 of 4 judged cells passed (75.0%), 76.0% wanted", id="rate-missed"),
        pytest.param(_tools(16, 0), ["--openclaw-require-tier=1"], 0, "passed", "tier 1: 16 of 16", id="tier-conclusive"),
        pytest.param(_tools(6, 0), ["--openclaw-require-tier=1"], 1, "failed", "not conclusive: 6 of 6", id="tier-not-conclusive"),
        pytest.param(_tools(1, 1), ["--openclaw-require-tier=1", "--openclaw-verdict=gate"], 1, "failed", "tier 2: 1 of 2", id="tier-too-low"),
        pytest.param(_tools(3, 1), ["--openclaw-min-tool-rate=0.75", "--openclaw-verdict=gate"], 0, "passed", "3 of 4 tool cells", id="tool-rate"),
        pytest.param(_cells(2, 0), ["--openclaw-min-tool-rate=0.5"], 10, "no_verdict", "no answered cell counts", id="no-tool-cells"),
        pytest.param({"P1": ("refused", YES)}, ["--openclaw-min-pass-rate=0"], 10, "no_verdict", "nothing was answered", id="nothing-answered"),
        pytest.param({"P1": ("timeout", YES)}, ["--openclaw-min-pass-rate=0"], 10, "no_verdict", "nothing was answered", id="only-faults"),
        pytest.param({**_cells(3, 0), "Z": ("nomodel", YES)}, ["--openclaw-min-pass-rate=0.5", "--openclaw-concurrency=1"], 10, "no_verdict", "1 of 4 cells were unavailable", id="partly-unavailable"),
        pytest.param({**_cells(3, 0), "Z": ("timeout", YES)}, ["--openclaw-verdict=gate"], 1, "not_gated", "", id="a-fault-fails-the-gate-mode"),
        pytest.param({**_cells(3, 0), "Z": ("say ", YES)}, ["--openclaw-verdict=gate", "--openclaw-min-pass-rate=1"], 1, "failed", "3 of 4 judged cells passed", id="silence-is-no-pass"),
    ],
)  # fmt: skip
def test_gates_decide(
    project: Any, suite: dict[str, Any], args: list[str], status: int, verdict: str, reason: str
) -> None:
    """A failed gate exits 1, a gate without anything to judge 10; each says why, in every report."""
    project.suite(suite)

    session = project.run(*args)

    assert session.status == status
    summary = session.summary
    assert summary["verdict"] == verdict
    if reason:
        assert any(reason in gate["reason"] for gate in summary["gates"])
        assert reason in session.text
        page = (session.run_dir / "summary.md").read_text()
        assert reason.replace("_", "\\_") in page


def test_each_target_has_its_own_gate(project: Any) -> None:
    """One target that misses fails the gate, whatever the others do."""
    project.suite({"P1": ("level", {"type": "exact", "value": "high"})})

    session = project.run(
        "--openclaw-min-pass-rate=1", "--openclaw-verdict=gate", models="scripted/m@high,scripted/m@low"
    )

    rulings = {gate["target"]: gate["ruling"] for gate in session.summary["gates"]}
    assert rulings == {"scripted/m@high": "passed", "scripted/m@low": "failed"}
    assert session.status == 1


def test_another_failing_test_fails_the_gate_mode(project: Any) -> None:
    """`--openclaw-verdict=gate` forgives verdicts, not tests."""
    project.suite(_cells(1, 1))
    project.pytester.makepyfile(**{"benchmarks/test_bad": "def test_bad(): assert 0"})

    assert project.run("--openclaw-verdict=gate").status == 1


def test_x_with_a_gate_is_no_pass(plain_project: Any) -> None:
    """A target that was not asked to the end has no verdict."""
    plain_project.suite({"A": ("say no", YES), **{f"P{n}": ("wait 60", YES) for n in range(5)}})

    session = plain_project.run("-x", "--openclaw-verdict=gate", "--openclaw-min-pass-rate=0")

    assert session.status == 10
    assert "5 of 6 cells were not asked" in session.text
