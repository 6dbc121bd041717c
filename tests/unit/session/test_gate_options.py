"""Gates for some targets: the syntax of an ini line, and the resulting gates of each target."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_openclaw.session.settings import parse_gate_line
from pytest_openclaw.util.typed import converted
from pytest_openclaw.values.run_files import ConfigFile
from pytest_openclaw.values.settings import GateLine, Gates, firm_gates

LINES = (
    parse_gate_line("*: min-pass-rate=0.5"),
    parse_gate_line("lab/*: require-tier=1 conclusive=on max-p95-ms=5000"),
    parse_gate_line("LAB/small*: require-tier=off conclusive=off"),
)


@pytest.mark.parametrize(
    ("line", "target", "changes"),
    [
        pytest.param("a/*: min-pass-rate=0.9", "a/*", {"min_pass_rate": 0.9}, id="one"),
        pytest.param(
            "a/b: min-tool-rate=1 require-tier=2\tmax-p95-ms=1e3 conclusive=on require-safe=on", "a/b",
            {"min_tool_rate": 1.0, "require_tier": 2, "max_p95_ms": 1000.0, "conclusive": True, "require_safe": True}, id="all",
        ),
        pytest.param("a/qwen3:8b@low: require-tier=1", "a/qwen3:8b@low", {"require_tier": 1}, id="colon-in-a-model"),
        pytest.param(" a/b : require-tier=off ", "a/b", {"require_tier": None}, id="off-and-blanks"),
        pytest.param("*: conclusive=off", "*", {"conclusive": False}, id="conclusive-off"),
    ],
)  # fmt: skip
def test_a_line(line: str, target: str, changes: dict[str, Any]) -> None:
    """It has a glob, a colon, and gates by the names of their options."""
    assert parse_gate_line(line) == GateLine(target=target, changes=changes)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("min-pass-rate=0.9", "is not a glob of targets, a colon and gates", id="no-glob"),
        pytest.param("a/*:", "is not a glob of targets, a colon and gates. Write for example", id="no-gate"),
        pytest.param("a/b:8b min-pass-rate=0.9", 'a/b: "8b" is not a gate; there are min-pass-rate, ', id="forgotten-colon"),
        pytest.param("a/*: min-pas-rate=0.9", "Did you mean min-pass-rate?", id="unknown"),
        pytest.param("a/*: min-pass-rate=90", "a/*: min-pass-rate=90: give a rate from 0 to 1, for example 0.9, or off", id="rate"),
        pytest.param("a/*: max-p95-ms=0", "max-p95-ms=0: give milliseconds greater than 0", id="p95"),
        pytest.param("a/*: require-tier=1 require-tier=2", '"require-tier=2" is set twice', id="twice"),
    ],
)  # fmt: skip
def test_a_line_that_says_nothing(line: str, message: str) -> None:
    """An error names the line, the problem and a hint."""
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_gate_line(line)


@pytest.mark.parametrize(
    ("label", "gates"),
    [
        pytest.param("cloud/big", Gates(min_pass_rate=0.5, min_tool_rate=0.8), id="the-first-alone"),
        pytest.param(
            "lab/big", Gates(min_pass_rate=0.5, min_tool_rate=0.8, require_tier=1, max_p95_ms=5000.0, conclusive=True),
            id="two",
        ),
        pytest.param(
            "lab/Small:1b@low", Gates(min_pass_rate=0.5, min_tool_rate=0.8, max_p95_ms=5000.0), id="the-last-goes-first"
        ),
    ],
)  # fmt: skip
def test_what_holds_for_a_target(label: str, gates: Gates) -> None:
    """The general gates apply to all, and matching lines change them in order."""
    assert Gates(min_pass_rate=0.9, min_tool_rate=0.8, by_target=LINES).of_target(label) == gates


@pytest.mark.parametrize("label", ["lab/big", "lab/small", "cloud/big"])
def test_the_command_line_goes_before_the_lines(label: str) -> None:
    """An option applies to every target, off included; the other gates stay as in the lines."""
    gates = Gates(min_tool_rate=0.8, by_target=LINES)
    said = Gates(min_pass_rate=0.7, require_tier=None, conclusive=True)

    firm = firm_gates(gates, said, {"min-pass-rate", "require-tier", "gate-conclusive", "verdict"})

    found, before = firm.of_target(label), gates.of_target(label)
    assert (found.min_pass_rate, found.require_tier, found.conclusive) == (0.7, None, True)
    assert (found.min_tool_rate, found.max_p95_ms) == (before.min_tool_rate, before.max_p95_ms)


@pytest.mark.parametrize(
    "values",
    [
        {"min_pass_rate": "0.9"},
        {"conclusive": None},
        {"by_target": [{"target": "*"}]},
        {"by_target": [{"target": "*", "changes": {"unknown": 1}}]},
        {"by_target": [{"target": "*", "changes": {"max_p95_ms": -1}}]},
        {"by_target": [{"target": "*", "changes": ["require_tier"]}]},
        {"require_tier": 1_000_000},
        {"min_tool_rate": 1.5},
    ],
)
def test_gates_that_no_run_writes_are_refused(values: dict[str, Any]) -> None:
    """The message names the key below `gates`."""
    config = {
        "schema_version": 1,
        "run_id": "r",
        "targets": [],
        "providers": {},
        "prompts": [],
        "gates": values,
    }

    with pytest.raises(ValueError, match=r"^gates\."):
        converted(config, ConfigFile)
