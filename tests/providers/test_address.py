"""Base URLs as people write them, and keys: each goes to its own server only, and is shown nowhere."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.address import Address, parse_address, parse_ollama_host
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.values.protocols import ProviderSetup
from tests.providers.servers.apis import CHAT, GEMINI, MESSAGES, RESPONSES, ask, described
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OLLAMA


@pytest.mark.parametrize(
    ("text", "base_url"),
    [
        pytest.param("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1", id="whole"),
        pytest.param("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1", id="no-path"),
        pytest.param("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1", id="root"),
        pytest.param("localhost:11434/v1", "http://localhost:11434/v1", id="no-scheme"),
        pytest.param("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1", id="path"),
        pytest.param("HTTPS://Example.COM:443", "https://example.com/v1", id="default-port"),
        pytest.param("http://[::1]:8000", "http://[::1]:8000/v1", id="ipv6"),
        pytest.param("  http://a/v1\n", "http://a/v1", id="blanks-around"),
        pytest.param("http://me:pw@a:1/v1", "http://a:1/v1", id="user-info"),
        pytest.param("http://a:1/v1/chat/completions", "http://a:1/v1", id="path-of-a-request"),
        pytest.param("a/x/v1/messages/", "http://a/x/v1", id="path-of-a-message"),
        pytest.param("http://a/v1beta/models/g:generateContent", "http://a/v1beta", id="path-with-a-model"),
    ],
)
def test_parse_address(text, base_url):
    """`http://` may be left out, and `/v1` where there is no path."""
    assert parse_address(text, source="x").base_url == base_url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://",
        "ftp://pass:word@a",
        "http://a b/v1",
        "http://a:port",
        "http://a:0",
        "http://[::1",
        "http://a\x00/",
        "http://a/v1?key=secret",
        "http://a/v1#x",
    ],
)
def test_an_invalid_address(text):
    """The error names the source of a text that is not an HTTP address, and quotes nothing of it."""
    with pytest.raises(TargetError) as raised:
        parse_address(text, source="OPENAI_BASE_URL")

    assert str(raised.value) == (
        "OPENAI_BASE_URL: this is not an http:// or https:// address without a query. Write for example "
        "http://127.0.0.1:8000/v1."
    )


@pytest.mark.parametrize(
    ("text", "base_url"),
    [
        pytest.param("box", "http://box:11434/v1", id="host"),
        pytest.param("box:1234", "http://box:1234/v1", id="host-port"),
        pytest.param(":1234", "http://127.0.0.1:1234/v1", id="port"),
        pytest.param("0.0.0.0", "http://127.0.0.1:11434/v1", id="any-host"),
        pytest.param("0.0.0.0:1234", "http://127.0.0.1:1234/v1", id="any-host-port"),
        pytest.param("http://box:1234", "http://box:1234/v1", id="scheme-port"),
        pytest.param("http://box", "http://box/v1", id="http-has-its-own-port"),
        pytest.param("https://box", "https://box/v1", id="https-has-its-own-port"),
        pytest.param("https://box/ollama/", "https://box/ollama/v1", id="path"),
        pytest.param("[::1]:1234", "http://[::1]:1234/v1", id="ipv6-port"),
        pytest.param('"box"', "http://box:11434/v1", id="quotes"),
        pytest.param("me:pw@box", "http://box:11434/v1", id="user-info"),
    ],
)
def test_parse_ollama_host(text, base_url):
    """`OLLAMA_HOST` is read as Ollama's own client reads it."""
    assert parse_ollama_host(text).base_url == base_url


@pytest.mark.parametrize(
    ("text", "secrets", "basic"),
    [
        pytest.param("http://me:p%40s@a", ("p%40s", "p@s", "bWU6cEBz"), "Basic bWU6cEBz", id="password"),
        pytest.param("http://token@a", ("token", "dG9rZW46"), "Basic dG9rZW46", id="only-a-user"),
        pytest.param("http://a", (), None, id="none"),
    ],
)
def test_user_info_is_secret(text, secrets, basic):
    """User info is sent as a header, listed as a secret, and shown nowhere."""
    address = parse_address(text, source="x")

    assert address.secrets == secrets
    assert address.basic_authorization() == basic
    assert not any(secret in repr(address) for secret in secrets)


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://api.openai.com/v1", True),
        ("https://93.184.216.34/v1", True),
        ("http://127.0.0.1:11434/v1", False),
        ("http://localhost:11434/v1", False),
        ("http://[::1]:8000/v1", False),
        ("http://192.168.1.20:8000/v1", False),
        ("http://gpu-box:8000/v1", False),
    ],
)
def test_is_public(url, public):
    """Only a server with a globally unique address may be in a list of prices."""
    assert parse_address(url, source="test").is_public is public


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a:1/v1", "http://a:1", True),
        ("http://localhost:1/v1", "http://127.0.0.1:1/v1", True),
        ("http://a:1/v1", "http://a:2/v1", False),
        ("http://a/x/v1", "http://a/v1", False),
        ("http://localhost:1", "http://127.0.0.2:1", False),
        ("https://localhost:1", "http://127.0.0.1:1", False),
    ],
)
def test_one_server_by_two_addresses(one, other, same):
    """Neither the API path nor the name of this machine makes it another server."""
    assert (Address(base_url=one).server == Address(base_url=other).server) is same


@settings(deadline=None)
@given(text=st.text(max_size=30))
def test_any_text_is_an_address_or_an_error(text):
    """No text breaks the parser, and an address parses to itself again."""
    for parse in (lambda: parse_address(text, source="x"), lambda: parse_ollama_host(text)):
        try:
            address = parse()
        except TargetError:
            continue
        assert parse_address(address.base_url, source="x").base_url == address.base_url


GOOGLE = "https://generativelanguage.googleapis.com/v1beta"
OLLAMAS = {"OLLAMA_HOST": "box:1234", "OLLAMA_OPENAI_BASE": "http://other/v1"}


@pytest.mark.parametrize(
    ("api", "name", "environ", "ini", "base_url", "is_local"),
    [
        pytest.param(CHAT, None, {}, None, "http://127.0.0.1:11434/v1", True, id="chat-default"),
        pytest.param(CHAT, None, {}, "http://ini:1/v1", "http://ini:1/v1", True, id="chat-ini"),
        pytest.param(CHAT, None, {"OLLAMA_HOST": "box:1234"}, "http://ini:1/v1", "http://box:1234/v1", True, id="chat-ollama-host"),
        pytest.param(CHAT, None, OLLAMAS, None, "http://other/v1", True, id="chat-base"),
        pytest.param(CHAT, "vllm", OLLAMAS, "http://gpu:8000/v1", "http://gpu:8000/v1", False, id="chat-endpoint"),
        *(pytest.param(CHAT, "lab", {}, f"http://{host}/v1", f"http://{host}/v1", True, id=host) for host in ("localhost", "ollama.localhost", "127.0.0.1", "[::1]")),
        *(pytest.param(CHAT, "lab", {}, f"http://{host}/v1", f"http://{host}/v1", False, id=host) for host in ("localhost.a.com", "127.0.0.1.a.com", "192.168.0.5", "0.0.0.0")),
        pytest.param(RESPONSES, None, {}, None, "https://api.openai.com/v1", False, id="responses-default"),
        pytest.param(RESPONSES, None, {}, "http://ini:1/v1", "http://ini:1/v1", False, id="responses-ini"),
        pytest.param(RESPONSES, None, {"OPENAI_BASE_URL": "http://gw/v1"}, "http://ini:1/v1", "http://gw/v1", False, id="responses-environment"),
        pytest.param(RESPONSES, "mine", {"OPENAI_BASE_URL": "http://gw/v1"}, "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1", True, id="responses-endpoint"),
        pytest.param(MESSAGES, None, {}, None, "https://api.anthropic.com/v1", False, id="messages-default"),
        pytest.param(MESSAGES, None, {}, "http://ini:1/v1", "http://ini:1/v1", False, id="messages-ini"),
        pytest.param(MESSAGES, None, {"ANTHROPIC_BASE_URL": "http://gw"}, "http://ini:1", "http://gw/v1", False, id="messages-environment"),
        pytest.param(MESSAGES, "mine", {"ANTHROPIC_BASE_URL": "http://gw"}, "http://127.0.0.1:9", "http://127.0.0.1:9/v1", True, id="messages-endpoint"),
        pytest.param(GEMINI, None, {}, None, GOOGLE, False, id="gemini-default"),
        pytest.param(GEMINI, None, {}, "http://ini:1", "http://ini:1/v1beta", False, id="gemini-ini"),
        pytest.param(GEMINI, None, {"GOOGLE_GEMINI_BASE_URL": "http://gw/gemini/"}, "http://ini:1", "http://gw/gemini/v1beta", False, id="gemini-environment"),
        pytest.param(GEMINI, None, {"GOOGLE_GEMINI_BASE_URL": f"{GOOGLE}/"}, None, GOOGLE, False, id="gemini-with-the-version"),
        pytest.param(GEMINI, "mine", {}, "http://localhost:9/v1beta", "http://localhost:9/v1beta", True, id="gemini-endpoint"),
        pytest.param(OLLAMA, None, {}, None, "http://127.0.0.1:11434", True, id="ollama-default"),
        pytest.param(OLLAMA, None, {}, "http://ini:1", "http://ini:1", True, id="ollama-ini"),
        pytest.param(OLLAMA, None, OLLAMAS, "http://ini:1", "http://box:1234", True, id="ollama-host-and-no-other-base"),
        pytest.param(OLLAMA, None, {"OLLAMA_HOST": "https://box/ollama/"}, None, "https://box/ollama", True, id="ollama-with-a-path"),
        pytest.param(OLLAMA, "lab", OLLAMAS, "http://gpu:11434/v1", "http://gpu:11434", False, id="ollama-endpoint"),
        pytest.param(OLLAMA, "lab", OLLAMAS, "http://gpu:11434/api/", "http://gpu:11434", False, id="ollama-endpoint-with-api"),
    ],
)  # fmt: skip
def test_address_of_a_provider(api, name, environ, ini, base_url, is_local):
    """The environment comes before the ini, and the ini before the vendor; an endpoint has its own address only."""
    provider = api.kind(ProviderSetup(name=name or api.kind.name, base_url=ini, environ=environ))

    assert (provider.address.base_url, provider.is_local) == (base_url, is_local)


@pytest.mark.parametrize("api", [CHAT, OLLAMA])
def test_an_endpoint_without_an_address(api):
    """A user's endpoint has no default address."""
    with pytest.raises(TargetError) as raised:
        api.kind(ProviderSetup(name="vllm"))

    assert str(raised.value) == "vllm: no address. Add one to its line in openclaw_endpoints."


KEY = "sk-very-secret-key-0123456789"


def shown(server):
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


@pytest.mark.parametrize(
    ("environ", "hint"),
    [({"MY_KEY": KEY}, "The key is in MY_KEY."), ({}, "Set MY_KEY.")],
    ids=["key", "no-key"],
)
def test_a_refused_key_is_named(api, server, environ, hint):
    """A 401 names the variable of the key."""
    server.enqueue(Script.answer({"error": {"message": "No."}}, status=401))
    setup = ProviderSetup(name="lab", base_url=server.url, key_env="MY_KEY", environ=environ)

    fault = ask(api.kind(setup))

    assert fault.message == f"lab: HTTP 401: No. {hint}"


@pytest.mark.parametrize("key", ["sk-with\nline", "sk-\x00nul", "sk-ümlaut"])
def test_a_key_that_does_not_fit_into_a_header(api, server, key):
    """Such a key is refused before the HTTP library would print it."""
    fault = ask(api.provider(server.url, **{api.key_env: key}))

    message = f"{api.kind.name}: {api.key_env} has characters that cannot be in a key."
    assert described(fault) == ("auth_missing", "auth_error", message, "")
    assert server.total == 0


@pytest.mark.parametrize("key", [None, KEY], ids=["no-key", "key"])
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
    """Whatever a server sends back, a session masks the key in the fault, and no cut leaves a part of it."""
    server.enqueue(script)
    provider = api.provider(server.url, **{api.key_env: KEY})
    redactor = Redactor.of(provider.secrets)

    with redactor.applied():
        fault = ask(provider, stream=stream)

    assert fault.failure_type
    shown = redactor.text(repr(fault))
    assert not any(KEY[start : start + 8] in shown for start in range(len(KEY) - 7))
