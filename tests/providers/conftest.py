"""A misbehaving server, and the HTTP APIs that use it."""

import pytest

from tests.providers.servers.apis import APIS, CHAT
from tests.providers.servers.misbehaving import MisbehavingServer
from tests.providers.servers.ollama import OLLAMA


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server():
    with MisbehavingServer() as running:
        yield running


@pytest.fixture(params=(*APIS, OLLAMA), ids=lambda api: api.kind.name)
def api(request):
    return request.param


@pytest.fixture(params=(CHAT, OLLAMA), ids=["events", "lines"])
def form(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["stream", "whole"])
def stream(request):
    return request.param
