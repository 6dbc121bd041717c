"""`history`: the results of targets over the runs of a folder."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from tests.unit.runs.stored_runs import A, B, definition, row, store

DAY = 86_400_000
MISS: dict[str, Any] = {"objective_pass": False, "violation": "no"}
TOOLS = "benchmarks/prompts_tools.toml"


def _at(day: int, target: Target, prompt_id: str, **changes: Any) -> Record:
    times = {"started_at_ms": day * DAY, "ended_at_ms": day * DAY + 100}
    return row(target, prompt_id, **{**times, **changes})


def _summarize(path: Path) -> Path:
    """Write the summary that a session would have written for a stored run."""
    from pytest_openclaw.runs.reading import load_run
    from pytest_openclaw.runs.summaries import summary_of
    from pytest_openclaw.stats.summary import to_json

    (path / "summary.json").write_text(json.dumps(to_json(summary_of(load_run(path)))))
    return path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs whose names do not sort by date."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs"
    _summarize(
        store(folder / "zero", [_at(20000, A, "P1"), _at(20000, A, "P2", **MISS), _at(20000, B, "P1")])
    )
    _summarize(store(folder / "later", [_at(20020, A, "P1"), _at(20020, A, "P2")]))
    _summarize(store(folder / "middle", [_at(20010, A, "P1", **MISS), _at(20010, A, "P2", **MISS)]))
    return folder


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["history", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_block_a_target_oldest_first(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each run has its line with pass rate, interval, median, speed and tier, in 80 columns."""
    assert main(["history"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[:5]] == [
        ["lab/a", "passed", "▅▁█"],
        ["run", "ended", "passed"],
        ["zero", "2024-10-04", "1/2"],
        ["middle", "2024-10-14", "0/2"],
        ["later", "2024-10-24", "2/2"],
    ]
    assert lines[6] == "lab/b@low"
    assert lines[8].split()[0] == "zero"
    assert max(map(len, lines)) <= 80


def test_the_keys_for_programs(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The keys are those listed in the documentation."""
    data = _json(capsys)

    assert list(data) == ["runs_dir", "n_runs", "targets", "unreadable"]
    assert [(one["target"], len(one["runs"])) for one in data["targets"]] == [("lab/a", 3), ("lab/b@low", 1)]
    first = data["targets"][0]["runs"][0]
    assert first == {
        "run_id": "zero",
        "path": "runs/zero",
        "ended_at_ms": 20000 * DAY + 100,
        "state": "finished",
        "kind": "measured",
        "has_other_prompts": None,
        "n_total": 2,
        "n_ok": 2,
        "passed": first["passed"],
        "tool_use": {
            "n": 0,
            "n_success": 0,
            "rate": None,
            "interval_95": None,
            "tier": None,
            "conclusive": None,
        },
        "p50_ms": first["p50_ms"],
        "p50_interval_95": None,
        "tokens_per_s": first["tokens_per_s"],
        "tokens_per_s_interval_95": None,
    }
    assert (first["passed"]["n"], first["passed"]["n_success"], first["passed"]["rate"]) == (2, 1, 0.5)


def test_a_suite_alone_is_counted(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A suite is chosen by path or file name; the state remains that of the whole run."""
    records = [_at(20030, A, "P1"), _at(20030, A, "T1", suite=TOOLS, **MISS)]
    prompts = [definition("P1"), definition("T1", suite=TOOLS)]
    _summarize(store(runs / "both", records, prompts=prompts))

    for glob in ("*tools*", "prompts_TOOLS.toml", TOOLS):
        (target,) = _json(capsys, "--suite", glob)["targets"]
        (run,) = target["runs"]
        assert (run["run_id"], run["state"], run["passed"]["n"], run["passed"]["n_success"]) == (
            "both",
            "finished",
            1,
            0,
        )
    (target,) = _json(capsys, "--suite", "prompts_x*", "--target", "lab/a")["targets"]
    assert [run["has_other_prompts"] for run in target["runs"]] == [None, False, False, True]


def test_another_selection_of_prompts_is_marked(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rates of different prompts, or of one prompt under another rule, are not comparable."""
    rules = [definition("P1"), definition("P2", validator={"type": "exact", "value": "x"})]
    _summarize(store(runs / "ruled", [_at(20030, A, "P1"), _at(20030, A, "P2")], prompts=rules))
    _summarize(store(runs / "same", [_at(20040, A, "P1"), _at(20040, A, "P2")], prompts=rules))

    (target, _) = _json(capsys)["targets"]
    assert main(["history"]) == 0

    assert [run["has_other_prompts"] for run in target["runs"]] == [None, False, False, True, False]
    shown = capsys.readouterr().out
    assert re.search(r"^ruled +2024-11-03 +2/2\*", shown, re.MULTILINE)
    assert shown.endswith("* other prompts or validators than in the run before it\n")


@pytest.mark.parametrize(
    ("name", "config", "n_selected", "state", "kind", "note"),
    [
        pytest.param("a", {}, {A: 1}, "finished", "measured", "", id="finished-without-a-summary"),
        pytest.param("b", {}, {A: 4}, "interrupted", "measured", "partial: 1 of 4 cells", id="interrupted"),
        pytest.param("c", {"rescored": {"run_id": "x"}}, {A: 1}, "finished", "rescored", "rescored", id="rescored"),
        pytest.param("d", {"parts": []}, {A: 1}, "finished", "merged", "merged", id="merged"),
    ],
)  # fmt: skip
def test_what_kind_of_run_it_is(
    runs: Path,
    name: str,
    config: Any,
    n_selected: Any,
    state: str,
    kind: str,
    note: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The line of a run says in words if the run is not an ordinary finished one."""
    store(runs / name, [_at(20030, A, "P1")], n_selected=n_selected, **config)

    run = _json(capsys)["targets"][0]["runs"][-1]
    assert main(["history"]) == 0

    assert (run["run_id"], run["state"], run["kind"]) == (name, state, kind)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{name} "))
    assert line.partition(" – ")[2].strip() == note


def test_a_run_under_way_is_counted_so_far(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The old summary of a resumed run is not used."""
    path = _summarize(store(runs / "now", [_at(20030, A, "P1")], n_selected={A: 1}))
    os.utime(path / "summary.json", ns=(2**62, 2**62))
    with RunDirectory.reopen(path) as directory:
        directory.append(json.loads((path / "results.jsonl").read_bytes()) | {"prompt_id": "P2"})
        run = _json(capsys)["targets"][0]["runs"][-1]

    assert (run["run_id"], run["state"], run["n_total"]) == ("now", "under way", 2)


DAMAGES = [
    pytest.param("config.json", "{", "config.json is not JSON", id="config"),
    pytest.param("config.json", None, "config.json: No such file or directory", id="no-config"),
    pytest.param("summary.json", "[", "summary.json is not JSON", id="summary"),
    pytest.param("summary.json", '{"schema_version": 2}', "its schema_version is 2", id="summary-format"),
    pytest.param("results.jsonl", "{}\n", "line 1 is no row of this format", id="row"),
]


@pytest.mark.parametrize(("name", "text", "message"), DAMAGES)
def test_an_unreadable_run_is_reported(
    runs: Path, name: str, text: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other runs are shown, and the exit status reports success."""
    if text is None:
        (runs / "middle" / name).unlink()
    else:
        (runs / "middle" / name).write_text(text)
        if name == "results.jsonl":
            (runs / "middle/summary.json").unlink()

    assert main(["history"]) == 0

    shown = capsys.readouterr()
    assert "history: " in shown.err
    assert "runs/middle" in shown.err
    assert message in shown.err
    assert "zero" in shown.out
    assert "middle" not in shown.out
    (unreadable,) = _json(capsys)["unreadable"]
    assert unreadable["path"] == "runs/middle"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["nowhere"], "there is no folder of runs nowhere", id="no-folder"),
        pytest.param(["empty"], "there is no run in empty", id="empty"),
        pytest.param(["runs/zero/config.json"], "there is no folder of runs", id="file"),
    ],
)
def test_a_folder_without_runs_is_refused(
    runs: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 4, and one line."""
    (runs.parent / "empty").mkdir()

    assert main(["history", *words]) == 4

    assert message in capsys.readouterr().err
