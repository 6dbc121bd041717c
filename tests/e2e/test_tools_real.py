"""Native tool calls in whole sessions: from the real engine, and through the real CLI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.sessions import Ended, Project, all_gone
from tests.providers.servers.messages import MessagesServer, Text, ToolUse

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
PROMPTS: list[dict[str, Any]] = [
    {
        "id": "T1",
        "name": "calls",
        "prompt": f"Repeat exactly this text and nothing else:\n{CALL}",
        "validator": {"type": "tool_invocation", "expected_tools": ["get_weather"]},
        "max_output_tokens": 64,
    },
    {
        "id": "T2",
        "name": "talks",
        "prompt": "What is the capital of France?",
        "validator": {"type": "tool_invocation", "expected_tools": ["get_weather"]},
        "max_output_tokens": 24,
    },
]
# A provider of a guest's, which offers the model a tool.
GUEST = '''
from pytest_openclaw.providers.llama_cpp import LlamaCpp

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Handy(LlamaCpp):
    """The embedded model, with a tool in its hand."""

    name = "handy"

    def body(self, request):
        return {**super().body(request), "tools": [WEATHER]}


def pytest_openclaw_providers():
    return [Handy]
'''


@pytest.mark.engine
@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), id="stream"),
        pytest.param(("--openclaw-stream=off",), id="whole"),
        pytest.param(("-n", "2"), id="workers", marks=pytest.mark.workers),
    ],
)
def test_a_native_call_of_the_real_model(
    project: Project, embedded_model: str, words: tuple[str, ...]
) -> None:
    """What the model calls on the wire is in its row, with its arguments, and counts for the tier."""
    (project.folder / "conftest.py").write_text(GUEST, "utf-8")
    project.suite(*PROMPTS)

    ended = project.run(*words, models=f"handy/{embedded_model}")

    rows = ended.run.rows_of("handy")
    called, talked = rows["T1"], rows["T2"]
    assert (ended.status, ended.outcomes) == (1, {"passed": 1, "failed": 1})
    assert (called["tool_calls"], called["tool_call_count"], called["tool_use_success"]) == (
        ["get_weather"],
        1,
        True,
    )
    (details,) = called["tool_call_details"]
    assert (details["name"], json.loads(details["arguments"])) == ("get_weather", {"city": "Paris"})
    assert (called["objective_pass"], called["tool_outcome"], called["finish_reason"]) == (
        True,
        "valid",
        "tool_calls",
    )
    assert (talked["tool_calls"], talked["tool_use_success"], talked["tool_outcome"]) == (
        [],
        False,
        "no_call",
    )
    assert (called["ttft_ms"] is None) == ("--openclaw-stream=off" in words)
    use = ended.run.group("handy")["tool_use"]
    assert (use["n"], use["n_success"], use["tier"], use["conclusive"]) == (2, 1, 2, False)
    assert all_gone(ended.engines)


def through_the_cli(project: Project, claude: str, server: MessagesServer) -> Ended:
    """Run a project's suites with the real CLI against a server of ours."""
    environ = {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "sk-dummy-1234567890",
        "OPENCLAW_CLAUDE_COMMAND": claude,
    }
    return project.where(**environ).run(models="claude_code_cli/opus")


@pytest.mark.claude
def test_a_call_through_the_cli(project: Project, claude: str) -> None:
    """A tool that the model calls through the CLI is in its row; the CLI runs nothing."""
    project.suite(
        {
            "id": "T1",
            "name": "calls",
            "prompt": "Say hi in a shell.",
            "validator": {"type": "tool_invocation", "expected_tools": ["bash"]},
        }
    )
    with MessagesServer("tool_use") as server:
        ended = through_the_cli(project, claude, server)

    row = ended.run.rows_of("claude_code_cli")["T1"]
    assert (ended.status, ended.outcomes) == (0, {"passed": 1})
    assert [name.lower() for name in row["tool_calls"]] == ["bash"]
    assert [json.loads(call["arguments"]) for call in row["tool_call_details"]] == [{"command": "echo hi"}]
    assert (row["tool_use_success"], row["tool_outcome"], row["ttft_ms"] > 0) == (True, "valid", True)
    assert len(server.requests) == 1


@pytest.mark.claude
def test_an_offered_tool_through_the_cli(project: Project, claude: str) -> None:
    """A prompt's tools are offered through the CLI; the row names the one that was called as the prompt does."""
    project.suite(
        {
            "id": "T1",
            "name": "reads",
            "prompt": "What is in notes.md?",
            "tools": "direct",
            "validator": {
                "type": "tool_call",
                "calls": [{"name": "read", "arguments": {"path": "notes.md"}}],
            },
        }
    )
    turns = [[Text("Let me look."), ToolUse("mcp__openclaw__read", '{"path": "notes.md"}')]]
    with MessagesServer(turns=turns) as server:
        ended = through_the_cli(project, claude, server)

    row = ended.run.rows_of("claude_code_cli")["T1"]
    assert (ended.status, ended.outcomes) == (0, {"passed": 1})
    assert (row["tool_calls"], row["tool_outcome"], row["tool_use_success"]) == (["read"], "valid", True)
    assert (row["tools_offered"], row["turns"], row["ended_by"]) == (11, None, None)
    assert (row["objective_pass"], row["raw_output"]) == (True, "Let me look.")
    assert len(server.requests[0]["tools"]) == 11
    assert (len(server.requests), ended.left) == (1, [])


@pytest.mark.claude
def test_a_scripted_exchange_through_the_cli(project: Project, claude: str) -> None:
    """A prompt with a world is played to its end; the row keeps the turns, and the verdict knows the world."""
    project.suite(
        {
            "id": "W1",
            "name": "copies",
            "prompt": "Copy notes.md to copy.md, and say what is in it.",
            "tools": ["read", "write"],
            "world": {"files": {"notes.md": "buy milk"}, "steps": 5},
            "validator": {
                "type": "world",
                "calls": [{"name": "read"}, {"name": "write"}],
                "files": {"copy.md": "buy milk"},
                "answer": {"type": "contains", "value": "milk"},
            },
        }
    )
    turns = [
        [Text("Let me look."), ToolUse("mcp__openclaw__read", '{"path": "notes.md"}')],
        [ToolUse("mcp__openclaw__write", '{"path": "copy.md", "content": "buy milk"}', "toolu_2")],
        [Text("It says: buy milk.")],
    ]
    with MessagesServer(turns=turns) as server:
        ended = through_the_cli(project, claude, server)

    row = ended.run.rows_of("claude_code_cli")["W1"]
    assert (ended.status, ended.outcomes) == (0, {"passed": 1})
    assert (row["tool_calls"], row["tool_outcome"], row["ended_by"]) == (["read", "write"], "valid", "answer")
    assert [[call["name"] for call in turn["calls"]] for turn in row["turns"]] == [["read"], ["write"], []]
    assert row["turns"][0]["calls"][0]["result"] == "buy milk"
    assert (row["attempts"], row["ttft_ms"]) == (1, row["turns"][0]["ttft_ms"])
    assert row["e2e_ms"] >= sum(turn["e2e_ms"] for turn in row["turns"]) - 3, "each is rounded"
    assert (len(server.requests), ended.left) == (3, [])


@pytest.mark.engine
@pytest.mark.claude
def test_the_real_model_is_offered_tools_through_the_cli(
    project: Project, claude: str, served: dict[str, str], embedded_model: str
) -> None:
    """Tools that go in by the CLI reach real weights: the engine counts them among what it was asked."""
    plain = {"name": "asks", "prompt": "Say hello.", "validator": {"type": "noop"}, "max_output_tokens": 24}
    project.suite({"id": "T1", **plain}, {"id": "T2", **plain, "tools": ["read", "exec"]})

    environ = {**served, "OPENCLAW_CLAUDE_COMMAND": claude}
    ended = project.where(**environ).run(models=f"claude_code_cli/{embedded_model}")

    rows = ended.run.rows_of("claude_code_cli")
    assert (ended.status, ended.outcomes) == (0, {"passed": 2})
    assert [rows[name]["tools_offered"] for name in ("T1", "T2")] == [None, 2]
    assert rows["T2"]["input_tokens"] > rows["T1"]["input_tokens"] + 100
