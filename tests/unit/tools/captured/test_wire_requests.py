"""The content of a request to a model, in the form of each API."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.openclaw.captured import api_of, deferred_in, read_request

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


def test_a_request_without_tools_is_read() -> None:
    """A model that may not have tools is sent none."""
    sent = read_request("ollama", {"messages": [USER]})

    assert (sent.tools, sent.system, sent.deferred, sent.bytes_of_tools) == ((), "", (), 2)


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


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/x/v1/chat/completions", "openai-completions"),
        ("/x/v1/responses", "openai-responses"),
        ("/x/api/chat", "ollama"),
        ("/x/api/tags", None),
    ],
)
def test_the_path_determines_the_api(path: str, api: str | None) -> None:
    """Requests for other paths are not for a model."""
    assert api_of(path) == api


def test_deferred_tools_are_found_in_the_system_prompt() -> None:
    """They are in a section of their own, each with its source; other lists do not count."""
    system = (
        "## Tooling\n- read: Read files\n### Deferred Tool Schemas\nAvailable deferred-schema tools:\n"
        "- web_fetch (core): Fetch URL; names - like this: too\n- memory_get (memory-core): Read.\n- bare\n\n"
        "- not_one (core): No.\n## Next\n- nor_this: No."
    )

    assert deferred_in(system) == ("web_fetch", "memory_get", "bare")
    assert deferred_in("## Tooling\n- read: Read files\n") == ()
