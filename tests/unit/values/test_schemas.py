"""The published schemas match the written files: no field more, none less."""

import json
import re
from importlib.metadata import version

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.conclusions.summary import Summary, to_json
from pytest_openclaw.parts.gates import GateSettings
from pytest_openclaw.util.typed import converted
from pytest_openclaw.values.parts import whole
from pytest_openclaw.values.rows import from_row, to_row
from pytest_openclaw.values.run_files import ConfigFile, InventoryFile, load_schema
from tests.docs.refresh import made_schemas
from tests.unit.parts.compared import compare
from tests.unit.reports.summaries import TARGET, fault, missed, pressed, record, summary_of, tool_cells

ROW = load_schema("row")
SUMMARY = load_schema("summary")
GOOD = to_row(record())
CONFIG = {"schema_version": 1, "run_id": "r", "targets": [], "providers": {}, "gates": None, "prompts": []}


@pytest.mark.parametrize("name", ["row", "config", "inventory", "summary"])
def test_they_are_schemas(name):
    """Each is a valid JSON Schema of the draft that it names."""
    jsonschema.Draft202012Validator.check_schema(load_schema(name))


@pytest.mark.skipif(version("msgspec") < "0.23", reason="older ones leave out the names of keys")
def test_the_published_schemas_are_current():
    """They are generated from the types; `python -m tests.docs.refresh` writes them anew."""
    made = made_schemas()

    assert {name: load_schema(name) for name in made} == made


def test_a_row_has_the_published_fields():
    """The schema names every field of a row and requires each, and it accepts a row."""
    row = to_row(record(tool_calls=("read",)))

    assert [*ROW["properties"]] == [*ROW["required"]] == [*row]
    jsonschema.validate(row, ROW)


def _written(summary):
    return json.loads(json.dumps(to_json(summary)))


def test_a_written_summary_is_valid():
    """With every part that a summary may have; it is read as it was written."""
    rows = [
        *tool_cells(1, 1),
        *tool_cells(1, 1, suite="native", tools_offered=11),
        *pressed("1t", 1, 1, tools=1),
        record(prompt_id="S1", probe="secret"),
        missed(),
        record(repeat=2),
        missed(prompt_id="K1", known_failure="too small"),
        fault(),
    ]
    compared = compare(rows, rows[1:])
    summary = summary_of(rows, gates=GateSettings.of(min_pass_rate=0.5, require_tier=1), comparison=compared)

    written = _written(summary)

    jsonschema.validate(written, SUMMARY)
    assert _written(converted(written, whole(Summary))) == written


def test_a_summary_without_any_answer_is_valid():
    """A figure without data is null, and never 0."""
    written = _written(summary_of([fault()], n_selected={TARGET: 2}))

    jsonschema.validate(written, SUMMARY)
    (group,) = written["groups"]
    assert (group["success_rate_ok"], group["objective_pass_rate"], group["tool_use"]["tier"]) == (None,) * 3
    assert group["latency_ms"] == {"p50": None, "p95": None, "p99": None, "mean": None}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        pytest.param({"doc_id": 0}, "not a result: record_type is missing", id="another-tool"),
        pytest.param({"record_type": "sample"}, 'not a result: record_type is "sample"', id="another-record"),
        pytest.param({**GOOD, "schema_version": 2}, "schema_version is 2; this version reads 1", id="later"),
        pytest.param({**GOOD, "schema_version": "1"}, 'schema_version is "1"; this version reads 1', id="text"),
        pytest.param({"record_type": "result", "schema_version": 1}, "run_id is missing", id="lacks-a-field"),
        pytest.param({**GOOD, "turns": 5}, "turns is 5, not a list or null", id="no-list"),
        pytest.param({**GOOD, "e2e_ms": -5}, "e2e_ms is -5, not a whole number >= 0", id="negative"),
        pytest.param({**GOOD, "repeat": True}, "repeat is true, not a whole number", id="a-boolean-is-not-a-number"),
        pytest.param({**GOOD, "ttft_ms": 1.0}, "ttft_ms is 1.0, not a whole number or null", id="a-float-is-not-a-count"),
        pytest.param({**GOOD, "input_tokens": 2**60}, f"input_tokens is {2**60}, not a whole number <= {2**53}", id="large"),
        pytest.param({**GOOD, "surface": "x"}, 'surface is "x", not one of listed, openclaw', id="closed-set"),
        pytest.param({**GOOD, "tool_calls": ["a", 5]}, "tool_calls[1] is 5, not a text", id="item"),
        pytest.param({**GOOD, "images": [{}]}, "images[0].path is missing", id="nested"),
    ],
)  # fmt: skip
def test_a_malformed_row_is_refused_by_name(row, said):
    """The message has the field and its value."""
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        from_row(row)


@given(key=st.text(), value=st.none() | st.integers() | st.lists(st.text()), cost=st.none() | st.floats(0, 9))
def test_rows_round_trip(key, value, cost):
    """A row with unknown keys is the same after its way through a record."""
    row = {f"x_{key}": value, **to_row(missed(cost_usd=cost, tool_calls=("read",)))}

    assert to_row(from_row(json.loads(json.dumps(row)))) == row


GATES_OF_NO_RUN = (
    {"min_pass_rate": "0.9"},
    {"conclusive": None},
    {"require_tier": 1_000_000},
    {"min_tool_rate": 1.5},
    {"by_target": [{"target": "*"}]},
    {"by_target": [{"target": "*", "changes": {"unknown": 1}}]},
    {"by_target": [{"target": "*", "changes": {"max_p95_ms": -1}}]},
    {"by_target": [{"target": "*", "changes": ["require_tier"]}]},
)


@pytest.mark.parametrize(
    ("kind", "document", "said"),
    [
        (whole(ConfigFile), {}, "run_id is missing"),
        (whole(ConfigFile), {**CONFIG, "targets": [{"provider": "a"}]}, "targets[0].model is missing"),
        (whole(ConfigFile), {**CONFIG, "gates": {"min_pass_rate": 5}}, "gates.min_pass_rate is 5, not a number <= 1"),
        *((whole(ConfigFile), {**CONFIG, "gates": gates}, "gates.") for gates in GATES_OF_NO_RUN),
        (whole(ConfigFile), {**CONFIG, "temperature": "hot"}, 'temperature is "hot", not one of server'),
        (InventoryFile, {"run_id": "r", "targets": {"a": 1}}, "a value in targets is wrong, not a table"),
        (Summary, {"schema_version": 1}, "is missing"),
    ],
)  # fmt: skip
def test_a_malformed_file_is_refused_by_name(kind, document, said):
    """The message has the key and its value."""
    with pytest.raises(ValueError, match=re.escape(said)):
        converted(document, kind)
