"""Sampling and further fields, as each API takes them."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.providers.anthropic_messages import messages_body
from pytest_openclaw.providers.bodies import with_fields
from pytest_openclaw.providers.gemini import gemini_body
from pytest_openclaw.providers.ollama import ollama_body
from pytest_openclaw.providers.ollama_openai import chat_body
from pytest_openclaw.providers.openai_responses import responses_body
from pytest_openclaw.values.requests import OPENCLAW, Request
from pytest_openclaw.values.tool_calls import Tool

TOOLS = (Tool(name="read"),)
BODIES: dict[str, Any] = {
    "chat": chat_body,
    "responses": responses_body,
    "anthropic": messages_body,
    "gemini": lambda request: gemini_body(request)["generationConfig"],
    "ollama": lambda request: ollama_body(request)["options"],
}


@pytest.mark.parametrize("api", BODIES)
def test_without_a_choice_the_server_decides(api: str) -> None:
    """No temperature and no top_p are sent where none was chosen; both are, where they were."""
    none = BODIES[api](Request(model="m", prompt="p", temperature=None))
    both = BODIES[api](Request(model="m", prompt="p", temperature=0.5, top_p=0.9))

    assert not {"temperature", "top_p", "topP", "seed"} & none.keys()
    assert both["temperature"] == 0.5
    assert both.get("top_p", both.get("topP")) == 0.9


def test_a_call_can_be_required() -> None:
    """Each API has its own word for it."""
    request = Request(model="m", prompt="p", tools=TOOLS, tool_choice="required")

    assert chat_body(request)["tool_choice"] == responses_body(request)["tool_choice"] == "required"
    assert messages_body(request)["tool_choice"] == {"type": "any"}
    assert gemini_body(request)["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}


def test_openclaw_names_the_limit_otherwise() -> None:
    """OpenClaw sends max_completion_tokens."""
    listed = chat_body(Request(model="m", prompt="p", max_output_tokens=9))
    asked = chat_body(Request(model="m", prompt="p", max_output_tokens=9, surface=OPENCLAW))

    assert (listed["max_tokens"], asked["max_completion_tokens"]) == (9, 9)
    assert "max_tokens" not in asked


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"a": 1, "options": {"n": 1}}),
        ({"b": 2}, {"a": 1, "b": 2, "options": {"n": 1}}),
        ({"options": {"k": 2}}, {"a": 1, "options": {"n": 1, "k": 2}}),
        ({"a": None, "options": {"n": None}}, {"options": {}}),
    ],
)
def test_further_fields_are_merged(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """Objects key by key; null removes a field; the body itself is not changed."""
    body = {"a": 1, "options": {"n": 1}}

    assert with_fields(body, fields) == expected
    assert body == {"a": 1, "options": {"n": 1}}
