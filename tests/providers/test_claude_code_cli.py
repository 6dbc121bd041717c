"""`claude_code_cli` with a fake CLI: how it is called, how calls end, and scripted exchanges."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from msgspec import structs

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.providers import processes
from pytest_openclaw.providers.claude_code_cli import NO_MESSAGES
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool
from pytest_openclaw.values.worlds import ScriptedCommand, World
from pytest_openclaw.worlds.playing import answered_calls, final_state
from tests.providers.fake_claude import DUMMY_KEY, ask, command, dies, environ_of, provider_of
from tests.providers.servers.apis import READ
from tests.providers.servers.apis import ask as ask_provider

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is named in POSIX quoting"),
    pytest.mark.usefixtures("scratch"),
]
both_ways = pytest.mark.parametrize("key", [DUMMY_KEY, None], ids=["key", "login"])


@pytest.fixture
def report(tmp_path):
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


@both_ways
def test_model_limits_and_switches_are_the_same_in_both_modes(report, key, tmp_path):
    """Model, limits and switches are the same with a key and without; retries are ours."""
    environ = environ_of("report", key=key) | {"HOME": str(tmp_path)}
    call = report(environ, model="opus", max_output_tokens=77, timeout_s=12.5)
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
        pytest.param(None, [], "0", id="none"),
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
    ("prompt", "said"),
    [
        pytest.param("Say hello.", "Say hello.", id="plain"),
        pytest.param("--version", "--version", id="like-an-option"),
        pytest.param("/help me", "\n/help me", id="like-a-command-of-the-cli"),
        pytest.param("a\ud800b", "a\ufffdb", id="lone-surrogate"),
        pytest.param("\0 é 日本", "\0 é 日本", id="nul-and-unicode"),
        pytest.param("x" * 1_000_000, "x" * 1_000_000, id="a-megabyte"),
    ],
)
def test_the_prompt_goes_in_by_stdin(report, prompt, said):
    """No prompt is too long, or mistaken for an option or a command; none is among the arguments."""
    call = report(environ_of("report"), prompt=prompt)

    assert call["said"] == said
    assert not any(prompt in argument for argument in call["argv"])


def test_the_system_prompt_goes_in_by_file(report):
    """A system prompt may have any length and any beginning."""
    system = "--bare é " + "x" * 300_000
    call = report(environ_of("report"), system=system)

    assert call["system"] == system
    assert "--system-prompt" not in call["argv"]


TOOLS = (READ, Tool(name="home.light"))


@both_ways
def test_tools_go_in_by_a_server_of_ours(report, key, tmp_path):
    """The CLI finds our MCP server, which no proxy reaches, and gets a token for it; the CLI's own tools are off."""
    environ = environ_of("report", key=key) | {"HOME": str(tmp_path), "NO_PROXY": "intranet"}
    call = report(environ, tools=TOOLS)
    argv, env = call["argv"], call["env"]
    (server,) = call["mcp_servers"].values()

    assert list(call["mcp_servers"]) == ["openclaw"]
    assert [tool["name"] for tool in call["offer"]] == ["read", "home.light"]
    assert (server["type"], server["alwaysLoad"]) == ("http", True)
    assert server["url"].startswith("http://127.0.0.1:")
    assert env["NO_PROXY"] == env["no_proxy"] == "intranet,127.0.0.1"
    assert argv[argv.index("--tools") + 1] == ""
    assert argv[argv.index("--max-turns") + 1] == "1"
    assert "--strict-mcp-config" in argv
    assert "--allowedTools" not in argv
    assert (env["MCP_CONNECTION_NONBLOCKING"], env["ENABLE_TOOL_SEARCH"]) == ("0", "false")
    assert env["MCP_TIMEOUT"] == env["MCP_TOOL_TIMEOUT"] == "60000"
    assert call["cwd_files"] == []
    assert DUMMY_KEY not in json.dumps(call["mcp_servers"])


@pytest.mark.parametrize("request_of", [{"history": (Turn(text="Hi"),)}, {"messages": (Turn(user="Hi"),)}])
def test_earlier_messages_cannot_be_sent(request_of):
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

    found = (fault.failure_type, fault.status, fault.scope)
    assert found == ("not_installed", "skipped_unavailable", "endpoint")
    assert fault.message == (
        f"claude_code_cli: there is no command {word}. Install the Claude CLI"
        " (npm install -g @anthropic-ai/claude-code), or set OPENCLAW_CLAUDE_COMMAND."
    )


BY_KEY = {"auth": "api_key", "key_env": "ANTHROPIC_API_KEY", "base_url": None}
KEY = {"ANTHROPIC_API_KEY": DUMMY_KEY}
GATEWAY = KEY | {"ANTHROPIC_BASE_URL": "https://me:pass-word@gate.example/x"}
LOCAL = {"base_url": "http://127.0.0.1:8080/v1", "key_env": "LOCAL_KEY"}
OF_LOCAL = {"auth": "api_key", "key_env": "LOCAL_KEY", "base_url": "http://127.0.0.1:8080"}


@pytest.mark.parametrize(
    ("environ", "setup", "described", "endpoint", "is_local"),
    [
        pytest.param({}, {}, BY_KEY | {"auth": "login"}, "claude_code_cli", False, id="login"),
        pytest.param(KEY, {}, BY_KEY, "claude_code_cli", False, id="key"),
        pytest.param(GATEWAY, {}, BY_KEY | {"base_url": "https://gate.example/x"}, "claude_code_cli", False, id="gateway"),
        pytest.param(KEY, LOCAL, OF_LOCAL, "http://127.0.0.1:8080", True, id="endpoint"),
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

    fault = ask_provider(provider)

    assert fault.message == f"mine: the Claude CLI says: Not logged in. {hint}"


@pytest.mark.parametrize(
    ("key_env", "environ", "sent"),
    [
        pytest.param("LOCAL_KEY", {"LOCAL_KEY": "local-key"}, "local-key", id="named"),
        pytest.param("LOCAL_KEY", {}, None, id="named-without-a-value"),
        pytest.param(None, {}, "no-key", id="not-named"),
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
    ask_provider(provider)
    env = json.loads(path.read_text(encoding="utf-8"))["env"]

    assert (env["ANTHROPIC_BASE_URL"], env.get("ANTHROPIC_API_KEY")) == ("http://127.0.0.1:9", sent)
    assert "ANTHROPIC_AUTH_TOKEN" not in env


@pytest.mark.parametrize(
    ("mode", "fingerprint"),
    [
        pytest.param("version", {"cli_version": "2.1.332 (Claude Code)"}, id="fingerprint"),
        pytest.param("silent", {}, id="silent"),
    ],
)
def test_the_fingerprint_is_the_clis_version(mode, fingerprint):
    """The fingerprint is the version that the CLI reports."""
    assert asyncio.run(provider_of(environ_of(mode)).fingerprint("opus")) == fingerprint


CUT = {"word": "max_output_tokens", "text": "API Error: exceeded the maximum", "pieces": ["Hel", "lo"]}


@pytest.mark.parametrize(
    ("mode", "text", "finish_reason"),
    [
        pytest.param(("noisy",), "Hello", "end_turn", id="noise-on-both-streams"),
        pytest.param(("long_line",), "a" * (3 << 20), "end_turn", id="a-line-of-3-MiB"),
        pytest.param(("continued",), "Hello", "length", id="cut-by-the-output-limit"),
        pytest.param(("error", json.dumps(CUT)), "Hello", "length", id="cut-with-an-error"),
    ],
)
def test_answers_of_other_shapes(mode, text, finish_reason):
    """An answer is found among noise, in one piece, and without the CLI's own further requests."""
    reply = ask(environ_of(*mode))

    assert (reply.text == text, reply.finish_reason) == (True, finish_reason)


@pytest.mark.parametrize(
    ("mode", "failure_type", "message", "raw"),
    [
        pytest.param("max_turns", "cli_error", "the CLI ended with: Reached maximum number of turns (1).", "", id="another-subtype"),
        pytest.param("slash_command", "cli_error", "the CLI ended with: /help isn't available in this environment.", "", id="a-text-of-the-cli"),
        pytest.param("killed", "harness_error", "the CLI was killed by SIGKILL.", "Hel", id="killed-by-a-signal"),
        pytest.param("terminated", "harness_error", "the CLI ended with exit status 143 (SIGTERM).", "Hel", id="a-signal-that-it-handles"),
        pytest.param("plain_text", "cli_error", "the CLI ended with exit status 1: No such setting: effort.", "", id="plain-text"),
        pytest.param("unfinished", "cli_error", "the CLI ended with exit status 3.", "Hello", id="no-result-line"),
        pytest.param("silent", "cli_error", "the CLI ended with exit status 0.", "", id="silent"),
        pytest.param("usage_error", "cli_error", "the CLI ended with exit status 1: error: unknown option '--bare'.", "", id="words-on-stderr"),
    ],
)  # fmt: skip
def test_ends_without_an_answer(mode, failure_type, message, raw):
    """An abnormal end is reported with its reason, and the text so far is kept."""
    fault = ask(environ_of(mode))

    assert (fault.failure_type, fault.status) == (failure_type, "error")
    assert fault.message == f"claude_code_cli: {message}"
    assert (fault.raw, fault.retryable) == (raw, False)
    assert fault.timing.e2e_ms > 0


def test_cancelling_ends_the_cli(tmp_path, monkeypatch):
    """Ctrl-C cancels the request, and the CLI ends with it."""
    monkeypatch.setattr(processes, "GRACE_S", 0.3)
    pid_file = tmp_path / "pid"

    async def cancelled():
        provider = provider_of(environ_of("stubborn", str(pid_file)))
        task = asyncio.create_task(provider.ask(Request(model="m", prompt="hi")))
        while not (pid_file.exists() and pid_file.read_text(encoding="utf-8")):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    assert dies(int(pid_file.read_text(encoding="utf-8")))


LOGIN = "Run `claude /login`, or set ANTHROPIC_API_KEY."
NO_MODEL = "There's an issue with the selected model (m1). It may not exist or you may not have access to it."


@pytest.mark.parametrize(
    ("failure", "failure_type", "status", "reach", "message"),
    [
        pytest.param({"word": "authentication_failed", "text": "Not logged in · Please run /login"}, "auth_missing", "auth_error", "target", f"the Claude CLI says: Not logged in · Please run /login. {LOGIN}", id="not-logged-in"),
        pytest.param({"status": 401, "word": "authentication_failed", "text": f"Failed to authenticate. API Error: 401 not {DUMMY_KEY}"}, "http_401", "auth_error", "target", "HTTP 401: 401 not [secret]", id="401"),
        pytest.param({"status": 403, "word": "authentication_failed", "text": "Failed to authenticate. API Error: 403 no"}, "http_403", "auth_error", "cell", "HTTP 403: 403 no", id="403"),
        pytest.param({"status": 404, "word": "model_not_found", "text": NO_MODEL}, "model_not_found", "skipped_unavailable", "target", f"the server has no model 'm1': {NO_MODEL}", id="bad-model"),
        pytest.param({"status": 400, "word": "billing_error", "text": "Credit balance is too low"}, "quota_exhausted", "rate_limited", "target", "the quota or credit is used up: Credit balance is too low", id="no-credit"),
        pytest.param({"status": 429, "word": "rate_limit", "rejected": True, "text": "You've hit your session limit · resets 3am"}, "quota_exhausted", "rate_limited", "target", "the quota or credit is used up: You've hit your session limit · resets 3am", id="session-limit"),
        pytest.param({"status": 429, "word": "rate_limit", "text": "You've hit your weekly limit · resets 3am"}, "quota_exhausted", "rate_limited", "target", "the quota or credit is used up: You've hit your weekly limit · resets 3am", id="weekly-limit-only-in-words"),
        pytest.param({"status": 429, "word": "rate_limit", "text": "API Error: Request rejected (429) · slow down"}, "http_429", "rate_limited", "cell", "HTTP 429: Request rejected (429) · slow down", id="429"),
        pytest.param(
            {
                "status": 429,
                "word": "rate_limit",
                "text": "API Error: Server is temporarily limiting requests (not your usage limit)",
            },
            "http_429",
            "rate_limited",
            "cell",
            "HTTP 429: Server is temporarily limiting requests (not your usage limit)",
            id="429-not-the-usage-limit",
        ),
        pytest.param({"status": 400, "word": "unknown", "text": "API Error: 400 cannot generate separate rates"}, "http_400", "error", "cell", "HTTP 400: 400 cannot generate separate rates", id="400-with-rate-in-its-words"),
        pytest.param({"status": 400, "word": "invalid_request", "text": "Prompt is too long · 210000 tokens"}, "context_overflow", "error", "cell", "the prompt is longer than m1's context: Prompt is too long · 210000 tokens", id="overflow"),
        pytest.param(
            {
                "status": 400,
                "text": "API Error: 400 request (9 tokens) exceeds the available context size",
            },
            "context_overflow",
            "error",
            "cell",
            "the prompt is longer than m1's context: 400 request (9 tokens) exceeds the available context size",
            id="overflow-of-a-local-server",
        ),
        pytest.param({"status": 500, "word": "server_error", "text": "API Error: 500 oops"}, "http_500", "error", "cell", "HTTP 500: 500 oops", id="500"),
        pytest.param({"status": 529, "word": "server_error", "text": "API Error: 529 Overloaded"}, "http_529", "error", "cell", "HTTP 529: 529 Overloaded", id="529"),
        pytest.param({"word": "unknown", "text": "API Error: Overloaded"}, "http_529", "error", "cell", "HTTP 529: Overloaded", id="overloaded-inside-a-200"),
        pytest.param({"word": "unknown", "text": "API Error: Overloaded", "pieces": ["Hel"]}, "stream_error", "error", "cell", "the stream broke: API Error: Overloaded.", id="overloaded-after-tokens"),
        pytest.param({"word": "server_error", "text": "API Error: Unable to connect to API (ConnectionRefused)"}, "connect_error", "skipped_unavailable", "endpoint", "nothing answers at the Anthropic API (Unable to connect to API (ConnectionRefused)).", id="refused"),
        pytest.param({"word": "server_error", "text": "API Error: Unable to connect to API (FailedToOpenSocket)"}, "connect_error", "skipped_unavailable", "endpoint", "nothing answers at the Anthropic API (Unable to connect to API (FailedToOpenSocket)).", id="unknown-host"),
        pytest.param({"word": "server_error", "text": "API Error: Unable to connect to API (ECONNRESET)"}, "connect_error", "error", "cell", "the connection was lost before any answer (Unable to connect to API (ECONNRESET)).", id="reset"),
        pytest.param({"text": "API Error: API returned an empty or malformed response (HTTP 200)"}, "cli_error", "error", "cell", "API Error: API returned an empty or malformed response (HTTP 200)", id="malformed"),
        pytest.param({"word": "max_output_tokens", "text": "API Error: Claude's response exceeded the 64 output tokens."}, "cli_error", "error", "cell", "API Error: Claude's response exceeded the 64 output tokens.", id="output-limit-without-output"),
        pytest.param({"word": "new_kind", "text": "Something new happened"}, "cli_error", "error", "cell", "Something new happened", id="unknown-words"),
    ],
)  # fmt: skip
def test_failures_that_the_cli_reports(failure, failure_type, status, reach, message):
    """Each error is classified by its status, its word, and only then by its text; a session masks a secret."""
    fault = ask(environ_of("error", json.dumps(failure)))

    assert (fault.failure_type, fault.status, fault.scope) == (failure_type, status, reach)
    assert Redactor.of((DUMMY_KEY,)).text(fault.message) == f"claude_code_cli: {message}"
    assert fault.raw == "".join(failure.get("pieces", ()))
    assert fault.retryable == (
        failure_type in {"http_429", "http_500", "http_529"} or failure["text"].endswith("RESET)")
    )


CATALOGUE = load_catalogue().tools
PLAYED = (CATALOGUE["read"], CATALOGUE["write"], CATALOGUE["exec"])
WORLD = World(
    files={"notes.md": "buy milk"},
    commands=(
        ScriptedCommand(pattern="date", output="Monday"),
        ScriptedCommand(pattern="false", exit_code=1),
    ),
    steps=8,
)
READS = ["mcp__openclaw__read", '{"path": "notes.md"}']
WRITES = ["mcp__openclaw__write", '{"path": "done.md", "content": "milk"}']


def play(*turns, world=WORLD, **request):
    return ask(environ_of("plays", json.dumps(turns)), tools=PLAYED, world=world, **request)


def test_an_exchange():
    """Each turn keeps its text, calls and results; the exchange has the sums and the last text."""
    reply = play(["Let me look.", [READS]], ["", [WRITES, READS]], ["Done.", []])

    assert [(turn.text, [call.name for call in turn.calls]) for turn in reply.turns] == [
        ("Let me look.", ["read"]),
        ("", ["write", "read"]),
        ("Done.", []),
    ]
    assert reply.turns[0].results == ("buy milk",)
    assert len(reply.turns[1].results) == 2
    assert "done.md" in reply.turns[1].results[0]
    assert (reply.text, reply.raw, reply.ended_by) == ("Done.", "Let me look.\n\nDone.", "answer")
    assert (reply.finish_reason, reply.turns[0].finish_reason) == ("end_turn", "tool_use")
    assert [call.name for call in reply.tool_calls] == ["read", "write", "read"]
    assert [(turn.input_tokens, turn.output_tokens) for turn in reply.turns] == [(18, 3)] * 3
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (54, 9, 15)
    state = final_state(WORLD, PLAYED, answered_calls(reply).values())
    assert state.files == {"notes.md": "buy milk", "done.md": "milk"}


def test_a_world_that_cannot_be_played_is_our_own_fault(monkeypatch):
    """A pattern of the suite that is not decided in time says nothing about the model."""
    monkeypatch.setattr("pytest_openclaw.util.bounded.PATTERN_TIMEOUT_S", 0.05)
    world = World(commands=(ScriptedCommand(pattern="(?:x|xx)+y"),))
    fault = play(["Now.", [["mcp__openclaw__exec", json.dumps({"command": "x" * 200})]]], world=world)

    assert (fault.failure_type, fault.status, fault.raw) == ("harness_error", "error", "Now.")
    assert fault.message.startswith(
        'claude_code_cli: the server of the tools: the pattern "(?:x|xx)+y" cannot be decided'
    )


def test_messages_of_the_user_are_sent_after_answers():
    """The CLI stays, and so does the world; each message is sent when the answer before it has come."""
    reply = play(
        ["", [WRITES]],
        ["Done.", []],
        ["", [["mcp__openclaw__read", '{"path": "done.md"}']]],
        ["Milk.", []],
        ["SAID", []],
        prompt="/go",
        turns=("What is in it?", "Bye."),
    )

    assert [(turn.user, turn.text) for turn in reply.turns] == [
        (None, ""),
        (None, "Done."),
        ("What is in it?", ""),
        (None, "Milk."),
        ("Bye.", "\n/go | What is in it? | Bye."),
    ]
    assert (reply.turns[2].results, reply.ended_by) == (("milk",), "answer")
    assert (reply.input_tokens, reply.output_tokens) == (90, 15)
    assert [call.name for call in reply.tool_calls] == ["write", "read"]
    assert reply.timing.ttft_ms == reply.turns[0].timing.ttft_ms


def test_the_steps_are_those_of_each_message():
    """With each message the CLI has as many turns again; where they are used up, it ends."""
    world = structs.replace(WORLD, steps=2)
    first, second = ["", [READS]], ["Milk.", []]

    enough = play(first, second, first, second, world=world, turns=("Again.",))
    used_up = play(first, second, first, ["", [WRITES]], world=world, turns=("Again.", "Bye."))

    assert (enough.ended_by, len(enough.turns)) == ("answer", 4)
    assert (used_up.ended_by, [turn.user for turn in used_up.turns]) == (
        "step_limit",
        [None, None, "Again.", None],
    )


@pytest.mark.parametrize(
    ("mode", "request_", "message", "raw"),
    [
        # A reply without the tools says nothing about the model.
        pytest.param("unoffered", {"tools": TOOLS}, "the CLI does not offer 2 of the 2 tools: read, home.light (its server did not start).", "", id="no-tools"),
        # A request of its own after a cut answer, in place of the next message.
        pytest.param("continued", {"turns": ("And now?",)}, "next message was not sent", "Hello", id="it-continues-by-itself"),
        # Each answer has its own timeout, so their number is limited.
        pytest.param("endless", {"tools": PLAYED, "world": WORLD}, "the CLI sends more answers than were asked for.", "Hello\n\nHello", id="answers-without-end"),
    ],
)  # fmt: skip
def test_errors_of_the_cli(mode, request_, message, raw):
    """An answer of the CLI that breaks its format is a `cli_error`."""
    fault = ask(environ_of(mode), **request_)

    assert (fault.failure_type, fault.status) == ("cli_error", "error")
    assert message in fault.message
    assert fault.raw.startswith(raw)
