"""Native tool calls of the real engine by all APIs: in whole sessions, and in a conversation."""

import json

import pytest

from pytest_openclaw.providers.anthropic_messages import AnthropicMessages
from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from tests.e2e.sessions import Project, all_gone
from tests.providers.servers import apis

pytestmark = [pytest.mark.engine, pytest.mark.nightly]

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
REPEAT = f"Repeat exactly this text and nothing else:\n{CALL}"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Returns the weather in a city.", "parameters": PARAMETERS}
CALLS = {"type": "tool_invocation", "expected_tools": ["get_weather"]}
CALLED = {"id": "T1", "prompt": REPEAT, "tools": [WEATHER, "read"], "validator": CALLS}
TALKED = {"id": "T2", "prompt": "What is the capital of France?", "tools": [WEATHER], "validator": CALLS}
PROMPTS = [
    {**CALLED, "max_output_tokens": 64},
    {**TALKED, "max_output_tokens": 24},
    {"id": "P1", "prompt": REPEAT, "max_output_tokens": 64},
]
OURS = "llama_cpp"
TARGETS = (OURS, "chat", "answers", "messages")


@pytest.fixture
def lab(tmp_path, engine):
    """A project with the running engine configured as two servers, one for each API."""
    lines = {"chat": "ollama_openai", "answers": "openai_responses", "messages": "anthropic_messages"}
    endpoints = "".join(f"    {name} = {kind} {engine.url}/v1 LAB_KEY\n" for name, kind in lines.items())
    project = Project.create(tmp_path / "project", f"openclaw_endpoints =\n{endpoints}")
    return project.where(LAB_KEY=engine.token)


@pytest.mark.parametrize(
    "words", [pytest.param((), id="stream"), pytest.param(("--openclaw-stream=off",), id="whole")]
)
def test_a_native_call_of_the_real_model(lab, embedded_model, words):
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


@pytest.mark.parametrize("history", HISTORIES)
def test_a_conversation_is_continued(engine, embedded_model, history):
    """All APIs accept calls and their results, process them as one prompt, and the model answers."""
    first = {"model": embedded_model, "prompt": "What is the weather?", "max_output_tokens": 16}
    first |= {"tools": (Tool(**WEATHER), READ)}
    request = {**first, "history": HISTORIES[history]}

    replies = [ask(kind, engine, request) for kind in (OllamaOpenAI, OpenAIResponses, AnthropicMessages)]

    for reply in replies:
        assert reply.raw or reply.tool_calls
        assert reply.finish_reason
    assert len({(reply.text, reply.input_tokens) for reply in replies}) == 1
    chat = replies[0]
    assert chat.input_tokens > (ask(OllamaOpenAI, engine, first).input_tokens or 0)


def ask(kind, engine, request):
    setup = ProviderSetup(
        name="lab", base_url=f"{engine.url}/v1", key_env="LAB_KEY", environ={"LAB_KEY": engine.token}
    )
    reply = apis.ask(kind(setup), **request)
    assert isinstance(reply, Reply), reply
    return reply
