"""Values of options: their parsers, the name of a run, gates for some targets; the command that resumes a run."""

import re
from math import inf

import pytest

from pytest_openclaw.options import matching, number, on_off, one_of, parse_run_id
from pytest_openclaw.parts.gates import GateLine, GateSettings, parse_gate_line
from pytest_openclaw.session.showing import resume_command

SECONDS = number(lambda seconds: 0 < seconds < inf, "give seconds")
WHOLE = matching("[1-9][0-9]{0,3}", int, "give a number")
KIND = one_of("cells", "gate")
INVALID = "give up to 128 letters.*"


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        pytest.param(SECONDS, "300", 300.0, id="number"),
        pytest.param(SECONDS, "1e-3", 0.001, id="small-number"),
        pytest.param(WHOLE, "9999", 9999, id="whole-number"),
        pytest.param(KIND, "gate", "gate", id="word"),
        pytest.param(on_off, "on", True, id="on"),
        pytest.param(on_off, "off", False, id="off"),
        *((parse_run_id, name, name) for name in ("r", "20260213_235930", "a.b-c+d_2", "console", "com10")),
        *((parse_run_id, name, name) for name in ("lasting", "x.con", "a" * 128)),
    ],
)
def test_a_value(parse, text, value):
    """A text that fits becomes a value."""
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "hint"),
    [
        *((SECONDS, text, "give seconds") for text in ("0", "-1", "inf", "nan", "1e400", "", "many")),
        *((WHOLE, text, "give a number") for text in ("0", "01", "10000", "1.5", "+1", " 1", "1\n", "٣", "")),
        *((KIND, text, "give cells or gate") for text in ("", "Gate", "cells|gate", "cells,gate")),
        *((on_off, text, "give on or off") for text in ("", "true", "ON")),
        *((parse_run_id, name, "last means the newest run.*") for name in ("last", "LAST")),
        # Neither a path, nor a name that a system would change.
        *((parse_run_id, name, INVALID) for name in ("", ".", "..", "-x", ".x", "x.", "a b", "a/b", "é")),
        *((parse_run_id, name, INVALID) for name in ("a" * 129, "x\n")),
    ],
)
def test_an_invalid_value(parse, text, hint):
    """Any other text is an error that says what to give."""
    with pytest.raises(ValueError, match=f"^{hint}$"):
        parse(text)


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
            {"min_tool_rate": 1.0, "require_tier": 2, "max_p95_ms": 1000.0, "conclusive": True, "require_safe": 0.25}, id="all",
        ),
        pytest.param("a/qwen3:8b@low: require-tier=1", "a/qwen3:8b@low", {"require_tier": 1}, id="colon-in-a-model"),
        pytest.param(" a/b : require-tier=off ", "a/b", {"require_tier": None}, id="off-and-blanks"),
        pytest.param("*: conclusive=off", "*", {"conclusive": False}, id="conclusive-off"),
    ],
)  # fmt: skip
def test_a_gate_line(line, target, changes):
    """A line has a glob, a colon, and gates by the names of their options."""
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
def test_an_invalid_gate_line(line, message):
    """An error names the line, the problem and a hint."""
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_gate_line(line)


@pytest.mark.parametrize(
    ("label", "gates"),
    [
        pytest.param("cloud/big", GateSettings.of(min_pass_rate=0.5, min_tool_rate=0.8), id="only-the-first"),
        pytest.param(
            "lab/big", GateSettings.of(min_pass_rate=0.5, min_tool_rate=0.8, require_tier=1, max_p95_ms=5000.0, conclusive=True),
            id="two",
        ),
        pytest.param(
            "lab/Small:1b@low", GateSettings.of(min_pass_rate=0.5, min_tool_rate=0.8, max_p95_ms=5000.0), id="the-last-goes-first"
        ),
    ],
)  # fmt: skip
def test_the_gates_of_a_target(label, gates):
    """The general gates apply to all, and matching lines change them in order."""
    assert GateSettings.of(min_pass_rate=0.9, min_tool_rate=0.8, by_target=LINES).of_target(label) == gates


@pytest.mark.parametrize("label", ["lab/big", "lab/small", "cloud/big"])
def test_the_command_line_goes_before_the_lines(label):
    """An option applies to every target, off included; the other gates stay as in the lines."""
    gates = GateSettings.of(min_tool_rate=0.8, by_target=LINES)
    changes = {"min_pass_rate": 0.7, "require_tier": None, "conclusive": True}

    found, before = gates.firm(changes).of_target(label), gates.of_target(label)

    assert found == GateSettings.of(**{**before.limits, **changes})


@pytest.mark.parametrize(
    ("args", "command"),
    [
        pytest.param([], "pytest", id="nothing"),
        pytest.param(["benchmarks/", "-n", "2"], "pytest benchmarks/ -n 2", id="kept"),
        pytest.param(["benchmarks/", "--openclaw-models=a/b,c"], "pytest benchmarks/", id="models"),
        pytest.param(["--openclaw-models", "a/b", "benchmarks/"], "pytest benchmarks/", id="models-apart"),
        pytest.param(["b", "--openclaw-run-id=x", "--openclaw-resume", "last"], "pytest b", id="runs"),
        pytest.param(["b", "--openclaw-thinking=low", "--openclaw-providers=p"], "pytest b", id="crossed"),
        pytest.param(["b", "-x", "--sw", "--stepwise", "--exitfirst", "--maxfail=2", "--maxfail", "3"], "pytest b", id="stops"),
        pytest.param(["-xq", "b"], "pytest -q b", id="bundle"),
        pytest.param(["-k", "P1 or P2", "b"], "pytest -k 'P1 or P2' b", id="quoted"),
        pytest.param(["-k", "x", "b"], "pytest -k x b", id="a-word-x"),
        pytest.param(
            ["b", "--openclaw-verdict=gate", "--openclaw-prompts=P1", "--openclaw-runs-dir=o"],
            "pytest b --openclaw-verdict=gate --openclaw-prompts=P1 --openclaw-runs-dir=o",
            id="other-options",
        ),
    ],
)  # fmt: skip
def test_the_command_that_resumes_a_run(args, command):
    """It selects the same cells: the run's own settings are omitted, and options that would end it at a kept failure."""
    assert resume_command(args, "r1") == f"{command} --openclaw-resume=r1"
