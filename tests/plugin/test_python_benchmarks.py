"""Benchmarks written in Python: the mark, the `reply`, their rows."""

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


def _write(project, text=MODULE):
    project.write("benchmarks/test_bench.py", text)


@pytest.mark.under_workers
def test_each_ending_of_a_python_benchmark(project):
    """An assertion is a verdict, another exception an error; a fault or an empty reply ends it early."""
    _write(project)

    session = project.run()

    session.outcomes(passed=1, failed=3, errors=1)
    r1, r2, r3, r4, r5 = (session.row(f"R{n}") for n in range(1, 6))
    assert (r1["objective_pass"], r1["tool_use_success"], r1["tool_outcome"]) == (True, True, "valid")
    assert (r1["prompt_name"], r1["category"]) == ("test_reads_before_editing", "tools")
    assert (r2["objective_pass"], r2["success"]) == (False, True)
    assert "it does not agree" in r2["violation"]
    assert (r3["availability_status"], r3["failure_type"]) == ("error", "harness_error")
    assert r3["raw_output"] == "yes"
    assert (r4["success"], r4["failure_type"], r4["objective_pass"]) == (False, "empty_response", None)
    assert r5["failure_type"] == "timeout"
    assert {row["suite"] for row in session.rows} == {"benchmarks/test_bench.py"}


def test_python_benchmarks_are_asked_for_each_target(project):
    """`-k R1` selects every item of R1, and none of R10; each has a row and a definition for each target."""
    mark = '@pytest.mark.parametrize("n", [1, 2])\n@pytest.mark.openclaw(id="{}", prompt="say yes")\n'
    tests = [mark.format(name) + f"def test_{name}(reply, n): pass\n" for name in ("R1", "R10")]
    _write(project, "import pytest\n" + "".join(tests))

    session = project.run("-k", "R1", models="scripted/модель:1b,scripted/b@low")

    # An xdist controller does not report what its workers have deselected.
    assert session.result.parseoutcomes()["passed"] == 4
    targets = {("b", "low"), ("модель:1b", None)}
    assert {(row["prompt_id"], row["model"], row["thinking_level"]) for row in session.rows} == {
        (f"R1[{n}]", *target) for n in (1, 2) for target in targets
    }
    groups = [(group["model"], group["n_total"]) for group in session.summary["groups"]]
    assert groups == [("модель:1b", 2), ("b", 2)]
    prompts = session.load("config.json")["prompts"]
    assert {prompt["id"] for prompt in prompts} == {"R1[1]", "R1[2]"}
    assert prompts[0]["validator"] == {"type": "python"}


def test_without_models_a_python_benchmark_is_left_out(plain_project):
    """A plain session deselects benchmarks in any file; a project's own fixture `reply` takes precedence."""
    own = "\n@pytest.fixture\ndef reply(): return 7\ndef test_x(reply): assert reply == 7\n"
    plain_project.write("test_bench.py", MODULE)
    plain_project.write("test_own.py", f"import pytest{own}")

    session = plain_project.run(models=None, target="")

    session.outcomes(passed=1, deselected=5)
    assert not session.has_run


WRONG = {
    'prompt="x"': 'has no "id"',
    'id="R1"': 'has no "prompt"',
    '"R1", "x"': "takes keywords only",
    'id="R1", prompt="x", expected_tool="read"': "does not know expected_tool",
    'id="R1", prompt="x", timeout_s=-1': "timeout_s",
    'id="R1", prompt="x"': "test_first has the id 'R1' too. Give each a different id.",
}


@pytest.mark.parametrize("mark", WRONG)
def test_a_wrong_mark_is_a_collection_error(plain_project, mark):
    """The error names the test and the key, with a hint, without a traceback."""
    first = '@pytest.mark.openclaw(id="R1", prompt="x")\ndef test_first(reply): pass\n'
    _write(plain_project, f"import pytest\n{first}@pytest.mark.openclaw({mark})\ndef test_x(reply): pass\n")

    session = plain_project.run()

    assert WRONG[mark] in session.text
    assert "benchmarks/test_bench.py::test_x" in session.text
    assert "Traceback" not in session.text
    assert session.status == pytest.ExitCode.INTERRUPTED


def test_reply_without_a_mark_is_an_error(plain_project):
    """The error of a test that takes `reply` without a prompt says what is missing."""
    _write(plain_project, "def test_x(reply): pass\n")

    session = plain_project.run()

    session.outcomes(errors=1)
    assert "needs @pytest.mark.openclaw" in session.text


@pytest.mark.skipif(not hasattr(pytest, "Subtests"), reason="pytest has subtests since version 9")
def test_a_benchmark_with_subtests_has_one_row(plain_project):
    """Subtests are parts of their test: one row each test, and a failed one is its verdict."""
    _write(
        plain_project,
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
        "            assert letter in reply.text\n",
    )

    session = plain_project.run()

    rows = {row["prompt_id"]: row["objective_pass"] for row in session.rows}
    assert (len(session.rows), rows) == (2, {"R1": True, "R2": False})
    assert "'n'" in session.row("R2")["violation"]
    assert session.status == 1
