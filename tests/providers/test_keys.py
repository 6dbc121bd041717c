"""Keys go to their own server only, and nowhere else: no text, no repr, no fault, no description."""

from __future__ import annotations

import pytest

from pytest_openclaw.values.protocols import ProviderSetup
from tests.providers.servers.apis import CHAT, GEMINI, MESSAGES, RESPONSES, ask, described
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OLLAMA

KEY = "sk-very-secret-key-0123456789"


def shown(server):
    """What each request showed of a key, by the name of its header."""
    names = ("authorization", "x-api-key", "x-goog-api-key")
    return [
        {name: request.headers[name] for name in names if name in request.headers}
        for request in server.requests
    ]


ENVIRON = {
    "OPENAI_API_KEY": KEY,
    "OLLAMA_API_KEY": "ollama-key-987654",
    "ANTHROPIC_API_KEY": "sk-ant-0123456789abc",
    "ANTHROPIC_AUTH_TOKEN": "token-0123456789abc",
    "GEMINI_API_KEY": "gemini-key-0123456789",
    "GOOGLE_API_KEY": "google-key-0123456789",
    "MY_KEY": "my-own-key-55555",
}
OWN = "Bearer my-own-key-55555"


@pytest.mark.parametrize(
    ("api", "name", "key_env", "without", "sent"),
    [
        # api, an endpoint's name and the variable that it names, variables that are not set, headers
        pytest.param(CHAT, None, None, (), {"authorization": "Bearer ollama-key-987654"}, id="chat"),
        pytest.param(CHAT, "vllm", None, (), {}, id="chat-endpoint-without-key"),
        pytest.param(CHAT, "vllm", "MY_KEY", (), {"authorization": OWN}, id="chat-endpoint"),
        pytest.param(CHAT, "vllm", "UNSET_KEY", (), {}, id="named-but-unset-on-this-machine"),
        pytest.param(OLLAMA, None, None, (), {"authorization": "Bearer ollama-key-987654"}, id="ollama"),
        pytest.param(OLLAMA, "lab", None, (), {}, id="ollama-endpoint-without-key"),
        pytest.param(OLLAMA, "lab", "MY_KEY", (), {"authorization": OWN}, id="ollama-endpoint"),
        pytest.param(RESPONSES, None, None, (), {"authorization": f"Bearer {KEY}"}, id="responses"),
        pytest.param(RESPONSES, "gateway", None, (), {}, id="responses-endpoint-without-key"),
        pytest.param(RESPONSES, "gateway", "MY_KEY", (), {"authorization": OWN}, id="responses-endpoint"),
        pytest.param(MESSAGES, None, None, (), {"x-api-key": "sk-ant-0123456789abc"}, id="messages"),
        pytest.param(MESSAGES, None, None, ("ANTHROPIC_API_KEY",), {"authorization": "Bearer token-0123456789abc"}, id="messages-token"),
        pytest.param(MESSAGES, "gateway", "MY_KEY", (), {"x-api-key": "my-own-key-55555", "authorization": OWN}, id="messages-endpoint"),
        pytest.param(MESSAGES, "gateway", None, (), {}, id="messages-endpoint-without-key"),
        pytest.param(MESSAGES, None, None, ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), {}, id="none-on-this-machine"),
        pytest.param(GEMINI, None, None, (), {"x-goog-api-key": "gemini-key-0123456789"}, id="gemini"),
        pytest.param(GEMINI, None, None, ("GEMINI_API_KEY",), {"x-goog-api-key": "google-key-0123456789"}, id="google"),
        pytest.param(GEMINI, "gateway", "MY_KEY", (), {"x-goog-api-key": "my-own-key-55555", "authorization": OWN}, id="gemini-endpoint"),
        pytest.param(GEMINI, "gateway", None, (), {}, id="gemini-endpoint-without-key"),
    ],
)  # fmt: skip
def test_a_key_goes_to_its_own_server(server, api, name, key_env, without, sent):
    """The environment has several keys; each server gets its own in its own header, or none; a gateway in both."""
    server.on("*", Script.answer(status=500))
    environ = {variable: key for variable, key in ENVIRON.items() if variable not in without}
    setup = ProviderSetup(name=name or api.kind.name, base_url=server.url, key_env=key_env, environ=environ)

    ask(api.kind(setup))

    assert shown(server) == [sent]


@pytest.mark.parametrize(
    ("api", "name", "key_env", "hint"),
    [
        pytest.param(RESPONSES, "openai_responses", None, "Set OPENAI_API_KEY.", id="openai"),
        pytest.param(MESSAGES, "anthropic_messages", None, "Set ANTHROPIC_API_KEY.", id="anthropic"),
        pytest.param(GEMINI, "gemini", None, "Set GEMINI_API_KEY.", id="google"),
        pytest.param(CHAT, "router", "MY_KEY", "Set MY_KEY.", id="endpoint"),
        pytest.param(RESPONSES, "gateway", None, "Name its variable as the last word of its line in openclaw_endpoints.", id="endpoint-without-variable"),
    ],
)  # fmt: skip
def test_without_its_key_a_server_elsewhere_is_not_asked(monkeypatch, api, name, key_env, hint):
    """Nothing is sent, and the target is marked, because no later cell would fare better."""
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **kwargs: pytest.fail("the network was asked"))
    base_url = None if name == api.kind.name else "https://box.invalid/v1"
    setup = ProviderSetup(name=name, base_url=base_url, key_env=key_env, environ={"MY_KEY": " "})

    fault = ask(api.kind(setup))

    assert described(fault) == ("auth_missing", "auth_error", f"{name}: there is no key. {hint}", "")
    assert (fault.scope, fault.retryable) == ("target", False)


@pytest.mark.parametrize("key", ["sk-with\nline", "sk-\x00nul", "sk-ümlaut"])
def test_a_key_that_no_header_holds(api, server, key):
    """Such a key is refused before the HTTP library would print it."""
    fault = ask(api.provider(server.url, **{api.key_env: key}))

    message = f"{api.kind.name}: {api.key_env} holds characters that no key has."
    assert described(fault) == ("auth_missing", "auth_error", message, "")
    assert server.total == 0


@pytest.mark.parametrize("key", [None, KEY], ids=["alone", "beside-a-key"])
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
        pytest.param(Script.answer({"error": {"message": f"Incorrect API key {KEY}", "code": KEY}}, status=401), id="json"),
        pytest.param(Script.answer(f"<title>{KEY}</title>", status=500), id="page"),
        pytest.param(Script.answer(KEY, status=418), id="text"),
        pytest.param(Script.answer(f'{{"said": "{KEY}"}}'), id="another-object"),
        pytest.param(Script.answer(f"you are {KEY}"), id="no-json"),
        pytest.param(Script.of(f"HTTP/9 {KEY}\r\n\r\n".encode()), id="no-http"),
        pytest.param(Script.answer({"error": {"message": KEY, "type": KEY, "code": KEY}}), id="error-in-a-200"),
        pytest.param(Script.answer(status=307, location=f"http://127.0.0.1:9/{KEY}"), id="redirect"),
        pytest.param(Script.stream(CHAT.text(KEY)), id="said-in-a-broken-chat-stream"),
        pytest.param(Script.stream(RESPONSES.text(KEY)), id="said-in-a-broken-responses-stream"),
        pytest.param(Script.stream(MESSAGES.text(KEY)), id="said-in-a-broken-messages-stream"),
        pytest.param(Script.stream(GEMINI.text(KEY)), id="said-in-a-broken-gemini-stream"),
    ],
)  # fmt: skip
def test_a_server_that_repeats_the_key(api, stream, server, script):
    """Whatever a server sends back, the key is not in the fault."""
    server.enqueue(script)

    fault = ask(api.provider(server.url, **{api.key_env: KEY}), stream=stream)

    assert fault.failure_type
    assert KEY not in repr(fault)
