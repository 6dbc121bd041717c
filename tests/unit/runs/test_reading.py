"""Reading a run directory: which one, and its content."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_openclaw.runs.reading import RowIndex, StoredRow, find_run, load_inventory, load_run, read_rows
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.rows import to_row
from tests.unit.reports.summaries import fault, missed, record
from tests.unit.runs.stored_runs import A, row, store

LINES = [
    json.dumps(to_row(row)).encode() for row in (record(), missed(prompt_id="P2"), fault(prompt_id="P3"))
]

CONFIG = {"schema_version": 1, "run_id": "r", "targets": [], "providers": {}, "gates": None, "prompts": []}
INVENTORY = {"run_id": "r", "targets": {}}


def run(folder: Path, name: str, *, content: bytes = b"", written_at: int = 0) -> Path:
    """A run's directory."""
    path = folder / name
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "inventory.json").write_text(json.dumps(INVENTORY))
    (path / "results.jsonl").write_bytes(content)
    os.utime(path / "results.jsonl", (written_at, written_at))
    return path


def test_the_last_run_is_the_one_written_to_last(tmp_path: Path) -> None:
    """Neither its name nor its creation time counts; folders without a run are ignored."""
    run(tmp_path, "b", written_at=5)
    run(tmp_path, "a", written_at=9)
    run(tmp_path, "c", written_at=1)
    (run(tmp_path, "unborn", written_at=20) / "config.json").unlink()
    (tmp_path / "file").touch()

    assert find_run(tmp_path, "last").name == "a"
    assert find_run(tmp_path, "c") == tmp_path / "c"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("x", "there is no run x in .*; the last one is b", id="unknown"),
        pytest.param("unborn", "there is no run unborn in", id="without-config"),
    ],
)
def test_a_missing_run_is_reported_with_the_last_one(tmp_path: Path, name: str, message: str) -> None:
    """The message names the run that was perhaps meant."""
    run(tmp_path, "b")
    (run(tmp_path, "unborn") / "config.json").unlink()

    with pytest.raises(OpenClawError, match=message):
        find_run(tmp_path, name)


@pytest.mark.parametrize("name", ["last", "x"])
def test_in_a_folder_without_runs_there_is_none(tmp_path: Path, name: str) -> None:
    """Also if the folder itself does not exist."""
    with pytest.raises(OpenClawError, match="there is no run in"):
        find_run(tmp_path / "nowhere", name)


def test_rows_come_back_with_their_bytes(tmp_path: Path) -> None:
    """Each line is returned unchanged, beside its parsed row; of two rows of a cell the later one counts."""
    again = LINES[0].replace(b'"attempts": 0', b'"attempts": 2')
    path = run(tmp_path, "r", content=b"\n".join([*LINES, again, b""]))

    stored = load_run(path)

    assert [row.line for row in stored.rows] == [*LINES, again]
    assert (stored.run_id, stored.config, stored.inventory, stored.torn) == ("r", CONFIG, INVENTORY, b"")
    assert {key.prompt_id: row.record.attempts for key, row in stored.latest().items()} == {
        "P1": 2, "P2": 0, "P3": 0,
    }  # fmt: skip


@pytest.mark.parametrize("cut", [1, 40, len(LINES[2]) - 1])
def test_a_torn_last_line_is_no_row(tmp_path: Path, cut: int) -> None:
    """The partial row of a killed run is returned separately."""
    path = run(tmp_path, "r", content=LINES[0] + b"\n" + LINES[2][:cut])

    stored = load_run(path)

    assert [row.line for row in stored.rows] == [LINES[0]]
    assert stored.torn == LINES[2][:cut]


def test_a_last_line_may_lack_its_end(tmp_path: Path) -> None:
    """A row that lacks only its line feed counts."""
    path = run(tmp_path, "r", content=LINES[0] + b"\n" + LINES[2])

    stored = load_run(path)

    assert [row.line for row in stored.rows] == [LINES[0], LINES[2]]
    assert stored.torn == b""


@pytest.mark.parametrize(
    "line",
    [b"{", b"", b"[]", b"{}", b'{"record_type": "result", "schema_version": 99}', b"\x00\x00", b"\xff"],
)
def test_a_broken_line_in_the_middle_is_named(tmp_path: Path, line: bytes) -> None:
    """Nothing is skipped silently: the text names the line, and what to do."""
    path = run(tmp_path, "r", content=LINES[0] + b"\n" + line + b"\n" + LINES[1] + b"\n")

    with pytest.raises(OpenClawError, match=r"results.jsonl: line 2 is no row .* remove the line"):
        load_run(path)


def test_one_row_at_a_time_is_read(tmp_path: Path) -> None:
    """A broken line does not affect the lines before it."""
    path = run(tmp_path, "r", content=LINES[0] + b"\n{\n")
    rows = read_rows(path / "results.jsonl")

    first = next(rows)

    assert isinstance(first, StoredRow)
    assert first.line == LINES[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("config.json", None, "is .* a run directory", id="missing"),
        pytest.param("results.jsonl", None, "is .* a run directory", id="no-rows-file"),
        pytest.param("config.json", "{", "config.json is not JSON", id="broken"),
        pytest.param("inventory.json", "[]", "inventory.json is not a JSON object", id="no-object"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    """The text names the file and the problem."""
    path = run(tmp_path, "r")
    (path / name).unlink()
    if content is not None:
        (path / name).write_text(content)

    with pytest.raises(OpenClawError, match=message):
        load_run(path)


def test_a_run_killed_before_its_inventory_has_an_empty_one(tmp_path: Path) -> None:
    """It is written after `config.json`, so a run may lack it."""
    path = run(tmp_path, "r")
    (path / "inventory.json").unlink()

    assert load_inventory(path) == {}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("results.jsonl", '{"doc_id": 0, "acc": 1.0}\n', "line 1 is no row of this format: not a result: record_type is missing"),
        ("results.jsonl", "id,score\n", "line 1 is no row of this format: JSON is malformed"),
        ("config.json", '{"model": "hf", "tasks": ["arc"]}', "config.json has no schema_version, so it is not of a run of"),
        ("config.json", "model: hf\n", "config.json is not JSON: JSON is malformed"),
    ],
)  # fmt: skip
def test_files_of_other_tools_are_refused_in_our_words(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    """The message names the file and what is wrong with it."""
    path = run(tmp_path, "r")
    (path / name).write_text(text, "utf-8")

    with pytest.raises(OpenClawError) as caught:
        [*read_rows(path / "results.jsonl"), load_run(path)]

    assert said in str(caught.value)


def test_rows_of_several_runs_are_read_with_few_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row has its line and its whole record, in whatever order they are read; equal prompts are kept once."""
    monkeypatch.setattr("pytest_openclaw.runs.reading.MOST_OPEN", 1)
    index = RowIndex()
    paths = [store(tmp_path / name, [row(A, "P1", raw_output=name), row(A, "P2")]) for name in "abc"]
    runs = [load_run(path, index) for path in paths]

    for place in (0, 1):
        for path, run in zip(paths, runs, strict=True):
            found, line = run.rows[place], (path / "results.jsonl").read_bytes().splitlines()[place]
            assert found.line == line
            assert to_row(found.whole) == json.loads(line)
    assert runs[0].config["prompts"][0] is runs[2].config["prompts"][0]
    assert [run.rows[0].record.raw_output for run in runs] == ["", "", ""]
