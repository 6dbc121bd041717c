"""`--openclaw-diagnose` in whole sessions: the wire formats of Ollama and llama-server, and stored runs."""

import json

import pytest

from pytest_openclaw.cli import main
from tests.providers.servers.misbehaving import MisbehavingServer, Script
from tests.providers.servers.ollama import OllamaServer, answer, calling, done, lines, said

pytestmark = pytest.mark.newest

TOOL = '{ name = "%s", description = "Reads.", parameters = { type = "object", properties = { path = { type = "string" } } } }'
TOOLS = f"""
[[prompts]]
id = "N1"
prompt = "Read notes.md."
tools = [{TOOL % "list"}, {TOOL % "read"}]
validator = {{ type = "tool_call", calls = [{{ name = "read", arguments = {{ path = "notes.md" }} }}] }}
"""
WRITTEN = '<tool_call>{"name": "read", "arguments": {"path": "notes.md"}}</tool_call>'
READ = calling(("read", {"path": "notes.md"}))


def answers(body, *, content="", calls=None):
    message = {"tool_calls": calls} if calls else {}
    if not body["stream"]:
        return Script.answer(done(content=content, message=message))
    return answer(lines(said(content, **message), done()))


def diagnose(project, monkeypatch, server):
    monkeypatch.setenv("OLLAMA_HOST", server.origin)
    project.suite(TOOLS)
    return project.run("--openclaw-diagnose", models="ollama_native/m")


def found_in(run):
    (group,) = run.summary["groups"]
    return group["diagnosis"]


OLLAMA = {
    "template": lambda body: answers(body, content="I cannot."),
    "parser": lambda body: answers(body, content=WRITTEN),
    "stream": lambda body: answers(body, content="Done soon." if body["stream"] else "", calls=None if body["stream"] else READ),
    "model": lambda body: answers(body, content="I cannot."),
}  # fmt: skip


@pytest.mark.parametrize("cause", OLLAMA)
def test_ollama(project, monkeypatch, cause):
    """The cause is in the summary, on the terminal and on the page, and the requests are in a file."""
    capabilities = ["completion"] if cause == "template" else ["completion", "tools"]
    with OllamaServer(OLLAMA[cause], models={"m:latest": capabilities}) as server:
        session = diagnose(project, monkeypatch, server)

    found = found_in(session)
    assert (found["cause"], found["prompt_id"]) == (cause, "N1")
    assert found["template_shows_tools"] is (cause != "template")
    again = ["streamed_again"] if cause == "stream" else []
    assert [one["change"] for one in found["repeats"]] == ["as_asked", "unstreamed", "without_tools", *again]
    (file,) = session.run_dir.glob("diagnosis_*.json")
    stored = json.loads(file.read_text("utf-8"))
    assert all(one["body"] in server.chats for one in stored["tries"])
    assert stored["url"] == f"{server.origin}/api/chat"
    assert found["finding"] in session.words
    assert f"part at fault: {cause}, by N1: " in session.page


def llama_server(respond, *, shows_tools):
    server = MisbehavingServer()
    entry = {"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx": 4096}}
    server.on("/v1/models", Script.answer({"object": "list", "data": [entry]}))
    server.on(
        "/props",
        Script.answer({"build_info": "b7000", "chat_template_caps": {"supports_tools": shows_tools}}),
    )
    server.on("/v1/chat/completions", lambda request: respond(request.json))
    return server


def completes(body, *, shows_tools, text="", call=False):
    n_shown = len(body.get("tools", ())) if shows_tools else 0
    usage = {"prompt_tokens": 20 + 15 * n_shown, "completion_tokens": 12}
    function = {"name": "read", "arguments": '{"path": "notes.md"}'}
    one = {"index": 0, "id": "1", "type": "function", "function": function}
    calls = {"tool_calls": [one]} if call else {}
    choice = {"index": 0, "finish_reason": "tool_calls" if call else "stop"}
    if not body["stream"]:
        message = {"role": "assistant", "content": text, **calls}
        return Script.answer({"model": "m", "choices": [{**choice, "message": message}], "usage": usage})
    delta = {"model": "m", "choices": [{**choice, "delta": {"content": text, **calls}}], "usage": usage}
    return Script.stream(f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n".encode())


LLAMA_SERVER = {
    "template": lambda body: completes(body, shows_tools=False, text="I cannot."),
    "parser": lambda body: completes(body, shows_tools=True),
    "stream": lambda body: completes(body, shows_tools=True, call=not body["stream"]),
}


@pytest.mark.parametrize("cause", LLAMA_SERVER)
def test_llama_server(plain_project, monkeypatch, cause):
    """The lengths of the prompts show whether the template shows the tools."""
    shows_tools = cause != "template"
    with llama_server(LLAMA_SERVER[cause], shows_tools=shows_tools) as server:
        monkeypatch.setenv("OLLAMA_OPENAI_BASE", server.url)
        plain_project.suite(TOOLS)
        session = plain_project.run("--openclaw-diagnose", models="ollama_openai/m")

    found = found_in(session)
    assert (found["cause"], found["template_shows_tools"]) == (cause, shows_tools)
    changes = [one["change"] for one in found["repeats"]]
    assert changes[:3] == ["as_asked", "unstreamed", "without_tools"]
    asked = [request for request in server.requests if request.path.endswith("/chat/completions")]
    assert len(asked) <= 1 + 1 + 3  # the warm-up, the cell, its repeats


@pytest.mark.parametrize(
    "words", [("-o", "openclaw_diagnose=false"), ("--openclaw-diagnose", "-x")], ids=repr
)
def test_no_further_request(plain_project, monkeypatch, words):
    """Without the option, and in a session that stops early, the advice suggests the option."""
    with OllamaServer(OLLAMA["model"]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.origin)
        plain_project.suite(TOOLS)
        session = plain_project.run(*words, models="ollama_native/m")

    assert found_in(session) is None
    assert len(server.chats) == 2
    assert "--openclaw-diagnose names the part at fault (local servers)" in session.words


def test_a_server_that_ends_is_evidence_too(plain_project, monkeypatch):
    """A repeat without an answer gives no cause; a rescored run has the diagnosis of its run."""

    def respond(body):
        if body["stream"] or body["options"]["num_predict"] == 1:
            return answers(body, content="I cannot.")
        return Script.answer({"error": "the runner has stopped"}, status=400)

    with OllamaServer(respond) as server:
        session = diagnose(plain_project, monkeypatch, server)

    found = found_in(session)
    assert found["cause"] is None
    assert "the cell could not be repeated: " in found["finding"]
    assert session.status == 1
    assert main(["rescore", session.run_dir.name, "--into", "again"]) == 0
    assert found_in(plain_project.stored("again")) == found
