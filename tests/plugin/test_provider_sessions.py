"""Whole sessions with Ollama's own API, and with the Claude CLI, whose process ends with its cell."""

import sys

import pytest

from tests.providers.fake_claude import DUMMY_KEY, command, dies
from tests.providers.servers.misbehaving import Pause, Script
from tests.providers.servers.ollama import SPEED, OllamaServer, answer, done, lines, said

pytestmark = pytest.mark.newest


def test_rows(project, monkeypatch):
    """A row has text and thinking, the server's counts and speed, and the times of the first tokens."""

    def chat(body):
        if body["options"]["num_predict"] == 1:  # a warm-up
            return Script.answer(done(content="H"))
        thought = lines(said(thinking="Hm."))
        return answer(Pause(0.05), thought, Pause(0.1), lines(said("Hi")), lines(said("."), done()))

    project.suite({"P1": ("Say hi.", {"type": "exact", "value": "Hi."})})
    fields = 'openclaw_request_fields = ollama_native = {"keep_alive": "15m"}'
    project.ini("openclaw_num_ctx = 8192", fields)

    with OllamaServer(chat) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.origin)
        session = project.run(models="ollama_native/m@low")

    session.outcomes(passed=1)
    row = session.row("P1")
    assert (row["provider"], row["model"], row["thinking_level"]) == ("ollama_native", "m", "low")
    assert row["raw_output"] == "<think>\nHm.\n</think>\n\nHi."
    assert (row["finish_reason"], row["effective_model"]) == ("stop", "m-served")
    assert (row["input_tokens"], row["output_tokens"], row["tokens_per_s"]) == (11, 7, SPEED)
    assert 40 <= row["ttft_ms"] < row["ttfo_ms"] <= row["e2e_ms"]
    warm_up, asked = server.chats
    assert (warm_up["think"], asked["think"]) == (False, "low")
    assert {body["options"]["num_ctx"] for body in (warm_up, asked)} == {8192}
    assert asked["keep_alive"] == "15m"
    assert session.load("config.json")["providers"]["ollama_native"] == {
        "kind": "ollama_native",
        "base_url": server.origin,
        "path": "/api/chat",
        "key_env": "OLLAMA_API_KEY",
        "num_ctx": 8192,
    }
    target = session.load("inventory.json")["targets"]["ollama_native/m@low"]
    assert target["warm_up"]["ok"] is True
    assert (target["server"]["server"], target["server"]["context_length"]) == ("ollama", 4096)


EXACT = {"type": "exact", "value": "Hello"}


@pytest.mark.skipif(sys.platform == "win32", reason="the fake is named in POSIX quoting")
def test_a_cli_that_does_not_end_loses_its_own_cell(project, monkeypatch):
    """It is killed after its time, with its row; another cell is answered, and the inventory names the CLI."""
    monkeypatch.setenv("OPENCLAW_CLAUDE_COMMAND", command("prompted"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", DUMMY_KEY)
    pid = project.folder / "pid"
    project.suite({"P1": ("hello", EXACT), "P2": (f"stubborn {pid}", EXACT)})

    session = project.run("--openclaw-timeout=4", "--openclaw-concurrency=4", models="claude_code_cli/m1")

    session.outcomes(passed=1, errors=1)
    assert (session.row("P1")["raw_output"], session.row("P2")["raw_output"]) == ("Hello", "Hel")
    assert session.row("P2")["failure_type"] == "timeout"
    assert dies(int(pid.read_text()))
    facts = session.load("inventory.json")["targets"]["claude_code_cli/m1"]
    assert facts["server"] == {"cli_version": "2.1.332 (Claude Code)"}
