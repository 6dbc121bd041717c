"""Keys go to their own server only, and nowhere else: no text, no repr, no fault, no description."""

from __future__ import annotations

import json

import pytest

from pytest_openclaw.providers.ollama_openai import OllamaOpenAI
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.types.protocols import ProviderSetup
from tests.providers.servers.apis import CHAT, GEMINI, MESSAGES, RESPONSES, ask, described
from tests.providers.servers.misbehaving import Script

KEY = "sk-very-secret-key-0123456789"
KEYS = {"OPENAI_API_KEY": KEY, "OLLAMA_API_KEY": "ollama-key-987654", "MY_KEY": "my-own-key-55555"}


def authorization(server):
    """The authorization of the last request."""
    return server.requests[-1].headers.get("authorization")


def shown(server):
    """What each request showed of a key, by the name of its header."""
    names = ("authorization", "x-api-key", "x-goog-api-key")
    return [
        {name: request.headers[name] for name in names if name in request.headers}
        for request in server.requests
    ]


@pytest.mark.parametrize(
    ("kind", "name", "key_env", "sent"),
    [
        pytest.param(OllamaOpenAI, "ollama_openai", None, "Bearer ollama-key-987654", id="ollama"),
        pytest.param(OpenAIResponses, "openai_responses", None, f"Bearer {KEY}", id="openai"),
        pytest.param(OllamaOpenAI, "vllm", None, None, id="endpoint-without-key"),
        pytest.param(OllamaOpenAI, "vllm", "MY_KEY", "Bearer my-own-key-55555", id="endpoint-with-key"),
        pytest.param(OpenAIResponses, "gateway", None, None, id="responses-endpoint-without-key"),
        pytest.param(
            OpenAIResponses, "gateway", "MY_KEY", "Bearer my-own-key-55555", id="responses-endpoint"
        ),
        pytest.param(OllamaOpenAI, "vllm", "UNSET_KEY", None, id="named-but-unset-on-this-machine"),
    ],
)
def test_a_key_goes_to_its_own_server(server, kind, name, key_env, sent):
    """The environment has several keys; each server gets its own, or none."""
    server.on("*", Script.answer(status=500))
    environ = KEYS | {"OLLAMA_OPENAI_BASE": server.url, "OPENAI_BASE_URL": server.url}

    ask(kind(ProviderSetup(name=name, base_url=server.url, key_env=key_env, environ=environ)))

    assert authorization(server) == sent


@pytest.mark.parametrize(
    ("kind", "name", "key_env", "hint"),
    [
        pytest.param(
            OpenAIResponses,
            "openai_responses",
            None,
            "openai_responses: there is no key. Set OPENAI_API_KEY.",
            id="openai",
        ),
        pytest.param(OllamaOpenAI, "router", "MY_KEY", "router: there is no key. Set MY_KEY.", id="endpoint"),
        pytest.param(
            OpenAIResponses,
            "gateway",
            None,
            "gateway: there is no key. Name its variable as the last word of its line in openclaw_endpoints.",
            id="endpoint-without-variable",
        ),
    ],
)
def test_without_its_key_a_server_elsewhere_is_not_asked(monkeypatch, kind, name, key_env, hint):
    """Nothing is sent, and the target is marked, because no later cell would fare better."""
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **kwargs: pytest.fail("the network was asked"))
    setup = ProviderSetup(
        name=name, base_url="https://box.invalid/v1", key_env=key_env, environ={"MY_KEY": " "}
    )

    fault = ask(kind(setup))

    assert described(fault) == ("auth_missing", "auth_error", hint, "")
    assert (fault.scope, fault.retryable) == ("target", False)


@pytest.mark.parametrize("key", ["sk-with\nline", "sk-\x00nul", "sk-ümlaut"])
def test_a_key_that_no_header_holds(api, server, key):
    """Such a key is refused before the HTTP library would print it."""
    fault = ask(api.provider(server.url, **{api.key_env: key}))

    message = f"{api.kind.name}: {api.key_env} holds characters that no key has."
    assert described(fault) == ("auth_missing", "auth_error", message, "")
    assert server.total == 0


def test_blanks_around_a_key(api, server):
    """A key read from a file may end in a line feed."""
    server.on("*", Script.answer(status=500))

    ask(api.provider(server.url, **{api.key_env: f" {KEY}\n"}))

    assert shown(server) == [dict([api.shown_key(KEY)])]


def test_a_key_is_read_at_each_send(api, server):
    """A key that is set later is used, and one that is removed is not."""
    server.on("*", Script.answer(status=500))
    environ = {api.base_env: server.url}
    provider = api.kind(ProviderSetup(name=api.kind.name, environ=environ))

    ask(provider)
    environ[api.key_env] = KEY
    ask(provider)

    assert shown(server) == [{}, dict([api.shown_key(KEY)])]


@pytest.mark.parametrize(
    "key",
    [None, KEY],
    ids=["alone", "beside-a-key"],
)
def test_user_info_of_an_address(api, server, key):
    """A password in the address is sent as a header, unless there is a key, and is not shown."""
    server.on("*", Script.answer(status=500))
    url = server.url.replace("//", "//me:pass-word-123@")
    provider = api.provider(url, **({api.key_env: key} if key else {}))

    fault = ask(provider)

    sent = api.shown_key(KEY) if key else ("authorization", "Basic bWU6cGFzcy13b3JkLTEyMw==")
    assert shown(server) == [dict([sent])]
    assert (provider.address.base_url, provider.endpoint) == (api.base(server.url), server.origin)
    assert "pass-word-123" in provider.secrets
    assert "pass-word-123" not in repr((provider, vars(provider), provider.describe(), fault))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            Script.answer({"error": {"message": f"Incorrect API key {KEY}", "code": KEY}}, status=401),
            id="json",
        ),
        pytest.param(Script.answer(f"<title>{KEY}</title>", status=500), id="page"),
        pytest.param(Script.answer(KEY, status=418), id="text"),
        pytest.param(Script.answer(f'{{"said": "{KEY}"}}'), id="another-object"),
        pytest.param(Script.answer(f"you are {KEY}"), id="no-json"),
        pytest.param(Script.of(f"HTTP/9 {KEY}\r\n\r\n".encode()), id="no-http"),
        pytest.param(
            Script.answer({"error": {"message": KEY, "type": KEY, "code": KEY}}), id="error-in-a-200"
        ),
        pytest.param(Script.answer(status=307, location=f"http://127.0.0.1:9/{KEY}"), id="redirect"),
        pytest.param(Script.stream(CHAT.text(KEY)), id="said-in-a-broken-chat-stream"),
        pytest.param(Script.stream(RESPONSES.text(KEY)), id="said-in-a-broken-responses-stream"),
        pytest.param(Script.stream(MESSAGES.text(KEY)), id="said-in-a-broken-messages-stream"),
        pytest.param(Script.stream(GEMINI.text(KEY)), id="said-in-a-broken-gemini-stream"),
    ],
)
def test_a_server_that_repeats_the_key(api, stream, server, script):
    """Whatever a server sends back, the key is not in the fault."""
    server.enqueue(script)

    fault = ask(api.provider(server.url, **{api.key_env: KEY}), stream=stream)

    assert fault.failure_type
    assert KEY not in repr(fault)


def test_descriptions_name_the_variable_only(api, server):
    """`config.json` says where the key is, and not its value."""
    provider = api.provider(server.url, **{api.key_env: KEY})

    assert provider.describe() == {
        "base_url": api.base(server.url),
        "path": api.kind.path,
        "key_env": api.key_env,
    }
    assert provider.secrets == (KEY,)
    assert KEY not in repr(vars(provider)) + json.dumps(provider.describe())
