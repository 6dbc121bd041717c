"""The provider of the embedded engine, with fake engines."""

import json
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from pytest_openclaw.providers.llama_cpp import provider as llama_cpp
from pytest_openclaw.providers.llama_cpp.provider import LlamaCpp
from pytest_openclaw.util.errors import EngineError, TargetError
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.requests import Request
from tests.providers.servers.apis import CHAT, ask, described, using
from tests.providers.servers.misbehaving import Close, Script

MODEL = "smollm2:135m"
REQUEST = Request(model=MODEL, prompt="Hi", system="Be brief.", max_output_tokens=5)
DIES = Script.of(Close())
DIES_AFTER_TOKENS = Script.stream(CHAT.text("Hel"), Close())


@pytest.fixture
def provider():
    return LlamaCpp(ProviderSetup(name="llama_cpp"))


@pytest.fixture
def start(monkeypatch):
    start = AsyncMock()
    monkeypatch.setattr(llama_cpp, "start_engine", start)
    return start


def engine_at(url, *, dies):
    has_died = AsyncMock(return_value=dies)
    process = SimpleNamespace(has_exited=False, stop=AsyncMock())
    return SimpleNamespace(model=MODEL, url=url, token="dummy", process=process, has_died=has_died)


def test_the_description(provider):
    """It has one engine, on this machine; loading is not latency, and the address is not a setting."""
    assert (provider.endpoint, provider.is_local, provider.warms_up) == ("llama_cpp", True, True)
    assert provider.secrets == ()
    assert provider.describe() == {
        "path": "/chat/completions",
        "context_tokens": 8192,
        "cache_prompt": False,
        "cache_prompt_on_openclaw": True,
    }


@pytest.mark.parametrize(
    ("model", "options", "context", "trained"),
    [
        pytest.param("smollm2:135m", {}, 8192, 8192, id="as-trained"),
        pytest.param("smollm2:135m", {"num_ctx": "16384"}, 16384, 8192, id="longer-than-trained"),
        pytest.param("model.gguf", {"num_ctx": "16384"}, 16384, None, id="a-file"),
    ],
)
def test_the_ini_sets_the_context(monkeypatch, model, options, context, trained):
    """A context that is longer than in the embedded model's training is stretched."""
    start = AsyncMock(side_effect=CallFailed(faults.cli_failed("the engine", "this is enough.")))
    monkeypatch.setattr(llama_cpp, "engine_is_installed", lambda: True)
    monkeypatch.setattr(llama_cpp, "find_weights", Path)
    monkeypatch.setattr(llama_cpp, "start", start)
    setup = ProviderSetup(name="llama_cpp", options=options)

    ask(LlamaCpp(setup), model=model)

    assert LlamaCpp(setup).describe()["context_tokens"] == context
    assert LlamaCpp(setup).context_tokens(REQUEST) == context
    spec = json.loads(start.call_args.args[1].argv[-1])
    assert (spec["context_tokens"], spec["trained_tokens"]) == (context, trained)


def test_body_turns_the_prompt_cache_off(provider):
    """The times of repeated prompts stay comparable; only OpenClaw's own request, which begins alike, has the cache."""
    assert provider.body(REQUEST) == {
        "model": "smollm2:135m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "temperature": 0.0,
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_prompt": False,
    }
    assert provider.body(replace(REQUEST, surface="openclaw"))["cache_prompt"] is True


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

    fault = ask(provider, model=MODEL)

    assert described(fault)[:3] == ("not_installed", "skipped_unavailable", "llama_cpp: it has no AVX2.")
    assert fault.scope == "target"


@pytest.mark.parametrize(
    ("script", "failure_type", "retryable", "raw"),
    [
        pytest.param(DIES, "connect_error", True, "", id="before-any-token"),
        pytest.param(DIES_AFTER_TOKENS, "stream_error", False, "Hel", id="after-tokens"),
    ],
)
def test_engine_that_dies_while_it_is_asked(server, script, failure_type, retryable, raw, provider, start):
    """A crash is reported as such; it is retried only if no token had arrived."""
    server.enqueue(script)
    start.return_value = engine_at(server.origin, dies=True)

    fault = ask(provider, model=MODEL)

    assert (fault.failure_type, fault.retryable, fault.raw) == (failure_type, retryable, raw)
    assert fault.message == "llama_cpp: the embedded engine died while it was asked."
    assert (fault.status, fault.scope) == ("error", "cell")
    assert fault.timing is not None


def test_a_broken_stream_of_a_living_engine(server, provider, start):
    """Only a dead engine is reported as dead."""
    server.enqueue(DIES_AFTER_TOKENS)
    start.return_value = engine_at(server.origin, dies=False)

    fault = ask(provider, model=MODEL)

    assert fault.failure_type == "stream_error"
    assert fault.message.startswith("llama_cpp: the stream broke: ")


def test_a_prompt_that_does_not_fit_names_the_setting(server, provider, start):
    """The engine refuses it; the hint is the ini's setting."""
    error = {"message": "request (9 tokens) exceeds the available context size"}
    start.return_value = engine_at(server.origin, dies=False)
    server.enqueue(Script.answer({"error": error}, status=400))

    fault = ask(provider, model=MODEL)

    assert (fault.failure_type, fault.scope) == ("context_overflow", "cell")
    assert fault.message.endswith("Set openclaw_num_ctx in the ini.")


def test_fingerprint_without_an_engine_has_the_known_facts(provider, monkeypatch):
    """A fingerprint never breaks a run."""
    monkeypatch.setattr(metadata, "version", {"xllamacpp": "2026.10.1"}.__getitem__)

    found = using(provider, lambda provider: provider.fingerprint("qwen3:8b"))

    assert found == {"server_version": "xllamacpp 2026.10.1"}
