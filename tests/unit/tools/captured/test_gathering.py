"""Requests of several surfaces become one catalogue, in the form of those that ship."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import BUILTIN, build_registry
from pytest_openclaw.openclaw.bridge import deferred_tools, inner_call, reached_tools
from pytest_openclaw.openclaw.captured import Sent, gather
from pytest_openclaw.openclaw.catalog import Bridge, catalogue_in, read_catalogue
from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.suites import parse_suite
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import Tool, ToolCall

FULL = Tool(
    name="gateway", description="All.", parameters={"type": "object", "properties": {"a": {}, "b": {}}}
)
LESS = Tool(name="gateway", description="Less.", parameters={"type": "object", "properties": {"a": {}}})
READ = Tool(name="read", description="Read.")
# The shipped tool of that name takes no "a", but requires an action.
OWN = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
CALL = Tool(name="tool_call", parameters={"type": "object", "properties": {"id": {"type": "string"}}})


def _sent(*tools: Tool, deferred: tuple[str, ...] = ()) -> Sent:
    return Sent(
        api="ollama", tools=tools, bytes_of_tools=9, fields={"model": "m"}, system="S", deferred=deferred
    )


SENT = {
    "direct": _sent(READ, CALL, deferred=("gateway", "unheard_of")),
    "configured": _sent(LESS),
    "coding": _sent(LESS, READ),
    "full": _sent(FULL, READ),
}


def _gathered(sent: dict[str, Sent]) -> Any:
    return gather(sent, release="openclaw-1", taken="2026-11-22")


def test_a_tool_is_what_it_is_where_it_takes_most() -> None:
    """If it takes less elsewhere it is a variant, once for all surfaces of the same form."""
    data = _gathered(SENT)
    catalogue = catalogue_in(data)

    assert [entry["name"] for entry in data["tools"]] == ["gateway", "read", "tool_call"]
    assert [entry["surfaces"] for entry in data["variants"]] == [["configured", "coding", "deferred"]]
    assert catalogue.tool("gateway") == FULL
    assert catalogue.surface("configured") == (LESS,)
    assert catalogue.surface("full") == (FULL, READ)
    assert catalogue.deferred_tools() == (LESS,)
    assert catalogue.surfaces["tool-search"] == catalogue.surfaces["direct"] == ("read", "tool_call")


def test_a_deferred_tool_without_a_schema_is_reported() -> None:
    """The system prompt names it, but no surface has it: it cannot be described, and is reported."""
    assert _gathered(SENT)["about"]["not_described"] == ["unheard_of"]


def test_with_a_config_the_bridge_reaches_what_it_says() -> None:
    """The machine's own list takes precedence over the default's."""
    own = {**SENT, "configured": _sent(READ, CALL, deferred=())}
    denied = {**SENT, "configured": _sent(READ, CALL, deferred=("read",))}

    assert catalogue_in(_gathered(own)).deferred == ("gateway",)
    assert catalogue_in(_gathered(denied)).deferred == ("read",)


def test_the_bridge_of_a_captured_catalogue_reaches_its_own_tools(tmp_path: Path) -> None:
    """Calls over it are judged by the captured tools, not by the shipped ones."""
    file = tmp_path / "c.json"
    file.write_text(json.dumps(_gathered(SENT)))
    offered = read_catalogue(file).surface("direct")

    (bridge,) = (tool for tool in offered if isinstance(tool, Bridge))
    made = dispatch(ToolCall(name="tool_call", arguments='{"id": "gateway", "args": {"a": 1}}'), offered)
    inner = inner_call(made, offered)
    assert bridge.reaches == deferred_tools(offered) == (LESS,)
    assert [tool.name for tool in reached_tools(offered)] == ["read", "gateway"]
    assert inner is not None
    assert (inner.tool, inner.problem) == ("gateway", None)


@pytest.mark.parametrize(
    ("change", "is_another"),
    [
        pytest.param({}, False, id="the-same"),
        pytest.param({"configured": replace(SENT["configured"], system="Other")}, False, id="another-prompt"),
        pytest.param({"configured": _sent(LESS, READ)}, True, id="a-tool-more"),
        pytest.param({"full": _sent(READ, FULL)}, True, id="another-order"),
        pytest.param({"full": _sent(replace(FULL, description="?"), READ)}, True, id="other-words"),
    ],
)
def test_the_fingerprint_depends_on_what_models_see(change: dict[str, Sent], is_another: bool) -> None:
    """Other tools give another fingerprint; another day or machine does not."""
    one, other = _gathered(SENT), gather(SENT | change, release="openclaw-2", taken="2027-01-01")

    assert (catalogue_in(one).sha256 != catalogue_in(other).sha256) is is_another


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(None, "cannot be read", id="not-there"),
        pytest.param("{", "is no JSON", id="no-json"),
        pytest.param("[]", "is no catalogue", id="a-list"),
        pytest.param('{"release": "x"}', "is no catalogue", id="something-else"),
    ],
)
def test_a_file_that_is_no_catalogue_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    """The message says what is wrong, and which command writes such a file."""
    file = tmp_path / "c.json"
    if text is not None:
        file.write_text(text)

    with pytest.raises(ValueError, match=said):
        read_catalogue(file)


def test_a_surface_of_tools_that_are_not_there_is_refused(tmp_path: Path) -> None:
    """A file that was edited by hand gives an error at once."""
    data = _gathered(SENT)
    data["surfaces"]["full"].append("gone")
    (tmp_path / "c.json").write_text(json.dumps(data))

    with pytest.raises(ValueError, match=r"is no catalogue \(KeyError: 'gone'"):
        read_catalogue(tmp_path / "c.json")


def test_a_world_is_judged_by_what_its_own_bridge_reaches(tmp_path: Path) -> None:
    """A call over the bridge is checked by the captured tool, whatever the shipped one requires."""
    own = {**SENT, "full": _sent(Tool(name="gateway", parameters=OWN), READ), "coding": _sent()}
    (tmp_path / "c.json").write_text(json.dumps(_gathered(own)))
    rule = {"type": "world", "calls": [{"name": "gateway"}]}
    entry = {"id": "P1", "prompt": "Go.", "tools": "direct", "world": {"files": {}}, "validator": rule}
    (prompt,) = parse_suite(
        json.dumps([entry]),
        format="json",
        name="s.json",
        registry=build_registry(("built-in", validator) for validator in BUILTIN),
        catalogue=read_catalogue(tmp_path / "c.json"),
    ).prompts
    call = ToolCall(name="tool_call", arguments='{"id": "gateway", "args": {"a": "x"}}', id="1")

    judged = judge(prompt, Reply(text="Done.", tool_calls=(call,)))

    assert (judged.verdict.passed, judged.verdict.violation) == (True, None)
