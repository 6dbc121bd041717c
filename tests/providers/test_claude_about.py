"""The description of `claude_code_cli`: endpoint, secrets, version."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.requests import Request
from tests.providers.fake_claude import DUMMY_KEY, ask, environ_of, provider_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fake is named in POSIX quoting")


@pytest.mark.parametrize(
    ("environ", "setup", "described", "endpoint", "is_local"),
    [
        pytest.param({}, {}, {"auth": "login", "key_env": "ANTHROPIC_API_KEY", "base_url": None}, "claude_code_cli", False, id="login"),
        pytest.param({"ANTHROPIC_API_KEY": DUMMY_KEY}, {}, {"auth": "api_key", "key_env": "ANTHROPIC_API_KEY", "base_url": None}, "claude_code_cli", False, id="key"),
        pytest.param(
            {"ANTHROPIC_API_KEY": DUMMY_KEY, "ANTHROPIC_BASE_URL": "https://me:pass-word@gate.example/x"},
            {},
            {"auth": "api_key", "key_env": "ANTHROPIC_API_KEY", "base_url": "https://gate.example/x"},
            "claude_code_cli",
            False,
            id="gateway",
        ),
        pytest.param(
            {"ANTHROPIC_API_KEY": DUMMY_KEY},
            {"base_url": "http://127.0.0.1:8080/v1", "key_env": "LOCAL_KEY"},
            {"auth": "api_key", "key_env": "LOCAL_KEY", "base_url": "http://127.0.0.1:8080"},
            "http://127.0.0.1:8080",
            True,
            id="endpoint",
        ),
    ],
)  # fmt: skip
def test_the_description(environ, setup, described, endpoint, is_local):
    """Description, endpoint and locality follow from the environment, and contain no key."""
    provider = provider_of(environ, **setup)

    assert (provider.describe(), provider.endpoint, provider.is_local) == (described, endpoint, is_local)


@pytest.mark.parametrize(
    ("environ", "setup", "source"),
    [
        pytest.param({"ANTHROPIC_BASE_URL": "ftp://x"}, {}, "ANTHROPIC_BASE_URL", id="environment"),
        pytest.param({}, {"name": "mine", "base_url": "http://[x"}, "mine", id="endpoint"),
    ],
)
def test_an_invalid_address_is_refused(environ, setup, source):
    """A wrong address is reported with its source when the provider is made."""
    with pytest.raises(TargetError) as refused:
        provider_of(environ, **setup)

    assert str(refused.value) == (
        f"{source}: this is no http:// or https:// address. Write for example http://127.0.0.1:8000/v1."
    )


@pytest.mark.parametrize(
    ("key_env", "hint"),
    [
        pytest.param("LOCAL_KEY", "Set LOCAL_KEY.", id="named"),
        pytest.param(None, "Name its key's variable in openclaw_endpoints.", id="not-named"),
    ],
)
def test_an_endpoint_without_its_key_names_the_hint(key_env, hint):
    """The hint is the endpoint's own, not a login with Anthropic."""
    failure = json.dumps({"word": "authentication_failed", "text": "Not logged in"})
    provider = provider_of(
        environ_of("error", failure), name="mine", base_url="http://127.0.0.1:9", key_env=key_env
    )
    with pytest.raises(CallFailed) as failed:
        asyncio.run(provider.ask(Request(model="m", prompt="hi")))

    assert str(failed.value) == f"mine: the Claude CLI says: Not logged in. {hint}"


def test_secrets_are_named():
    """Keys, tokens and a password in the address are listed, so that they are written nowhere."""
    provider = provider_of(
        {
            "ANTHROPIC_API_KEY": DUMMY_KEY,
            "ANTHROPIC_AUTH_TOKEN": "token-1",
            "CLAUDE_CODE_OAUTH_TOKEN": "token-2",
            "ANTHROPIC_BASE_URL": "https://me:pass-word@gate.example",
        }
    )

    assert set(provider.secrets) == {DUMMY_KEY, "token-1", "token-2", "pass-word", "bWU6cGFzcy13b3Jk"}


def test_a_secret_that_the_cli_repeats_is_hidden():
    """A message never contains the key, even if the server's message does."""
    failure = {"status": 401, "text": f"API Error: 401 bad key {DUMMY_KEY}"}
    fault = ask(environ_of("error", json.dumps(failure)))

    assert fault.message == "claude_code_cli: HTTP 401: bad key [secret]"


@pytest.mark.parametrize(
    "credentials",
    [
        pytest.param({"ANTHROPIC_API_KEY": DUMMY_KEY}, id="key"),
        pytest.param({"ANTHROPIC_AUTH_TOKEN": "token"}, id="login"),
    ],
)
def test_the_server_of_the_environment_gets_the_credentials(tmp_path, credentials):
    """ANTHROPIC_BASE_URL replaces Anthropic, and the key or login stays the same."""
    path = tmp_path / "report.json"
    server = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/gate"}
    provider = provider_of(environ_of("report", str(path)) | server | credentials)
    asyncio.run(provider.ask(Request(model="m", prompt="hi")))
    env = json.loads(path.read_text(encoding="utf-8"))["env"]

    assert {name: env.get(name) for name in server | credentials} == server | credentials


@pytest.mark.parametrize(
    ("key_env", "environ", "sent"),
    [
        pytest.param("LOCAL_KEY", {"LOCAL_KEY": "local-key"}, "local-key", id="the-key-it-names"),
        pytest.param("LOCAL_KEY", {}, None, id="named-but-not-set"),
        pytest.param(None, {}, "no-key", id="none-named"),
    ],
)
def test_an_endpoint_gets_only_the_key_that_it_names(tmp_path, key_env, environ, sent):
    """A user's endpoint gets neither their Anthropic key nor their login."""
    path = tmp_path / "report.json"
    provider = provider_of(
        environ_of("report", str(path)) | {"ANTHROPIC_AUTH_TOKEN": "token"} | environ,
        name="mine",
        base_url="http://127.0.0.1:9/v1",
        key_env=key_env,
    )
    asyncio.run(provider.ask(Request(model="m", prompt="hi")))
    env = json.loads(path.read_text(encoding="utf-8"))["env"]

    assert (env["ANTHROPIC_BASE_URL"], env.get("ANTHROPIC_API_KEY")) == ("http://127.0.0.1:9", sent)
    assert "ANTHROPIC_AUTH_TOKEN" not in env


@pytest.mark.parametrize(
    ("mode", "fingerprint"),
    [
        pytest.param("version", {"cli_version": "2.1.197 (Claude Code)"}, id="fingerprint"),
        pytest.param("silent", {}, id="silent"),
    ],
)
def test_the_fingerprint_is_the_clis_version(mode, fingerprint):
    """The fingerprint is the version that the CLI reports."""
    assert asyncio.run(provider_of(environ_of(mode)).fingerprint("opus")) == fingerprint


def test_models_cannot_be_listed():
    """A `*` in a spec is refused with a hint, because the CLI lists no models."""
    with pytest.raises(CallFailed) as failed:
        asyncio.run(provider_of({}).models())

    assert str(failed.value) == (
        "claude_code_cli: the Claude CLI does not list its models."
        " Name one, for example claude_code_cli/opus."
    )
