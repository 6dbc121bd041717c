"""Output for CI systems; and of replies and servers that contain commands for them, no log, file or command shows one."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from pytest_openclaw.cli import main
from tests.ci_systems import COMMANDS, all_commands, github_commands
from tests.plugin.conftest import YES

REPLY = "\n".join(COMMANDS.values())
# Long enough that pytest, which wraps the reason of a skip, starts a line with a command.
WRAPPED = "x ::error::owned " * 40 + "y" * 61 + "::error::owned"
pytestmark = pytest.mark.newest

NUMBER = {"type": "json_keys", "required_keys": [REPLY], "key_rules": {REPLY: {"type": "number"}}}
MODULE = f"""
import logging
import warnings

import pytest

WRAPPED = {WRAPPED!r}


def benchmark(name):
    return pytest.mark.openclaw(id=name, prompt={"say " + REPLY!r})


@benchmark("equal")
def test_equal(reply):
    assert reply.text == "yes"


@benchmark("lines")
def test_lines(reply):
    assert reply.text.splitlines() == ["yes"] * 9, reply.text


@benchmark("raised")
def test_raised(reply):
    try:
        raise KeyError(reply.text)
    except KeyError as error:
        error.add_note(reply.text)
        raise ValueError(reply.text) from error


@benchmark("locals")
def test_locals(reply):
    class Shown:
        __repr__ = lambda self: reply.text

    shown = Shown()
    pytest.fail(shown)


@benchmark("no_trace")
def test_no_trace(reply):
    pytest.fail(reply.text, pytrace=False)


@benchmark("output")
def test_output(reply):
    print(reply.text)
    logging.getLogger("lab").warning(reply.text)
    warnings.warn(reply.text)


@benchmark("teardown")
def test_teardown(reply, breaks):
    breaks.append(reply.text)


@benchmark("skipped")
def test_skipped(reply):
    pytest.skip(reply.text + WRAPPED)


@benchmark("xfailed")
def test_xfailed(reply):
    pytest.xfail(reply.text + WRAPPED)


@benchmark("subtests")
def test_subtests(reply, subtests):
    with subtests.test():
        print(reply.text)
        logging.getLogger("lab").warning(reply.text)
        assert reply.text == "yes"


@pytest.fixture
def breaks():
    arguments = []
    yield arguments
    raise ValueError(*arguments)
"""


@pytest.fixture
def hostile(plain_project, monkeypatch):
    """A project on GitHub whose model and server send nothing but commands."""
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(plain_project.folder))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(plain_project.folder / "step.md"))
    plain_project.change_conftest(
        'finish_reason="stop"', f"finish_reason={REPLY!r}, effective_model={REPLY!r}"
    )
    plain_project.change_conftest('message="bad"', f"message={REPLY!r}")
    plain_project.change_conftest('"nowhere", "refused"', f'"nowhere", {WRAPPED!r}')
    return plain_project


def write_cells(project):
    project.suite(
        {
            "P1": (f"say {REPLY}", YES),
            "P2": (f"say {json.dumps({REPLY: REPLY})}", NUMBER),
            "P3": ("broken", YES),
            "P4": ("say yes", YES),
        }
    )
    project.write("benchmarks/test_hostile.py", MODULE)


def assert_inert(text, *, n_annotations=0):
    """No system finds a command in the text, except GitHub our own annotations, each complete."""
    ours = [line for line in text.splitlines() if line.startswith(("::warning ", "::error "))]
    assert len(ours) == n_annotations
    assert [command.name for command in github_commands(text)] == [line[2:].split()[0] for line in ours]
    assert len(all_commands(text)) == n_annotations


@pytest.mark.parametrize(
    ("style", "mode"),
    [("auto", ()), ("long", ()), pytest.param("native", ("-n", "2"), marks=pytest.mark.workers)],
)
def test_a_log_obeys_no_reply(hostile, style, mode):
    """This covers every place in the log: progress, failures, captured sections, warnings and last lines."""
    write_cells(hostile)

    words = (f"--tb={style}", "-rA", "-vv", "-l", "-W", "default", "--openclaw-min-pass-rate=1")
    session = replace(hostile, mode=mode).run(*words)

    assert len({row["prompt_id"] for row in session.rows}) == 14
    assert "warnings summary" in session.text
    assert session.text.count("add-mask") > 20
    assert_inert(session.text, n_annotations=7)


def test_a_reason_that_pytest_wraps_begins_no_command(hostile):
    """The lines of a server's message, as `-vv` shows them after SKIPPED."""
    hostile.suite({"P1": ("refused", YES)})

    text = hostile.run("-vv").text

    (progress,) = re.findall(r"SKIPPED \(((?:.|\n)*?)\)", text)
    assert progress.count("\n") > 5
    assert_inert(text)


def test_files_and_commands_obey_no_reply(hostile, capsys):
    """Files that a job may print afterwards: pages, JUnit's XML, and output of commands on stored runs."""
    write_cells(hostile)
    session = hostile.run("--junitxml=j.xml", "--color=yes", "-v", "-o", "junit_logging=all")
    assert_inert(session.text, n_annotations=6)

    pages = [session.run_dir / "summary.md", session.run_dir / "comment.md", hostile.folder / "step.md"]
    for path in [*pages, hostile.folder / "j.xml"]:
        assert "owned" in path.read_text("utf-8")
        assert_inert(path.read_text("utf-8"))
    capsys.readouterr()
    run = str(session.run_dir)
    commands = [
        ["show", run],
        *(["show", run, row["prompt_id"]] for row in session.rows),
        ["compare", run, run],
        ["gate", run, "--min-pass-rate", "0.9"],
        ["history", str(session.run_dir.parent)],
        ["show", run, REPLY],
    ]
    for words in commands:
        for form in ([], ["--json"]):
            assert main([*words, *form]) in (0, 1, 4)
            captured = capsys.readouterr()
            assert captured.out + captured.err
            assert_inert(captured.out + captured.err)


SUITE = """
[[prompts]]
id = "P1"
prompt = "say yes"
validator = { type = "exact", value = "yes" }

[[prompts]]
id = "P2"
name = "second, and: last"
prompt = "say no"
validator = { type = "exact", value = "yes" }
"""


def test_junit_and_github_get_the_run(project, monkeypatch, tmp_path):
    """A case has its row's figures; the page goes to the step summary, and annotations name what failed."""
    page = tmp_path / "step.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.folder))
    project.suite(SUITE)

    session = project.run("--junitxml=out/j.xml", "--openclaw-min-pass-rate=0.9")

    (suite,) = ElementTree.parse(project.folder / "out" / "j.xml").getroot()
    cases = {
        case.attrib["name"]: {
            one.attrib["name"]: one.attrib["value"] for one in case.iterfind("properties/property")
        }
        for case in suite.iterfind("testcase")
    }
    row = session.row("P2")
    assert set(cases) == {"P1[scripted/m]", "P2[scripted/m]"}
    second = cases["P2[scripted/m]"]
    assert second["openclaw.objective_pass"] == "false"
    assert second["openclaw.e2e_ms"] == str(row["e2e_ms"])
    assert second["openclaw.violation"] == row["violation"]
    assert "openclaw.failure_type" not in second
    lines = [line for line in session.text.splitlines() if line.startswith("::")]
    assert lines == [
        "::error title=min-pass-rate%2C scripted/m%3A failed"
        "::1 of 2 judged cells passed (50.0 %25), 90.0 %25 wanted",
        '::warning title=P2 second%2C and%3A last%3A missed by all::"no" is not "yes"',
    ]
    assert page.read_text() == f"before\n{session.page}\n"


def test_many_missed_prompts_are_counted(plain_project, monkeypatch):
    """GitHub shows ten of a kind, so the tenth says how many more there are."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    plain_project.suite({f"P{n}": ("say no", YES) for n in range(14)})

    lines = [line for line in plain_project.run().text.splitlines() if line.startswith("::")]

    assert len(lines) == 10
    assert "title=5 more prompts missed::" in lines[-1]


def test_a_summary_that_cannot_be_written_loses_no_run(plain_project, monkeypatch, tmp_path):
    """The run is written anyway, and a warning says what is missing."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "step.md"))
    plain_project.suite(SUITE)

    session = plain_project.run("-W", "default")

    assert session.status == 1
    assert len(session.rows) == 2
    assert "the step summary cannot be written" in session.text
