"""A stored run is checked before it is used."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.asking.resources import render_snapshot
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.reading import read_part, read_snapshot
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.typed import LARGEST
from pytest_openclaw.values.rows import to_row
from tests.unit.runs.stored_runs import A, B, files_of, row, store


def _summary(path: Path, state: str, n_rows: int) -> None:
    (path / "summary.json").write_text(json.dumps({"state": state, "n_rows": n_rows}))


def test_a_finished_run_lacks_nothing(tmp_path: Path) -> None:
    """Cells that a mark skipped are in the config and not missing, if the summary says finished."""
    path = store(tmp_path / "one", [row(A, "P1")], n_selected={A: 3, B: 1})
    assert read_part(path).shortcomings == [f"{path} is not finished: 3 of its 4 cells have no row"]
    _summary(path, "interrupted", 1)
    assert read_part(path).n_selected == {A: 3, B: 1}
    _summary(path, "finished", 2)
    assert read_part(path).n_selected == {A: 3, B: 1}, "the summary is of other rows"

    _summary(path, "finished", 1)

    assert read_part(path).n_selected == {A: 1, B: 0}
    assert read_part(path).shortcomings == []


@given(
    st.dictionaries(
        st.sampled_from(["taken_at_ms", "memory_total_bytes", "load_1m", "processes"]),
        st.none() | st.integers(-LARGEST, LARGEST) | st.floats(-LARGEST, LARGEST),
    ),
    st.text("ab, #:/é", min_size=1),
    st.sampled_from(["before", "after"]),
)
def test_a_snapshot_can_be_read_back(values: dict[str, Any], target: str, moment: str) -> None:
    """The file has its target, its time, and the machine's values, number for number."""
    read = read_snapshot(render_snapshot(target, moment, values))

    assert (read.target, read.moment, read.values) == (target, moment, values)


@pytest.mark.parametrize(
    "text", ["", "hello\n", "# p/m, during\n", "# p/m, after\nload_1m\n", "# p/m, after\nload_1m high\n"]
)
def test_what_is_no_snapshot_is_refused(text: str) -> None:
    """Another text is not parsed as numbers."""
    with pytest.raises(ValueError, match=r"."):
        read_snapshot(text)


def test_a_living_run_is_refused(tmp_path: Path) -> None:
    """A directory that a run is writing to is refused; a lock without an owner does not count."""
    path = store(tmp_path / "one", [row(A, "P1")])
    before = files_of(path)
    with RunDirectory(path), pytest.raises(OpenClawError, match="a run is writing there now"):
        read_part(path)
    (path / ".lock").touch()

    assert read_part(path).n_rows == 1
    assert files_of(path) == {**before, ".lock": b""}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        pytest.param("config.json", '{"schema_version": 2}', "its schema_version is 2", id="another-format"),
        pytest.param("config.json", '{"schema_version": 1}', "run_id is missing", id="no-run-id"),
        pytest.param("config.json", "[]", "is not a JSON object", id="no-object"),
        pytest.param("config.json", "{", "is not JSON", id="no-json"),
        pytest.param("results.jsonl", "{}\n", "line 1 is no row", id="no-row"),
        pytest.param("resources_x_before.txt", "hello", "is no snapshot", id="no-snapshot"),
        pytest.param("resources_x_before.txt", "# p/m, before\n", "no target of this run", id="foreign"),
    ],
)
def test_a_directory_that_is_no_run_is_refused(tmp_path: Path, file: str, content: str, message: str) -> None:
    """The refusal names the file and the problem."""
    path = store(tmp_path / "one", [row(A, "P1")])
    (path / file).write_text(content)

    with pytest.raises(OpenClawError, match=re.escape(message)) as refused:
        read_part(path)

    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("ended_at_ms", None, id="no-time"),
        pytest.param("raw_output", 5, id="no-text"),
        pytest.param("thinking_level", "deep", id="no-level"),
        pytest.param("tool_calls", [1], id="no-tool"),
        pytest.param("tool_call_details", [{"name": 1}], id="no-call"),
        pytest.param("objective_pass", "yes", id="no-verdict"),
        pytest.param("turns", ["x"], id="no-turn"),
        pytest.param("turns", [{"text": "a"}], id="turn-without-calls"),
        pytest.param("turns", [{"text": "a", "calls": [{"name": "read", "arguments": {}}]}], id="turns-call"),
        pytest.param("turns", [{"text": "a", "reasoning": 3, "calls": []}], id="turns-reasoning"),
    ],
)
def test_a_row_of_wrong_types_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    """A row that no run writes is named by its line, before anything is computed from it."""
    path = store(tmp_path / "one", [row(A, "P1")])
    damaged = {**to_row(row(A, "P2")), field: value}
    with (path / "results.jsonl").open("ab") as file:
        file.write(json.dumps(damaged).encode() + b"\n")

    with pytest.raises(OpenClawError, match=f"line 2 is no row of this format: {field}"):
        read_part(path)
