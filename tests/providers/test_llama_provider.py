"""The provider of the embedded engine, with fake engines."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from pytest_openclaw.providers.llama_cpp import provider as llama_cpp
from pytest_openclaw.providers.llama_cpp.provider import LlamaCpp
from pytest_openclaw.util.errors import EngineError, TargetError
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.requests import Request
from tests.providers.servers.apis import CHAT
from tests.providers.servers.misbehaving import MisbehavingServer, Script

REQUEST = Request(model="smollm2:135m", prompt="Hi", system="Be brief.", max_output_tokens=5)
TOKENS = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    b'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n'
)


@pytest.fixture
def provider():
    """The provider in an empty environment."""
    return LlamaCpp(ProviderSetup(name="llama_cpp"))


def use(provider, work):
    """Await some work of a provider and close it, in one event loop."""

    async def run():
        try:
            return await work
        finally:
            await provider.aclose()

    return asyncio.run(run())


def fault_of(provider, request=REQUEST):
    """The fault of a request."""
    with pytest.raises(CallFailed) as caught:
        use(provider, provider.ask(request))
    return caught.value.fault


@contextlib.contextmanager
def server_that_dies(says):
    """A server that reads one request, sends some bytes and hangs up; gives its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(says)

    thread = threading.Thread(target=serve)
    thread.start()
    with listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(20)
    assert not thread.is_alive()


@pytest.fixture
def start(monkeypatch):
    """Stands in for the start of an engine, which finds weights of every name."""
    monkeypatch.setattr(llama_cpp, "find_weights", Path)
    start = AsyncMock()
    monkeypatch.setattr("pytest_openclaw.providers.llama_cpp.engine.start_engine", start)
    return start


def engine_at(url, *, dies):
    """An engine that dies when its connection breaks, or not."""
    has_died = AsyncMock(return_value=dies)
    process = SimpleNamespace(has_exited=False, stop=AsyncMock())
    return SimpleNamespace(url=url, token="dummy", process=process, has_died=has_died)


def test_it_is_a_local_endpoint_of_its_own_that_warms_up(provider):
    """It has one engine, on this machine; loading is not latency, and the address is not a setting."""
    assert (provider.endpoint, provider.is_local, provider.warms_up) == ("llama_cpp", True, True)
    assert provider.secrets == ()
    assert provider.describe() == {
        "path": "/chat/completions",
        "context_tokens": 8192,
        "cache_prompt": False,
        "cache_prompt_on_openclaw": True,
    }


def test_body_turns_the_prompt_cache_on_for_openclaws_own_request_alone(provider):
    """On `openclaw` the cache is on, because it is for OpenClaw, whose prompt begins alike each time."""
    body = provider.body(replace(REQUEST, surface="openclaw"))

    assert body["cache_prompt"] is True


@pytest.mark.parametrize(
    ("model", "options", "context", "is_stretched"),
    [
        pytest.param("smollm2:135m", {}, 8192, False, id="as-trained"),
        pytest.param("smollm2:135m", {"num_ctx": "16384"}, 16384, True, id="longer-than-trained"),
        pytest.param("model.gguf", {"num_ctx": "16384"}, 16384, False, id="a-file-knows-its-own"),
    ],
)
def test_the_ini_sets_the_context(start, model, options, context, is_stretched):
    """A context that is longer than in the embedded model's training is stretched."""
    start.side_effect = EngineError("this is enough.")
    setup = ProviderSetup(name="llama_cpp", options=options)

    fault_of(LlamaCpp(setup), replace(REQUEST, model=model))

    assert LlamaCpp(setup).describe()["context_tokens"] == context
    assert LlamaCpp(setup).context_tokens(REQUEST) == context
    spec = start.call_args.args[0]
    assert spec.context_tokens == context
    assert bool(spec.trained_tokens and spec.trained_tokens < context) is is_stretched


def test_body_turns_the_prompt_cache_off(provider):
    """A repeated prompt is processed again; otherwise its time to first token would not be comparable."""
    assert provider.body(REQUEST) == {
        "model": "smollm2:135m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "temperature": 0.0,
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_prompt": False,
    }


def test_an_address_is_refused():
    """An ini line with an address is for a running server; the message says how to configure one."""
    with pytest.raises(TargetError) as caught:
        LlamaCpp(ProviderSetup(name="mine", base_url="http://127.0.0.1:8080/v1"))

    assert str(caught.value) == (
        "mine: llama_cpp starts its own server. For a running llama-server write: "
        "mine = ollama_openai http://127.0.0.1:8080/v1"
    )


def test_engine_trouble_is_a_fault_of_the_target(provider, start):
    """An engine that cannot serve is reported in its own sentence and affects only this model's cells."""
    start.side_effect = EngineError("it has no AVX2.")

    fault = fault_of(provider)

    assert (fault.failure_type, fault.status, fault.scope) == (
        "not_installed",
        "skipped_unavailable",
        "target",
    )
    assert fault.message == "llama_cpp: it has no AVX2."


@pytest.mark.parametrize(
    ("says", "failure_type", "retryable", "raw"),
    [
        pytest.param(b"", "connect_error", True, "", id="before-any-token"),
        pytest.param(TOKENS, "stream_error", False, "Hel", id="after-tokens"),
    ],
)
def test_engine_that_dies_while_it_is_asked(says, failure_type, retryable, raw, provider, start):
    """A crash is reported as such; it is retried only if no token had arrived."""
    with server_that_dies(says) as url:
        start.return_value = engine_at(url, dies=True)
        fault = fault_of(provider)

    assert (fault.failure_type, fault.retryable, fault.raw) == (failure_type, retryable, raw)
    assert fault.message == "llama_cpp: the embedded engine died while it was asked."
    assert (fault.status, fault.scope) == ("error", "cell")
    assert fault.timing is not None


def test_broken_stream_of_a_living_engine_stays_what_it_is(provider, start):
    """Only a dead engine is reported as dead."""
    with server_that_dies(TOKENS) as url:
        start.return_value = engine_at(url, dies=False)
        fault = fault_of(provider)

    assert fault.failure_type == "stream_error"
    assert fault.message.startswith("llama_cpp: the stream broke: ")


def test_a_prompt_that_does_not_fit_says_what_to_set(provider, start):
    """The engine refuses it; the hint is the ini's setting."""
    error = {
        "code": 400,
        "type": "exceed_context_size_error",
        "message": "request (9 tokens) exceeds the available context size",
    }
    with MisbehavingServer() as server:
        start.return_value = engine_at(server.origin, dies=False)
        server.on(CHAT.path, Script.answer({"error": error}, status=400))
        fault = fault_of(provider)

    assert (fault.failure_type, fault.scope) == ("context_overflow", "cell")
    assert fault.message.endswith("Set openclaw_num_ctx in the ini.")


def test_fingerprint_without_an_engine_has_the_known_facts(provider, monkeypatch):
    """A fingerprint never breaks a run."""
    monkeypatch.setattr(llama_cpp, "engine_version", lambda: "2026.10.1")

    found = use(provider, provider.fingerprint("qwen3:8b"))

    assert found == {"server_version": "xllamacpp 2026.10.1"}
