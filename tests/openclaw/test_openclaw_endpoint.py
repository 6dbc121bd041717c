"""The server that receives OpenClaw's requests: it records them, and providers understand its answers."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from pytest_openclaw.providers.ollama_native import OllamaNative
from pytest_openclaw.providers.ollama_openai import OllamaOpenAI
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.providers.openclaw.endpoint import ANSWER, CaptureServer, answer_to
from pytest_openclaw.types.protocols import ProviderSetup
from pytest_openclaw.types.requests import Request

pytestmark = pytest.mark.newest

KINDS = [
    pytest.param("openai-completions", OllamaOpenAI, id="chat-completions"),
    pytest.param("openai-responses", OpenAIResponses, id="responses"),
    pytest.param("ollama", OllamaNative, id="ollama"),
]


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("api", "kind"), KINDS)
def test_a_turn_ends_at_once(api: str, kind: Any, streams: bool) -> None:
    """Our own clients parse an answer that ends the turn, and the request is recorded with its API."""

    async def ask(endpoint: CaptureServer) -> Any:
        setup = ProviderSetup(
            name="lab",
            base_url=endpoint.url(api),
            key_env="KEY",
            environ={"KEY": "k"},
        )
        provider = kind(setup)
        try:
            return await provider.ask(Request(model="m", prompt="Say OK.", timeout_s=60.0, stream=streams))
        finally:
            await provider.aclose()

    with CaptureServer() as endpoint:
        reply = asyncio.run(ask(endpoint))

        assert endpoint.received.wait(60)
        assert endpoint.recorded is not None
        assert (endpoint.recorded.api, endpoint.recorded.body["model"]) == (api, "m")
    assert (reply.text, reply.finish_reason) == (ANSWER, "stop")


def _post(url: str, body: bytes) -> int:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_only_the_first_request_to_a_model_is_recorded() -> None:
    """Invalid requests, those from elsewhere and later ones are not recorded."""
    with CaptureServer() as endpoint:
        url = endpoint.url("openai-completions")
        elsewhere = url.replace(url.rsplit("/", 2)[1], "0" * 32)
        statuses = [
            _post(f"{elsewhere}/chat/completions", b"{}"),
            _post(f"{url}/embeddings", b"{}"),
            _post(f"{url}/chat/completions", b"[]"),
            _post(f"{url}/chat/completions", b"{"),
        ]
        assert (statuses, endpoint.recorded, endpoint.received.is_set()) == (
            [404, 404, 400, 400],
            None,
            False,
        )

        sent = [_post(f"{url}/chat/completions", json.dumps({"n": n}).encode()) for n in (1, 2)]
        assert sent == [200, 200]
        assert endpoint.recorded is not None
        assert endpoint.recorded.body == {"n": 1}


def test_an_answer_has_no_call() -> None:
    """Therefore no tool is ever carried out."""
    for api in ("openai-completions", "openai-responses", "ollama"):
        _, answer = answer_to(api, {"model": "m", "stream": True})

        assert b"tool_call" not in answer
        assert b"function_call" not in answer
