"""Benchmarks written in Python: the mark, the `reply`, their rows."""

from __future__ import annotations

from typing import Any

import pytest

MODULE = """
import pytest

@pytest.mark.openclaw(id="R1", prompt="say `read` and then `edit --all`", expected_tools=["edit"], category="tools")
def test_reads_before_editing(reply):
    assert reply.tool_names[-1:] == ("edit",)

@pytest.mark.openclaw(id="R2", prompt="say no")
def test_agrees(reply):
    assert reply.text == "yes", "it does not agree"

@pytest.mark.openclaw(id="R3", prompt="say yes")
def test_breaks(reply):
    raise ValueError("the benchmark is broken")

@pytest.mark.openclaw(id="R4", prompt="say ")
def test_says_something(reply):
    pass

@pytest.mark.openclaw(id="R5", prompt="timeout")
def test_never_runs(reply):
    assert 0
"""


def _write(project: Any, text: str = MODULE) -> None:
    folder = project.folder / "benchmarks"
    folder.mkdir(exist_ok=True)
    (folder / "test_bench.py").write_text(text)


@pytest.mark.under_workers
def test_each_ending_of_a_python_benchmark(project: Any) -> None:
    """An assertion is a verdict, another exception an error; a fault or an empty reply ends it early."""
    _write(project)

    session = project.run()

    session.outcomes(passed=1, failed=3, errors=1)
    r1, r2, r3, r4, r5 = (session.row(f"R{n}") for n in range(1, 6))
    assert (r1["objective_pass"], r1["tool_use_success"], r1["tool_outcome"]) == (True, True, "valid")
    assert (r1["prompt_name"], r1["category"]) == ("test_reads_before_editing", "tools")
    assert (r2["objective_pass"], r2["success"]) == (False, True)
    assert "it does not agree" in r2["violation"]
    assert (r3["availability_status"], r3["failure_type"], r3["raw_output"]) == (
        "error",
        "harness_error",
        "yes",
    )
    assert (r4["success"], r4["failure_type"]) == (False, "empty_response")
    assert r5["failure_type"] == "timeout"
    assert {row["suite"] for row in session.rows} == {"benchmarks/test_bench.py"}


def test_python_benchmarks_run_once_a_target(project: Any) -> None:
    """The test is parametrized over the same targets as suites; `config.json` says that Python judges it."""
    _write(project)

    session = project.run("-k", "R2", models="scripted/модель:1b,scripted/b@low")

    found = sorted((row["model"], row["thinking_level"]) for row in session.rows)
    assert found == [("b", "low"), ("модель:1b", None)]
    assert [(group["model"], group["n_total"]) for group in session.summary["groups"]] == [
        ("модель:1b", 1),
        ("b", 1),
    ]
    (prompt,) = session.load("config.json")["prompts"]
    assert (prompt["id"], prompt["validator"]) == ("R2", {"type": "python"})


def test_without_models_a_python_benchmark_is_left_out(plain_project: Any) -> None:
    """A plain session deselects benchmarks in any file."""
    plain_project.pytester.makepyfile(test_bench=MODULE)

    session = plain_project.run(models=None, target="")

    session.outcomes(deselected=5)
    assert not session.has_run


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        pytest.param('prompt="x"', 'has no "id"', id="no-id"),
        pytest.param('id="R1"', 'has no "prompt"', id="no-prompt"),
        pytest.param('"R1", "x"', "takes keywords only", id="positional"),
        pytest.param(
            'id="R1", prompt="x", expected_tool="read"', "does not know expected_tool", id="unknown"
        ),
        pytest.param('id="R1", prompt="x", timeout_s=-1', "timeout_s", id="bad-value"),
        pytest.param(
            'id="R1", prompt="x"', "test_first has the id 'R1' too. Give each a different id.", id="twice"
        ),
    ],
)
def test_a_wrong_mark_is_a_collection_error(plain_project: Any, mark: str, message: str) -> None:
    """The error names the test and the key, with a hint, without a traceback."""
    first = '@pytest.mark.openclaw(id="R1", prompt="x")\ndef test_first(reply): pass\n'
    _write(plain_project, f"import pytest\n{first}@pytest.mark.openclaw({mark})\ndef test_x(reply): pass\n")

    session = plain_project.run()

    assert message in session.text
    assert "benchmarks/test_bench.py::test_x" in session.text
    assert "Traceback" not in session.text
    assert session.status == pytest.ExitCode.INTERRUPTED


def test_an_id_means_all_parameters_of_its_test(project: Any) -> None:
    """`-k R1` selects every item of the benchmark R1, and none of R10; each has a row and a definition."""
    mark = '@pytest.mark.parametrize("n", [1, 2])\n@pytest.mark.openclaw(id="{}", prompt="say yes")\n'
    tests = [mark.format(name) + f"def test_{name}(reply, n): pass\n" for name in ("R1", "R10")]
    _write(project, "import pytest\n" + "".join(tests))

    session = project.run("-k", "R1")

    # An xdist controller does not report what its workers have deselected.
    assert session.result.parseoutcomes()["passed"] == 2
    assert {row["prompt_id"] for row in session.rows} == {"R1[1]", "R1[2]"}
    assert {prompt["id"] for prompt in session.load("config.json")["prompts"]} == {"R1[1]", "R1[2]"}


def test_reply_without_a_mark_says_so(plain_project: Any) -> None:
    """The error of a test that takes `reply` without a prompt says what is missing."""
    _write(plain_project, "def test_x(reply): pass\n")

    session = plain_project.run()

    session.outcomes(errors=1)
    assert "needs @pytest.mark.openclaw" in session.text


def test_a_fixture_reply_of_the_users_own_goes_first(plain_project: Any) -> None:
    """A project's own fixture of that name takes precedence."""
    plain_project.pytester.makepyfile(
        test_own="import pytest\n@pytest.fixture\ndef reply(): return 7\ndef test_x(reply): assert reply == 7\n"
    )

    session = plain_project.run(models=None, target="")

    session.outcomes(passed=1)


@pytest.mark.skipif(not hasattr(pytest, "Subtests"), reason="pytest has subtests since version 9")
def test_a_benchmark_with_subtests_has_one_row(plain_project: Any) -> None:
    """Subtests are parts of their test: one row each test, and a failed one is its verdict."""
    (plain_project.folder / "benchmarks").mkdir()
    (plain_project.folder / "benchmarks/test_r.py").write_text(
        "import pytest\n"
        "@pytest.mark.openclaw(id='R1', prompt='say yes')\n"
        "def test_whole(reply, subtests):\n"
        "    for letter in 'yes':\n"
        "        with subtests.test(letter=letter):\n"
        "            assert letter in reply.text\n"
        "@pytest.mark.openclaw(id='R2', prompt='say yes')\n"
        "def test_part(reply, subtests):\n"
        "    for letter in 'yno':\n"
        "        with subtests.test(letter=letter):\n"
        "            assert letter in reply.text\n"
    )

    session = plain_project.run()

    rows = {row["prompt_id"]: row["objective_pass"] for row in session.rows}
    assert (len(session.rows), rows) == (2, {"R1": True, "R2": False})
    assert "'n'" in session.row("R2")["violation"]
    assert session.status == 1
