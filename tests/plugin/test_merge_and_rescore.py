"""Runs of real sessions, merged and rescored by the command line."""

import json
import re

import pytest

from tests.plugin.conftest import NOOP, YES
from tests.plugin.school import timeless

pytestmark = pytest.mark.newest

NO = {"type": "exact", "value": "no"}
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


def _write(project):
    project.change_conftest('        if word == "say":\n', THINKING)
    project.suite(SUITE)
    project.write("benchmarks/test_bench.py", PYTHON)


def _done(project, *words, **more):
    done = project.command(*words, **more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _unordered(summary):
    missed = sorted(summary["missed_by_all"], key=lambda missed: missed["prompt_id"])
    return {**summary, "missed_by_all": missed}


def test_two_shards_are_the_whole_run(project):
    """The summary of two sessions' merged runs equals the summary of one session over everything."""
    _write(project)
    models = "scripted/b@low,scripted/a"
    gate = "--openclaw-min-pass-rate=0.5"
    project.run("--openclaw-run-id=whole", gate, models=models)
    for number in (1, 2):
        project.run(f"--openclaw-run-id=shard-{number}", f"--openclaw-shard={number}/2", gate, models=models)

    printed = _done(project, "merge", "shard-1", "shard-2")

    merged, whole = (project.stored(run).summary for run in ("shard-1-merged", "whole"))
    assert timeless(_unordered(merged)) == timeless(_unordered(whole))
    assert (merged["n_cells"], merged["state"], merged["verdict"]) == (22, "finished", whole["verdict"])
    assert printed.startswith("merged 2 runs: 22 of 22 cells, 2 targets\n\n")
    lines = {line for number in (1, 2) for line in project.stored(f"shard-{number}").lines}
    assert set(project.stored("shard-1-merged").lines) == lines


def test_unchanged_validators_change_nothing(project):
    """Rows of a real session are the same bytes after a rescore, and so are all figures."""
    _write(project)
    project.run("--openclaw-run-id=one", models="scripted/a,scripted/b@low")
    one, again = project.stored("one"), project.stored("one-rescored")
    before = {path.name: path.read_bytes() for path in one.run_dir.iterdir()}

    printed = _done(project, "rescore", "one")

    assert printed.splitlines()[:2] == [
        "rescored 22 rows of runs/one: 0 verdicts changed",
        "note: 6 rows keep their verdict: the row lacks the judged reply, or no current suite asks the same",
    ]
    assert again.lines == one.lines
    old, new = _unordered(one.summary), _unordered(again.summary)
    assert {**new, "run_id": "one", "generated_at_ms": old["generated_at_ms"]} == old
    assert again.load("config.json")["prompts"] == one.load("config.json")["prompts"]
    assert {path.name: path.read_bytes() for path in one.run_dir.iterdir()} == before


def test_a_fixed_validator_shows_what_it_changes(plain_project):
    """Changed verdicts are printed with target, prompt and reason; the new run has the new rule."""
    plain_project.suite({"P1": ("say yes", YES), "P2": ("say no", YES), "P3": ("say yes", YES)})
    plain_project.run("--openclaw-run-id=one", models="scripted/a")
    plain_project.suite({"P1": ("say yes", NO), "P2": ("say no", NO), "P3": ("say yes", YES)})

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
    assert [row["objective_pass"] for row in plain_project.stored("second").rows] == [False, True, True]


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


def test_a_plugin_judges_anew_from_another_folder(plain_project, tmp_path):
    """`--rootdir` finds the validator of the suites' conftest as it is now; no test runs."""
    plain_project.suite({"P1": ("say yes", {"type": "ends_with", "value": "s"})})
    plain_project.write("benchmarks/conftest.py", PLUGIN)
    plain_project.run("--openclaw-run-id=one", models="scripted/a")
    changed = PLUGIN.replace("endswith", "startswith") + "\nprint('loaded')\n"
    plain_project.write("benchmarks/conftest.py", changed)
    plain_project.write("benchmarks/test_never.py", "raise RuntimeError('collected')")
    plain_project.ini("openclaw_models = scripted/*", "addopts = -n 2")

    folder = plain_project.folder
    words = ["rescore", f"{folder}/runs/one", "--rootdir", f"{folder}", "--into", "here/new"]
    printed = _done(plain_project, *words, cwd=tmp_path)

    assert "1 verdict changed\n  passed -> failed  scripted/a" in printed
    assert "loaded" not in printed
    assert (tmp_path / "here/new/summary.md").exists()


@pytest.mark.parametrize(
    ("conftest", "message"),
    [
        pytest.param("raise RuntimeError('a slip')", "a slip", id="raises"),
        pytest.param("import sys\nsys.exit(3)", "pytest cannot load the project", id="exits"),
    ],
)
def test_a_project_that_cannot_be_loaded_is_refused(plain_project, conftest, message):
    """The reason is pytest's own, and no run is written."""
    plain_project.suite({"P1": ("say yes", YES)})
    plain_project.run("--openclaw-run-id=one")
    plain_project.write("benchmarks/conftest.py", conftest)

    done = plain_project.command("rescore", "one")

    assert (done.returncode, done.stdout) == (4, "")
    assert message in done.stderr
    assert done.stderr.startswith("pytest-openclaw rescore: pytest cannot load the project in ")
    assert not plain_project.stored("one-rescored").run_dir.exists()
