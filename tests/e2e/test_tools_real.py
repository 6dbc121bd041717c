"""Native tool calls in whole sessions: from the real engine, and through the real CLI."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.providers.anthropic_messages import AnthropicMessages
from pytest_openclaw.providers.llama_cpp.engine import Engine
from pytest_openclaw.providers.ollama import OllamaOpenAI
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from tests.e2e.sessions import Project, all_gone
from tests.providers.servers.messages import MessagesServer, Text, ToolUse

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
REPEAT = f"Repeat exactly this text and nothing else:\n{CALL}"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Returns the weather in a city.", "parameters": PARAMETERS}
CALLS = {"type": "tool_invocation", "expected_tools": ["get_weather"]}
PROMPTS: list[dict[str, Any]] = [
    {
        "id": "T1",
        "name": "calls",
        "prompt": REPEAT,
        "tools": [WEATHER, "read"],
        "validator": CALLS,
        "max_output_tokens": 64,
    },
    {
        "id": "T2",
        "name": "talks",
        "prompt": "What is the capital of France?",
        "tools": [WEATHER],
        "validator": CALLS,
        "max_output_tokens": 24,
    },
    {
        "id": "P1",
        "name": "no_tools",
        "prompt": REPEAT,
        "validator": {"type": "noop"},
        "max_output_tokens": 64,
    },
]
OURS = "llama_cpp"
TARGETS = (OURS, "chat", "answers", "messages")


@pytest.fixture
def lab(tmp_path: Path, engine: Engine) -> Project:
    """A project with the running engine configured as two servers, one for each API."""
    lines = {"chat": "ollama_openai", "answers": "openai_responses", "messages": "anthropic_messages"}
    endpoints = "".join(f"    {name} = {kind} {engine.url}/v1 LAB_KEY\n" for name, kind in lines.items())
    project = Project.create(tmp_path / "project", f"openclaw_endpoints =\n{endpoints}")
    return project.where(LAB_KEY=engine.token)


@pytest.mark.nightly
@pytest.mark.engine
@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), id="stream"),
        pytest.param(("--openclaw-stream=off",), id="whole"),
    ],
)
def test_a_native_call_of_the_real_model(lab: Project, embedded_model: str, words: tuple[str, ...]) -> None:
    """The tools of a suite are sent by all APIs; the model's call is in its row and counts for the tier."""
    lab.suite(*PROMPTS)

    ended = lab.run(*words, models=",".join(f"{target}/{embedded_model}" for target in TARGETS))

    assert (ended.status, ended.outcomes) == (1, {"passed": 2 * len(TARGETS), "failed": len(TARGETS)})
    for target in TARGETS:
        rows = ended.run.rows_of(target)
        called, talked, unarmed = rows["T1"], rows["T2"], rows["P1"]
        assert [row["tools_offered"] for row in (called, talked, unarmed)] == [2, 1, None]
        assert (called["tool_calls"], called["tool_use_success"]) == (["get_weather"], True)
        (details,) = called["tool_call_details"]
        assert (details["name"], json.loads(details["arguments"])) == ("get_weather", {"city": "Paris"})
        assert (called["objective_pass"], called["tool_outcome"], called["raw_output"]) == (True, "valid", "")
        assert (talked["tool_calls"], talked["tool_outcome"]) == ([], "no_call")
        assert (unarmed["tool_calls"], unarmed["raw_output"] != "") == ([], True)
        assert called["input_tokens"] > unarmed["input_tokens"]
        assert (called["ttft_ms"] is None) == ("--openclaw-stream=off" in words)
        use = ended.run.group(target)["tool_use"]
        assert (use["n"], use["n_success"], use["tier"], use["conclusive"]) == (2, 1, 2, False)
    native = (OURS, "chat", "messages")
    assert [ended.run.rows_of(target)["T1"]["finish_reason"] for target in native] == ["tool_calls"] * 3
    assert all_gone(ended.engines)


@pytest.mark.nightly
@pytest.mark.engine
def test_tools_that_do_not_fit_are_refused(project: Project, embedded_model: str) -> None:
    """The embedded engine counts the tools too."""
    many = [{**WEATHER, "name": f"tool_{n}", "description": "Returns the weather. " * 50} for n in range(54)]
    prompt = {"prompt": "What is the capital of France?", "validator": {"type": "contains", "value": "Paris"}}
    project.suite({"id": "T1", **prompt, "tools": many}, {"id": "P1", **prompt, "max_output_tokens": 16})

    ended = project.run(models=f"{OURS}/{embedded_model}")

    assert ended.outcomes == {"passed": 1, "errors": 1}
    row = ended.run.rows_of(OURS)["T1"]
    assert (row["availability_status"], row["failure_type"]) == ("error", "context_overflow")
    assert (row["attempts"], row["objective_pass"]) == (1, None)


READ = Tool(name="read", description="Reads a file.", parameters=PARAMETERS)
LOOKED = Turn(
    text="Let me look.",
    calls=(
        ToolCall(name="get_weather", arguments='{"city": "Paris"}', id="own-id"),
        ToolCall(name="read", arguments=""),
    ),
    results=("rain, 9 °C", "File not found: "),
)
AGAIN = Turn(
    calls=(ToolCall(name="get_weather", arguments='{"city": "Rome"}', id="own-id"),), results=("sun",)
)
HISTORIES = {"one-turn": (AGAIN,), "two-turns": (LOOKED, AGAIN)}


@pytest.mark.nightly
@pytest.mark.engine
@pytest.mark.parametrize("history", HISTORIES)
def test_a_conversation_is_continued(engine: Engine, embedded_model: str, history: str) -> None:
    """All APIs accept calls and their results, process them as one prompt, and the model answers."""
    first = Request(
        model=embedded_model,
        prompt="What is the weather?",
        tools=(Tool(**WEATHER), READ),
        max_output_tokens=16,
    )
    request = replace(first, history=HISTORIES[history])

    replies = [ask(kind, engine, request) for kind in (OllamaOpenAI, OpenAIResponses, AnthropicMessages)]

    for reply in replies:
        assert reply.raw or reply.tool_calls
        assert reply.finish_reason
    assert len({(reply.text, reply.input_tokens) for reply in replies}) == 1
    chat = replies[0]
    assert chat.input_tokens > (ask(OllamaOpenAI, engine, first).input_tokens or 0)


def ask(kind: type[OverHttp], engine: Engine, request: Request) -> Reply:
    """Send a request to the running engine by one of the APIs."""
    environ = {"LAB_KEY": engine.token}
    provider = kind(
        ProviderSetup(name="lab", base_url=f"{engine.url}/v1", key_env="LAB_KEY", environ=environ)
    )

    async def asking() -> Reply:
        try:
            return await provider.ask(request)
        finally:
            await provider.aclose()

    return asyncio.run(asking())


@pytest.mark.claude
def test_a_scripted_exchange_through_the_cli(project: Project, claude: str) -> None:
    """A prompt with a world is played to its end; the row keeps the turns, and the verdict uses the world."""
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
        environ = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-dummy-1234567890",
            "OPENCLAW_CLAUDE_COMMAND": claude,
        }
        ended = project.where(**environ).run(models="claude_code_cli/opus")

    row = ended.run.rows_of("claude_code_cli")["W1"]
    assert (ended.status, ended.outcomes) == (0, {"passed": 1})
    assert (row["tool_calls"], row["tool_outcome"], row["ended_by"]) == (["read", "write"], "valid", "answer")
    assert [[call["name"] for call in turn["calls"]] for turn in row["turns"]] == [["read"], ["write"], []]
    assert row["turns"][0]["calls"][0]["result"] == "buy milk"
    assert (row["attempts"], row["ttft_ms"]) == (1, row["turns"][0]["ttft_ms"])
    assert row["e2e_ms"] >= sum(turn["e2e_ms"] for turn in row["turns"]) - 3, "each is rounded"
    assert (len(server.requests), ended.left) == (3, [])
