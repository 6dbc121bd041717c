"""Fields that a model or a server refuses are left out of its requests, at once and from then on."""

import json
import re
from pathlib import Path

import pytest

from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.values.faults import WireError, refused_by_server
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.requests import Request as ModelRequest
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import World
from tests.providers.servers.apis import CHAT, GEMINI, MESSAGES, READ, RESPONSES, ask, chat_chunk, play
from tests.providers.servers.misbehaving import Script, sse
from tests.providers.servers.ollama import OLLAMA


def refusal(message, status=400):
    return Script.answer({"error": {"message": message, "type": "invalid_request_error"}}, status=status)


def temperature(body):
    return body.get("generationConfig", body).get("temperature")


def tool_choice(body):
    return body.get("tool_choice")


def thinking(body):
    config = body.get("generationConfig", {}).get("thinkingConfig", {})
    config = config or body.get("thinking", {}) | body.get("output_config", {})
    return {
        name: value for name, value in config.items() if name not in ("includeThoughts", "display")
    } or body.get("think")


LEVEL, BUDGET = {"type": "adaptive", "effort": "low"}, {"type": "enabled", "budget_tokens": 1024}
LOW, ROOM = {"thinkingLevel": "LOW"}, {"thinkingBudget": 1024}
CASES = [
    # api, level, what is looked at, the words of the refusal, what is sent first, and then
    pytest.param(CHAT, None, temperature, "`temperature` is deprecated for this model.", 0.0, None, id="chat-temperature"),
    pytest.param(CHAT, None, tool_choice, "No endpoints found that support the provided 'tool_choice' value.", "auto", None, id="chat-tool-choice"),
    pytest.param(MESSAGES, None, temperature, "`temperature` is deprecated for this model.", 0.0, None, id="messages-temperature"),
    pytest.param(MESSAGES, "low", thinking, "adaptive thinking is not supported on this model", LEVEL, BUDGET, id="messages-level"),
    pytest.param(MESSAGES, "low", thinking, "This model does not support the effort parameter.", LEVEL, BUDGET, id="messages-effort"),
    pytest.param(RESPONSES, None, temperature, "Unsupported parameter: 'temperature' is not supported with this model.", 0.0, None, id="responses"),
    pytest.param(GEMINI, None, temperature, "temperature is not supported for this model.", 0.0, None, id="gemini-temperature"),
    pytest.param(GEMINI, "low", thinking, "Thinking level is not supported for this model.", LOW, ROOM, id="gemini-level"),
    pytest.param(GEMINI, "low", thinking, "Unable to submit request because thinking_level is not supported by this model.", LOW, ROOM, id="gemini-level-in-other-words"),
    pytest.param(OLLAMA, "low", thinking, 'think value "low" is not supported for this model', "low", True, id="ollama-level"),
]  # fmt: skip


@pytest.mark.parametrize(("api", "level", "shown", "message", "first", "then"), CASES)
def test_a_refused_part_is_left_out_from_then_on(server, api, level, shown, message, first, then):
    """The request is repeated at once, and the model's later ones are without it; another model's are not."""
    server.on(
        "*", lambda request: refusal(message) if shown(request.json) == first else Script.answer(api.whole())
    )
    provider = api.provider(server.url)

    more = {"stream": False, "thinking_level": level, "tools": (READ,)}
    replies = [ask(provider, model=model, **more) for model in "mmn"]

    assert [reply.text for reply in replies] == ["Hi."] * 3
    assert [shown(request.json) for request in server.requests] == [first, then, then, first, then]


def test_a_refusal_that_does_not_end(server):
    """A server that keeps refusing what is no longer sent is asked twice, and not endlessly."""
    server.on("*", refusal("temperature is not supported for this model."))

    fault = ask(GEMINI.provider(server.url))

    assert (fault.failure_type, server.total) == ("http_400", 2)


def test_requests_in_flight_are_each_repeated_without_it():
    """Each of them was sent before the first refusal arrived; one without a temperature is not repeated."""
    provider = RESPONSES.provider("http://127.0.0.1:9")
    request = ModelRequest(model="m", prompt="Say hi.", temperature=0.0)
    error = WireError(status=400, message="'temperature' is not supported with this model.")
    fault, body = refused_by_server("openai_responses", "m", error), provider.body(request)

    assert [provider.adapt(request, body, fault) for _ in range(2)] == [True, True]
    assert not provider.adapt(request, provider.body(request), fault)


PAGE = Path(__file__).parents[2] / "docs/how-to/servers.md"
KEY = "a-key-0123456789"


# The servers are strict: they reject a field that their API does not have, as the real ones do, which
# `docs/how-to/servers.md` names.
COMMON = {
    *["model", "messages", "temperature", "max_tokens", "stream", "tools", "tool_choice", "reasoning_effort"]
}
OPTIONAL = {"think", "stream_options", "seed"}
EXTRA = {
    "type": "extra_forbidden",
    "loc": ["body", "FIELD"],
    "msg": "Extra inputs are not permitted",
    "input": True,
}
SERVERS = {
    # the optional fields that it knows, its error for another one, and its status
    "openrouter": (OPTIONAL, {}, 400),
    "deepseek": (OPTIONAL, {}, 400),
    "groq": ({"stream_options", "seed"}, {"error": {"message": "property 'FIELD' is unsupported"}}, 400),
    "mistral": (set(), {"object": "error", "message": {"detail": [EXTRA]}, "type": "invalid_request_error"}, 422),
    "litellm": ({"stream_options"}, {"error": {"message": "litellm.UnsupportedParamsError: openai does not support parameters: ['FIELD'], for model=gpt-x.", "type": "None", "code": "400"}}, 400),
}  # fmt: skip


def endpoint(name, server):
    found = re.search(rf"^    {name} = (\S+) (\S+) (\S+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert found, f"{name} has no line"
    assert found[1] == OllamaOpenAI.name
    setup = ProviderSetup(name=name, base_url=server.url, key_env=found[3], environ={found[3]: KEY})
    return OllamaOpenAI(setup)


@pytest.mark.parametrize("name", SERVERS)
def test_a_field_that_a_server_rejects_is_left_out_from_then_on(server, name):
    """The request is repeated without it, and the key is sent as a bearer token."""
    known, error, status = SERVERS[name]

    def answer(request):
        unknown = [field for field in request.json if field not in COMMON | known]
        if not unknown:
            return Script.stream(CHAT.reasoning("Hm."), CHAT.text("Hi."), CHAT.end())
        return Script.answer(json.loads(json.dumps(error).replace("FIELD", unknown[0])), status=status)

    server.on("/v1/chat/completions", answer)
    provider = endpoint(name, server)

    reply = ask(provider, thinking_level="high", seed=2, tools=(READ,))

    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.reasoning) == ("Hi.", "Hm.")
    assert set(server.requests[-1].json) == COMMON | known
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert server.total == 1 + len(OPTIONAL - known)
    ask(provider, thinking_level="high", seed=3)
    assert server.total == 2 + len(OPTIONAL - known), "the model's later requests are without them"


NAMED = {
    "azure": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "mistral": "[{'type': 'extra_forbidden', 'loc': ['body', 'max_completion_tokens'], 'msg': 'Extra inputs'}]",
}


@pytest.mark.parametrize(
    ("message", "surface", "refused", "taken"),
    [
        pytest.param(NAMED["azure"], "listed", "max_tokens", "max_completion_tokens", id="max-tokens"),
        pytest.param(NAMED["mistral"], "openclaw", "max_completion_tokens", "max_tokens", id="the-other-way"),
    ],
)
def test_a_limit_is_sent_under_the_name_that_the_server_takes(server, message, surface, refused, taken):
    """One attempt of the model: the request is repeated at once, and later ones have the other name."""
    yes = Script.stream(CHAT.text("Hi."), CHAT.end())
    server.on("*", lambda request: refusal(message) if refused in request.json else yes)
    provider = CHAT.provider(server.url)

    replies = [ask(provider, surface=surface, max_output_tokens=9) for _ in range(2)]

    assert [reply.text for reply in replies] == ["Hi.", "Hi."]
    sent = [{name: body.json.get(name) for name in (refused, taken)} for body in server.requests]
    assert sent == [{refused: 9, taken: None}, {refused: None, taken: 9}, {refused: None, taken: 9}]


def test_a_server_that_takes_neither_name(server):
    """Its refusal ends the attempt; no request is sent without a limit."""
    server.on(
        "*",
        lambda request: refusal(
            f"Unknown field {'max_tokens' if 'max_tokens' in request.json else 'max_completion_tokens'}"
        ),
    )

    fault = ask(CHAT.provider(server.url))

    assert fault.failure_type == "http_400"
    assert all({"max_tokens", "max_completion_tokens"} & body.json.keys() for body in server.requests)


SIGNED_CALL = {
    "id": "c1",
    "function": {"name": "read", "arguments": '{"path": "a"}'},
    "extra_content": {"google": {"thought_signature": "s1"}},
}
DETAILS = [
    {"type": "reasoning.text", "index": 0, "text": "I look ", "signature": None},
    {"type": "reasoning.text", "index": 0, "text": "it up.", "signature": "s2"},
    {"type": "reasoning.encrypted", "index": 1, "data": "e"},
]
JOINED = [{"type": "reasoning.text", "index": 0, "text": "I look it up.", "signature": "s2"}, DETAILS[2]]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_signatures_of_thoughts_go_back(server, stream):
    """Gemini's behind chat completions, OpenRouter's, LiteLLM's and Copilot's; a refusal of them is obeyed."""
    thoughts = [{"type": "thinking", "thinking": "Hm.", "signature": "s3"}]
    said = {"reasoning_opaque": "o", "thinking_blocks": thoughts, "tool_calls": [{"index": 0, **SIGNED_CALL}]}
    deltas = [{"reasoning_details": [detail]} for detail in DETAILS]
    whole = {"choices": [{"message": {**said, "reasoning_details": JOINED}, "finish_reason": "tool_calls"}]}
    events = [sse(chat_chunk(delta)) for delta in (*deltas, said)]
    asked = Script.stream(*events, CHAT.end("tool_calls")) if stream else Script.answer(whole)
    server.enqueue(asked, refusal("Extra inputs are not permitted: reasoning_details"))
    server.enqueue(Script.answer(CHAT.whole()))

    reply = play(CHAT.provider(server.url), stream=stream, tools=(READ,), world=World(steps=3))

    assert isinstance(reply, Reply), reply
    again, without = (request.json["messages"][1] for request in server.requests[1:3])
    assert (again["reasoning_details"], again["thinking_blocks"]) == (JOINED, thoughts)
    assert again["reasoning_opaque"] == "o"
    assert again["tool_calls"][0]["extra_content"] == SIGNED_CALL["extra_content"]
    assert set(without) == {"role", "content", "tool_calls"}
    assert reply.carried == ()


def requires_reasoning(request):
    said = [message for message in request.json["messages"] if message["role"] == "assistant"]
    if all("reasoning_content" in message for message in said):
        return Script.stream(CHAT.text("Hi."), CHAT.end())
    message = "Missing `reasoning_content` field in the assistant message at message index 1."
    return Script.answer({"error": {"message": message, "type": "invalid_request_error"}}, status=400)


def test_deepseek_gets_its_thinking_back(server):
    """A server that requires the thinking of earlier turns gets it, from then on; others never do."""
    server.on("/v1/chat/completions", requires_reasoning)
    provider = endpoint("deepseek", server)
    call = ToolCall(name="read", arguments="{}", id="c1")
    history = (Turn(reasoning="I should read it.", calls=(call,), results=("alpha",)),)

    replies = [ask(provider, tools=(READ,), history=history) for _ in range(2)]

    assert [type(reply) for reply in replies] == [Reply, Reply]
    sent = [request.json["messages"][1].get("reasoning_content") for request in server.requests]
    assert sent == [None, "I should read it.", "I should read it."]


@pytest.mark.parametrize(
    ("status", "message"),
    [(400, "the seed of the matter is missing"), (500, "property 'seed' is unsupported")],
    ids=["only-mentioned", "another-status"],
)
def test_another_error_is_asked_once(server, status, message):
    """A word in an error does not change what is sent."""
    server.on("*", Script.answer({"error": {"message": message}}, status=status))

    ask(endpoint("groq", server), seed=1)

    assert server.total == 1
