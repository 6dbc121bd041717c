"""The command line beside pytest: help, errors, exit status, and what it prints."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

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
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two shards, in a project that is the current folder."""
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "runs/one", [row(A, "P1", raw_output="x"), row(A, "P2")])
    store(tmp_path / "runs/two", [row(B, "P1")])
    return tmp_path / "runs"


def _process(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_openclaw", *words],
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        **more,
    )


# --- help ---------------------------------------------------------------------------------------


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    """The help lists every command with its purpose."""
    assert main([]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith("usage: ")
    assert all(re.search(rf"^    {name}\s", shown, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command's help says what it does and shows how, in 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])

    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"pytest-openclaw {name}" in shown.partition("Example:")[2]
    assert "--json" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_can_be_parsed(name: str) -> None:
    """Every example in the help uses valid arguments."""
    text = load_command(name).help
    examples = [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("  pytest-openclaw")]

    parsed = [cli.build_parser()[0].parse_args(words) for words in examples]

    assert parsed
    assert all(one.command == name for one in parsed)


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["mrege"], id="unknown-command"),
        pytest.param(["merge", "one"], id="no-into"),
        pytest.param(["merge", "one", "--into", "x", "--prefer=best"], id="unknown-choice"),
        pytest.param(["show", "one", "--targets=a"], id="unknown-option"),
    ],
)
def test_wrong_usage_ends_with_2(runs: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Usage goes to stderr, and nothing is written."""
    with pytest.raises(SystemExit) as ended:
        main(words)

    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: ")
    assert sorted(path.name for path in runs.iterdir()) == ["one", "two"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ["merge", "one", "none", "--into", "x"], "there is no run none in runs", id="no-such-run"
        ),
        pytest.param(["merge", "a/b", "--into", "x"], "there is no run directory a/b", id="no-such-path"),
        pytest.param(
            ["merge", "one", "--into", "two"],
            "runs/two exists already; name a run that does not",
            id="into-exists",
        ),
        pytest.param(
            ["merge", ".", "--into", "x"],
            "No such file or directory; is {cwd} a run directory?",
            id="no-run-there",
        ),
        pytest.param(
            ["rescore", "one", "--rootdir", "nowhere"], "nowhere: No such file or directory", id="no-root"
        ),
    ],
)
def test_a_failed_command_ends_with_4(
    runs: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr names the command, the problem and its location; no run is written."""
    assert main(words) == 4

    shown = capsys.readouterr()
    assert shown.out == ""
    assert f" {words[0]}: " in shown.err
    assert message.format(cwd=runs.parent) in shown.err
    assert shown.err.count("\n") == 1
    assert sorted(path.name for path in runs.iterdir()) == ["one", "two"]


# --- what is printed and written ----------------------------------------------------------------


def test_runs_are_named_by_id_or_path(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An id is looked up in the folder of runs; the new run is written where its name says."""
    os.utime(runs / "one/results.jsonl", (2_000_000_000, 2_000_000_000))

    assert main(["merge", "last", "runs/two", "--into", "both"]) == 0
    assert main(["merge", str(runs / "one"), "--into", "elsewhere/copy"]) == 0
    assert main(["merge", "one", "--into", "again", "--runs-dir", str(runs)]) == 0

    assert "merged 2 runs: 3 of 3 cells, 2 targets\n" in capsys.readouterr().out
    rows = (runs / "one/results.jsonl").read_bytes()
    assert [path.name for path in runs.iterdir() if path.name in {"both", "again"}]
    for copy in (runs.parent / "elsewhere/copy", runs / "again"):
        assert (copy / "results.jsonl").read_bytes() == rows
        assert load(copy, "config.json")["run_id"] == copy.name


def test_hostile_names_are_escaped(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal interprets no control character in the name of a model, prompt or file."""
    hostile = Target(provider="lab", model="\x1b[31mred\n")
    store(runs / "three", [row(hostile, "P\x1b")], serving={hostile.label: {"server": {"v": "\x1b[2J"}}})
    store(runs / "four", [row(hostile, "P1")], serving={hostile.label: {"server": {"v": "2"}}})

    assert main(["merge", "three", "four", "--into", "x"]) == 0
    assert main(["merge", "three", "\x1b[31m", "--into", "y"]) == 4

    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "not served alike" in shown.out


@pytest.mark.skipif(os.name == "nt", reason="pipes of Windows break in another way")
def test_a_reader_that_leaves_is_no_error(runs: Path) -> None:
    """Printing into a closed pipe ends quietly; the run is written."""
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        [sys.executable, "-m", "pytest_openclaw", "merge", "one", "two", "--into", "x"],
        cwd=runs.parent,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=600,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (0, b"")
    assert (runs / "x/summary.md").exists()


# --- what there is ------------------------------------------------------------------------------


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints name and version."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pytest-openclaw {version('pytest-openclaw')}\n"


def test_a_project_s_own_providers_and_validators_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of its conftest and of its ini file come after the built-in ones."""
    monkeypatch.chdir(tmp_path)
    examples = Path(__file__).parent.parent / "examples"
    own = [(examples / f"{name}.py").read_text() for name in ("parrot_provider", "ticket_validator")]
    (tmp_path / "conftest.py").write_text("\n".join(own))
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nopenclaw_endpoints = lab = ollama_openai http://h.example/v1\n"
    )

    done = [_process(name, "--json") for name in ("providers", "validators")]

    providers, validators = (json.loads(one.stdout) for one in done)
    assert [one["example"] for one in providers["providers"]][-2:] == ["parrot/MODEL", "lab/MODEL"]
    assert validators["validators"][-1]["required_keys"] == ["ticket"]
    assert [one.stderr for one in done] == ["", ""]


def test_every_surface_can_be_offered(capsys: pytest.CaptureFixture[str]) -> None:
    """`surfaces` lists those of the catalog that ships, with their tools."""
    assert main(["surfaces", "--json"]) == 0

    listed = json.loads(capsys.readouterr().out)["surfaces"]
    assert {one["surface"]: len(one["tools"]) for one in listed} == {
        surface: len(read_tools(surface)) for surface in load_catalogue().surfaces
    }
    assert main(["surfaces", "--catalogue", "nowhere.json"]) == 4
    assert "nowhere.json cannot be read" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="argcomplete serves shells of Unix")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param("pytest-openclaw va", {"validators "}, id="command"),
        pytest.param("pytest-openclaw gate --fail", {"--fail-on "}, id="option"),
    ],
)
def test_a_shell_completes_the_command_line(line: str, found: set[str], tmp_path: Path) -> None:
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


# --- where the project is -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text", "folder"),
    [
        pytest.param("pyproject.toml", "[tool.pytest.ini_options]\n", "runs", id="pyproject"),
        pytest.param("pytest.ini", "[pytest]\nopenclaw_runs_dir = data\n", "data", id="ini-runs-dir"),
    ],
)
def test_a_command_works_below_the_project_s_root(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: str,
    text: str,
    folder: str,
) -> None:
    """Runs are looked for where pytest writes them, from the root and from every folder below it."""
    (tmp_path / file).write_text(text)
    store(tmp_path / folder / "one", [row(A, "P1")])
    below = tmp_path / "a/b"
    below.mkdir(parents=True)

    for here in (tmp_path, below):
        monkeypatch.chdir(here)
        assert main(["show", "last", "--json"]) == 0
        assert Path(json.loads(capsys.readouterr().out)["run"]).name == "one"


def test_the_current_folder_s_runs_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder `runs` right here is used, as without a project above."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    store(tmp_path / "below/runs/one", [row(A, "P1")])
    monkeypatch.chdir(tmp_path / "below")

    assert main(["show", "one", "--json"]) == 0
