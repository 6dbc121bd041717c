"""Requests of OpenClaw are read, gathered into a catalog, and masked."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.openclaw.catalog import Bridge, catalogue_in, read_catalogue
from pytest_openclaw.openclaw.dispatch import deferred_tools, dispatch, inner_call, reached_tools
from pytest_openclaw.providers.openclaw.capture import Sent, gather, masked, read_request
from pytest_openclaw.values.tool_calls import Tool, ToolCall

READ = {
    "name": "read",
    "description": "Read a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string", "~optional": True}}},
}
DIRECTORY = (
    "## Tooling\n- read: Read files\n### Deferred Tool Schemas\nAvailable deferred-schema tools:\n"
    "- web_fetch (core): Fetch URL; names - like this: too\n- memory_get (memory-core): Read.\n- bare\n\n"
    "- not_one (core): No.\n## Next\n- nor_this: No."
)


@pytest.mark.parametrize("system", ["You are an agent.", [{"type": "text", "text": "You are an agent."}]])
def test_a_request_is_read(system):
    """It has tools, system prompt, frame of the question, and other fields; OpenClaw's own mark is left out."""
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": "[now] Hi. Bye."},
        {"role": "user", "content": "More."},
    ]
    body = {"model": "m", "messages": messages, "tools": [{"type": "function", "function": READ}]}

    sent = read_request(body, "Hi.", {})

    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    assert sent.tools == (Tool(name="read", description="Read a file.", parameters=parameters),)
    assert sent.entry == {
        "api": "openai-completions",
        "fields": {"model": "m"},
        "deferred": [],
        "system": "You are an agent.",
        "question": {"before": "[now] ", "after": " Bye.", "context": "More."},
    }


def _tool(name, description, *properties):
    parameters = {"type": "object", "properties": {key: {} for key in properties}}
    return Tool(name=name, description=description, parameters=parameters)


FULL, LESS = _tool("gateway", "All.", "a", "b"), _tool("gateway", "Less.", "a")
SHORT, CALL = Tool(name="read", description="Read."), _tool("tool_call", "", "id")


def _sent(*tools, **entry):
    return Sent(tools=tools, n_bytes=9, entry={"deferred": [], **entry})


@pytest.mark.parametrize(
    ("system", "deferred"),
    [(DIRECTORY, ["web_fetch", "memory_get", "bare"]), ("## Tooling\n- read: Read files\n", [])],
)
def test_deferred_tools_are_found_in_the_system_prompt(system, deferred):
    """They are in a section of their own, each with its source; other lists do not count."""
    body = {"messages": [{"role": "system", "content": system}]}

    assert read_request(body, "Hi.", {}).entry["deferred"] == deferred


SENT = {
    "direct": _sent(SHORT, CALL, deferred=["gateway", "unheard_of"]),
    "coding": _sent(LESS, SHORT),
    "full": _sent(FULL, SHORT),
}


def _gathered(sent):
    return gather(sent, release="openclaw-1", taken="2026-11-22")


def test_a_tool_is_defined_by_the_fullest_surface():
    """If it takes less elsewhere it is a variant there."""
    data = _gathered(SENT)
    catalogue = catalogue_in(data)

    assert [entry["name"] for entry in data["tools"]] == ["gateway", "read", "tool_call"]
    assert [entry["surfaces"] for entry in data["variants"]] == [["coding"], ["deferred"]]
    assert catalogue.tool("gateway") == FULL
    assert catalogue.surface("coding") == (LESS, SHORT)
    assert catalogue.surface("full") == (FULL, SHORT)
    assert catalogue.deferred_tools() == (LESS,)
    assert catalogue.surfaces["tool-search"] == catalogue.surfaces["direct"] == ("read", "tool_call")


def test_the_bridge_of_a_captured_catalogue_reaches_its_own_tools(tmp_path):
    """Calls over it are judged by the captured tools, not by the shipped ones."""
    file = tmp_path / "c.json"
    file.write_text(json.dumps(_gathered(SENT)))
    offered = read_catalogue(file).surface("direct")

    (bridge,) = (tool for tool in offered if isinstance(tool, Bridge))
    made = dispatch(ToolCall(name="tool_call", arguments='{"id": "gateway", "args": {"a": 1}}'), offered)
    inner = inner_call(made, offered)
    assert bridge.reaches == deferred_tools(offered) == (LESS,)
    assert [tool.name for tool in reached_tools(offered)] == ["read", "gateway"]
    assert (inner.tool, inner.problem) == ("gateway", None)


@pytest.mark.parametrize(
    ("change", "is_another"),
    [
        pytest.param({"coding": _sent(LESS, SHORT, system="Other")}, False, id="another-prompt"),
        pytest.param({"coding": _sent(LESS)}, True, id="a-tool-less"),
        pytest.param({"full": _sent(replace(FULL, description="?"), SHORT)}, True, id="other-words"),
    ],
)
def test_the_fingerprint_depends_on_what_models_see(change, is_another):
    """Other tools give another fingerprint; another day or machine does not."""
    one, other = _gathered(SENT), gather(SENT | change, release="openclaw-2", taken="2027-01-01")

    assert (catalogue_in(one).sha256 != catalogue_in(other).sha256) is is_another


@pytest.mark.parametrize("text", ["[]", '{"release": "x"}'], ids=["a-list", "something-else"])
def test_a_file_that_is_not_a_catalogue_is_refused(tmp_path, text):
    """Whatever JSON it has."""
    (tmp_path / "c.json").write_text(text)

    with pytest.raises(ValueError, match="is not a catalogue"):
        read_catalogue(tmp_path / "c.json")


PLACEHOLDERS = {
    "/tmp/s/workspace": "<workspace>",
    "/tmp/s": "<scratch>",
    "/srv/ann": "<home>",
    "box-7.lan": "<host>",
    "box-7": "<host>",
    "ann": "<user>",
    "root": "<user>",
    "x": "<user>",
    "": "<home>",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("in /tmp/s/workspace/AGENTS.md", "in <workspace>/AGENTS.md", id="the-inner-folder-first"),
        pytest.param("in /tmp/s.\n", "in <scratch>.\n", id="at-the-end-of-a-sentence"),
        pytest.param("in /tmp/second", "in /tmp/second", id="a-longer-name-is-another-folder"),
        pytest.param("~ is /srv/ann/x", "~ is <home>/x", id="home"),
        pytest.param("in /home/bob/x and /Users/Bob", "in <home>/x and <home>", id="any-home"),
        pytest.param("on box-7.lan and box-7", "on <host> and <host>", id="host-with-and-without-domain"),
        pytest.param("host=other | os=Linux 6.1 (x64) | node=v24", "host=<host> | os=<os> | node=v24", id="runtime-line"),
        pytest.param("ann, annals", "<user>, annals", id="user-as-a-word"),
        pytest.param("the root of x", "the root of x", id="a-name-that-is-a-word"),
        pytest.param("bob@mail.example", "<address>", id="address"),
        pytest.param("Current date: 2026-11-22\nTime zone: Europe/Berlin\n", "Current date: <time>\nTime zone: <zone>\n", id="date-and-zone"),
        pytest.param("[Sun 2026-11-22 19:50 UTC] Hi", "[<time>] Hi", id="day-and-time"),
        pytest.param("at 2026-11-22T19:50:01.123Z", "at <time>", id="iso-time"),
        pytest.param("release 2026.9.6", "release 2026.9.6", id="a-release-is-not-a-date"),
        pytest.param("id f954f989-d15e-45b1-a99d-d016fdea0ef6", "id <id>", id="uuid"),
        pytest.param("http://127.0.0.1:8080/x", "http://127.0.0.1:<port>/x", id="port"),
        pytest.param("Docs: /opt/oc/docs\nSee /opt/oc/skills", "Docs: <openclaw>/docs\nSee <openclaw>/skills", id="where-openclaw-is"),
    ],
)  # fmt: skip
def test_a_placeholder_replaces_it(text, expected):
    """Paths, names, times and ids are replaced, also in objects and lists; words that look like them stay."""
    assert masked({"a": [text, 1]}, PLACEHOLDERS) == {"a": [expected, 1]}


@given(st.text())
def test_masked_text_is_unchanged(text):
    """Placeholders are not mistaken for personal data."""
    once = masked(text, PLACEHOLDERS)

    assert masked(once, PLACEHOLDERS) == once
