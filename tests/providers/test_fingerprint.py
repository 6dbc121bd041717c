"""The providers by name; the facts that a server reports, and the names of its models."""

import hashlib
import subprocess
import sys

import pytest

from pytest_openclaw.providers import BUILTIN
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from tests.providers.servers.apis import CHAT, GEMINI, MESSAGES, using
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OLLAMA, OllamaServer, native
from tests.providers.servers.ollama import TEMPLATE as TEMPLATE_OF_OLLAMA


def with_key(api, server):
    return api.provider(server.url, **{api.key_env: "a-key"})


@pytest.mark.parametrize("builtin", BUILTIN, ids=lambda builtin: builtin.name)
def test_a_builtin(builtin):
    """The table's name, the class's name and the created object are one provider."""
    setup = ProviderSetup(name=builtin.name)

    assert builtin.load().name == builtin.name
    assert type(builtin(setup)) is builtin.load()


def test_only_used_modules_are_loaded():
    """Listing the names loads no provider; creating one loads neither another nor the HTTP library."""
    code = (
        "import sys; from pytest_openclaw.values.protocols import ProviderSetup; "
        "from pytest_openclaw.providers import BUILTIN; "
        "made = [builtin(ProviderSetup(name='gemini')) for builtin in BUILTIN if builtin.name == 'gemini']; "
        "print(*sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )

    loaded = {module.removeprefix("pytest_openclaw.providers.") for module in done.stdout.split()}
    assert {builtin.name for builtin in BUILTIN} & loaded == {"gemini"}
    assert "httpx2" not in loaded


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


def test_llama_cpp(server):
    """llama.cpp reports its build, quantisation, context and template; its path is left out."""
    server.on("/v1/models", Script.answer(LLAMA_CPP_MODELS))
    server.on("/props", Script.answer(PROPS))

    found = using(CHAT.provider(server.url), lambda provider: provider.fingerprint("smol"))

    assert found == {
        "server": "llama.cpp",
        "server_version": "b6000-abc",
        "quantisation": "Q4_1",
        "context_length": 4096,
        "template_sha256": hashlib.sha256(TEMPLATE.encode()).hexdigest(),
        "template_shows_tools": False,
    }


def test_ollama():
    """Version, digest, quantisation, template and the context in use."""
    with OllamaServer() as server:
        found = using(native(server.origin), lambda provider: provider.fingerprint("m"))

    assert found == {
        "server": "ollama",
        "server_version": "0.33.3",
        "digest": "a" * 64,
        "quantisation": "Q4_K_M",
        "context_length": 4096,
        "template_sha256": hashlib.sha256(TEMPLATE_OF_OLLAMA.encode()).hexdigest(),
        "template_shows_tools": True,
        "parameters": "num_ctx 4096",
    }
    assert [request.path for request in server.requests] == ["/api/version", "/api/show", "/api/ps"]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(Script.answer({"error": "not found"}, status=404), id="unknown-routes"),
        pytest.param(Script.answer([1, 2]), id="lists"),
        pytest.param(
            Script.answer({"data": [5, {"id": 7}], "models": {"a": 1}, "details": []}), id="nonsense"
        ),
    ],
)
def test_a_server_that_does_not_say(server, script):
    """A fingerprint has the available facts, and is never a fault."""
    server.on("*", script)

    assert using(CHAT.provider(server.url), lambda provider: provider.fingerprint("m")) == {}
    assert server.total == 5


OLLAMA_MODELS = {
    "object": "list",
    "data": [{"id": "llama3.2:latest", "object": "model", "owned_by": "library"}],
}
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

    assert using(with_key(api, server), lambda provider: provider.models()) == names
    header, value = api.shown_key("a-key")
    assert server.requests[0].headers[header] == value


def test_models_of_ollama():
    """The models that are installed; one that only embeds is left out."""
    models = {
        "qwen3:8b": ["completion", "tools", "thinking"],
        "nomic-embed-text:latest": ["embedding"],
        "old:1b": [],
    }

    with OllamaServer(models=models) as server:
        names = using(native(server.origin, OLLAMA_API_KEY="a-key"), lambda provider: provider.models())

    assert names == ("qwen3:8b", "old:1b")
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer a-key"}


NO_LIST = "the answer cannot be read: it has no list of models."


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
        using(with_key(api, server), lambda provider: provider.models())

    assert str(raised.value).startswith(f"{api.kind.name}: {message}")
