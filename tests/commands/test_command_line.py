"""The command line apart from pytest: help, errors, exit status, and its output."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from pytest_openclaw import cli
from pytest_openclaw.cli import command_modules, load_command, main
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.values.requests import Target
from tests.unit.runs.stored_runs import A, B, load, row, store

pytestmark = pytest.mark.newest

COMMANDS = tuple(command_modules())


@pytest.fixture
def runs(project):
    store(project / "runs/one", [row(A, "P1", raw_output="x"), row(A, "P2")])
    store(project / "runs/two", [row(B, "P1")])
    return project / "runs"


def _process(*words, **more):
    command = [sys.executable, "-m", "pytest_openclaw", *words]
    given = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "encoding": "utf-8",
        "timeout": 600,
        **more,
    }
    return subprocess.run(command, **given)


def test_without_a_command_there_is_help(command):
    """The help lists every command with its purpose."""
    shown = command().out

    assert shown.startswith("usage: ")
    assert all(re.search(rf"^    {name}\s", shown, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_with_an_example(name, capsys, monkeypatch):
    """A command's help has a description and valid examples, in 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])

    shown = capsys.readouterr().out
    assert "--json" in shown
    assert max(map(len, shown.splitlines())) <= 80
    lines = load_command(name).help.splitlines()
    examples = [shlex.split(line)[1:] for line in lines if line.startswith("  pytest-openclaw")]
    assert " ".join(examples[0]) in shown.partition("Example:")[2]
    assert {cli.build_parser().parse_args(words).command for words in examples} == {name}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["mrege"], id="unknown-command"),
        pytest.param(["merge"], id="no-run"),
        pytest.param(["merge", "one", "--into", "x", "--prefer=best"], id="unknown-choice"),
        pytest.param(["show", "one", "--targets=a"], id="unknown-option"),
        pytest.param(["gate", "one", "--min-pass-rate=90"], id="no-rate"),
    ],
)
def test_wrong_usage_ends_with_2(runs, words, command):
    """Usage goes to stderr, and nothing is written."""
    assert command.wrong_usage(*words).startswith("usage: ")
    assert sorted(path.name for path in runs.iterdir()) == ["one", "two"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param("merge one none --into x", "there is no run none in runs", id="no-such-run"),
        pytest.param("merge a/b --into x", "there is no run directory a/b", id="no-such-path"),
        pytest.param("merge one --into two", "runs/two exists already; name a run that", id="into-exists"),
        pytest.param("merge . --into x", "file or directory; is {cwd} a run directory?", id="no-run-there"),
        pytest.param("rescore one --rootdir nowhere", "nowhere: No such file or directory", id="no-root"),
        pytest.param(
            "export one --into there.csv", "there.csv exists already; name a file", id="file-exists"
        ),
        pytest.param("export one --into no/f.csv", "No such file or directory", id="no-folder"),
    ],
)
def test_a_failed_command_ends_with_4(runs, words, message, command):
    """One line on stderr names the command, the problem and its location; nothing is written."""
    Path("there.csv").write_text("mine")

    assert message.format(cwd=runs.parent) in command.refused(*words.split())

    names = sorted(path.name for path in [*runs.parent.iterdir(), *runs.iterdir()])
    assert names == ["one", "runs", "there.csv", "two"]
    assert Path("there.csv").read_text() == "mine"


def test_runs_are_named_by_id_or_path(runs, command):
    """An id is looked up in the folder of runs; the new run is written where its name says."""
    os.utime(runs / "one/results.jsonl", (2_000_000_000, 2_000_000_000))

    shown = command("merge", "last", "runs/two", "--into", "both").out
    command("merge", str(runs / "one"), "--into", "elsewhere/copy")
    command("merge", "one", "--into", "again", "--runs-dir", str(runs))

    assert "merged 2 runs: 3 of 3 cells, 2 targets\n" in shown
    rows = (runs / "one/results.jsonl").read_bytes()
    for copy in (runs.parent / "elsewhere/copy", runs / "again"):
        assert (copy / "results.jsonl").read_bytes() == rows
        assert load(copy, "config.json")["run_id"] == copy.name


def test_hostile_names_are_escaped(runs, command):
    """A terminal interprets no control character in the name of a model, prompt or file."""
    hostile = Target(provider="lab", model="\x1b[31mred\n")
    store(runs / "three", [row(hostile, "P\x1b")], serving={hostile.label: {"server": {"v": "\x1b[2J"}}})
    store(runs / "four", [row(hostile, "P1")], serving={hostile.label: {"server": {"v": "2"}}})

    shown = command("merge", "three", "four", "--into", "x")

    assert "\x1b" not in shown.out + shown.err + command.refused("merge", "three", "\x1b[31m", "--into", "y")
    assert "not served alike" in shown.out


@pytest.mark.skipif(os.name == "nt", reason="pipes of Windows break in another way")
@pytest.mark.parametrize("is_open", [True, False], ids=["pipe", "none"])
def test_a_closed_pipe_is_not_an_error(runs, is_open):
    """Printing into it, or without any output, ends quietly; the run is written."""
    reading, writing = os.pipe()
    os.close(reading)
    close = None if is_open else lambda: os.close(1)

    done = _process("merge", "one", "two", "--into", "x", cwd=runs.parent, stdout=writing, preexec_fn=close)
    os.close(writing)

    assert (done.returncode, done.stderr) == (0, "")
    assert (runs / "x/summary.md").exists()


def test_the_version_is_the_installed_one(capsys):
    """`--version` prints name and version."""
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])

    assert capsys.readouterr().out == f"pytest-openclaw {version('pytest-openclaw')}\n"


def test_a_project_s_own_providers_and_validators_are_listed(project):
    """Those of its conftest and of its ini file come after the built-in ones."""
    examples = Path(__file__).parent.parent / "examples"
    own = [(examples / f"{name}.py").read_text() for name in ("parrot_provider", "ticket_validator")]
    (project / "conftest.py").write_text("\n".join(own))
    ini = "[pytest]\nopenclaw_endpoints = lab = ollama_openai http://h.example/v1\n"
    (project / "pytest.ini").write_text(ini)

    done = [_process(name, "--json") for name in ("providers", "validators")]

    providers, validators = (json.loads(one.stdout) for one in done)
    assert [one["example"] for one in providers["providers"]][-2:] == ["parrot/MODEL", "lab/MODEL"]
    assert validators["validators"][-1]["required_keys"] == ["ticket"]
    assert [one.stderr for one in done] == ["", ""]


def test_every_surface_can_be_offered(command):
    """`surfaces` lists those of the catalog that ships, with their tools."""
    listed = command.json("surfaces")["surfaces"]

    assert {one["surface"]: len(one["tools"]) for one in listed} == {
        surface: len(read_tools(surface)) for surface in load_catalogue().surfaces
    }
    assert "nowhere.json cannot be read" in command("surfaces", "--catalogue", "nowhere.json", status=4).err


@pytest.mark.skipif(os.name == "nt", reason="argcomplete serves shells of Unix")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param("pytest-openclaw va", {"validators "}, id="command"),
        pytest.param("pytest-openclaw gate --fail", {"--fail-on "}, id="option"),
    ],
)
def test_a_shell_completes_the_command_line(line, found, tmp_path):
    """Argcomplete's protocol: the shell sends the line in variables and reads the words from a file."""
    words = tmp_path / "words"
    completing = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(words),
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "0",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }

    _process(env={**os.environ, **completing})

    assert set(words.read_text().split("\n")) == found


@pytest.mark.parametrize(
    ("file", "text", "folder"),
    [
        pytest.param("pyproject.toml", "[tool.pytest.ini_options]\n", "runs", id="pyproject"),
        pytest.param("pytest.ini", "[pytest]\nopenclaw_runs_dir = data\n", "data", id="ini-runs-dir"),
    ],
)
def test_a_command_works_below_the_project_s_root(project, monkeypatch, command, file, text, folder):
    """Runs are looked for where pytest writes them, from the root and from every folder below it."""
    (project / file).write_text(text)
    store(project / folder / "one", [row(A, "P1")])
    (project / "a/b").mkdir(parents=True)

    for here in (project, project / "a/b"):
        monkeypatch.chdir(here)
        assert Path(command.json("show", "last")["run"]).name == "one"


def test_the_current_folder_s_runs_come_first(project, monkeypatch, command):
    """A folder `runs` in the current folder is used, as without a project above."""
    (project / "pytest.ini").write_text("[pytest]\n")
    store(project / "below/runs/one", [row(A, "P1")])
    monkeypatch.chdir(project / "below")

    assert Path(command.json("show", "one")["run"]).name == "one"


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("name", ["providers", "validators"])
def test_a_list_wraps_at_the_terminals_width(name, width, monkeypatch, project, command):
    """Its texts are whole."""
    monkeypatch.setenv("COLUMNS", str(width))

    shown = command(name).out

    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
