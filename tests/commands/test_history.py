"""`history`: the trend of each target on each suite over the runs of a folder."""

import io
import json
import os
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.conclusions.summary import to_json
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.values.requests import Target
from tests.unit.runs.stored_runs import A, B, definition, row, store

DAY = 86_400_000
MISS = {"objective_pass": False, "violation": "no"}


def _at(day, target, prompt_id, **changes):
    times = {"started_at_ms": day * DAY, "ended_at_ms": day * DAY + 100}
    return row(target, prompt_id, **{**times, **changes})


def _summarize(path):
    (path / "summary.json").write_text(json.dumps(to_json(summary_of(load_run(path)))))
    return path


@pytest.fixture
def runs(project):
    folder = project / "runs"
    zero = [_at(20000, A, "P1"), _at(20000, A, "P2", **MISS), _at(20000, B, "P1")]
    _summarize(store(folder / "zero", zero))
    _summarize(store(folder / "later", [_at(20020, A, "P1"), _at(20020, A, "P2")]))
    _summarize(store(folder / "middle", [_at(20010, A, "P1", **MISS), _at(20010, A, "P2", **MISS)]))
    return folder


def test_a_table_a_target_oldest_first(runs, command):
    """Each run has its line with passed cells, chart and tier; one that is not finished says so."""
    both = [definition("P1"), definition("P2")]
    store(runs / "half", [_at(20030, A, "P1")], n_selected={A: 4}, prompts=both)

    lines = command("history").out.splitlines()

    runs_of_a = "zero 2024-10-04 1/2, middle 2024-10-14 0/2, later 2024-10-24 2/2, half 2024-11-03 1/1"
    assert lines[0] == "lab/a · benchmarks/prompts_x.json"
    assert ", ".join(" ".join(line.split()[:3]) for line in lines[2:6]) == runs_of_a
    newest = command("history", "--last", "2", "--target", A.label).out.splitlines()
    assert [line.split()[0] for line in newest[2:]] == ["later", "half"]
    assert lines[5].endswith("interrupted")
    assert (lines[7].split()[0], lines[9].split()[0]) == ("lab/b@low", "zero")
    bars = [line[line.index("├") : line.rindex("┤") + 1] for line in (lines[2], lines[4] + "┤")]
    assert (bars[0], bars[1].rstrip("┤").count("●")) == ("├───────●──────┤", 1)


def test_the_keys_for_programs(runs, command):
    """The keys are those listed in the documentation; `--target` chooses."""
    data = command.json("history")

    assert list(data) == ["runs_dir", "targets", "unreadable", "into"]
    assert list(data["targets"][0]) == ["target", "suite", "runs"]
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
        "conditions": {"prompts": first["conditions"]["prompts"]},
        "changes": [],
    }
    assert (first["passed"]["n"], first["passed"]["n_success"], first["passed"]["rate"]) == (2, 1, 0.5)
    assert [one["target"] for one in command.json("history", "--target", "LAB/b*")["targets"]] == [
        "lab/b@low"
    ]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_chart_fits_the_terminal(runs, width, command, monkeypatch):
    """A wide terminal has a wide chart; a narrow one lacks columns, but neither the chart nor the state."""
    monkeypatch.setenv("COLUMNS", str(width))
    store(runs / "20241103_021000", [_at(20030, A, "P1")], n_selected={A: 4})

    lines = command("history").out.splitlines()

    charted = [line for line in lines if "●" in line]
    assert (len(charted), max(map(len, lines)) <= width) == (5, True)
    assert charted[3].endswith("interrupted")
    assert max(line.count("─") for line in charted) > (40 if width == 140 else 8)


def test_plain_characters(runs, command):
    """A terminal without UTF-8 gets a chart of ASCII characters."""
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with redirect_stdout(terminal):
        assert main(["history"]) == 0
    terminal.seek(0)

    shown = terminal.read()

    assert "lab/a | benchmarks/prompts_x.json" in shown
    assert "[-------o------]" in shown
    assert "\\u" not in shown


def test_suites_are_not_mixed(project, command):
    """A run of two suites has a line in the chart of each, with the figures of that suite only."""
    mixed = [_at(20000, A, "P1"), _at(20000, A, "P2", suite="other.toml", **MISS), _at(20000, A, "P3")]
    store(project / "runs/one", mixed)
    _summarize(store(project / "runs/two", [_at(20001, A, "P2", suite="other.toml")]))

    found = command.json("history")["targets"]

    shares = [
        [(run["run_id"], run["passed"]["n_success"], run["passed"]["n"]) for run in one["runs"]]
        for one in found
    ]
    assert [one["suite"] for one in found] == ["benchmarks/prompts_x.json", "other.toml"]
    assert shares == [[("one", 2, 2)], [("one", 0, 1), ("two", 1, 1)]]


SERVER = {"server": "ollama", "server_version": "0.12.3", "digest": f"sha256:{'a' * 64}"}
RELEASE = {"openclaw_release": "openclaw-2026.9.6"}
CHANGES = [
    pytest.param({}, {}, [], id="none"),
    pytest.param({}, {"inventory": {"openclaw_release": None}}, [], id="unknown"),
    pytest.param({"server_version": "0.13.0"}, {}, ["server ollama 0.12.3 → ollama 0.13.0"], id="server"),
    pytest.param(
        {"digest": f"sha256:{'b' * 64}"},
        {"inventory": {"openclaw_release": "openclaw-2026.10.1"}},
        [
            "release openclaw-2026.9.6 → openclaw-2026.10.1",
            "digest sha256:aaaaaaaa…aaaaaaaaaaaaaa → sha256:bbbbbbbb…bbbbbbbbbbbbbb",
        ],
        id="release-and-digest",
    ),
]


@pytest.mark.parametrize(("server", "more", "changes"), CHANGES)
def test_what_changed_is_above_the_run(project, server, more, changes, command):
    """A change of release, server or digest is compared with the last run that knows it."""
    for day, its, inventory in ((0, SERVER, RELEASE), (1, {}, {}), (2, {**SERVER, **server}, RELEASE)):
        changed = {"inventory": inventory, **(more if day == 2 else {})}
        store(
            project / f"runs/r{day}",
            [_at(20000 + day, A, "P1")],
            serving={A.label: {"server": its}},
            **changed,
        )

    lines = command("history").out.splitlines()
    runs = command.json("history")["targets"][0]["runs"]

    assert [run["changes"] for run in runs] == [[], [], changes]
    above = [line for line in lines if line.startswith(("──", "   "))]
    assert " ".join(line.strip() for line in above) == ("── " + "; ".join(changes) if changes else "")
    assert lines.index(above[-1]) == len(lines) - 2 if changes else not above


def test_edited_prompts_are_a_change(project, command):
    """A suite with another prompt under the same name is another measure; the order of prompts is not."""
    prompts = [definition("P1"), definition("P2")]
    edited = [definition("P1", prompt="Do it now."), definition("P2")]
    for day, asked in enumerate((prompts, prompts[::-1], edited)):
        store(project / f"runs/r{day}", [_at(20000 + day, A, "P1"), _at(20000 + day, A, "P2")], prompts=asked)

    runs = command.json("history")["targets"][0]["runs"]

    assert [len(run["changes"]) for run in runs] == [0, 0, 1]
    assert runs[2]["changes"][0].startswith("prompts 2 (")


def test_the_release_of_a_captured_request(project, command):
    """A target on OpenClaw's whole request changes with the release that this was captured from."""
    whole = replace(A, surface="openclaw")
    for day, release in enumerate(("openclaw-2026.9.6", "openclaw-2026.10.1")):
        surface = {"source": "captured", "release": release}
        rows = [_at(20000 + day, whole, "P1", surface="openclaw")]
        store(project / f"runs/r{day}", rows, surface=surface, inventory=RELEASE)

    runs = command.json("history")["targets"][0]["runs"]

    assert runs[1]["changes"] == ["release openclaw-2026.9.6 → openclaw-2026.10.1"]


def test_the_page_is_one_file(runs, command):
    """It is replaced by the next one, names the runs that are left out, and lets no text end an element."""
    hostile = Target(provider="lab", model="</script><b>x")
    store(runs / "hostile", [_at(20030, hostile, "P1")])
    (runs / "middle/config.json").write_text("{")

    assert command("history", "--page", "trend.html").out == "3 charts\nwrote trend.html\n"
    assert command.json("history", "--page", "trend.html")["into"] == "trend.html"

    page = Path("trend.html").read_text("utf-8")
    assert ("runs/middle/config.json is not JSON" in page, "<b>x" in page) == (True, False)
    assert [page.count(text) for text in ("</script>", "default-src 'none'", "src=")] == [2, 1, 0]


def test_the_page_replaces_no_other_file(runs, command):
    """The page of a run, with its readers' notes, stays."""
    command("report", "runs/zero")

    assert "is not a history of pytest-openclaw" in command.refused(
        "history", "--page", "runs/zero/report.html"
    )


def test_an_active_run_is_counted_so_far(runs, command):
    """The old summary of a resumed run is not used."""
    path = _summarize(store(runs / "now", [_at(20030, A, "P1")], n_selected={A: 1}))
    os.utime(path / "summary.json", ns=(1, 1))
    with RunDirectory(path) as directory:
        directory.append(json.loads((path / "results.jsonl").read_bytes()) | {"prompt_id": "P2"})
        run = command.json("history")["targets"][0]["runs"][-1]

    assert (run["run_id"], run["n_total"]) == ("now", 2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("nowhere", "there is no folder of runs nowhere", id="no-folder"),
        pytest.param("empty", "there is no run in empty", id="empty"),
        pytest.param("runs/zero/config.json", "there is no folder of runs", id="file"),
    ],
)
def test_a_folder_without_runs_is_refused(runs, name, message, command):
    """Exit status 4, and one line."""
    (runs.parent / "empty").mkdir()

    assert message in command.refused("history", name)
