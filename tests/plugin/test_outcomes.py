"""Every line of the outcome table: row, pytest's outcome, exit status; an item that runs again."""

import pytest

from tests.plugin.bad_servers import outcomes_by_cell
from tests.plugin.conftest import NOOP, YES

# Pytest's outcome, and the row's availability, failure, verdict, success and attempts.
ENDS = {
    "say yes": ("passed", "ok", None, True, True, 1),
    "say no": ("failed", "ok", None, False, True, 1),
    "say ": ("failed", "ok", "empty_response", None, False, 1),
    "call read": ("passed", "ok", None, True, True, 1),
    "filtered": ("failed", "ok", "content_filter", None, False, 1),
    "nomodel": ("skipped", "skipped_unavailable", "model_not_found", None, False, 1),
    "nologin": ("error", "auth_error", "auth_missing", None, False, 0),
    "busy": ("error", "rate_limited", "http_429", None, False, 3),
    "broken": ("error", "error", "http_400", None, False, 1),
    "timeout": ("error", "error", "timeout", None, False, 1),
    "crash": ("error", "error", "harness_error", None, False, 0),
}


@pytest.mark.under_workers
def test_each_ending_has_its_row_and_outcome(project):
    """A cell ends in exactly one row and one pytest outcome; our own fault shows its traceback."""
    calls = {"type": "tool_invocation", "expected_tools": ["read"]}
    words = {f"P{n}": word for n, word in enumerate(ENDS)}
    project.suite({key: (word, calls if word == "call read" else YES) for key, word in words.items()})
    # Each on a model of its own, because some faults end a target.
    first, *others = (f"benchmarks/prompts_a.json::{key}[scripted/{key}]" for key in words)

    session = project.run(
        *others,
        "--openclaw-retries=2",
        "--junitxml=junit.xml",
        models=",".join(f"scripted/{key}" for key in words),
        target=first,
    )

    ended = outcomes_by_cell(project.folder / "junit.xml")
    fields = ("availability_status", "failure_type", "objective_pass", "success", "attempts")
    assert {
        words[row["prompt_id"]]: (
            ended[f"{row['prompt_id']}[scripted/{row['model']}]"],
            *(row[name] for name in fields),
        )
        for row in session.rows
    } == ENDS
    assert len(session.rows) == len(ENDS)
    rows = {words[row["prompt_id"]]: row for row in session.rows}
    assert (rows["call read"]["tool_calls"], rows["call read"]["tool_use_success"]) == (["read"], True)
    assert (rows["nologin"]["e2e_ms"], rows["nologin"]["ttft_ms"]) == (0, None)
    assert session.status == 1
    assert "RuntimeError: the provider is broken" in session.text
    assert "async def ask" in session.text or "in ask" in session.text
    assert "the provider is broken" in rows["crash"]["fault_message"]


def test_one_unreachable_server_is_called_once(plain_project):
    """After a refused connection the remaining cells of the endpoint are recorded without a call."""
    plain_project.suite({f"P{n}": ("refused", YES) for n in range(4)})

    session = plain_project.run("--openclaw-concurrency=1", "--openclaw-run-id=one")
    strict = plain_project.run("--openclaw-fail-unavailable", "--openclaw-run-id=strict")

    session.outcomes(skipped=4)
    assert session.status == 1, "no cell was answered"
    first, *others = session.rows
    assert (first["availability_status"], first["failure_type"]) == ("skipped_unavailable", "connect_error")
    assert first["attempts"] == 1
    for row in others:
        assert (row["attempts"], row["e2e_ms"], row["ttft_ms"]) == (0, 0, None)
        assert row["started_at_ms"] == row["ended_at_ms"]
    strict.outcomes(errors=4)
    assert {row["availability_status"] for row in strict.rows} == {"skipped_unavailable"}
    assert strict.status == 1


def test_another_model_that_answers_is_reported(project):
    """A server that answers with another model shows in the row, the terminal and the summary."""
    project.suite({"P1": ("other llama9:1b", NOOP)})

    session = project.run()

    assert session.row("P1")["effective_model"] == "llama9:1b"
    assert session.summary["groups"][0]["effective_models"] == ["llama9:1b"]
    assert "llama9:1b instead of it" in session.text


@pytest.mark.newest
@pytest.mark.under_workers
def test_a_cell_that_runs_again_is_asked_once(project, monkeypatch):
    """A failure under pytest-rerunfailures has one row, and its rate is the rate of a run without reruns."""
    pytest.importorskip("pytest_rerunfailures")
    monkeypatch.delenv("PYTEST_ADDOPTS")
    project.suite({"P0": ("say yes", YES), "P1": ("say no", YES)})

    session = project.run("--reruns=2")

    outcomes = session.result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (1, 1)
    assert [session.row(name)["objective_pass"] for name in ("P0", "P1")] == [True, False]
    assert session.summary["groups"][0]["objective_pass_rate"] == 0.5
    assert sorted(session.asked) == ["m say no", "m say yes"]


def test_a_cell_that_a_hook_skips_has_no_row(project):
    """Even if its reply was sent ahead of its test, and it is the last one of the session."""
    hook = (
        "import pytest\ndef pytest_runtest_setup(item):\n    if 'P2' in item.name: pytest.skip('not today')\n"
    )
    project.write("benchmarks/conftest.py", hook)
    project.suite({f"P{n}": ("say yes", YES) for n in range(3)})

    session = project.run()

    session.outcomes(passed=2, skipped=1)
    assert [row["prompt_id"] for row in session.rows] == ["P0", "P1"]
    assert (session.summary["state"], session.summary["n_cells"]) == ("finished", 2)
