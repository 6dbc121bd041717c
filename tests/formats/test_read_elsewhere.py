"""What `export` writes is read by the programs that it is meant for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.commands import main
from tests.unit.stored.stored_runs import A, B, definition, row, store

pytestmark = [pytest.mark.nightly, pytest.mark.formats]

CALL = {"id": "c1", "name": "read", "arguments": '{"path": "a"}', "result": "text of a", "problem": None}
BROKEN = {**CALL, "id": None, "arguments": "{broken", "result": None}
FIGURES = dict.fromkeys(("ttft_ms", "input_tokens", "output_tokens", "finish_reason")) | {"e2e_ms": 1}
TURNS = (
    {"text": "", "reasoning": "I look.", "calls": [CALL], **FIGURES},
    {"text": "It says a.", "reasoning": "", "user": "And now?", "calls": [], **FIGURES},
)


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that exports a run of every kind of row, and returns the path."""
    monkeypatch.chdir(tmp_path)
    prompts = [definition(f"P{n}", system="Be brief.", prompt=f"Question {n}") for n in range(1, 7)]
    records = [
        row(A, "P1", raw_output="<think>\nhm\n</think>\n\nyes", cost_usd=0.25, tool_calls=("df", "du")),
        row(A, "P1", repeat=2, raw_output="=no", objective_pass=False, violation='"no" is not "yes"'),
        row(A, "P2", turns=TURNS, parsed_output={"a": [1]}, extra={"x_lab": {"b": 2}}),
        row(A, "P3", raw_output="ünï", tool_call_details=(BROKEN,), objective_pass=None),
        row(B, "P4", availability_status="error", success=False, objective_pass=None,
            failure_type="timeout", fault_message="no end within 300 s", cost_usd=0, raw_output=""),
        row(B, "P5", success=False, failure_type="refusal", objective_pass=None),
    ]  # fmt: skip
    store(tmp_path / "runs/one", records, prompts=prompts)

    def export(named: str, into: str) -> Path:
        assert main(["export", "one", "--format", named, "--into", into]) == 0
        return tmp_path / into

    return export


@pytest.mark.parametrize("library", ["pandas", "duckdb"])
def test_the_page_reads_parquet(
    exported: Any, library: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    """The program on the page prints the pass rate of each model."""
    pytest.importorskip(library)
    exported("parquet", "rows.parquet")
    page = (request.config.rootpath / "docs/how-to/export.md").read_text("utf-8")
    (program,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if library in block)

    exec(compile(program, "export.md", "exec"), {})

    assert A.model in capsys.readouterr().out


def test_pandas_reads_parquet(exported: Any) -> None:
    """Columns have types; null is no number."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(exported("parquet", "rows.parquet"))

    assert len(frame) == 6
    assert frame.cost_usd.sum() == 0.25
    assert list(frame.tool_calls[0]) == ["df", "du"]
    assert frame.raw_output[1] == "=no", "no guard: a program reads it"
    assert frame.objective_pass.isna().sum() == 3
    assert json.loads(frame.parsed_output[2]) == {"a": [1]}
    assert json.loads(frame.x_lab[2]) == {"b": 2}


def test_polars_reads_parquet(exported: Any) -> None:
    """Integers, booleans and lists are what they are in a row."""
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(exported("parquet", "rows.parquet"))

    kinds = {name: frame.schema[name] for name in ("e2e_ms", "cost_usd", "success", "tool_calls", "turns")}
    assert [*kinds.values()] == [
        polars.Int64, polars.Float64, polars.Boolean, polars.List(polars.String), polars.String,
    ]  # fmt: skip
    assert frame.filter(polars.col("failure_type") == "timeout")["model"].to_list() == ["b"]


def test_duckdb_reads_parquet(exported: Any) -> None:
    """A query over the file."""
    duckdb = pytest.importorskip("duckdb")
    file = exported("parquet", "rows.parquet")
    found = duckdb.sql(
        f"select model, count(*), count(*) filter (objective_pass) from '{file}' group by 1 order by 1"
    )

    assert found.fetchall() == [("a", 4, 2), ("b", 2, 0)]


def test_inspect_reads_the_logs(exported: Any) -> None:
    """One log for each target; samples, scores, messages, calls and errors are those of the rows."""
    log_module = pytest.importorskip("inspect_ai.log")
    folder = exported("inspect", "logs")
    logs = {info.task: info for info in log_module.list_eval_logs(str(folder))}
    files = sorted(folder.iterdir())
    a, b = (log_module.read_eval_log(str(file)) for file in files)

    assert len(logs) >= 1
    assert (a.eval.model, a.status, a.eval.config.epochs) == (A.label, "success", 2)
    assert a.results.scores[0].metrics["accuracy"].value == pytest.approx(2 / 3)
    assert [(one.id.rpartition("::")[2], one.epoch) for one in a.samples] == [
        ("P1", 1), ("P1", 2), ("P2", 1), ("P3", 1),
    ]  # fmt: skip
    right, wrong, exchange, broken = a.samples
    assert (right.scores["passed"].value, right.scores["passed"].answer) == ("C", "yes")
    assert right.output.message.content[0].reasoning == "hm"
    assert (wrong.scores["passed"].value, wrong.scores["passed"].explanation) == ("I", '"no" is not "yes"')
    assert [message.role for message in exchange.messages] == [
        "system", "user", "assistant", "tool", "user", "assistant",
    ]  # fmt: skip
    assert exchange.messages[2].tool_calls[0].arguments == {"path": "a"}
    assert exchange.output.completion == exchange.scores["passed"].answer == "It says a."
    assert broken.output.message.tool_calls[0].parse_error == "no JSON object: {broken"
    assert broken.scores is None
    assert b.samples[0].error.message == "timeout: no end within 300 s"
    assert (b.samples[0].scores, b.samples[1].scores["passed"].value) == (None, "I")


def test_the_head_of_a_log_is_read_alone(exported: Any) -> None:
    """As `inspect view` does for its list of logs."""
    log_module = pytest.importorskip("inspect_ai.log")
    [file, _] = sorted(exported("inspect", "logs").iterdir())

    head = log_module.read_eval_log(str(file), header_only=True)
    assert (head.eval.dataset.samples, head.results.completed_samples, head.samples) == (3, 4, None)
