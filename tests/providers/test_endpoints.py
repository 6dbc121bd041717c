"""Public servers with chat completions, each with its own dialect, asked through a line of the ini file.

The servers are strict: they reject a field that their API does not have, as the real ones do. What they send is
written after their references, which `docs/how-to/providers.md` names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.providers.ollama import OllamaOpenAI
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from tests.providers.servers.apis import ask, chat_chunk, chat_usage
from tests.providers.servers.misbehaving import MisbehavingServer, Request, Script, sse

PAGE = Path(__file__).parents[2] / "docs/how-to/providers.md"
KEY = "a-key-0123456789"
READ = Tool(name="read", parameters={"type": "object", "properties": {"path": {"type": "string"}}})
COMMON = {
    "model",
    "messages",
    "temperature",
    "max_tokens",
    "stream",
    "tools",
    "tool_choice",
    "reasoning_effort",
}
COUNTS = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass(frozen=True)
class Dialect:
    """How one server differs.

    Attributes:
        stream: what it sends for an answer "Hi." with the thought "Hm.".
        fields: of a request that it knows.
        rejection: its answer to another field.
        sent: the fields that our requests have in the end.
        counts: input, output, reasoning and cached tokens that it reports.
    """

    stream: bytes
    fields: set[str]
    rejection: Callable[[str], Script]
    sent: set[str]
    counts: tuple[int | None, ...]


def rejected_by_groq(field: str) -> Script:
    """Groq names one property."""
    message = f"property '{field}' is unsupported"
    return Script.answer({"error": {"message": message, "type": "invalid_request_error"}}, status=400)


def rejected_by_mistral(field: str) -> Script:
    """Mistral sends what its validation found."""
    detail = [
        {
            "type": "extra_forbidden",
            "loc": ["body", field],
            "msg": "Extra inputs are not permitted",
            "input": True,
        }
    ]
    return Script.answer(
        {
            "object": "error",
            "message": {"detail": detail},
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        },
        status=422,
    )


def rejected_by_litellm(field: str) -> Script:
    """LiteLLM knows what the model behind it takes."""
    message = (
        f"litellm.UnsupportedParamsError: openai does not support parameters: ['{field}'], for model=gpt-x. To drop "
        "these, set `litellm.drop_params=True` or for proxy: `litellm_settings: drop_params: true`"
    )
    return Script.answer(
        {"error": {"message": message, "type": "None", "param": None, "code": "400"}}, status=400
    )


def rejects_nothing(field: str) -> Script:
    """OpenRouter and DeepSeek ignore what they do not know."""
    raise AssertionError(f"{field} is ignored")


END = sse(chat_chunk({}, "stop"))
DIALECTS = {
    # https://openrouter.ai/docs/api/reference/streaming and .../reasoning-tokens
    "openrouter": Dialect(
        stream=b": OPENROUTER PROCESSING\n\n"
        + sse(
            chat_chunk(
                {
                    "role": "assistant",
                    "content": "",
                    "reasoning": "Hm.",
                    "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "index": 0}],
                }
            ),
            chat_chunk({"content": "Hi."}),
            {**chat_chunk({"content": ""}, "stop"), "provider": "Some"},
            {
                **chat_chunk({"role": "assistant", "content": ""}),
                "usage": {
                    **COUNTS,
                    "cost": 0.00014,
                    "prompt_tokens_details": {"cached_tokens": 3},
                    "completion_tokens_details": {"reasoning_tokens": 5},
                },
            },
            "[DONE]",
        ),
        fields=COMMON | {"think", "stream_options", "seed"},
        rejection=rejects_nothing,
        sent=COMMON | {"think", "stream_options", "seed"},
        counts=(11, 7, 5, 3),
    ),
    # https://console.groq.com/docs/api-reference and .../reasoning
    "groq": Dialect(
        stream=sse(
            {**chat_chunk({"role": "assistant", "content": ""}), "x_groq": {"id": "req_1"}},
            chat_chunk({"reasoning": "Hm."}),
            chat_chunk({"content": "Hi."}),
            {**chat_chunk({}, "stop"), "x_groq": {"id": "req_1", "usage": {**COUNTS, "queue_time": 0.05}}},
            "[DONE]",
        ),
        fields=COMMON | {"stream_options", "seed"},
        rejection=rejected_by_groq,
        sent=COMMON | {"stream_options", "seed"},
        counts=(11, 7, None, None),
    ),
    # https://docs.mistral.ai/api/endpoint/chat and .../studio-api/conversations/reasoning
    "mistral": Dialect(
        stream=sse(
            chat_chunk({"role": "assistant", "content": ""}),
            chat_chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}),
            chat_chunk(
                {
                    "content": [
                        {"type": "thinking", "thinking": [{"type": "text", "text": "."}], "closed": True},
                        {"type": "text", "text": "H"},
                    ]
                }
            ),
            {**chat_chunk({"content": "i."}, "stop"), "usage": COUNTS},
            "[DONE]",
        ),
        fields=COMMON,
        rejection=rejected_by_mistral,
        sent=COMMON,
        counts=(11, 7, None, None),
    ),
    # https://api-docs.deepseek.com/api/create-chat-completion and .../guides/thinking_mode
    "deepseek": Dialect(
        stream=b": keep-alive\n\n"
        + sse(
            chat_chunk({"role": "assistant", "content": None, "reasoning_content": "Hm."}),
            chat_chunk({"content": "Hi.", "reasoning_content": None}),
            chat_chunk({"content": "", "reasoning_content": None}, "stop"),
            chat_usage(
                **COUNTS,
                prompt_cache_hit_tokens=3,
                prompt_cache_miss_tokens=8,
                completion_tokens_details={"reasoning_tokens": 5},
            ),
            "[DONE]",
        ),
        fields=COMMON | {"think", "stream_options", "seed"},
        rejection=rejects_nothing,
        sent=COMMON | {"think", "stream_options", "seed"},
        counts=(11, 7, 5, 3),
    ),
    # https://docs.litellm.ai/docs/reasoning_content and .../completion/drop_params
    "litellm": Dialect(
        stream=sse(
            chat_chunk(
                {
                    "role": "assistant",
                    "reasoning_content": "Hm.",
                    "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": ""}],
                }
            ),
            chat_chunk({"content": "Hi."}),
        )
        + END
        + sse(chat_usage(**COUNTS, prompt_tokens_details={"cached_tokens": 3}), "[DONE]"),
        fields=COMMON | {"stream_options"},
        rejection=rejected_by_litellm,
        sent=COMMON | {"stream_options"},
        counts=(11, 7, None, 3),
    ),
}


@pytest.fixture(params=DIALECTS)
def name(request: pytest.FixtureRequest) -> str:
    """One of the servers."""
    return str(request.param)


def line_of(name: str) -> tuple[str, str, str]:
    """The kind, address and key's variable of an endpoint, as the page has them."""
    found = re.search(rf"^    {name} = (\S+) (\S+) (\S+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert found, f"{name} has no line"
    return found[1], found[2], found[3]


def endpoint(name: str, server: MisbehavingServer) -> OllamaOpenAI:
    """The endpoint of the page's line, at another address."""
    kind, _, key_env = line_of(name)
    assert kind == OllamaOpenAI.name
    setup = ProviderSetup(name=name, base_url=server.url, key_env=key_env, environ={key_env: KEY})
    return OllamaOpenAI(setup)


def strict(dialect: Dialect, answer: Script) -> Callable[[Request], Script]:
    """Answer, but reject the first field that the API does not have."""

    def answering(request: Request) -> Script:
        unknown = [field for field in request.json if field not in dialect.fields]
        return dialect.rejection(unknown[0]) if unknown else answer

    return answering


def test_an_answer(server: MisbehavingServer, name: str) -> None:
    """Thought, answer and counts of each dialect are read, and the key is sent as a bearer token."""
    dialect = DIALECTS[name]
    server.on("/v1/chat/completions", strict(dialect, Script.stream(dialect.stream)))

    provider = endpoint(name, server)
    reply = ask(provider, thinking_level="high", seed=2, tools=(READ,))

    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("Hi.", "Hm.", "stop")
    counts = (reply.input_tokens, reply.output_tokens, reply.reasoning_tokens, reply.cached_tokens)
    assert counts == dialect.counts
    assert set(server.requests[-1].json) == dialect.sent
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    left_out = {"think", "stream_options", "seed"} - dialect.sent
    assert server.total == 1 + len(left_out)
    ask(provider, thinking_level="high", seed=3)
    assert server.total == 2 + len(left_out), "the model's later requests are without them"


# --- quirks of single servers -------------------------------------------------------------------


def requires_reasoning(request: Request) -> Script:
    """Reject a conversation without the model's own thinking, as DeepSeek does."""
    said = [message for message in request.json["messages"] if message["role"] == "assistant"]
    if all("reasoning_content" in message for message in said):
        return Script.stream(DIALECTS["deepseek"].stream)
    message = "Missing `reasoning_content` field in the assistant message at message index 1."
    return Script.answer({"error": {"message": message, "type": "invalid_request_error"}}, status=400)


def test_deepseek_gets_its_thinking_back(server: MisbehavingServer) -> None:
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
    ("name", "chunk", "failure_type", "retryable"),
    [
        pytest.param("openrouter", {**chat_chunk({"content": ""}, "error"), "error": {"code": 502, "message": "Provider disconnected"}}, "http_502", True, id="openrouter"),
        pytest.param("groq", {**chat_chunk({}), "x_groq": {"error": "over capacity"}}, "stream_error", True, id="groq"),
        pytest.param("litellm", {"error": {"message": "litellm.RateLimitError", "type": "throttling_error", "code": "429"}}, "http_429", True, id="litellm"),
    ],
)  # fmt: skip
def test_an_error_in_a_stream(
    server: MisbehavingServer, name: str, chunk: dict[str, Any], failure_type: str, retryable: bool
) -> None:
    """What a server reports in the place of an answer is its error, and no answer of the model."""
    server.enqueue(Script.stream(sse(chunk)))

    fault = ask(endpoint(name, server))

    assert (fault.failure_type, fault.retryable) == (failure_type, retryable)


@pytest.mark.parametrize(
    ("status", "message"),
    [(400, "the seed of the matter is missing"), (500, "property 'seed' is unsupported")],
    ids=["in-passing", "no-rejection"],
)
def test_another_error_is_asked_once(server: MisbehavingServer, status: int, message: str) -> None:
    """A word in an error does not change what is sent."""
    server.on("*", Script.answer({"error": {"message": message}}, status=status))

    ask(endpoint("groq", server), seed=1)

    assert server.total == 1
