"""`claude_code_cli` with the real CLI, against a Messages API on loopback; never with a real key."""

import json
import os

import pytest

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.providers.claude_code_cli import ToolServer
from pytest_openclaw.providers.loopback import Outgoing
from pytest_openclaw.values.replies import Image, Reply
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from pytest_openclaw.values.worlds import ScriptedCommand, World
from pytest_openclaw.worlds.playing import Playing, answered_calls, final_state
from tests.conftest import require_claude
from tests.images import png
from tests.providers.fake_claude import DUMMY_KEY, ask
from tests.providers.servers.messages import MessagesServer, Text, ToolUse

pytestmark = [pytest.mark.claude, pytest.mark.usefixtures("scratch")]
both_ways = pytest.mark.parametrize(
    "environ", [pytest.param("key", marks=pytest.mark.nightly), "login"], indirect=True
)


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    (home / ".claude" / "rules").mkdir(parents=True)
    (home / ".claude" / "CLAUDE.md").write_text("LEAKED instructions", encoding="utf-8")
    (home / ".claude" / "rules" / "rule.md").write_text("LEAKED rule", encoding="utf-8")
    hooks = [{"hooks": [{"type": "command", "command": f"touch {home}/HOOK-RAN"}]}]
    settings = {"outputStyle": "Explanatory", "hooks": {"SessionStart": hooks, "Stop": hooks}}
    (home / ".claude" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    leak = {"mcpServers": {"leak": {"command": "touch", "args": [f"{home}/SERVER-RAN"]}}}
    (home / ".claude.json").write_text(json.dumps(leak), encoding="utf-8")
    yield home
    assert not {"HOOK-RAN", "SERVER-RAN"} & set(files_under(home))


@pytest.fixture
def environ(request, home):
    """An emptied environment with that HOME, and with a dummy key or a dummy login."""
    way_in = "ANTHROPIC_AUTH_TOKEN" if getattr(request, "param", "key") == "login" else "ANTHROPIC_API_KEY"
    path = os.environ["PATH"]
    return {"OPENCLAW_CLAUDE_COMMAND": require_claude(), "PATH": path, "HOME": str(home), way_in: DUMMY_KEY}


def at(server, environ):
    return environ | {"ANTHROPIC_BASE_URL": server.url}


def files_under(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def own_texts(body):
    """The texts that the plugin sent; the CLI adds only reminders, and to a login its environment."""
    blocks = [block for message in body["messages"] for block in blocks_of(message)]
    cli = ("<system-reminder>", "# Environment\n")
    return [block["text"] for block in blocks if not block["text"].startswith(cli)]


def blocks_of(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def test_an_answer(environ):
    """The real CLI's stream becomes a reply, with our own TTFT and the server's counts."""
    with MessagesServer() as server:
        reply = ask(at(server, environ))

    assert (reply.text, reply.finish_reason, reply.effective_model) == ("Hello from stub", "end_turn", "m1")
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens) == (18, 5, 3)
    assert 0 < reply.timing.ttft_ms <= reply.timing.e2e_ms


def test_with_a_key_home_is_neither_read_nor_written(environ, home):
    """With a key nothing of HOME reaches the server, and nothing in HOME is changed."""
    before = files_under(home)
    with MessagesServer() as server:
        ask(at(server, environ), prompt="hi", system="Be brief.")

    (body,) = server.requests
    assert files_under(home) == before
    assert "LEAKED" not in str(body)
    assert server.headers[0]["x-api-key"] == DUMMY_KEY
    assert body["system"][-1]["text"] == "Be brief."
    assert (body["tools"], body["max_tokens"], own_texts(body)) == ([], 1024, ["hi"])


@pytest.mark.parametrize("turns", [(), ("And now?",)], ids=["one-message", "two-messages"])
def test_images_reach_the_server(environ, turns):
    """The CLI passes on text and images of the prompt, byte by byte, and asks once for each message."""
    chart = Image(path="chart.png", media_type="image/png", data=png())
    with MessagesServer() as server:
        reply = ask(at(server, environ), prompt="/how many?", images=(chart,), turns=turns)

    assert isinstance(reply, Reply), reply
    assert reply.text == "Hello from stub"
    assert len(server.requests) == 1 + len(turns)
    for body in server.requests:
        blocks = [block for one in body["messages"] for block in blocks_of(one)]
        (source,) = [block["source"] for block in blocks if block["type"] == "image"]
        assert (source["media_type"], source["data"]) == ("image/png", chart.base64)
    first = [block for block in blocks_of(server.requests[0]["messages"][0]) if block["type"] == "text"]
    assert [text for block in first if not (text := block["text"]).startswith("<system-")] == ["\n/how many?"]


@pytest.mark.nightly
@pytest.mark.parametrize("environ", ["login"], indirect=True)
def test_without_a_key_only_the_login_is_used(environ):
    """With the user's login: no instructions, rules or output style of that HOME."""
    with MessagesServer() as server:
        reply = ask(at(server, environ), prompt="hi")

    (body,) = server.requests
    assert isinstance(reply, Reply)
    assert server.headers[0]["authorization"] == f"Bearer {DUMMY_KEY}"
    assert "LEAKED" not in str(body)
    assert "Explanatory" not in str(body)
    assert (body["tools"], own_texts(body)) == ([], ["hi"])


@pytest.mark.parametrize("environ", ["key", pytest.param("login", marks=pytest.mark.nightly)], indirect=True)
@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        pytest.param("--version", "--version", id="like-an-option"),
        pytest.param("/help", "\n/help", id="like-a-command"),
        pytest.param("/no such", "\n/no such", id="like-an-unknown-command", marks=pytest.mark.nightly),
        pytest.param("!ls", "!ls", id="like-a-shell-command", marks=pytest.mark.nightly),
        pytest.param("x" * 500_000, "x" * 500_000, id="long"),
        pytest.param("Read @{secret} please", "Read @{secret} please", id="a-file-of-this-machine"),
    ],
)
def test_the_prompt_reaches_the_model_unchanged(environ, tmp_path, prompt, sent):
    """No prompt is mistaken for an option or a command, and none makes the CLI read a file."""
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET CONTENT", encoding="utf-8")
    with MessagesServer() as server:
        ask(at(server, environ), prompt=prompt.replace("{secret}", str(secret)))

    (body,) = server.requests
    assert own_texts(body) == [sent.replace("{secret}", str(secret))]
    assert "SECRET CONTENT" not in str(body)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("model", "level", "effort", "thinking"),
    [
        pytest.param("claude-opus-5", None, "high", "disabled", id="none"),
        pytest.param("claude-opus-5-5", None, "medium", "adaptive", id="none-where-it-cannot-be-off"),
        pytest.param("claude-opus-5", "low", "low", "adaptive", id="low"),
        pytest.param("opus", "xhigh", "xhigh", "adaptive", id="xhigh"),
    ],
)
def test_the_thinking_level_reaches_the_server(environ, model, level, effort, thinking):
    """A level is the request's effort; without one the request turns thinking off, if the model allows it."""
    with MessagesServer() as server:
        ask(at(server, environ), model=model, thinking_level=level)

    (body,) = server.requests
    assert (body["output_config"]["effort"], body["thinking"]["type"]) == (effort, thinking)


@pytest.mark.nightly
def test_a_refusal(environ):
    """The API's refusal is an outcome of its own, and no other model is asked instead."""
    with MessagesServer("refusal") as server:
        reply = ask(at(server, environ))

    assert (reply.text, reply.finish_reason, len(server.requests)) == ("", "refusal", 1)
    assert "safeguards flagged this message" in reply.refusal


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
        fault = ask(at(server, environ))

    assert (fault.failure_type, fault.status, fault.retryable) == (failure_type, status, retryable)
    most = 2 if mode in ("400", "404") else 1  # after 400 without a beta; after 404 the CLI looks twice
    assert len(server.requests) <= most


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
        fault = ask(at(server, environ), timeout_s=timeout_s)

    assert fault.failure_type == "timeout"
    assert fault.raw.startswith(raw)


def test_not_logged_in(environ, tmp_path):
    """Without a key and with an empty HOME the CLI reports that no user is logged in; nothing is sent."""
    empty = tmp_path / "empty"
    empty.mkdir()
    del environ["ANTHROPIC_API_KEY"]
    with MessagesServer() as server:
        fault = ask(at(server, environ | {"HOME": str(empty)}))

    assert (fault.failure_type, fault.status, fault.scope) == ("auth_missing", "auth_error", "target")
    assert server.requests == []


CATALOGUE = load_catalogue().tools
READ, EXEC, WRITE = CATALOGUE["read"], CATALOGUE["exec"], CATALOGUE["write"]
LIGHT = Tool(name="home.light", description="Turns a light on or off.")


def use(tool, number=1, **arguments):
    return ToolUse(f"mcp__openclaw__{tool}", json.dumps(arguments), f"toolu_{number}")


@both_ways
def test_one_question_with_a_call(environ):
    """The model is offered only our tools, unchanged, and its calls are the answer: nothing is executed."""
    bash = ToolUse("Bash", '{"command": "echo hi"}', "toolu_2")
    turns = [[Text("Let me look."), use("read", path="notes.md"), bash]]
    with MessagesServer(turns=turns) as server:
        reply = ask(at(server, environ), tools=(READ, LIGHT))

    (body,) = server.requests
    offered = {tool["name"]: (tool["description"], tool["input_schema"]) for tool in body["tools"]}
    assert offered == {
        "mcp__openclaw__read": (READ.description, READ.parameters),
        "mcp__openclaw__home_light": (LIGHT.description, LIGHT.parameters),
    }
    assert "tool_choice" not in body
    assert reply.tool_calls == (
        ToolCall(name="read", id="toolu_1", arguments='{"path": "notes.md"}'),
        ToolCall(name="Bash", id="toolu_2", arguments='{"command": "echo hi"}'),
    )
    assert (reply.text, reply.finish_reason, reply.output_tokens) == ("Let me look.", "tool_use", 3)
    assert 0 < reply.timing.ttft_ms <= reply.timing.e2e_ms
    assert (reply.turns, reply.ended_by) == ((), None)


@pytest.mark.nightly
def test_a_server_that_does_not_start_is_an_error(environ, monkeypatch):
    """Without our server the model has no tools; the CLI accepts that, but we do not."""

    async def refuse(*_):
        return Outgoing(500)

    monkeypatch.setattr(ToolServer, "answer", refuse)
    with MessagesServer() as server:
        fault = ask(at(server, environ), tools=(READ,))

    assert (fault.failure_type, fault.status) == ("cli_error", "error")
    assert "its server did not start" in fault.message


def test_no_proxy_is_between_the_cli_and_our_server(environ):
    """A proxy in the environment, which could not reach our server, does not get its requests."""
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    with MessagesServer(turns=[[use("read", path="notes.md")], [Text("Milk.")]]) as server:
        reply = ask(at(server, environ | proxies), tools=TOOLS, world=WORLD)

    assert [turn.results for turn in reply.turns] == [("buy milk",), ()]


TOOLS = (READ, WRITE, EXEC)
WORLD = World(
    files={"notes.md": "buy milk", "long.md": "a line of text\n" * 20_000},
    commands=(ScriptedCommand(pattern="date", output="Monday"),),
    steps=4,
)


def own_answers(*calls):
    playing = Playing(WORLD, TOOLS)
    return [playing.answer(ToolCall(name=name, arguments=json.dumps(given))) for name, given in calls]


def results_in(body):
    blocks = [block for block in body["messages"][-1]["content"] if block["type"] == "tool_result"]
    return {block["tool_use_id"]: block["content"] for block in blocks}


def play(environ, *turns, world=WORLD, **request):
    with MessagesServer(turns=turns) as server:
        outcome = ask(at(server, environ), tools=TOOLS, world=world, **request)
    return outcome, server.requests


@both_ways
def test_an_exchange_of_two_turns(environ):
    """The second request has the result that our world gave, and its answer is the reply's text."""
    reply, requests = play(environ, [Text("Look."), use("read", path="notes.md")], [Text("Milk.")])

    _, second = requests
    assert results_in(second) == {"toolu_1": [{"type": "text", "text": "buy milk"}]}
    assert [(turn.text, turn.results) for turn in reply.turns] == [("Look.", ("buy milk",)), ("Milk.", ())]
    assert (reply.text, reply.ended_by, reply.finish_reason) == ("Milk.", "answer", "end_turn")
    assert reply.tool_calls == (ToolCall(name="read", id="toolu_1", arguments='{"path": "notes.md"}'),)
    assert (reply.input_tokens, reply.output_tokens, reply.effective_model) == (36, 6, "m1")
    first, last = (turn.timing for turn in reply.turns)
    assert reply.timing.ttft_ms == first.ttft_ms > last.ttft_ms
    assert reply.timing.e2e_ms >= first.e2e_ms + last.e2e_ms


@pytest.mark.nightly
def test_several_calls_of_a_turn_change_the_world_in_their_order(environ, tmp_path):
    """Calls are carried out one after the other, only in the world; no file of the machine is changed."""
    calls = [
        ("write", {"path": "a.md", "content": "one"}),
        ("read", {"path": "a.md"}),
        ("exec", {"command": "date"}),
        ("exec", {"command": f"touch {tmp_path}/ran"}),
        ("exec", {}),
        ("read", {"path": "/etc/passwd"}),
        ("read", {"path": "long.md"}),
    ]
    turn = [use(name, number, **given) for number, (name, given) in enumerate(calls, 1)]
    reply, requests = play(environ, turn, [use("write", 9, path="a.md", content="two")], [Text("Done.")])

    texts = [content[0]["text"] for content in results_in(requests[1]).values()]
    assert texts == own_answers(*calls) == list(reply.turns[0].results)
    assert (texts[1], texts[2]) == ("one", "Monday")
    assert len(texts[-1]) > 10_000
    assert final_state(WORLD, TOOLS, answered_calls(reply).values()).files["a.md"] == "two"
    assert not (tmp_path / "ran").exists()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mode", "text", "finish_reason"),
    [
        pytest.param("length", "Hello from stub", "length", id="cut"),
        pytest.param("empty", "", "end_turn", id="empty"),
    ],
)
def test_further_requests_of_the_cli_are_not_turns(environ, mode, text, finish_reason):
    """An answer that is cut or empty is the answer, though the CLI sends further requests."""
    reply, _ = play(environ, [use("read", path="notes.md")], mode)

    assert (reply.text, reply.finish_reason) == (text, finish_reason)
    assert (len(reply.turns), reply.ended_by) == (2, "answer")


@pytest.mark.nightly
def test_several_messages_of_the_user(environ):
    """The CLI sends the whole conversation with each, and the world continues."""
    turns = [
        [use("write", path="a.txt", content="one")],
        [Text("Done.")],
        [use("read", 2, path="a.txt")],
        [Text("one")],
    ]
    reply, requests = play(environ, *turns, world=World(), turns=("What does it say?",))

    assert [turn.user for turn in reply.turns] == [None, None, "What does it say?", None]
    assert (reply.turns[2].results, reply.text, reply.ended_by) == (("one",), "one", "answer")
    assert [message["role"] for message in requests[-1]["messages"]] == ["user", "assistant"] * 3 + ["user"]
