"""A server's answers about its models: their names, and what it serves."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from pytest_openclaw.values.faults import CallFailed
from tests.providers.servers.apis import CHAT, GEMINI, MESSAGES
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OLLAMA

TEMPLATE = "{{ messages }}"

LLAMA_CPP_MODELS = {
    "models": [{"name": "smollm2:135m"}],
    "object": "list",
    "data": [{"id": "smollm2:135m", "aliases": ["smollm2:135m", "smol"], "owned_by": "llamacpp", "meta": {"n_ctx": 8192, "n_ctx_train": 16384, "n_params": 134515008, "ftype": "Q4_1"}}],
}  # fmt: skip
PROPS = {
    "default_generation_settings": {"n_ctx": 4096},
    "model_path": "/home/someone/models/secret.gguf",
    "build_info": "b6000-abc",
    "chat_template": TEMPLATE,
    "chat_template_caps": {"supports_tools": False},
}
OLLAMA_MODELS = {
    "object": "list",
    "data": [{"id": "llama3.2:latest", "object": "model", "owned_by": "library"}],
}


def working(server, work, api=CHAT):
    """Let a provider at this server do something, in a separate loop."""

    async def doing():
        provider = api.provider(server.url, **{api.key_env: "a-key"})
        try:
            return await work(provider)
        finally:
            await provider.aclose()

    return asyncio.run(doing())


def test_llama_cpp(server):
    """llama.cpp reports its build, quantisation, context and template; its path is left out."""
    server.on("/v1/models", Script.answer(LLAMA_CPP_MODELS))
    server.on("/props", Script.answer(PROPS))

    found = working(server, lambda provider: provider.fingerprint("smol"))

    assert found == {
        "server": "llama.cpp",
        "server_version": "b6000-abc",
        "quantisation": "Q4_1",
        "context_length": 4096,
        "template_sha256": hashlib.sha256(TEMPLATE.encode()).hexdigest(),
        "template_shows_tools": False,
    }


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(Script.answer({"error": "not found"}, status=404), id="unknown-routes"),
        pytest.param(Script.answer([1, 2]), id="no-objects"),
        pytest.param(
            Script.answer({"data": [5, {"id": 7}], "models": {"a": 1}, "details": []}), id="nonsense"
        ),
    ],
)
def test_a_server_that_does_not_say(server, script):
    """A fingerprint has the available facts, and is never a fault."""
    server.on("*", script)

    assert working(server, lambda provider: provider.fingerprint("m")) == {}
    assert server.total == 5


CLAUDE = {"data": [{"type": "model", "id": name} for name in ("claude-a", "claude-b")], "has_more": False}
GOOGLE = {
    "models": [
        {"name": "models/gemini-a", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/embedding-b", "supportedGenerationMethods": ["embedContent"]},
        {"name": "models/c"},
        {"displayName": "nameless"},
    ]
}


@pytest.mark.parametrize(
    ("api", "path", "answer", "names"),
    [
        pytest.param(CHAT, "/v1/models", OLLAMA_MODELS, ("llama3.2:latest",), id="openai"),
        pytest.param(CHAT, "/v1/models", {"models": [{"name": "a"}, {"name": "b"}]}, ("a", "b"), id="ollama"),
        pytest.param(CHAT, "/v1/models", {"data": []}, (), id="none"),
        pytest.param(CHAT, "/v1/models", {"object": "list", "data": None}, (), id="ollama-without-models"),
        pytest.param(CHAT, "/v1/models", {"data": [{"id": ""}, 5, {"id": "a"}]}, ("a",), id="nonsense-left-out"),
        pytest.param(OLLAMA, "/api/tags", {"models": [{"name": "a"}, {"name": 5}]}, ("a",), id="ollama-without-capabilities"),
        pytest.param(OLLAMA, "/api/tags", {"models": None}, (), id="ollama-none"),
        pytest.param(MESSAGES, "/v1/models?limit=1000", CLAUDE, ("claude-a", "claude-b"), id="anthropic-in-one-page"),
        pytest.param(GEMINI, "/v1beta/models?pageSize=1000", GOOGLE, ("gemini-a", "c"), id="gemini-that-generate-text"),
    ],
)  # fmt: skip
def test_models(server, api, path, answer, names):
    """The names of the models served, in the server's order; the key is shown."""
    server.on(path, Script.answer(answer))

    assert working(server, lambda provider: provider.models(), api) == names
    header, value = api.shown_key("a-key")
    assert server.requests[0].headers[header] == value


NO_LIST = "the answer cannot be read: its list of models has no list."


@pytest.mark.parametrize(
    ("api", "script", "message"),
    [
        pytest.param(CHAT, Script.answer({"hello": 1}), NO_LIST, id="no-list"),
        pytest.param(GEMINI, Script.answer({"hello": 1}), NO_LIST, id="gemini"),
        pytest.param(OLLAMA, Script.answer({"hello": 1}), NO_LIST, id="ollama"),
        pytest.param(CHAT, Script.answer(status=404), "HTTP 404: Whatever", id="no-such-route"),
        pytest.param(CHAT, Script.answer("[]", content_type="application/json"), "the answer cannot be read: no JSON object: [].", id="no-object"),
    ],
)  # fmt: skip
def test_models_that_cannot_be_listed(server, api, script, message):
    """A wildcard cannot be resolved without a list, and the message says why."""
    server.on("*", script)

    with pytest.raises(CallFailed) as raised:
        working(server, lambda provider: provider.models(), api)

    assert str(raised.value).startswith(f"{api.kind.name}: {message}")
