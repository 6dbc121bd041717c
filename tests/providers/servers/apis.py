"""The HTTP APIs behind one interface, so that one test can cover all of them, streamed and not."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.asking.exchanges import hold_exchange
from pytest_openclaw.asking.sending import ask_once
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.anthropic_messages import AnthropicMessages
from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.gemini import Gemini
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import CallResult, Fault
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool
from tests.providers.servers.misbehaving import sse

READ = Tool(
    name="read",
    description="Reads a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


@dataclass(frozen=True)
class Said:
    """An answer of a model, before an API has put it into its form."""

    text: str | None = "Hi."
    reason: str | None = "stop"
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    usage: Any = None


@dataclass(frozen=True)
class Api:
    """How one API expresses the same events; each function returns the bytes of one or more events."""

    kind: type[OverHttp]
    base_env: str
    key_env: str
    text: Callable[[str], bytes]
    reasoning: Callable[[str], bytes]
    refusal: Callable[[str], bytes] | None
    end: Callable[..., bytes]
    answer_of: Callable[[Said], dict[str, Any]]
    shown_key: Callable[[str], tuple[str, str]] = lambda key: ("authorization", f"Bearer {key}")

    version: str = "/v1"
    served_at: str = ""
    content_type: str = "text/event-stream"

    @property
    def path(self):
        return self.path_of("m")

    def path_of(self, model):
        return self.version + (self.served_at.format(model=model) or self.kind.path)

    def base(self, url):
        return url.removesuffix("/v1") + self.version

    def answers(self, path):
        return (
            ":generateContent" in path.replace("streamG", "g") if self.served_at else path.endswith(self.path)
        )

    def whole(self, *said, **more):
        return self.answer_of(Said(*said, **more))

    def provider(self, url, **environ):
        return self.kind(ProviderSetup(name=self.kind.name, environ={self.base_env: url, **environ}))


def reading(reader):
    def read(*payloads):
        exchange = Answer(monotonic=lambda: 0.0, wall_ms=lambda moment: 0)
        for payload in payloads:
            assert reader(payload, exchange) is None
        return exchange.reply()

    return read


def using(provider, work):
    async def doing():
        try:
            return await work(provider)
        finally:
            await provider.aclose()

    return asyncio.run(doing())


def ask(provider, **request):
    async def asking(provider):
        try:
            return await provider.ask(_request(request))
        except CallFailed as failed:
            return failed.fault

    return using(provider, asking)


def play(provider, **request):
    async def ask_turn(turn):
        result, timing = await ask_once(provider, turn)
        return CallResult(result=result, timing=timing)

    async def playing(provider):
        return (await hold_exchange(_request(request), ask_turn)).result

    return using(provider, playing)


def _request(fields):
    return Request(**{"model": "m", "prompt": "Say hi.", "timeout_s": 60.0, **fields})


def described(fault):
    assert isinstance(fault, Fault), fault
    return fault.failure_type, fault.status, fault.message, fault.raw


def chat_chunk(delta, finish_reason=None):
    return {
        "object": "chat.completion.chunk",
        "model": "m-served",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


def chat_usage(**usage):
    return {"object": "chat.completion.chunk", "model": "m-served", "choices": [], "usage": usage}


CHAT_USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "completion_tokens_details": {"reasoning_tokens": 5},
    "prompt_tokens_details": {"cached_tokens": 3},
}


def _chat_whole(said):
    message = {"role": "assistant", "content": said.text}
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    if said.calls:
        message["tool_calls"] = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(said.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": said.reason}
    usage = said.usage or CHAT_USAGE
    return {"object": "chat.completion", "model": "m-served", "choices": [choice], "usage": usage}


def _chat_end(reason="stop", usage=None, **_):
    return sse(chat_chunk({}, reason), chat_usage(**(usage or CHAT_USAGE)), "[DONE]")


CHAT = Api(
    kind=OllamaOpenAI,
    base_env="OLLAMA_OPENAI_BASE",
    key_env="OLLAMA_API_KEY",
    text=lambda text: sse(chat_chunk({"content": text})),
    reasoning=lambda text: sse(chat_chunk({"reasoning_content": text})),
    refusal=lambda text: sse(chat_chunk({"refusal": text})),
    end=_chat_end,
    answer_of=_chat_whole,
)


RESPONSES_USAGE = {
    "input_tokens": 11,
    "output_tokens": 7,
    "total_tokens": 18,
    "output_tokens_details": {"reasoning_tokens": 5},
    "input_tokens_details": {"cached_tokens": 3},
}


def event(payload):
    return sse(payload, event=payload["type"])


def delta(kind, text, **more):
    return event({"type": f"response.{kind}.delta", "delta": text, **more})


def _incomplete(reason):
    return {"length": "max_output_tokens", "stop": None}.get(reason, reason)


def _responses_whole(said):
    output = []
    if said.reasoning:
        output.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": said.reasoning}]})
    if said.text:
        output.append({"type": "message", "content": [{"type": "output_text", "text": said.text}]})
    output += [
        {"type": "function_call", "id": f"fc{n}", "call_id": f"c{n}", "name": name, "arguments": arguments}
        for n, (name, arguments) in enumerate(said.calls)
    ]
    why = _incomplete(said.reason or "stop")
    return {
        "object": "response",
        "model": "m-served",
        "status": "incomplete" if why else "completed",
        "incomplete_details": {"reason": why} if why else None,
        "error": None,
        "output": output,
        "usage": said.usage or RESPONSES_USAGE,
    }


def _responses_end(reason="stop", **said):
    response = _responses_whole(Said(**{"text": None, "reason": reason, **said}))
    return event({"type": f"response.{response['status']}", "response": response})


RESPONSES = Api(
    kind=OpenAIResponses,
    base_env="OPENAI_BASE_URL",
    key_env="OPENAI_API_KEY",
    text=lambda text: delta("output_text", text),
    reasoning=lambda text: delta("reasoning_summary_text", text),
    refusal=lambda text: delta("refusal", text),
    end=_responses_end,
    answer_of=_responses_whole,
)


MESSAGES_USAGE = {
    "input_tokens": 8,
    "cache_read_input_tokens": 3,
    "cache_creation_input_tokens": 0,
    "output_tokens": 7,
    "output_tokens_details": {"thinking_tokens": 5},
}
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def block_delta(kind, **delta):
    return event({"type": "content_block_delta", "index": 0, "delta": {"type": kind, **delta}})


def _messages_whole(said):
    content = []
    if said.reasoning:
        content.append({"type": "thinking", "thinking": said.reasoning, "signature": "c2lnbmVk"})
    if said.text:
        content.append({"type": "text", "text": said.text})
    content += [
        {"type": "tool_use", "id": f"c{n}", "name": name, "input": as_object(arguments)}
        for n, (name, arguments) in enumerate(said.calls)
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-served",
        "content": content,
        "stop_reason": _STOP_REASONS.get(said.reason or "stop", said.reason),
        "stop_sequence": None,
        "usage": said.usage or MESSAGES_USAGE,
    }


def _messages_end(reason="stop", usage=None, **_):
    ended = {"stop_reason": _STOP_REASONS.get(reason, reason), "stop_sequence": None}
    return event({"type": "message_delta", "delta": ended, "usage": usage or MESSAGES_USAGE}) + event(
        {"type": "message_stop"}
    )


MESSAGES = Api(
    kind=AnthropicMessages,
    base_env="ANTHROPIC_BASE_URL",
    key_env="ANTHROPIC_API_KEY",
    text=lambda text: block_delta("text_delta", text=text),
    reasoning=lambda text: block_delta("thinking_delta", thinking=text),
    refusal=None,
    end=_messages_end,
    answer_of=_messages_whole,
    shown_key=lambda key: ("x-api-key", key),
)


GEMINI_USAGE = {
    "promptTokenCount": 11,
    "cachedContentTokenCount": 3,
    "candidatesTokenCount": 2,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 18,
}
_FINISH_REASONS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}


def gemini_answer(*parts, reason=None, usage=None):
    candidate = {"index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": [*parts]}
    if reason:
        candidate["finishReason"] = _FINISH_REASONS.get(reason, reason)
    answer = {"candidates": [candidate], "modelVersion": "m-served", "responseId": "r1"}
    return answer if usage is None else {**answer, "usageMetadata": usage}


def _gemini_whole(said):
    parts = [{"text": said.reasoning, "thought": True}] if said.reasoning else []
    if said.text:
        parts.append({"text": said.text})
    parts += [
        {"functionCall": {"id": f"c{n}", "name": name, "args": as_object(arguments)}}
        for n, (name, arguments) in enumerate(said.calls)
    ]
    return gemini_answer(*parts, reason=said.reason or "stop", usage=said.usage or GEMINI_USAGE)


GEMINI = Api(
    kind=Gemini,
    base_env="GOOGLE_GEMINI_BASE_URL",
    key_env="GEMINI_API_KEY",
    text=lambda text: sse(gemini_answer({"text": text})),
    reasoning=lambda text: sse(gemini_answer({"text": text, "thought": True})),
    refusal=None,
    end=lambda reason="stop", usage=None, **_: sse(gemini_answer(reason=reason, usage=usage or GEMINI_USAGE)),
    answer_of=_gemini_whole,
    shown_key=lambda key: ("x-goog-api-key", key),
    version="/v1beta",
    served_at="/models/{model}:streamGenerateContent?alt=sse",
)

APIS = (CHAT, RESPONSES, MESSAGES, GEMINI)
of_events = pytest.mark.parametrize("api", APIS, ids=lambda api: api.kind.name)
"""Limits a test of every API to those whose streams are events."""


def model_of(request):
    named = request.path.rpartition("/")[2].partition(":")[0]
    return str(request.json.get("model", named))


def prompt_of(body):
    if "contents" in body:
        return str(body["contents"][-1]["parts"][0]["text"])
    return str(body["input"] if "input" in body else body["messages"][-1]["content"])


def tools_in(body):
    (first, *_) = tools = body["tools"]
    return [tool.get("function", tool)["name"] for tool in first.get("functionDeclarations", tools)]


def texts_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)
    elif isinstance(value, dict):
        for name in _SHOWN:
            yield from texts_in(value.get(name))


_SHOWN = [
    "instructions",
    "systemInstruction",
    "system",
    "input",
    "messages",
    "contents",
    "content",
    "parts",
    "text",
    "output",
    "arguments",
    "functionResponse",
    "response",
]


def rows_in(name):
    text = Path(__file__).parents[1].joinpath(name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def as_object(arguments):
    """Arguments for an API that has them as an object; another text becomes part of one."""
    return json.loads(arguments) if arguments.startswith("{") else {"text": arguments}
