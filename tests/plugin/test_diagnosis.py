"""`--openclaw-diagnose` in whole sessions with Ollama, and in stored runs."""

import json

import pytest

from pytest_openclaw.cli import main
from tests.providers.servers.misbehaving import Script
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
    asked = [("tools" in one["body"], one["input_tokens"]) for one in stored["tries"]]
    assert asked[:3] == [(True, 11), (True, 11), (False, 11)]
    assert stored["url"] == f"{server.origin}/api/chat"
    assert found["finding"] in session.words
    assert f"part at fault: {cause}, by N1: " in session.page


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
