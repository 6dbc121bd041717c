"""Chat completions: Ollama's OpenAI-compatible API, and every server that speaks it too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_openclaw.providers.address import Address, parse_address, parse_ollama_host
from pytest_openclaw.providers.call import Dialect
from pytest_openclaw.providers.fingerprint import fingerprint
from pytest_openclaw.providers.json_values import count_in, object_in, objects_in, positive_in, text_in
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.providers.wire_errors import error_in, error_of_object

if TYPE_CHECKING:
    from pytest_openclaw.faults import WireError
    from pytest_openclaw.providers.exchange import Exchange
    from pytest_openclaw.records import JsonObject, Request

DEFAULT_BASE_URL = "http://127.0.0.1:11434/v1"
# Servers that send the same thought under two names would otherwise be heard twice.
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")


def chat_body(request: Request) -> JsonObject:
    """Return the body of `/chat/completions` that asks `request`.

    A thinking level goes out twice, as OpenAI's `reasoning_effort` and as Ollama's `think`.
    """
    messages = [{"role": "user", "content": request.prompt}]
    if request.system is not None:
        messages.insert(0, {"role": "system", "content": request.system})
    body: JsonObject = {
        "model": request.model,
        "messages": messages,
        "temperature": request.temperature,
        "max_tokens": request.max_output_tokens,
        "stream": request.stream,
    }
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    if request.seed is not None:
        body["seed"] = request.seed
    if request.thinking_level:
        body |= {"reasoning_effort": request.thinking_level, "think": True}
    return body


def read_chat(payload: JsonObject, exchange: Exchange) -> WireError | None:
    """Take a chunk of a stream, or a whole chat completion, into the exchange.

    Returns:
        The error that it is instead, if it is one.
    """
    if error := error_in(payload):
        return error
    exchange.hear_model(text_in(payload.get("model")))
    for choice in objects_in(payload.get("choices"))[:1]:
        _read_message(object_in(choice.get("delta") or choice.get("message")), exchange)
        reason = text_in(choice.get("finish_reason"))
        if choice.get("error") or reason == "error":
            # OpenRouter says so that the server behind it failed in the middle.
            return error_of_object(choice.get("error") or "its finish_reason is 'error'")
        if reason:
            exchange.hear_end(reason)
    if usage := object_in(payload.get("usage")):
        _read_usage(usage, exchange)
    timings = object_in(payload.get("timings"))
    if (count_in(timings.get("predicted_n")) or 0) > 1:  # llama.cpp; of one token it tells no true speed
        exchange.hear_speed(positive_in(timings.get("predicted_per_second")))
    return None


def is_completion(payload: JsonObject) -> bool:
    """Whether an object is a whole chat completion."""
    return bool(payload.get("choices"))


class OllamaOpenAI(OverHttp):
    """Ollama, by its OpenAI-compatible API; under a name of the user's, any server with that API.

    The address is `OLLAMA_OPENAI_BASE`, else `OLLAMA_HOST`, else the ini's, else Ollama's default; an
    endpoint of the user's has the one of its ini line. A key is sent if `OLLAMA_API_KEY`, or the variable
    that the line names, is set.
    """

    name: ClassVar[str] = "ollama_openai"
    warms_up: ClassVar[bool] = True
    path: ClassVar[str] = "/chat/completions"
    dialect: ClassVar[Dialect] = Dialect(
        read=read_chat, is_whole=is_completion, end_mark="a finish_reason or [DONE]", done_ends=True
    )

    def find_address(self) -> Address:
        """Return where the server is."""
        if self.setup.name != OllamaOpenAI.name:
            return super().find_address()
        environ = self.setup.environ
        if base := environ.get("OLLAMA_OPENAI_BASE", "").strip():
            return parse_address(base, source="OLLAMA_OPENAI_BASE")
        if host := environ.get("OLLAMA_HOST", "").strip():
            return parse_ollama_host(host)
        return parse_address(self.setup.base_url or DEFAULT_BASE_URL, source=self.setup.name)

    @property
    def key_env(self) -> str | None:
        """The key's variable, if there is one; Ollama on this machine needs none."""
        return self.setup.key_env or ("OLLAMA_API_KEY" if self.setup.name == OllamaOpenAI.name else None)

    @property
    def is_local(self) -> bool:
        """Whether the lane is on this machine, as Ollama itself is taken to be."""
        return self.setup.name == OllamaOpenAI.name or super().is_local

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body that asks `request`."""
        return chat_body(request)

    async def fingerprint(self, model: str) -> JsonObject:
        """What is being served, as far as Ollama or llama.cpp says."""
        return await fingerprint(self.fetch, self.address, model)


def _read_message(message: JsonObject, exchange: Exchange) -> None:
    for name in _REASONING_FIELDS:
        if thought := text_in(message.get(name)):
            exchange.hear_reasoning(thought)
            break
    content = message.get("content")
    if isinstance(content, str):
        exchange.hear_text(content)
    elif isinstance(content, list):
        for part in content:
            _read_part(part, exchange)
    exchange.hear_refusal(text_in(message.get("refusal")))
    for call in objects_in(message.get("tool_calls")):
        _read_call(call, exchange)
    if message.get("function_call"):
        _read_call({"index": 0, "function": message["function_call"]}, exchange)


def _read_part(part: Any, exchange: Exchange) -> None:
    """Take a part of a content list: text, a refusal, or thinking, which may be a list of texts itself."""
    if isinstance(part, str):
        exchange.hear_text(part)
    if not isinstance(part, dict):
        return
    exchange.hear_text(text_in(part.get("text")))
    exchange.hear_refusal(text_in(part.get("refusal")))
    thinking = part.get("thinking")
    exchange.hear_reasoning(text_in(thinking))
    for thought in objects_in(thinking):
        exchange.hear_reasoning(text_in(thought.get("text")))


def _read_call(call: JsonObject, exchange: Exchange) -> None:
    function = object_in(call.get("function"))
    arguments = function.get("arguments")
    # Ollama's older versions and some gateways send an object where the API has its text.
    whole = isinstance(arguments, (dict, list))
    exchange.hear_tool_call(
        key=count_in(call.get("index")),
        id=text_in(call.get("id")) or None,
        name=text_in(function.get("name")) or None,
        arguments=json.dumps(arguments, ensure_ascii=False) if whole else text_in(arguments),
        whole=whole,
    )


def _read_usage(usage: JsonObject, exchange: Exchange) -> None:
    exchange.hear_usage(
        input_tokens=count_in(usage.get("prompt_tokens")),
        output_tokens=count_in(usage.get("completion_tokens")),
        reasoning_tokens=count_in(object_in(usage.get("completion_tokens_details")).get("reasoning_tokens")),
        cached_tokens=count_in(object_in(usage.get("prompt_tokens_details")).get("cached_tokens")),
    )
