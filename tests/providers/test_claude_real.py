"""`claude_code_cli` with the real CLI, against a Messages API on loopback; never with a real key.

The CLI is the one that `tests/real_parts.py` installs.
"""

from __future__ import annotations

import os

import pytest

from pytest_openclaw.values.replies import Image, Reply
from pytest_openclaw.values.tool_calls import ToolCall
from tests.conftest import require_claude
from tests.images import png
from tests.providers.fake_claude import DUMMY_KEY, ask
from tests.providers.servers.messages import MessagesServer

pytestmark = [pytest.mark.claude, pytest.mark.usefixtures("scratch")]


@pytest.fixture(scope="module")
def real_claude():
    """The real CLI's command."""
    return require_claude()


@pytest.fixture
def home(tmp_path):
    """A HOME full of things that must not affect a request: instructions, rules, settings, hooks, servers."""
    home = tmp_path / "home"
    (home / ".claude" / "rules").mkdir(parents=True)
    (home / ".claude" / "CLAUDE.md").write_text("LEAKED instructions", encoding="utf-8")
    (home / ".claude" / "rules" / "rule.md").write_text("LEAKED rule", encoding="utf-8")
    hook = f'{{"hooks": [{{"type": "command", "command": "touch {home}/HOOK-RAN"}}]}}'
    (home / ".claude" / "settings.json").write_text(
        f'{{"outputStyle": "Explanatory", "hooks": {{"SessionStart": [{hook}], "Stop": [{hook}]}}}}',
        encoding="utf-8",
    )
    server = f'{{"command": "touch", "args": ["{home}/SERVER-RAN"]}}'
    (home / ".claude.json").write_text(f'{{"mcpServers": {{"leak": {server}}}}}', encoding="utf-8")
    return home


@pytest.fixture
def environ(real_claude, home):
    """An emptied environment with a dummy key, whose HOME must not be changed."""
    return {
        "OPENCLAW_CLAUDE_COMMAND": real_claude,
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ANTHROPIC_API_KEY": DUMMY_KEY,
    }


def files_under(folder):
    """All files of a folder with their contents."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def own_texts(body):
    """The texts of a request's messages that are not the CLI's own reminders."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [block["text"] for block in blocks if not block["text"].startswith("<system-reminder>")]


def blocks_of(message):
    """The blocks of a message; a text alone is one."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def test_an_answer(environ):
    """The real CLI's stream becomes a reply, with our own TTFT and the server's counts."""
    with MessagesServer("ok") as server:
        reply = ask(environ | {"ANTHROPIC_BASE_URL": server.url}, model="m1")

    assert (reply.text, reply.finish_reason, reply.effective_model) == ("Hello from stub", "end_turn", "m1")
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens) == (18, 5, 3)
    assert 0 < reply.timing.ttft_ms <= reply.timing.e2e_ms


def test_with_a_key_home_is_neither_read_nor_written(environ, home):
    """With a key nothing of HOME reaches the server, and nothing in HOME is changed."""
    before = files_under(home)
    with MessagesServer("ok") as server:
        ask(environ | {"ANTHROPIC_BASE_URL": server.url}, prompt="hi", system="Be brief.")

    (body,) = server.requests
    assert files_under(home) == before
    assert "LEAKED" not in str(body)
    assert server.headers[0]["x-api-key"] == DUMMY_KEY
    assert body["system"][-1]["text"] == "Be brief."
    assert (body["tools"], body["max_tokens"], own_texts(body)) == ([], 1024, ["hi"])


@pytest.mark.parametrize("turns", [(), ("And now?",)], ids=["alone", "before-a-turn"])
def test_pictures_reach_the_server(environ, turns):
    """The CLI passes on text and pictures of the prompt, byte by byte, and asks once for each message."""
    chart = Image(path="chart.png", media_type="image/png", data=png())
    with MessagesServer("ok") as server:
        reply = ask(
            environ | {"ANTHROPIC_BASE_URL": server.url}, prompt="/how many?", images=(chart,), turns=turns
        )

    assert isinstance(reply, Reply), reply
    assert reply.text == "Hello from stub"
    assert len(server.requests) == 1 + len(turns)
    for body in server.requests:
        (picture,) = [
            block for one in body["messages"] for block in blocks_of(one) if block["type"] == "image"
        ]
        source = picture["source"]
        assert (source["media_type"], source["data"]) == ("image/png", chart.base64)
    first = [block for block in blocks_of(server.requests[0]["messages"][0]) if block["type"] == "text"]
    assert [text for block in first if not (text := block["text"]).startswith("<system-")] == ["\n/how many?"]


@pytest.mark.nightly
def test_without_a_key_only_the_login_is_used(environ, home):
    """With the user's login: no instructions, rules, output style, hooks or servers of that HOME."""
    del environ["ANTHROPIC_API_KEY"]
    with MessagesServer("ok") as server:
        own = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_AUTH_TOKEN": "dummy-token"}
        reply = ask(environ | own, prompt="hi")

    (body,) = server.requests
    assert isinstance(reply, Reply)
    assert server.headers[0]["Authorization"] == "Bearer dummy-token"
    assert "LEAKED" not in str(body)
    assert "Explanatory" not in str(body)
    assert (body["tools"], own_texts(body)) == ([], ["hi"])
    assert not {"HOOK-RAN", "SERVER-RAN"} & set(files_under(home))


@pytest.mark.parametrize(
    "login", [pytest.param(False, id="key"), pytest.param(True, id="login", marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        pytest.param("--version", "--version", id="like-an-option"),
        pytest.param("/help", "\n/help", id="like-a-command"),
        pytest.param(
            "/unknown thing", "\n/unknown thing", id="like-an-unknown-command", marks=pytest.mark.nightly
        ),
        pytest.param("!ls", "!ls", id="like-a-shell-command", marks=pytest.mark.nightly),
        pytest.param("x" * 500_000, "x" * 500_000, id="long"),
        pytest.param("Read @{secret} please", "Read @{secret} please", id="a-file-of-this-machine"),
    ],
)
def test_the_prompt_reaches_the_model_as_it_is(environ, tmp_path, login, prompt, sent):
    """No prompt is mistaken for an option or a command, and none makes the CLI read a file."""
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET CONTENT", encoding="utf-8")
    if login:
        environ = {k: v for k, v in environ.items() if k != "ANTHROPIC_API_KEY"} | {
            "ANTHROPIC_AUTH_TOKEN": "dummy-token"
        }
    with MessagesServer("ok") as server:
        ask(environ | {"ANTHROPIC_BASE_URL": server.url}, prompt=prompt.replace("{secret}", str(secret)))

    (body,) = server.requests
    assert own_texts(body) == [sent.replace("{secret}", str(secret))]
    assert "SECRET CONTENT" not in str(body)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("level", "effort", "thinking"),
    [
        pytest.param(None, "high", "disabled", id="none"),
        pytest.param("low", "low", "adaptive", id="low"),
        pytest.param("xhigh", "xhigh", "adaptive", id="xhigh"),
    ],
)
def test_the_thinking_level_reaches_the_server(environ, level, effort, thinking):
    """A level is the request's effort; without one the request turns thinking off."""
    with MessagesServer("ok") as server:
        ask(environ | {"ANTHROPIC_BASE_URL": server.url}, model="opus", thinking_level=level)

    (body,) = server.requests
    assert (body["output_config"]["effort"], body["thinking"]["type"]) == (effort, thinking)


def test_a_tool_call_is_an_answer(environ):
    """A call of a tool is read from the stream, after one request; the CLI runs nothing."""
    with MessagesServer("tool_use") as server:
        reply = ask(environ | {"ANTHROPIC_BASE_URL": server.url})

    assert reply.tool_calls == (ToolCall(name="Bash", id="toolu_1", arguments='{"command": "echo hi"}'),)
    assert (reply.finish_reason, len(server.requests)) == ("tool_use", 1)


@pytest.mark.nightly
def test_a_refusal_is_reported_as_one(environ):
    """The API's refusal is a reply of its own kind, and no other model is asked instead."""
    with MessagesServer("refusal") as server:
        reply = ask(environ | {"ANTHROPIC_BASE_URL": server.url})

    assert (reply.text, reply.finish_reason, len(server.requests)) == ("", "refusal", 1)
    assert "unable to respond" in reply.refusal


@pytest.mark.parametrize(
    ("mode", "failure_type", "status", "retryable"),
    [
        pytest.param("400", "http_400", "error", False, id="400", marks=pytest.mark.nightly),
        pytest.param("401", "http_401", "auth_error", False, id="401"),
        pytest.param("403", "http_403", "auth_error", False, id="403", marks=pytest.mark.nightly),
        pytest.param("404", "model_not_found", "skipped_unavailable", False, id="404", marks=pytest.mark.nightly),
        pytest.param("429", "http_429", "rate_limited", True, id="429"),
        pytest.param("500", "http_500", "error", True, id="500", marks=pytest.mark.nightly),
        pytest.param("529", "http_529", "error", True, id="529", marks=pytest.mark.nightly),
        pytest.param("billing", "quota_exhausted", "rate_limited", False, id="no-credit", marks=pytest.mark.nightly),
        pytest.param("overflow", "context_overflow", "error", False, id="overflow", marks=pytest.mark.nightly),
        pytest.param("cut", "stream_error", "error", False, id="cut"),
        pytest.param("error_event", "stream_error", "error", False, id="error-event", marks=pytest.mark.nightly),
    ],
)  # fmt: skip
def test_errors_of_the_server(environ, mode, failure_type, status, retryable):
    """Each error of the server keeps its class on the way through the CLI, which retries none."""
    with MessagesServer(mode) as server:
        fault = ask(environ | {"ANTHROPIC_BASE_URL": server.url})

    assert (fault.failure_type, fault.status, fault.retryable) == (failure_type, status, retryable)
    assert len(server.requests) <= (2 if mode == "404" else 1), "404: the CLI itself looks twice"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mode", "raw", "timeout_s"),
    [
        pytest.param("silent", "", 3.0, id="nothing"),
        # Time enough for the CLI to start on a busy machine.
        pytest.param("hang", "Hello", 15.0, id="after-tokens"),
    ],
)
def test_a_server_that_hangs(environ, mode, raw, timeout_s):
    """After its time the attempt is a timeout; the CLI may withhold the last piece received."""
    with MessagesServer(mode) as server:
        fault = ask(environ | {"ANTHROPIC_BASE_URL": server.url}, timeout_s=timeout_s)

    assert fault.failure_type == "timeout"
    assert fault.raw.startswith(raw)


def test_not_logged_in(environ, tmp_path):
    """Without a key and with an empty HOME the CLI reports that no user is logged in; nothing is sent."""
    empty = tmp_path / "empty"
    empty.mkdir()
    del environ["ANTHROPIC_API_KEY"]
    with MessagesServer("ok") as server:
        fault = ask(environ | {"HOME": str(empty), "ANTHROPIC_BASE_URL": server.url})

    assert (fault.failure_type, fault.status, fault.scope) == ("auth_missing", "auth_error", "target")
    assert fault.message == (
        "claude_code_cli: the Claude CLI says: Not logged in · Please run /login."
        " Run `claude /login`, or set ANTHROPIC_API_KEY."
    )
    assert server.requests == []
