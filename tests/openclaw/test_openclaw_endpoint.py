"""The server that receives OpenClaw's requests: it records them, and answers none."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from pytest_openclaw.providers.openclaw.capture import CaptureServer

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
        assert sent == [503, 503]
        assert endpoint.recorded is not None
        assert (endpoint.recorded.api, endpoint.recorded.body) == ("openai-completions", {"n": 1})
        assert endpoint.received.is_set()
