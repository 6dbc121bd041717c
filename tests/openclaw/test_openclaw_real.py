"""`openclaw_agent` with the real OpenClaw, against a scripted model on loopback; each call takes ten seconds."""

import json
import sys
from pathlib import Path

import pytest

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.values.replies import Image, Reply
from pytest_openclaw.values.worlds import ScriptedCommand, World
from tests.openclaw.asking import KEY, agent, ask
from tests.openclaw.model_server import ScriptedModel

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.nightly, pytest.mark.usefixtures("scratch")]

PATIENCE_S = 200.0


@pytest.fixture
def environ(real_openclaw, tmp_path):
    own = tmp_path / "home" / ".openclaw"
    own.mkdir(parents=True)
    (own / "openclaw.json").write_text(
        '{"agents": {"defaults": {"model": "other/leaked"}}}', encoding="utf-8"
    )
    command = real_openclaw.command
    yield real_openclaw.environ | {"HOME": str(tmp_path / "home"), "OPENCLAW_AGENT_COMMAND": command}
    assert [file.name for file in own.iterdir()] == ["openclaw.json"]


def _ask(environ, model, /, **request):
    own = {"OLLAMA_HOST": model.origin, "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-of-openai"}
    provider = agent(environ["OPENCLAW_AGENT_COMMAND"], model.url, **environ, **own)
    reply = ask(provider, **{"prompt": "Go on.", "timeout_s": PATIENCE_S, **request})
    assert isinstance(reply, Reply), reply
    return reply


def _tools(*names):
    known = load_catalogue().tools
    return tuple(known[name] for name in names)


def _sent_tools(body):
    return sorted(tool["function"]["name"] for tool in body.get("tools", []))


@pytest.mark.parametrize(
    ("name", "turns"),
    [
        pytest.param("ollama/tiny", (), id="ollama"),
        pytest.param("openai/tiny", (), id="openai"),
        pytest.param("local/tiny", ("And now?",), id="session"),
    ],
)
def test_images_of_the_prompt(environ, name, turns):
    """OpenClaw sends the prompt's images, byte by byte, and leaves their paths behind the text."""
    drawn = Path(__file__).parents[2] / "benchmarks/images/bars.png"
    chart = Image(path="images/bars.png", media_type="image/png", data=drawn.read_bytes())
    with ScriptedModel("Seven.", *("Eight." for _ in turns)) as model:
        reply = _ask(environ, model, model=name, prompt="How many?", images=(chart,), turns=turns)

    asked = json.dumps(model.asked[0])
    assert reply.text == ("Eight." if turns else "Seven.")
    assert chart.base64 in asked
    assert "How many?\\n\\n./image-1.png" in asked


@pytest.mark.parametrize(
    ("name", "path", "key"),
    [
        pytest.param("ollama/tiny", "/api/chat", None, id="ollama"),
        pytest.param("openai/tiny", "/v1/responses", "Bearer sk-of-openai", id="openai"),
    ],
)
def test_a_world_is_played_by_other_apis(environ, name, path, key):
    """Ollama's own API and Responses give the same calls, results, tokens, times and final world."""
    turns = (
        [("write", '{"path": "b.txt", "content": "B"}'), ("exec", '{"command": "wc -c a.txt"}')],
        [("read", '{"path": "none.txt"}')],
        "Done, ünïcode.",
    )
    with ScriptedModel(*turns) as model:
        world = World(files={"a.txt": "one\n"})
        reply = _ask(environ, model, model=name, tools=_tools("exec", "read", "write"), world=world)

        assert (set(model.paths), set(model.keys)) == ({path}, {key})
        assert [body["model"] for body in model.asked] == ["tiny"] * 3
    assert (reply.text, reply.ended_by, reply.effective_model) == ("Done, ünïcode.", "answer", "tiny")
    assert (reply.input_tokens, reply.output_tokens) == (33, 9)
    assert [call.name for call in reply.tool_calls] == ["write", "exec", "read"]
    assert json.loads(reply.tool_calls[0].arguments) == {"path": "b.txt", "content": "B"}
    assert reply.turns[0].results == ("Successfully wrote 1 bytes to /workspace/b.txt", "4 a.txt")
    assert "File not found" in reply.turns[1].results[0]
    assert all(turn.timing is not None and turn.timing.ttft_ms is not None for turn in reply.turns)
    assert (reply.world.changed, reply.world.ran) == (("b.txt",), ("wc -c a.txt",))


def test_a_call_is_recorded_and_not_executed(environ, tmp_path):
    """In a single question the call is the answer: no command runs, and no user config is used."""
    trace = tmp_path / "trace"
    command = f'{{"command": "touch {trace}"}}'
    with ScriptedModel([("exec", command)]) as model:
        reply = _ask(environ, model, prompt="Say hi.", tools=_tools("exec", "read"))

    (body,) = model.asked
    assert model.keys == [f"Bearer {KEY}"]
    assert _sent_tools(body) == ["exec", "read"]
    assert ("Say hi." in str(body["messages"]), "leaked" in str(body)) == (True, False)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("exec", command)]
    assert not trace.exists()


def test_a_world_of_commands_is_played(environ, tmp_path):
    """However the agent is asked to run a command, our shell plays it, and nothing outside is changed."""
    trace = tmp_path / "trace"

    def run(command, **more):
        return "exec", json.dumps({"command": command, **more})

    turns = (
        [run("make check"), run("cat deep/c.txt"), run(f"touch {trace}; cat ~/.ssh/id")],
        [run("cat a.txt > b.txt"), run("make check", pty=True), run("cat c.txt", workdir="deep")],
        [run("cat b.txt", background=True), run("cat a.txt", workdir="/etc"), run("nonesuch")],
        [("process", '{"action": "list"}'), run("pwd", env={"FOO": "x"}), run("pwd", env={"PATH": "/x"})],
        [run("pwd", host="node"), run("pwd", elevated=True), run("pwd", ask="always")],
        [run("openclaw status"), run(f"{sys.executable} -c 1"), ("read", '{"path": "~/.ssh/id"}')],
        "Done in /workspace.",
    )
    world = World(
        files={"a.txt": "one\n", "deep/c.txt": "three\n", "~/.ssh/id": "key of the world\n"},
        commands=(ScriptedCommand(pattern="make check", output="all is well", exit_code=3),),
    )
    with ScriptedModel(*turns) as model:
        reply = _ask(environ, model, tools=_tools("exec", "process", "read"), world=world)

        assert {tuple(_sent_tools(body)) for body in model.asked} == {("exec", "process", "read")}
    first, second, third, fourth, fifth, sixth, _ = (turn.results for turn in reply.turns)
    made = "all is well\n\n(Command exited with code 3)"
    assert first[:2] == (made, "three")
    assert first[2].endswith("No such file or directory\nkey of the world")
    assert (second[0], second[2]) == ("(no output)", "three")
    assert second[1].endswith(made)
    assert third[0].startswith("Command still running")
    assert third[1].startswith("cat: a.txt: No such file")
    assert third[2] == "sh: nonesuch: command not found\n\nCommand not found"
    assert "cat b.txt" in fourth[0]
    assert fourth[1] == "/workspace"
    assert "'PATH' variable is forbidden" in fourth[2]
    assert "exec host not allowed" in fifth[0]
    assert "elevated is not available" in fifth[1]
    assert "Gateway not reachable at ws://127.0.0.1:9 " in fifth[2]
    assert sixth[0] == "sh: openclaw: command not found\n\nCommand not found"
    assert sixth[1] == f"sh: {sys.executable}: No such file or directory\n\nCommand not found"
    assert "Path escapes sandbox root (/workspace)" in sixth[2]
    assert reply.world.changed == ("b.txt",)
    assert reply.world.files["b.txt"] == "one\n"
    assert sorted(reply.world.ran[:3]) == ["cat deep/c.txt", "make check", f"touch {trace}; cat ~/.ssh/id"]
    assert len(reply.world.ran) == 12
    assert not trace.exists()


def test_a_session_has_several_messages_of_the_user(environ):
    """Each message is a turn of one session; files and conversation are kept, and the figures are sums."""
    turns = (
        [("write", '{"path": "a.txt", "content": "one"}')],
        "Done.",
        [("read", '{"path": "a.txt"}')],
        "one",
        "Bye.",
    )
    said = ("What does /workspace/a.txt say?", "Thanks.")
    with ScriptedModel(*turns) as model:
        reply = _ask(environ, model, tools=_tools("read", "write"), world=World(), turns=said)

    assert (reply.text, reply.ended_by) == ("Bye.", "answer")
    assert [turn.user for turn in reply.turns] == [None, None, said[0], None, said[1]]
    assert reply.turns[2].results == ("one",)
    assert [call.name for call in reply.tool_calls] == ["write", "read"]
    assert (reply.input_tokens, reply.output_tokens) == (55, 15)
    assert reply.world.changed == ("a.txt",)
    roles = [message["role"] for message in model.asked[-1]["messages"] if message["role"] != "system"]
    assert roles == [*("user", "assistant", "tool", "assistant") * 2, "user"]
