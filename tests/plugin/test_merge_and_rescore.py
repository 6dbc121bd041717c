"""Runs of real sessions, merged and rescored by the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import validator_of
from tests.plugin.school import timeless

pytestmark = pytest.mark.newest

NOOP = {"type": "noop"}
YES = {"type": "exact", "value": "yes"}
SUITE = {
    "P1": ("say yes", YES),
    "P2": ("say no", YES),
    "P3": ("say run `df -h` now", {"type": "tool_invocation", "expected_tools": ["df"]}),
    "P4": ("call free", {"type": "tool_invocation", "expected_tools": ["free"]}),
    "P5": ("say <think>hm</think>\nyes", YES),
    "P6": ("think I could say no.|yes", YES),
    "P7": ("say ", YES),
    "P8": ("timeout", NOOP),
    "P9": ("filtered", {"type": "tool_invocation", "expected_tools": ["df"]}),
    "P10": ("say one two three", {"type": "max_words", "value": 2}),
}
PYTHON = """
import pytest

@pytest.mark.openclaw(id="R1", prompt="say yes", expected_tools=["edit"])
def test_agrees(reply):
    assert reply.text == "no", "it does not agree"
"""
THINKING = """        if word == "think":
            reasoning, _, text = rest.partition("|")
            return Reply(text=text, reasoning=reasoning, raw=f"<think>\\n{reasoning}\\n</think>\\n\\n{text}")
        if word == "say":
"""


def _write(project: Any) -> None:
    conftest = project.folder / "conftest.py"
    conftest.write_text(conftest.read_text().replace('        if word == "say":\n', THINKING))
    project.suite(SUITE)
    (project.folder / "benchmarks" / "test_bench.py").write_text(PYTHON)


def _command(project: Any, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m pytest_openclaw` in the project, as a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "pytest_openclaw", *words],
        cwd=project.folder,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


def _done(project: Any, *words: str) -> str:
    done = _command(project, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _load(project: Any, run: str, name: str) -> Any:
    return json.loads((project.folder / "runs" / run / name).read_text("utf-8"))


def _forget_order(summary: dict[str, Any]) -> None:
    """Ignore the order of workers' rows, and of failed prompts that depend on it."""
    summary["missed_by_all"].sort(key=lambda missed: missed["prompt_id"])


def test_two_shards_are_the_whole_run(project: Any) -> None:
    """The summary of two sessions' merged runs equals that of one session over everything."""
    _write(project)
    models = "scripted/b@low,scripted/a"
    gate = "--openclaw-min-pass-rate=0.5"
    project.run("--openclaw-run-id=whole", gate, models=models)
    for number in (1, 2):
        project.run(f"--openclaw-run-id=shard-{number}", f"--openclaw-shard={number}/2", gate, models=models)

    printed = _done(project, "merge", "shard-1", "shard-2", "--into", "merged")

    merged, whole = (_load(project, run, "summary.json") for run in ("merged", "whole"))
    validator_of("summary").validate(merged)
    if project.mode:
        _forget_order(merged)
        _forget_order(whole)
    assert timeless(merged) == timeless(whole)
    assert (merged["n_cells"], merged["state"], merged["verdict"]) == (22, "finished", whole["verdict"])
    assert printed.startswith("merged 2 runs: 22 of 22 cells, 2 targets\n\n")
    lines = {
        line
        for run in ("shard-1", "shard-2")
        for line in (project.folder / "runs" / run / "results.jsonl").read_bytes().splitlines()
    }
    assert set((project.folder / "runs/merged/results.jsonl").read_bytes().splitlines()) == lines


def test_unchanged_validators_change_nothing(project: Any) -> None:
    """Rows of a real session are the same bytes after a rescore, and so are all figures."""
    _write(project)
    project.run("--openclaw-run-id=one", models="scripted/a,scripted/b@low")
    before = {path.name: path.read_bytes() for path in (project.folder / "runs/one").iterdir()}

    printed = _done(project, "rescore", "one")

    folder = project.folder / "runs"
    assert printed.splitlines()[:2] == [
        "rescored 22 rows of runs/one: 0 verdicts changed",
        "note: 6 rows keep their verdict: the row lacks the judged reply, or no current suite asks the same",
    ]
    assert (folder / "one-rescored/results.jsonl").read_bytes() == before["results.jsonl"]
    old, new = (_load(project, run, "summary.json") for run in ("one", "one-rescored"))
    if project.mode:
        _forget_order(old)
        _forget_order(new)
    assert {**new, "run_id": "one", "generated_at_ms": old["generated_at_ms"]} == old
    assert (
        _load(project, "one-rescored", "config.json")["prompts"]
        == _load(project, "one", "config.json")["prompts"]
    )
    assert {path.name: path.read_bytes() for path in (folder / "one").iterdir()} == before


def test_a_fixed_validator_shows_what_it_changes(plain_project: Any) -> None:
    """Changed verdicts are printed with target, prompt and reason; the new run has the new rule."""
    plain_project.suite({"P1": ("say yes", YES), "P2": ("say no", YES), "P3": ("say yes", YES)})
    plain_project.run("--openclaw-run-id=one", models="scripted/a")
    no = {"type": "exact", "value": "no"}
    plain_project.suite({"P1": ("say yes", no), "P2": ("say no", no), "P3": ("say yes", YES)})

    printed = _done(plain_project, "rescore", "last")
    again = json.loads(_done(plain_project, "rescore", "runs/one", "--json", "--into", "second"))

    assert printed.splitlines()[:3] == [
        "rescored 3 rows of runs/one: 2 verdicts changed",
        '  passed -> failed  scripted/a  benchmarks/prompts_a.json::P1  "yes" is not "no"',
        "  failed -> passed  scripted/a  benchmarks/prompts_a.json::P2",
    ]
    assert re.search(r"^scripted/a +2/3 ", printed, re.MULTILINE)
    assert printed.rstrip().endswith("runs/one-rescored/summary.md")
    assert [(one["prompt_id"], one["before"], one["after"]) for one in again["changed"]] == [
        ("P1", "passed", "failed"),
        ("P2", "failed", "passed"),
    ]
    assert again["into"] == "runs/second"
    assert again["summary"]["groups"][0]["passed"]["n_success"] == 2
    rows = (plain_project.folder / "runs/second/results.jsonl").read_text().splitlines()
    for line in rows:
        validator_of("row").validate(json.loads(line))
    assert [json.loads(line)["objective_pass"] for line in rows] == [False, True, True]


PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
from pytest_openclaw import Verdict

@dataclass(frozen=True)
class Ends:
    type: ClassVar[str] = "ends_with"
    value: str
    def check(self, reply):
        return Verdict(passed=reply.text.endswith(self.value))

def pytest_openclaw_validators():
    return [Ends]
"""


def test_a_plugin_judges_anew_from_another_folder(plain_project: Any, tmp_path: Path) -> None:
    """A validator of a conftest beside the suite is found by `--rootdir`, as it is now; no test runs."""
    plain_project.suite({"P1": ("say yes", {"type": "ends_with", "value": "s"})})
    conftest = plain_project.folder / "benchmarks" / "conftest.py"
    conftest.write_text(PLUGIN)
    plain_project.run("--openclaw-run-id=one", models="scripted/a")
    conftest.write_text(PLUGIN.replace("endswith", "startswith") + "\nprint('loaded')\n")
    (plain_project.folder / "benchmarks" / "test_never.py").write_text("raise RuntimeError('collected')")
    (plain_project.folder / "pytest.ini").write_text(
        "[pytest]\nopenclaw_models = scripted/*\naddopts = -n 2\n"
    )

    folder = plain_project.folder
    words = ["rescore", f"{folder}/runs/one", "--rootdir", f"{folder}", "--into", "here/new"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest_openclaw", *words],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "1 verdict changed\n  passed -> failed  scripted/a" in done.stdout
    assert "loaded" not in done.stdout
    assert (tmp_path / "here/new/summary.md").exists()


@pytest.mark.parametrize(
    ("conftest", "message"),
    [
        pytest.param("raise RuntimeError('a slip')", "a slip", id="raises"),
        pytest.param("import sys\nsys.exit(3)", "pytest cannot load the project", id="exits"),
    ],
)
def test_a_project_that_cannot_be_loaded_is_refused(plain_project: Any, conftest: str, message: str) -> None:
    """The reason is pytest's own, and no run is written."""
    plain_project.suite({"P1": ("say yes", YES)})
    plain_project.run("--openclaw-run-id=one")
    (plain_project.folder / "benchmarks" / "conftest.py").write_text(conftest)

    done = _command(plain_project, "rescore", "one")

    assert (done.returncode, done.stdout) == (4, "")
    assert message in done.stderr
    assert done.stderr.startswith("pytest-openclaw rescore: pytest cannot load the project in ")
    assert not (plain_project.folder / "runs/one-rescored").exists()
