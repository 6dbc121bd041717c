"""What the last lines show of failed cells: one line each and once, and everything where more is asked for."""

import shlex

import pytest

from tests.plugin.conftest import YES

LINE = 'P1 "no" is not "yes"'


@pytest.fixture(name="project")
def _project(project):
    project.suite({"P1": ("say no", YES), "P2": ("say yes", YES), "P3": ("timeout", YES)})
    return project


def sections(session):
    found = {}
    lines = []
    for line in session.text.splitlines():
        if line.startswith("==="):
            lines = found.setdefault(line.strip("= "), [])
        else:
            lines.append(line)
    return found


@pytest.mark.under_workers
@pytest.mark.parametrize("args", [[], ["-q"], ["--tb=line"]], ids=repr)
def test_a_failed_cell_is_one_line_and_shown_once(project, args):
    """A miss and a fault have a line each, and the short summary does not repeat them."""
    session = project.run(*args)

    session.outcomes(passed=1, failed=1, errors=1)
    shown = sections(session)
    assert shown["FAILURES"] == [LINE, "in full: pytest-openclaw show last P1, or pytest -v"]
    assert shown["ERRORS"] == [
        "P3 scripted: no complete answer within 1 s. Raise --openclaw-timeout, or the prompt's timeout_s."
    ]
    assert "short test summary info" not in shown


@pytest.mark.parametrize("models", ["scripted/m", "scripted/a,scripted/b@low"])
def test_the_hint_is_a_command(project, models):
    """It shows the cell, also in a run with several targets."""
    lines = sections(project.run(models=models))["FAILURES"]

    hint = lines[-1].removeprefix("in full: ").removesuffix(", or pytest -v")
    name, *words = shlex.split(hint)
    shown = project.command(*words)

    assert (name, shown.returncode) == ("pytest-openclaw", 0)
    assert "say no" in shown.stdout


@pytest.mark.parametrize(
    ("args", "target"),
    [
        pytest.param(["-v"], "benchmarks", id="verbose"),
        pytest.param(["--tb=short"], "benchmarks", id="style"),
        pytest.param([], "benchmarks/prompts_a.json::P1", id="node-id"),
    ],
)
def test_more_is_shown_where_it_is_asked_for(project, args, target):
    """Prompt, reply and target, as pytest shows other failures."""
    session = project.run(*args, target=target)

    shown = sections(session)
    assert [line for line in shown["FAILURES"] if line.startswith(("  prompt", "  reply"))] == [
        "  prompt    say no",
        "  reply     no",
    ]


@pytest.mark.parametrize("args", ["--tb=no", "-rf"])
def test_the_short_summary_lists_what_was_not_shown_or_is_requested(project, args):
    """With `--tb=no` nothing was shown before; `-r` is the user's own choice."""
    shown = sections(project.run(args))

    assert ("FAILURES" in shown) is (args == "-rf")
    assert any(line.startswith("FAILED ") for line in shown["short test summary info"])


def test_other_tests_and_targets(project):
    """Of several targets each line names its own; another test keeps its traceback and its summary line."""
    project.write("benchmarks/test_own.py", "def test_own():\n    assert 1 == 2\n")

    session = project.run(models="scripted/m,scripted/n")

    session.outcomes(passed=2, failed=3, errors=2)
    shown = sections(session)
    # Workers may end the two in either order.
    names = {line.partition(" ")[0] for line in shown["FAILURES"]}
    assert names >= {"P1[scripted/m]", "P1[scripted/n]"}
    assert "assert 1 == 2" in session.text
    summary = shown["short test summary info"]
    assert [line.partition(" - ")[0] for line in summary] == ["FAILED benchmarks/test_own.py::test_own"]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_line_fits_the_terminal(project, monkeypatch, width):
    """A long reason takes two lines and loses its middle, and keeps it where there is room."""
    monkeypatch.setenv("COLUMNS", f"{width}")
    project.suite({"P1": (f"say {'no ' * 30}", YES)})

    lines = sections(project.run())["FAILURES"]

    assert all(len(line) <= width for line in lines)
    assert len(lines) == (3 if width < 140 else 2)
    assert lines[-2].endswith('is not "yes"')


def test_a_missed_call_says_what_was_due_and_done(project, monkeypatch):
    """Lines are grouped by how the cells ended; arguments are whole JSON."""
    read = {"type": "tool_call", "calls": [{"name": "read"}]}
    written = '<tool_call>{"name": "read", "arguments": {"path": "notes.md"}}</tool_call>'
    said = {
        "P1": ("say The notes say milk.", read),
        "P2": (f"say {written}", read),
        "P3": ("call exec", read),
        "P4": ("say I do not know.", read),
        "P5": ("call read", {"type": "tool_call", "calls": []}),
    }
    rest = {"tools": ["read", "exec"], "repeat": 1}
    project.suite(
        [{"id": key, "prompt": text, "validator": rule, **rest} for key, (text, rule) in said.items()]
    )
    monkeypatch.setenv("COLUMNS", "140")

    lines = sections(project.run())["FAILURES"]

    assert lines == [
        "P3 expected read, got exec",
        "P5 expected no call, got read",
        'P2 expected read; wrote the call as text: read {"path": "notes.md"}',
        'P1 expected read; answered without a call: "The notes say milk."',
        'P4 expected read; answered without a call: "I do not know."',
        "in full: pytest-openclaw show last P3, or pytest -v",
    ]


def test_of_many_misses_twelve_are_listed(project):
    """Repeats that ended alike are one line; a command shows the others."""
    repeated = {"id": "R", "prompt": "say no", "validator": YES, "repeat": 3}
    project.suite([{"id": f"P{n}", "prompt": f"say {n}", "validator": YES} for n in range(14)] + [repeated])

    lines = sections(project.run())["FAILURES"]

    assert len(lines) == 14
    assert lines[-2] == "and 3 more: pytest-openclaw show last --failed"
    project.suite([repeated])
    assert sections(project.run())["FAILURES"][0] == 'R-r1 "no" is not "yes" (×3)'
