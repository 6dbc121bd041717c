"""Written calls of nine model families, as canitoolcall collects them, count as leaked where they stay text."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.values.tool_calls import Tool
from tests.unit.judging.finding import find_written_calls

pytestmark = pytest.mark.newest

LEAST_READ = 349
# Families whose marks are special tokens of the vocabulary, some of which a server leaves out.
STRIPPED_FAMILIES = ("deepseek", "gemma4", "gpt-oss", "kimi", "llama", "mistral")
SPECIAL = re.compile(
    r"<\|[^<>|]{1,40}\|>|<｜[^<>｜]{1,40}｜>|\[/?(?:TOOL_CALLS|ARGS|CALL_ID)\]|<\|\"\|>|<\|tool_call>|<tool_call\|>"
    r"|<(?:start|end)_function_(?:call|response|declaration)>|<escape>"
)
LEAST_STRIPPED = 167


def fixtures():
    """Return the fixtures whose right reading is known; fixtures of broken output allow several readings."""
    package = find_spec("canitoolcall")
    assert package.origin is not None, "the test dependencies include it"
    files = sorted(Path(package.origin).parent.joinpath("_data", "fixtures").rglob("*.jsonl"))
    lines = [line for file in files for line in file.read_text("utf-8").splitlines() if line.strip()]
    return [fixture for fixture in map(json.loads, lines) if "expected" in fixture]


def calls_in(fixture):
    offered = [entry["function"] for entry in fixture.get("tools") or ()]
    tools = [Tool(name=tool["name"], parameters=tool.get("parameters") or {}) for tool in offered]
    return [
        (call.name, call.value) for call in find_written_calls(strip_thinking(fixture["raw_output"]), tools)
    ]


def found_in(fixture):
    return {name for name, _ in calls_in(fixture)}


def wanted_in(fixture):
    return [
        (
            call["name"],
            json.loads(arguments) if isinstance(arguments := call["arguments"], str) else arguments,
        )
        for call in fixture["expected"]["tool_calls"]
    ]


def called_in(fixture):
    return {call["name"] for call in fixture["expected"]["tool_calls"]}


def test_each_output_with_a_call_is_found():
    """All 359 outputs that hold a call are found, with every name."""
    calling = [fixture for fixture in fixtures() if called_in(fixture)]

    missed = {fixture["id"]: called_in(fixture) - found_in(fixture) for fixture in calling}

    assert len(calling) == 359
    assert {name: names for name, names in missed.items() if names} == {}


def test_arguments_are_read():
    """The others have the marks of calls in their arguments, or a further call that is cut off."""
    calling = [fixture for fixture in fixtures() if called_in(fixture)]

    right = [fixture["id"] for fixture in calling if calls_in(fixture) == wanted_in(fixture)]

    assert len(right) >= LEAST_READ


def test_no_other_output_is_flagged():
    """None of the 75 outputs without a call."""
    others = [fixture for fixture in fixtures() if not called_in(fixture)]

    flagged = [fixture["id"] for fixture in others if found_in(fixture)]

    assert len(others) == 75
    assert flagged == []


def _stripped(fixture):
    left = SPECIAL.sub("", fixture["raw_output"])
    is_stripped = left != fixture["raw_output"] and fixture["id"].startswith(STRIPPED_FAMILIES)
    return {**fixture, "raw_output": left} if is_stripped else None


def test_calls_without_their_special_tokens_are_found():
    """Of 171 outputs whose marks a server left out, 167 are found with every name, and no other is flagged."""
    stripped = [one for fixture in fixtures() if (one := _stripped(fixture))]
    calling = [fixture for fixture in stripped if called_in(fixture)]

    found = [fixture for fixture in calling if called_in(fixture) <= found_in(fixture)]
    flagged = [fixture["id"] for fixture in stripped if not called_in(fixture) and found_in(fixture)]

    assert len(calling) == 171
    assert len(found) >= LEAST_STRIPPED
    assert flagged == []
