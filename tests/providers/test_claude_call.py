"""How `claude_code_cli` calls the CLI, seen by a fake CLI."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from pytest_openclaw.providers.claude_code_cli import NO_MESSAGES
from pytest_openclaw.providers.mcp_tools import dump_offer
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool
from tests.providers.fake_claude import DUMMY_KEY, ask, command, environ_of, provider_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fake is named in POSIX quoting")


@pytest.fixture
def report(tmp_path):
    """Ask the fake that records how it was called, and return its record."""

    def asked(environ, **request):
        path = tmp_path / "report.json"
        reply = ask(environ | {"OPENCLAW_CLAUDE_COMMAND": command("report", str(path))}, **request)
        assert isinstance(reply, Reply), reply
        return json.loads(path.read_text(encoding="utf-8"))

    return asked


def test_with_a_key_the_cli_runs_bare_in_an_emptied_environment(report):
    """With ANTHROPIC_API_KEY: --bare, a fresh folder as HOME, and no other environment variable."""
    environ = environ_of("report") | {
        "HOME": "/home/somebody",
        "OPENAI_API_KEY": "other-key",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "CLAUDE_CODE_OAUTH_TOKEN": "token",
    }
    call = report(environ)
    env = call["env"]

    assert "--bare" in call["argv"]
    assert call["leads_its_group"]
    assert (call["cwd_files"], call["home_files"]) == ([], [])
    assert Path(env["HOME"]).parent == Path(call["cwd"]).parent
    assert set(env) & {"OPENAI_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "OPENCLAW_CLAUDE_COMMAND"} == set()
    assert env["ANTHROPIC_API_KEY"] == DUMMY_KEY
    assert env["ANTHROPIC_BASE_URL"] == env["HTTPS_PROXY"] == "http://127.0.0.1:9"
    assert env["PATH"] == "/usr/bin:/bin"


def test_without_a_key_the_cli_keeps_the_login_and_nothing_else(report, tmp_path):
    """Without a key: the user's HOME and environment, no --bare, but no settings, servers or tools."""
    environ = environ_of("report", key=None) | {
        "HOME": str(tmp_path),
        "ANTHROPIC_AUTH_TOKEN": "token",
        "CLAUDE_CODE_EFFORT_LEVEL": "max",
        "MAX_THINKING_TOKENS": "777",
        "CLAUDECODE": "1",
    }
    call = report(environ, thinking_level="low")
    argv, env = call["argv"], call["env"]

    assert "--bare" not in argv
    assert argv[argv.index("--setting-sources") + 1] == argv[argv.index("--tools") + 1] == ""
    assert {"--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"} < set(argv)
    assert (env["HOME"], env["ANTHROPIC_AUTH_TOKEN"]) == (str(tmp_path), "token")
    assert set(env) & {"CLAUDE_CODE_EFFORT_LEVEL", "MAX_THINKING_TOKENS", "CLAUDECODE"} == set()
    assert call["cwd_files"] == []


@pytest.mark.parametrize("key", [pytest.param(DUMMY_KEY, id="key"), pytest.param(None, id="login")])
def test_model_limits_and_switches_are_the_same_in_both_modes(report, key, tmp_path):
    """Model, limits and switches are the same with a key and without; retries are ours."""
    call = report(
        environ_of("report", key=key) | {"HOME": str(tmp_path)},
        model="opus",
        max_output_tokens=77,
        timeout_s=12.5,
    )
    argv, env = call["argv"], call["env"]

    assert argv[argv.index("--model") + 1] == "opus"
    assert argv[argv.index("--output-format") + 1] == "stream-json"
    assert argv[argv.index("--max-turns") + 1] == "1"
    assert argv[argv.index("--system-prompt") + 1] == ""
    assert {"--verbose", "--include-partial-messages"} < set(argv)
    expected = {
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "77",
        "API_TIMEOUT_MS": "12500",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
        "DISABLE_TELEMETRY": "1",
    }
    assert {name: env.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("level", "effort", "thinking"),
    [
        pytest.param(None, [], "0", id="none-is-no-thinking"),
        pytest.param("low", ["--effort", "low"], None, id="low"),
        pytest.param("xhigh", ["--effort", "xhigh"], None, id="xhigh"),
    ],
)
def test_the_thinking_level_is_the_effort(report, level, effort, thinking):
    """A thinking level is `--effort`; without one, thinking is off, as in every other API."""
    call = report(environ_of("report"), thinking_level=level)
    argv = call["argv"]
    given = argv[argv.index("--effort") :][:2] if "--effort" in argv else []

    assert (given, call["env"].get("MAX_THINKING_TOKENS")) == (effort, thinking)


@pytest.mark.parametrize(
    ("prompt", "stdin"),
    [
        pytest.param("Say hello.", "Say hello.", id="plain"),
        pytest.param("--version", "--version", id="like-an-option"),
        pytest.param("/help me", "\n/help me", id="like-a-command-of-the-cli"),
        pytest.param("a\ud800b", "a\ufffdb", id="lone-surrogate"),
        pytest.param("\0 é 日本", "\0 é 日本", id="nul-and-unicode"),
        pytest.param("x" * 1_000_000, "x" * 1_000_000, id="a-megabyte"),
    ],
)
def test_the_prompt_goes_in_by_stdin(report, prompt, stdin):
    """No prompt is too long, or mistaken for an option or a command; none is among the arguments."""
    call = report(environ_of("report"), prompt=prompt)

    assert call["stdin"] == stdin
    assert not any(prompt in argument for argument in call["argv"])


def test_the_system_prompt_goes_in_by_file(report):
    """A system prompt may have any length and any beginning."""
    system = "--bare é " + "x" * 300_000
    call = report(environ_of("report"), system=system)

    assert call["system"] == system
    assert "--system-prompt" not in call["argv"]


TOOLS = (
    Tool(
        name="read",
        description="Reads a file.",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    ),
    Tool(name="home.light"),
)


@pytest.mark.parametrize("key", [pytest.param(DUMMY_KEY, id="key"), pytest.param(None, id="login")])
def test_tools_go_in_by_a_server_of_ours(report, key, tmp_path):
    """Tools are in a file that our MCP server reads; the CLI's own are off, and none is allowed to run."""
    call = report(environ_of("report", key=key) | {"HOME": str(tmp_path)}, tools=TOOLS)
    argv, env = call["argv"], call["env"]
    (server,) = call["mcp_servers"].values()

    assert list(call["mcp_servers"]) == ["openclaw"]
    assert call["offer"] == json.loads(dump_offer(TOOLS, None))
    assert (server["type"], server["command"], server["alwaysLoad"]) == ("stdio", sys.executable, True)
    assert server["args"][:-1] == ["-P", "-m", "pytest_openclaw.providers.mcp_tools"]
    assert argv[argv.index("--tools") + 1] == ""
    assert argv[argv.index("--max-turns") + 1] == "1"
    assert "--strict-mcp-config" in argv
    assert "--allowedTools" not in argv
    assert (env["MCP_CONNECTION_NONBLOCKING"], env["ENABLE_TOOL_SEARCH"]) == ("0", "false")
    assert env["MCP_TIMEOUT"] == env["MCP_TOOL_TIMEOUT"] == "60000"
    assert call["cwd_files"] == []


@pytest.mark.parametrize("key", [pytest.param(DUMMY_KEY, id="key"), pytest.param(None, id="login")])
def test_the_server_of_tools_gets_no_secret(report, key, tmp_path):
    """Every variable that the CLI passes on to a server is emptied, except those that Python needs."""
    environ = environ_of("report", key=key) | {"HOME": str(tmp_path), "OPENAI_API_KEY": "other-key"}
    call = report(environ, tools=TOOLS)
    (server,) = call["mcp_servers"].values()
    passed = {**call["env"], **server["env"]}

    assert {name for name, value in passed.items() if value} - {"LC_CTYPE"} == {"PATH", "PYTHONPATH"}
    assert DUMMY_KEY not in json.dumps(call["mcp_servers"])


def test_tools_that_the_cli_does_not_offer_are_no_answer():
    """A reply without the tools says nothing about the model: it is the CLI's error, which names them."""
    fault = ask(environ_of("unoffered"), tools=TOOLS)

    assert (fault.failure_type, fault.status, fault.raw) == ("cli_error", "error", "")
    assert fault.message == (
        "claude_code_cli: the CLI does not offer 2 of the 2 tools: read, home.light (its server did not start)."
    )


@pytest.mark.parametrize("request_of", [{"history": (Turn(text="Hi"),)}, {"messages": (Turn(user="Hi"),)}])
def test_earlier_messages_are_not_asked(request_of):
    """The CLI has no way of taking them, so the cell is unavailable, and nothing is started."""
    fault = ask(environ_of("hello"), **request_of)

    assert (fault.status, fault.sent, fault.scope) == ("skipped_unavailable", False, "cell")
    assert fault.message == f"claude_code_cli: not asked: {NO_MESSAGES}"


@pytest.mark.parametrize(
    ("environ", "word"),
    [
        pytest.param({}, "'claude'", id="not-on-path"),
        pytest.param({"OPENCLAW_CLAUDE_COMMAND": "/no/such/claude -x"}, "'/no/such/claude'", id="named"),
        pytest.param({"OPENCLAW_CLAUDE_COMMAND": "claude 'open"}, '"claude \'open"', id="open-quote"),
        pytest.param({"OPENCLAW_CLAUDE_COMMAND": "  "}, "'  '", id="blanks"),
    ],
)
def test_no_cli(tmp_path, environ, word):
    """A missing CLI is unavailable, for every cell, with the hint."""
    fault = ask(environ | {"PATH": str(tmp_path)})

    assert (fault.failure_type, fault.status, fault.scope) == (
        "not_installed",
        "skipped_unavailable",
        "endpoint",
    )
    assert fault.message == (
        f"claude_code_cli: there is no command {word}. Install the Claude CLI"
        " (npm install -g @anthropic-ai/claude-code), or set OPENCLAW_CLAUDE_COMMAND."
    )


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


def test_a_secret_that_the_cli_repeats_is_hidden():
    """A message never contains the key, even if the server's message does."""
    failure = {"status": 401, "text": f"API Error: 401 bad key {DUMMY_KEY}"}
    fault = ask(environ_of("error", json.dumps(failure)))

    assert fault.message == "claude_code_cli: HTTP 401: 401 bad key [secret]"


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
