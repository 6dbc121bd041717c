"""Schemas compiled into a function, compared with jsonschema."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import jsonschema
import pytest

from pytest_openclaw.stats.summary import summary_to_json
from pytest_openclaw.util.schema_check import LARGEST, compile_schema
from pytest_openclaw.values.rows import load_schema, to_row
from pytest_openclaw.values.settings import Gates
from tests.unit.reports.summaries import missed, record, summary_of, tool_cells

LEFT_OUT = ("pattern", "propertyNames", "maxItems")
VALUES = (
    None,
    True,
    -1,
    0,
    1,
    2,
    0.5,
    -0.5,
    10**9,
    "",
    "ok",
    "low",
    [],
    [None],
    ["x"],
    {},
    {"low": 0.1, "high": 1},
)


@pytest.mark.parametrize(
    ("rule", "value", "misfit"),
    [
        pytest.param({"type": "integer"}, 3, None, id="fits"),
        pytest.param({"type": "integer"}, True, " is True", id="a-boolean-is-no-integer"),
        pytest.param({"type": "integer"}, 3.0, " is 3.0", id="a-float-is-no-integer"),
        pytest.param({"type": "number"}, LARGEST, None, id="largest"),
        pytest.param({"type": "number"}, 1e300, " is 1e+300", id="too-large"),
        pytest.param({"type": "number"}, -LARGEST - 1, f" is {-LARGEST - 1}", id="too-small"),
        pytest.param({"type": ["integer", "null"], "minimum": 0}, -5, " is -5", id="negative"),
        pytest.param({"type": "number", "exclusiveMinimum": 0}, 0, " is 0", id="not-above"),
        pytest.param({"enum": [1, None]}, True, " is True", id="enum-by-type"),
        pytest.param({"const": 3}, 3, None, id="const"),
        pytest.param({"items": {"type": "string"}}, ["a", 5], "[1] is 5", id="item"),
        pytest.param({"required": ["a"]}, {}, ".a is missing", id="missing"),
        pytest.param({"properties": {"a": {"items": {"required": ["b"]}}}}, {"a": [{}]}, ".a[0].b is missing", id="path"),
        pytest.param({"additionalProperties": False}, {"a": 1}, ".a is 1, a key that is not known", id="other-key"),
        pytest.param({"additionalProperties": {"type": "object"}}, {"a": 1}, ".a is 1", id="other-value"),
        pytest.param({"anyOf": [{"type": "null"}, {"required": ["a"]}]}, {}, ".a is missing", id="any-of"),
        pytest.param({"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}, 1, " is 1", id="reference"),
        pytest.param({"additionalProperties": False}, {"k" * 5000: 1}, f".{'k' * 80}... is 1, a key that is not known", id="long-key"),
        pytest.param({"type": "null"}, "x" * 5000, f" is '{'x' * 12}...{'x' * 13}'", id="shortened"),
    ],
)  # fmt: skip
def test_a_misfit_is_reported_with_its_place(rule: dict[str, Any], value: Any, misfit: str | None) -> None:
    """The message has its location and its value."""
    assert compile_schema(rule)(value) == misfit


def test_an_unknown_keyword_is_not_passed_over() -> None:
    """A schema with an unchecked keyword would promise too much."""
    with pytest.raises(ValueError, match="multipleOf"):
        compile_schema({"properties": {"a": {"multipleOf": 2}}})


def _summary() -> Any:
    rows = [*tool_cells(1, 1), missed(), record(repeat=2)]
    return summary_to_json(summary_of(rows, gates=Gates(min_pass_rate=0.5)))


@pytest.mark.parametrize(
    ("name", "document"), [("row", to_row(record())), ("summary", _summary())], ids=["row", "summary"]
)
def test_it_agrees_with_jsonschema(name: str, document: Any) -> None:
    """Of changed documents it refuses those that jsonschema refuses, and no others."""
    schema = _without(load_schema(name))
    check, judge = compile_schema(schema), jsonschema.Draft202012Validator(schema)
    luck, seen = Random(5), set()

    for _ in range(150):
        changed = copy.deepcopy(document)
        for _ in range(luck.choice((1, 1, 2))):
            _change(changed, luck)
        fits = check(changed) is None
        seen.add(fits)
        assert fits == judge.is_valid(changed), check(changed)
    assert seen == {True, False}


def _without(rule: Any) -> Any:
    if isinstance(rule, dict):
        return {key: _without(value) for key, value in rule.items() if key not in LEFT_OUT}
    return [_without(value) for value in rule] if isinstance(rule, list) else rule


def _change(value: Any, luck: Random) -> None:
    key = luck.choice([*value]) if isinstance(value, dict) else luck.randrange(len(value))
    if isinstance(value[key], dict | list) and value[key] and luck.random() < 0.7:
        _change(value[key], luck)
    elif luck.random() < 0.2:
        del value[key]
    else:
        value[key] = luck.choice(VALUES)
