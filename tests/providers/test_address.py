"""Base URLs as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.address import (
    Address,
    is_loopback,
    parse_address,
    parse_ollama_host,
)
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.values.protocols import ProviderSetup
from tests.providers.servers.apis import CHAT, GEMINI, MESSAGES, RESPONSES
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
        pytest.param("http://me:pw@a:1/v1", "http://a:1/v1", id="user-info-is-not-shown"),
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
def test_no_address(text):
    """Text that is no HTTP address is an error that names its source and quotes nothing of it."""
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
        pytest.param(
            "http://me:p%40ss@a", ("p%40ss", "p@ss", "bWU6cEBzcw=="), "Basic bWU6cEBzcw==", id="password"
        ),
        pytest.param("http://token@a", ("token", "dG9rZW46"), "Basic dG9rZW46", id="user-alone"),
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
    ("host", "loopback"),
    [
        ("localhost", True),
        ("ollama.localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("192.168.0.5", False),
        ("0.0.0.0", False),
        ("", False),
    ],
)
def test_is_loopback(host, loopback):
    """A host is this machine if its name or number says so, without a network request."""
    assert is_loopback(host) is loopback


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


# --- of each provider ---------------------------------------------------------------------------

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

    assert str(raised.value) == "vllm: has no address. Give it one in its line of openclaw_endpoints."
