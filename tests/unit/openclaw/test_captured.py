"""Requests of OpenClaw are read, gathered into a catalog, and masked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.openclaw.bridge import deferred_tools, inner_call, reached_tools
from pytest_openclaw.openclaw.captured import Masks, Sent, deferred_in, gather, read_request
from pytest_openclaw.openclaw.catalog import Bridge, catalogue_in, read_catalogue
from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.values.tool_calls import Tool, ToolCall

READ = {
    "name": "read",
    "description": "Read a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string", "~optional": True}}},
}
WRAPPED = {"type": "function", "function": READ}
FLAT = {"type": "function", "strict": False, **READ}
SYSTEM = {"role": "system", "content": "You are an agent."}
USER = {"role": "user", "content": "Hi."}
FORMS: list[Any] = [
    pytest.param("openai-completions", {"model": "m", "messages": [SYSTEM, USER], "tools": [WRAPPED], "stream": True}, {"model": "m", "stream": True}, id="chat-completions"),
    pytest.param("openai-completions", {"messages": [{"role": "developer", "content": [{"type": "text", "text": "You are an agent."}]}], "tools": [WRAPPED]}, {}, id="chat-completions-in-parts"),
    pytest.param("openai-responses", {"model": "m", "instructions": "You are an agent.", "input": [USER], "tools": [FLAT], "store": False}, {"model": "m", "store": False}, id="responses"),
    pytest.param("openai-responses", {"input": [SYSTEM, USER], "tools": [FLAT, {"type": "web_search"}]}, {"tools": [{"type": "web_search"}]}, id="responses-with-a-tool-of-the-servers"),
    pytest.param(
        "ollama",
        {"model": "m", "messages": [SYSTEM, USER], "tools": [WRAPPED], "options": {"num_ctx": 9}, "think": False},
        {"model": "m", "options": {"num_ctx": 9}, "think": False},
        id="ollama",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("api", "body", "fields"), FORMS)
def test_a_request_is_read(api: str, body: dict[str, Any], fields: dict[str, Any]) -> None:
    """Tools, system prompt and other fields are the same for all; a mark that no schema has is left out."""
    sent = read_request(api, body)

    (tool,) = sent.tools
    assert (tool.name, tool.description) == ("read", "Read a file.")
    assert tool.parameters == {"type": "object", "properties": {"path": {"type": "string"}}}
    assert (sent.api, sent.fields, sent.system) == (api, fields, "You are an agent.")


@pytest.mark.parametrize(
    "tools",
    [
        pytest.param("read", id="no-list"),
        pytest.param(["read"], id="no-objects"),
        pytest.param([{"type": "function"}], id="no-name"),
        pytest.param([{"type": "function", "function": "read"}], id="no-function"),
    ],
)
def test_what_is_no_request_is_refused(tools: Any) -> None:
    """Tools in an unknown form are not an empty catalogue."""
    with pytest.raises(ValueError, match="tool"):
        read_request("openai-completions", {"messages": [], "tools": tools})


def test_deferred_tools_are_found_in_the_system_prompt() -> None:
    """They are in a section of their own, each with its source; other lists do not count."""
    system = (
        "## Tooling\n- read: Read files\n### Deferred Tool Schemas\nAvailable deferred-schema tools:\n"
        "- web_fetch (core): Fetch URL; names - like this: too\n- memory_get (memory-core): Read.\n- bare\n\n"
        "- not_one (core): No.\n## Next\n- nor_this: No."
    )

    assert deferred_in(system) == ("web_fetch", "memory_get", "bare")
    assert deferred_in("## Tooling\n- read: Read files\n") == ()


FULL = Tool(
    name="gateway", description="All.", parameters={"type": "object", "properties": {"a": {}, "b": {}}}
)
LESS = Tool(name="gateway", description="Less.", parameters={"type": "object", "properties": {"a": {}}})
SHORT = Tool(name="read", description="Read.")
# The shipped tool of that name takes no "a", but requires an action.
OWN = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
CALL = Tool(name="tool_call", parameters={"type": "object", "properties": {"id": {"type": "string"}}})


def _sent(*tools: Tool, deferred: tuple[str, ...] = ()) -> Sent:
    return Sent(
        api="ollama", tools=tools, bytes_of_tools=9, fields={"model": "m"}, system="S", deferred=deferred
    )


SENT = {
    "direct": _sent(SHORT, CALL, deferred=("gateway", "unheard_of")),
    "configured": _sent(LESS),
    "coding": _sent(LESS, SHORT),
    "full": _sent(FULL, SHORT),
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
    assert catalogue.surface("full") == (FULL, SHORT)
    assert catalogue.deferred_tools() == (LESS,)
    assert catalogue.surfaces["tool-search"] == catalogue.surfaces["direct"] == ("read", "tool_call")


def test_with_a_config_the_bridge_reaches_what_it_says() -> None:
    """The machine's own list takes precedence over the default's."""
    own = {**SENT, "configured": _sent(SHORT, CALL, deferred=())}
    denied = {**SENT, "configured": _sent(SHORT, CALL, deferred=("read",))}

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
        pytest.param({"configured": _sent(LESS, SHORT)}, True, id="a-tool-more"),
        pytest.param({"full": _sent(SHORT, FULL)}, True, id="another-order"),
        pytest.param({"full": _sent(replace(FULL, description="?"), SHORT)}, True, id="other-words"),
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


MASKS = Masks(
    paths={"/tmp/s/workspace": "<workspace>", "/tmp/s": "<scratch>", "/srv/ann": "<home>"},
    host="box-7.lan",
    user="ann",
    key="sk-1",
)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param("in /tmp/s/workspace/AGENTS.md", "in <workspace>/AGENTS.md", id="the-inner-folder-first"),
        pytest.param("in /tmp/s.\n", "in <scratch>.\n", id="at-the-end-of-a-sentence"),
        pytest.param("in /tmp/s, and", "in <scratch>, and", id="a-folder"),
        pytest.param("in /tmp/second", "in /tmp/second", id="a-longer-name-is-another-folder"),
        pytest.param("~ is /srv/ann/x", "~ is <home>/x", id="home"),
        pytest.param("in /home/bob/x and /Users/Bob", "in <home>/x and <home>", id="any-home"),
        pytest.param("on box-7.lan and box-7", "on <host> and <host>", id="host-with-and-without-domain"),
        pytest.param("host=other | os=Linux 6.1 (x64) | node=v24", "host=<host> | os=<os> | node=v24", id="runtime-line"),
        pytest.param("ann, annals", "<user>, annals", id="user-as-a-word"),
        pytest.param("ann@mail.example", "<address>", id="address"),
        pytest.param("Current date: 2026-11-22\nTime zone: Europe/Berlin\n", "Current date: <time>\nTime zone: <zone>\n", id="date-and-zone"),
        pytest.param("[Sun 2026-11-22 19:50 UTC] Hi", "[<time>] Hi", id="day-and-time"),
        pytest.param("at 2026-11-22T19:50:01.123Z", "at <time>", id="iso-time"),
        pytest.param("release 2026.9.6", "release 2026.9.6", id="a-release-is-no-date"),
        pytest.param("id f954f989-d15e-45b1-a99d-d016fdea0ef6", "id <id>", id="uuid"),
        pytest.param("key sk-1", "key <key>", id="secret"),
        pytest.param("http://127.0.0.1:8080/x", "http://127.0.0.1:<port>/x", id="port"),
        pytest.param("Docs: /opt/oc/docs\nSee /opt/oc/skills", "Docs: <openclaw>/docs\nSee <openclaw>/skills", id="where-openclaw-is"),
    ],
)  # fmt: skip
def test_a_placeholder_replaces_it(text: str, masked: str) -> None:
    """Paths, names, times and ids are replaced; words that only look like them stay."""
    assert MASKS.text(text) == masked


@pytest.mark.parametrize("user", ["root", "user", "x", ""])
def test_a_name_that_is_a_word_stays(user: str) -> None:
    """A prompt mentions the root of the workspace for every user."""
    masks = Masks(paths={}, host="", user=user)

    assert masks.text("the root of x, user") == "the root of x, user"


@given(st.text())
def test_masked_text_stays_as_it_is(text: str) -> None:
    """Placeholders are not mistaken for personal data."""
    once = MASKS.text(text)

    assert MASKS.text(once) == once
