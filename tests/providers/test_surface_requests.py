"""The surface `openclaw` through each HTTP API: what OpenClaw sends arrives in the API's own form."""

from dataclasses import fields

import pytest

from pytest_openclaw.asking.sending import request_for
from pytest_openclaw.openclaw.catalog import substitute_surface
from pytest_openclaw.suites.load import parse_suite
from pytest_openclaw.suites.offered import on_surface
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import OPENCLAW, Target
from pytest_openclaw.values.settings import Settings
from tests.builtin import REGISTRY
from tests.providers.servers.apis import of_events, play, texts_in, tools_in
from tests.providers.servers.misbehaving import Script

SURFACE = substitute_surface()
SUITE = """
[[prompts]]
id = "W"
prompt = "What is the weather in Rome?"
tools = ["read", "web_search"]
validator = { type = "tool_call", calls = [{ name = "web_search" }] }
"""
SEARCHES = (("tool_search", '{"query": "web search"}'),)
CALLS = (("tool_call", '{"id": "web_search", "args": {"query": "weather in Rome"}}'),)


def asked_on_surface(provider):
    (prompt,) = parse_suite(SUITE, format="toml", name="a", registry=REGISTRY).prompts
    target = Target(provider=provider.setup.name, model="m", surface=OPENCLAW)
    cell = Cell(prompt=on_surface(prompt, SURFACE), target=target)
    request = request_for(cell, Settings(stream=False), provider)
    return {field.name: getattr(request, field.name) for field in fields(request)}


LIMITS = {
    "ollama_openai": "max_completion_tokens",
    "openai_responses": "max_output_tokens",
    "anthropic_messages": "max_tokens",
    "gemini": "maxOutputTokens",
}


@of_events
@pytest.mark.parametrize("level", [None, "low"])
def test_a_call_through_the_bridge(server, api, level):
    """System prompt, tools, frame, context and the API's limit are sent in each turn, and no temperature."""
    for calls in (SEARCHES, CALLS):
        server.enqueue(Script.answer(with_long_prompt(api.whole(None, "tool_calls", calls=calls))))
    provider = api.provider(server.url)

    reply = play(provider, **{**asked_on_surface(provider), "thinking_level": level})

    assert isinstance(reply, Reply), reply
    assert [call.name for call in reply.tool_calls] == ["tool_search", "tool_call"]
    first, second = (request.json for request in server.requests if api.answers(request.path))
    for body in (first, second):
        texts = [*texts_in(body)]
        assert tools_in(body) == [tool.name for tool in SURFACE.tools]
        assert len(max(texts, key=len)) > 20_000
        assert any(text.startswith("[") and "What is the weather in Rome?" in text for text in texts)
        assert texts[-1].startswith("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>")
        keys = {*keys_in({**body, "tools": None})}
        assert not {"temperature", "top_p", "topP", "seed"} & keys
        assert {*LIMITS.values()} & keys == {LIMITS[provider.name]}
    known = [*texts_in(first)]
    assert [text for text in texts_in(second) if "web_search" in text and text not in known] != []


def with_long_prompt(whole):
    counted = whole.get("usage") or whole["usageMetadata"]
    (name,) = {"prompt_tokens", "input_tokens", "promptTokenCount"} & counted.keys()
    counts = {**counted, name: 20_000}
    return {**whole, ("usage" if "usage" in whole else "usageMetadata"): counts}


def keys_in(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_in(inner)
