"""The published schemas match the written files: no field more, none less."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import jsonschema
import pytest

from pytest_openclaw.stats.comparison import Reason, Word
from pytest_openclaw.stats.summary import summary_to_json
from pytest_openclaw.values.replies import AvailabilityStatus
from pytest_openclaw.values.requests import THINKING_LEVELS
from pytest_openclaw.values.rows import from_row, load_schema, to_row
from pytest_openclaw.values.settings import Gates
from pytest_openclaw.values.tool_calls import ToolDemand, ToolOutcome
from tests.unit.reports.summaries import TARGET, fault, missed, pressed, record, summary_of, tool_cells
from tests.unit.stats.compared import compare

ROW = load_schema("row")
SUMMARY = load_schema("summary")


@pytest.mark.parametrize("schema", [ROW, SUMMARY], ids=["row", "summary"])
def test_they_are_schemas(schema: Any) -> None:
    """Each is a valid JSON Schema of the draft that it names."""
    jsonschema.Draft202012Validator.check_schema(schema)


def test_a_row_has_the_published_fields() -> None:
    """The schema names every field of a row and requires each."""
    assert list(ROW["properties"]) == list(to_row(record()))
    assert set(ROW["required"]) == set(ROW["properties"])


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("availability_status", get_args(AvailabilityStatus)),
        ("tool_outcome", (*get_args(ToolOutcome), None)),
        ("tool_demand", (*get_args(ToolDemand), None)),
        ("thinking_level", (*THINKING_LEVELS, None)),
    ],
)
def test_closed_sets_are_the_codes(field: str, values: tuple[str | None, ...]) -> None:
    """A closed set in the schema is the one in the code."""
    assert tuple(ROW["properties"][field]["enum"]) == values


def test_a_summary_has_the_published_fields() -> None:
    """The schema names every field of a summary, its groups, gates and tool use."""
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
    written = summary_to_json(summary_of(rows, gates=Gates(min_pass_rate=0.5, require_tier=1)))
    group = SUMMARY["properties"]["groups"]["items"]["properties"]

    jsonschema.validate(written, SUMMARY)
    assert set(SUMMARY["properties"]) == set(written)
    assert set(group) == set(written["groups"][0])
    shared = SUMMARY["$defs"]
    (found,) = written["groups"]
    for place, published in (
        (found["tool_use"], shared["tool_use"]),
        (found["text_tool_use"], shared["tool_use"]),
        (found["passed"], shared["rate"]),
        (found["holds_to"], shared["load"]),
        (found["breaks_at"], shared["load"]),
        (found["latency_intervals_95"], shared["percentile_intervals"]),
        (found["ttft_intervals_95"], shared["percentile_intervals"]),
        (found["repeats"], group["repeats"]),
        (found["repeats"]["k"][0], group["repeats"]["properties"]["k"]["items"]),
        (found["repeats"]["flakiest"][0], shared["repeated_prompt"]),
        (found["pressure"][0], group["pressure"]["items"]),
        (found["safety"][0], group["safety"]["items"]),
    ):
        assert set(published["properties"]) == set(published["required"]) == set(place)
    assert set(SUMMARY["properties"]["gates"]["items"]["properties"]) == set(written["gates"][0])


def test_a_comparison_has_the_published_fields() -> None:
    """The schema names every field of a comparison with a baseline, and no other comparable one."""
    rows = [record(prompt_id=f"P{n}", cost_usd=0.1) for n in range(8)]
    compared = compare(rows[:7], rows[1:])
    summary = replace(summary_of(rows, gates=Gates(fail_on="regression")), comparison=compared)

    written = json.loads(json.dumps(summary_to_json(summary)))

    jsonschema.validate(written, SUMMARY)
    published = SUMMARY["properties"]["comparison"]["anyOf"][1]
    found = written["comparison"]
    (target,) = found["targets"]
    shared = SUMMARY["$defs"]
    target_published = published["properties"]["targets"]["items"]
    for place, schema in (
        (found, published),
        (target, target_published),
        (target["verdicts"], shared["verdict_change"]),
        (target["cost"], shared["ratio_change"]["anyOf"][1]),
        (found["set_aside"][0], published["properties"]["set_aside"]["items"]),
    ):
        assert set(schema["properties"]) == set(schema["required"]) == set(place)
    reasons = published["properties"]["set_aside"]["items"]["properties"]["reason"]["enum"]
    assert tuple(reasons) == get_args(Reason)
    assert tuple(shared["verdict_change"]["properties"]["word"]["enum"]) == get_args(Word)
    nothing = json.loads(json.dumps(summary_to_json(replace(summary, comparison=compare([], [record()])))))
    jsonschema.validate(nothing, SUMMARY)


def test_a_summary_without_any_answer_is_valid() -> None:
    """Nulls are published too."""
    jsonschema.validate(summary_to_json(summary_of([], n_selected={TARGET: 2})), SUMMARY)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"record_type": "summary"}, "not a result: record_type is 'summary'"),
        ({"record_type": None}, "not a result"),
        ({"schema_version": 2}, "schema_version is 2; this version reads 1"),
        ({"schema_version": "1"}, "schema_version is '1'"),
    ],
)
def test_a_foreign_row_is_refused(changes: dict[str, Any], message: str) -> None:
    """A row of another kind or format is reported, not guessed at."""
    with pytest.raises(ValueError, match=message):
        from_row({**to_row(record()), **changes})


@pytest.mark.parametrize(
    ("row", "said"),
    [
        pytest.param({"doc_id": 0, "resps": []}, "not a result: record_type is missing", id="another-tool"),
        pytest.param({"record_type": "sample"}, "not a result: record_type is 'sample'", id="another-record"),
        pytest.param(
            {"record_type": "result", "schema_version": 1, "model": "m"},
            "run_id is missing",
            id="lacks-a-field",
        ),
        pytest.param({**to_row(record()), "turns": 5}, "turns is 5, not a list", id="no-list"),
    ],
)
def test_a_row_of_another_tool_is_refused_in_our_words(row: dict[str, Any], said: str) -> None:
    """A row that is none names the field, and no parameter of a Python function."""
    with pytest.raises(ValueError, match=f"^{said}$"):
        from_row(row)
