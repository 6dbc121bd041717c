"""`history`: the results of targets over the runs of a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.conclusions.summary import to_json
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from tests.commands.conftest import CommandLine
from tests.unit.runs.stored_runs import A, B, row, store

DAY = 86_400_000
MISS: dict[str, Any] = {"objective_pass": False, "violation": "no"}


def _at(day: int, target: Target, prompt_id: str, **changes: Any) -> Record:
    times = {"started_at_ms": day * DAY, "ended_at_ms": day * DAY + 100}
    return row(target, prompt_id, **{**times, **changes})


def _summarize(path: Path) -> Path:
    """Write the summary that a session would have written for a stored run."""
    (path / "summary.json").write_text(json.dumps(to_json(summary_of(load_run(path)))))
    return path


@pytest.fixture
def runs(project: Path) -> Path:
    """Three runs whose names do not sort by date."""
    folder = project / "runs"
    zero = [_at(20000, A, "P1"), _at(20000, A, "P2", **MISS), _at(20000, B, "P1")]
    _summarize(store(folder / "zero", zero))
    _summarize(store(folder / "later", [_at(20020, A, "P1"), _at(20020, A, "P2")]))
    _summarize(store(folder / "middle", [_at(20010, A, "P1", **MISS), _at(20010, A, "P2", **MISS)]))
    return folder


def test_a_table_a_target_oldest_first(runs: Path, command: CommandLine) -> None:
    """Each run has its line with passed cells, median and tier; one that is not finished says so."""
    store(runs / "half", [_at(20030, A, "P1")], n_selected={A: 4})

    lines = command("history").out.splitlines()

    runs_of_a = "zero 2024-10-04 1/2, middle 2024-10-14 0/2, later 2024-10-24 2/2, half 2024-11-03 1/1"
    assert lines[0] == "lab/a"
    assert ", ".join(" ".join(line.split()[:3]) for line in lines[2:6]) == runs_of_a
    assert lines[5].endswith("interrupted")
    assert (lines[7], lines[9].split()[0]) == ("lab/b@low", "zero")
    assert max(map(len, lines)) <= 80


def test_the_keys_for_programs(runs: Path, command: CommandLine) -> None:
    """The keys are those listed in the documentation; `--target` chooses."""
    data = command.json("history")

    assert list(data) == ["runs_dir", "targets", "unreadable"]
    assert [(one["target"], len(one["runs"])) for one in data["targets"]] == [("lab/a", 3), ("lab/b@low", 1)]
    first = data["targets"][0]["runs"][0]
    rate = {"n": 0, "n_success": 0, "rate": None, "interval_95": None}
    assert first == {
        "run_id": "zero",
        "path": "runs/zero",
        "ended_at_ms": 20000 * DAY + 100,
        "state": "finished",
        "n_total": 2,
        "n_ok": 2,
        "passed": first["passed"],
        "tool_use": {**rate, "tier": None, "conclusive": None},
        "p50_ms": first["p50_ms"],
    }
    assert (first["passed"]["n"], first["passed"]["n_success"], first["passed"]["rate"]) == (2, 1, 0.5)
    assert [one["target"] for one in command.json("history", "--target", "LAB/b*")["targets"]] == [
        "lab/b@low"
    ]


def test_an_active_run_is_counted_so_far(runs: Path, command: CommandLine) -> None:
    """The old summary of a resumed run is not used."""
    path = _summarize(store(runs / "now", [_at(20030, A, "P1")], n_selected={A: 1}))
    os.utime(path / "summary.json", ns=(1, 1))
    with RunDirectory.reopen(path) as directory:
        directory.append(json.loads((path / "results.jsonl").read_bytes()) | {"prompt_id": "P2"})
        run = command.json("history")["targets"][0]["runs"][-1]

    assert (run["run_id"], run["n_total"]) == ("now", 2)


DAMAGES = [
    pytest.param("config.json", "{", "config.json is not JSON", id="config"),
    pytest.param("summary.json", '{"schema_version": 2}', "schema_version is 2", id="summary-format"),
    pytest.param("results.jsonl", "{}\n", "line 1 is not a row of this format", id="row"),
]


@pytest.mark.parametrize(("name", "text", "message"), DAMAGES)
def test_an_unreadable_run_is_reported(
    runs: Path, name: str, text: str, message: str, command: CommandLine
) -> None:
    """The other runs are shown, and the exit status reports success."""
    (runs / "middle" / name).write_text(text)
    if name == "results.jsonl":
        (runs / "middle/summary.json").unlink()

    shown = command("history")

    assert all(part in shown.err for part in ("history: ", "runs/middle", message))
    assert ("zero" in shown.out, "middle" in shown.out) == (True, False)
    (unreadable,) = command.json("history")["unreadable"]
    assert unreadable["path"] == "runs/middle"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("nowhere", "there is no folder of runs nowhere", id="no-folder"),
        pytest.param("empty", "there is no run in empty", id="empty"),
        pytest.param("runs/zero/config.json", "there is no folder of runs", id="file"),
    ],
)
def test_a_folder_without_runs_is_refused(runs: Path, name: str, message: str, command: CommandLine) -> None:
    """Exit status 4, and one line."""
    (runs.parent / "empty").mkdir()

    assert message in command.refused("history", name)
