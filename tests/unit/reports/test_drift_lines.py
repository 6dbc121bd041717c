"""Drift as lines for a terminal, and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from pytest_openclaw.reports.drift_text import render_drift
from pytest_openclaw.stats.drift import Drift, ToolChange

CHANGE = ToolChange(
    name="edit",
    added=("edits[].newText",),
    removed=("newText", "oldText"),
    retyped={"": ("object", "object (no others)"), "mode": ("string a|b", "string a")},
    required=("path",),
    optional=("force",),
    reworded=True,
)
DRIFT = Drift(
    surface="direct",
    beside="direct",
    n_tools=11,
    added=("brand_new",),
    removed=tuple(f"tool_number_{n}" for n in range(9)),
    changed=(CHANGE, ToolChange(name="read", retyped={}, reworded=True)),
    reordered=True,
    fields={"stream_options": ('{"include_usage": true}', None), "seed": (None, "1")},
    n_bytes=(9177, 12004),
    n_prompt_bytes=(25173, 26000),
    sections=("Tooling", "Safety"),
)


def test_all_changes_are_listed_in_80_columns() -> None:
    """A line has the surface's size; the lines below list new, removed, reordered and changed parts."""
    assert render_drift([DRIFT]) == [
        "direct: 11 tools, 12.0 KB (was 9.2)",
        "  new: brand_new",
        "  gone: tool_number_0, tool_number_1, tool_number_2, tool_number_3,",
        "    tool_number_4, tool_number_5, tool_number_6, tool_number_7, tool_number_8",
        "  the order has changed",
        '  field stream_options: {"include_usage": true} -> none',
        "  field seed: none -> 1",
        "  edit: other words, and",
        "    new: edits[].newText",
        "    gone: newText, oldText",
        "    required now: path",
        "    optional now: force",
        "    arguments: object -> object (no others)",
        "    mode: string a|b -> string a",
        "  read: other words",
        "  other sections of the system prompt: Tooling, Safety",
    ]


def test_the_same_change_is_listed_once() -> None:
    """A tool is on several surfaces; the others refer to the place of its change."""
    other = Drift(
        surface="coding",
        beside="coding",
        n_tools=39,
        added=(),
        removed=(),
        changed=DRIFT.changed,
        reordered=False,
        fields={},
        n_bytes=(75283, 75283),
    )

    assert render_drift([DRIFT, other])[-2:] == [
        "coding: 39 tools, 75.3 KB as before",
        "  as in direct: edit, read",
    ]


def test_a_surface_beside_another_names_its_tools_alone() -> None:
    """Its config or its API causes the differences; the JSON has the details."""
    own = replace(DRIFT, surface="configured", reordered=False, fields={})

    assert render_drift([own])[-2:] == [
        "    tool_number_4, tool_number_5, tool_number_6, tool_number_7, tool_number_8",
        "  with other parameters: edit, read",
    ]


def test_what_has_not_changed_is_a_line() -> None:
    """Beside another surface it names that one, and an unknown size is left out."""
    same = Drift(
        surface="configured",
        beside="coding",
        n_tools=39,
        added=(),
        removed=(),
        changed=(),
        reordered=False,
        fields={},
        n_bytes=(None, 1),
    )

    assert render_drift([same]) == ["configured, beside coding: 39 tools, 0.0 KB: the same"]


def test_long_lists_of_values_are_shortened() -> None:
    """Only the ends of an enum of a hundred values are listed."""
    values = "|".join(str(n) for n in range(200))
    change = ToolChange(name="t", retyped={"a": (f"string {values}", "string")})

    drift = Drift(
        surface="s",
        beside="s",
        n_tools=1,
        added=(),
        removed=(),
        changed=(change,),
        reordered=False,
        fields={},
        n_bytes=(None, None),
    )

    lines = render_drift([drift])
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 5


def test_it_is_json() -> None:
    """It has every field, including those without a change."""
    drift = json.loads(json.dumps(asdict(DRIFT)))

    assert drift["changed"][0]["retyped"]["mode"] == ["string a|b", "string a"]
    assert drift["fields"]["seed"] == [None, "1"]
    assert (drift["n_bytes"], drift["n_prompt_bytes"]) == ([9177, 12004], [25173, 26000])
    assert drift["sections"] == ["Tooling", "Safety"]
    assert drift["surface"] == drift["beside"] == "direct"
