"""Reading run directories: which one, its rows, and what is refused."""

import json
import os
import re
from dataclasses import replace

import pytest

from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.reading import LEFT_OUT, find_run, load_run, read_rows, without_texts
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.rows import to_row
from tests.unit.reports.summaries import fault, missed, record
from tests.unit.runs.stored_runs import A, files_of, row, store

LINES = [
    json.dumps(to_row(one)).encode() for one in (record(), missed(prompt_id="P2"), fault(prompt_id="P3"))
]


def run(folder, name, *, content=b"", written_at=0):
    path = store(folder / name, [])
    (path / "results.jsonl").write_bytes(content)
    os.utime(path / "results.jsonl", (written_at, written_at))
    return path


def test_the_last_run_is_the_one_written_to_last(tmp_path):
    """Neither its name nor its creation time counts; folders without a run are ignored."""
    run(tmp_path, "b", written_at=5)
    run(tmp_path, "a", written_at=9)
    run(tmp_path, "c", written_at=1)
    (run(tmp_path, "unborn", written_at=20) / "config.json").unlink()
    (tmp_path / "file").touch()

    assert find_run(tmp_path, "last").name == "a"
    assert find_run(tmp_path, "c") == tmp_path / "c"


@pytest.mark.parametrize(
    ("folder", "name", "message"),
    [
        pytest.param("", "x", "there is no run x in .*; the last one is b", id="unknown"),
        pytest.param("", "unborn", "there is no run unborn in", id="without-config"),
        pytest.param("nowhere", "last", "there is no run in", id="no-folder"),
        pytest.param("nowhere", "x", "there is no run in", id="no-folder-for-a-name"),
    ],
)
def test_a_missing_run_is_reported_with_the_last_one(tmp_path, folder, name, message):
    """The message names the run that was perhaps meant."""
    run(tmp_path, "b")
    (run(tmp_path, "unborn") / "config.json").unlink()

    with pytest.raises(OpenClawError, match=message):
        find_run(tmp_path / folder, name)


def test_the_last_row_of_a_cell_counts_with_its_bytes(tmp_path):
    """Each line is returned unchanged, in the order of the file; texts are only in the whole record."""
    again = json.dumps(to_row(record(attempts=2, raw_output="text"))).encode()
    stored = load_run(run(tmp_path, "r", content=b"\n".join([*LINES, again, b""])))

    rows = [*stored.rows.values()]
    assert [one.line for one in rows] == [*LINES[1:], again]
    assert (rows[-1].record.attempts, rows[-1].record.raw_output) == (2, "")
    assert to_row(rows[-1].whole) == json.loads(again)
    assert stored.run_id == "r"


@pytest.mark.parametrize(
    ("tail", "n_rows"),
    [
        *((LINES[2][:cut], 1) for cut in (1, 40, len(LINES[2]) - 1)),
        pytest.param(LINES[2], 2, id="lacks-only-its-line-feed"),
    ],
)
def test_a_torn_last_line_is_not_a_row(tmp_path, tail, n_rows):
    """The partial row of a killed run is left out."""
    stored = load_run(run(tmp_path, "r", content=LINES[0] + b"\n" + tail))

    assert [one.line for one in stored.rows.values()] == [LINES[0], tail][:n_rows]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *((line, "") for line in (b"{", b"", b"[]", b"{}", b"\x00\x00", b"\xff")),
        (b'{"record_type": "result", "schema_version": 99}', "schema_version is 99"),
        (b'{"doc_id": 0, "acc": 1.0}', "not a result: record_type is missing"),
        (b"id,score", "JSON is malformed"),
    ],
)
def test_a_broken_line_in_the_middle_is_named(tmp_path, line, message):
    """The lines before it are read; the message names the line, and what to do."""
    path = run(tmp_path, "r", content=LINES[0] + b"\n" + line + b"\n" + LINES[1] + b"\n")
    rows = read_rows(path / "results.jsonl")

    assert next(rows)[0] == LINES[0] + b"\n"
    with pytest.raises(
        OpenClawError, match=rf"results.jsonl: line 2 is not a row .*{message}.* remove the line"
    ):
        next(rows)


def test_an_active_run_is_refused(tmp_path):
    """A directory that a run is writing to is refused; a lock without an owner does not count."""
    path = store(tmp_path / "one", [row(A, "P1")])
    before = files_of(path)
    with RunDirectory(path):
        assert len(load_run(path, even_active=True).records) == 1
        with pytest.raises(OpenClawError, match="a run is writing there now"):
            load_run(path)
    (path / ".lock").touch()

    assert len(load_run(path).records) == 1
    assert files_of(path) == {**before, ".lock": b""}


def test_a_run_killed_before_its_inventory_has_an_empty_one(tmp_path):
    """It is written after `config.json`, so a run may lack it."""
    path = run(tmp_path, "r")
    (path / "inventory.json").unlink()

    assert load_run(path).inventory == {"run_id": "r", "targets": {}}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("config.json", None, "is {path} a run directory?", id="missing"),
        pytest.param("results.jsonl", None, "is {path} a run directory?", id="no-rows-file"),
        pytest.param("config.json", '{"schema_version": 2}', "its schema_version is 2", id="another-format"),
        pytest.param("config.json", '{"schema_version": 1}', "run_id is missing", id="no-run-id"),
        pytest.param("config.json", '{"model": "hf"}', "Name the folder of a run of pytest-openclaw", id="another-tool"),
        pytest.param("config.json", "model: hf\n", "config.json is not JSON: JSON is malformed", id="yaml"),
        pytest.param("inventory.json", "[]", "inventory.json is not a JSON object", id="inventory-no-object"),
        pytest.param("surface.json", "{}", "surface.json is not as a run writes it", id="no-surface"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, content, message):
    """The message names the file and the problem."""
    path = store(tmp_path / "r", [row(A, "P1")])
    (path / name).unlink(missing_ok=True)
    if content is not None:
        (path / name).write_text(content)

    with pytest.raises(OpenClawError, match=re.escape(message.format(path=path))) as refused:
        _ = load_run(path).surface

    assert str(path) in str(refused.value)


def test_texts_are_left_out():
    """Everything else has its value and type."""
    turns = ({"text": "long", "input_tokens": 7, "calls": [{"name": "read", "problem": "bad_arguments"}]},)
    record = row(A, "P1", raw_output="long", turns=turns, extra={"x": 1}, cost_usd=0, cut=("raw_output",))

    light = without_texts(record, {})

    assert light == replace(record, **LEFT_OUT)
    assert type(light.cost_usd) is int


def test_equal_values_are_kept_once():
    """Rows are read from separate lines, and a run has many equal texts and calls."""
    shared = {}

    one, other = (
        without_texts(row(A, "P1", violation="".join(["n", "o"]), tool_calls=(*["read"],)), shared)
        for _ in range(2)
    )

    assert one.violation is other.violation
    assert one.tool_calls is other.tool_calls
