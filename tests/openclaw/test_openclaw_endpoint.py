"""The server that receives OpenClaw's requests: it records them, and answers none."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request

import pytest

from pytest_openclaw.providers.openclaw.capture import ModelEndpoint
from pytest_openclaw.providers.openclaw.loopback import listening

pytestmark = pytest.mark.newest


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
    endpoint = ModelEndpoint()

    async def post_all() -> list[int]:
        async with listening(endpoint.answer) as root:
            url = endpoint.url(root, "openai-completions")
            requests = [
                (f"{root}/{'0' * 32}/v1/chat/completions", b'{"n": 0}'),
                (f"{url}/embeddings", b'{"n": 0}'),
                (f"{url}/chat/completions", b"[]"),
                (f"{url}/chat/completions", b"{"),
                (f"{url}/chat/completions", b'{"n": 1}'),
                (f"{url}/chat/completions", b'{"n": 2}'),
            ]
            return [await asyncio.to_thread(_post, *request) for request in requests]

    assert asyncio.run(post_all()) == [404, 404, 400, 400, 503, 503]
    assert (endpoint.api, endpoint.body, endpoint.received.is_set()) == ("openai-completions", {"n": 1}, True)
