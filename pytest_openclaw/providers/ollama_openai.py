"""Chat completions: Ollama's OpenAI-compatible API, and every other server with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.providers.earlier_turns import users_content, with_ids
from pytest_openclaw.providers.fingerprint import fingerprint
from pytest_openclaw.providers.finishing import finish
from pytest_openclaw.providers.fragments import arguments_text
from pytest_openclaw.providers.json_values import count_in, object_in, objects_in, positive_in, text_in
from pytest_openclaw.providers.ollama import Ollama, offered
from pytest_openclaw.providers.over_http import REFUSALS
from pytest_openclaw.providers.request_fields import chosen
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.providers.token_counts import most_in, settled
from pytest_openclaw.providers.wire_errors import error_in, error_of_object
from pytest_openclaw.values.replies import MALFORMED_CALL, UNEXPECTED_CALL, meaning_of
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from pytest_openclaw.providers.exchange import Exchange
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.faults import WireError
    from pytest_openclaw.values.protocols import ProviderSetup
    from pytest_openclaw.values.replies import Fault, Image, Turn
    from pytest_openclaw.values.requests import Request

# Only the first one is read: some servers send the same thinking under two names.
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
# Cached tokens of the input: the usual name, then others of Mistral, DeepSeek, Moonshot, Mistral again, and
# Anthropic's, which gateways keep.
_CACHED = (
    "prompt_tokens_details.cached_tokens",
    "prompt_token_details.cached_tokens",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "num_cached_tokens",
    "cache_read_input_tokens",
)
_CACHE_WRITE = ("prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens")
# Without these the question is the same. Some servers reject each field that they do not know.
_OPTIONAL = ("think", "stream_options", "seed", "temperature", "top_p")
_REJECTS = re.compile(r"support|extra|unknown|unrecogni[sz]ed|unexpected|permitted|allowed")


def chat_body(request: Request, *, with_reasoning: bool = False) -> JsonObject:
    """Return the body of `/chat/completions` for `request`.

    A thinking level is sent twice, as OpenAI's `reasoning_effort` and as Ollama's `think`.

    Args:
        request: to a model.
        with_reasoning: True for a model whose server requires its own thinking in later turns.

    """
    messages: list[JsonObject] = []
    if request.system is not None:
        messages.append({"role": "system", "content": request.system})
    for turn in with_ids(request.conversation):
        messages += _messages_of(turn, with_reasoning=with_reasoning)
    body: JsonObject = {
        "model": request.model,
        "messages": messages,
        **chosen(temperature=request.temperature, top_p=request.top_p, seed=request.seed),
        "max_tokens" if request.surface == LISTED else "max_completion_tokens": request.max_output_tokens,
        "stream": request.stream,
    }
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    if request.thinking_level:
        body |= {"reasoning_effort": request.thinking_level, "think": True}
    if request.tools:
        body |= {"tools": [offered(tool) for tool in request.tools], "tool_choice": request.tool_choice}
    return body


def read_chat(payload: JsonObject, exchange: Exchange) -> WireError | None:
    """Add a chunk of a stream, or a whole chat completion, to the exchange.

    Returns:
        The error, if the payload is one.

    """
    if error := error_in(payload):
        return error
    exchange.receive_model(text_in(payload.get("model")))
    choices = objects_in(payload.get("choices"))
    is_chunk = payload.get("object") == "chat.completion.chunk"
    calls: list[ToolCall] = []
    for place, choice in enumerate(choices):
        # Copilot sends an answer's text and calls as several choices.
        number = place if len(choices) > 1 else count_in(choice.get("index")) or 0
        at_end = bool(text_in(choice.get("finish_reason")))
        message = object_in(choice.get("message"))
        has_news = _read_piece(object_in(choice.get("delta")), number, exchange, at_end=at_end)
        if is_chunk and not (at_end or has_news):
            _read_piece(message, number, exchange)
        elif message and not (is_chunk and has_news):
            calls += _read_whole(message, number, exchange)
        if error := _read_end(choice, exchange):
            return error
    exchange.receive_calls(calls)
    groq = object_in(payload["x_groq"]) if "x_groq" in payload else {}
    if error := groq.get("error"):
        return error_of_object(error)
    holders = (
        payload,
        groq,
        *objects_in(payload.get("choices"))[:1],
    )  # Moonshot's stream has it in the choice
    usage = next((found for holder in holders if (found := object_in(holder.get("usage")))), {})
    if usage or "timings" in payload:
        _read_usage(usage, object_in(payload.get("timings")), exchange)
    return None


def _read_end(choice: JsonObject, exchange: Exchange) -> WireError | None:
    """Read how a choice ended; with an error object OpenRouter reports a failure of the server behind it."""
    reason, native = text_in(choice.get("finish_reason")), text_in(choice.get("native_finish_reason"))
    error = error_of_object(choice["error"]) if choice.get("error") else None
    if error and meaning_of(native) not in (MALFORMED_CALL, UNEXPECTED_CALL):
        return error
    return finish(exchange, reason, native=native, said=error.message if error else "") if reason else None


def is_completion(payload: JsonObject) -> bool:
    """Whether an object is a whole chat completion."""
    return bool(payload.get("choices"))


class OllamaOpenAI(Ollama):
    """Ollama through its OpenAI-compatible API; as an endpoint of the user's, any server with that API."""

    name: ClassVar[str] = "ollama_openai"
    base_env: ClassVar[str | None] = "OLLAMA_OPENAI_BASE"
    takes_tools: ClassVar[bool] = True
    api: ClassVar[str] = "openai-completions"
    takes: ClassVar[frozenset[str]] = Ollama.takes | {"images"}
    takes_messages: ClassVar[bool] = True
    path: ClassVar[str] = "/chat/completions"
    dialect: ClassVar[Dialect] = Dialect(
        read=read_chat, is_whole=is_completion, end_mark="a finish_reason or [DONE]", done_ends=True
    )

    def __init__(self, setup: ProviderSetup) -> None:
        super().__init__(setup)
        self._with_reasoning: set[str] = set()

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body for `request`."""
        body = chat_body(request, with_reasoning=request.model in self._with_reasoning)
        return {name: value for name, value in body.items() if name not in self.refused[request.model]}

    def adapt(self, request: Request, body: JsonObject, fault: Fault) -> bool:
        """Note what the server rejects of `body` or requires; return whether the next body is another one."""
        words = fault.message.lower()
        if fault.failure_type not in REFUSALS:
            return False
        has_answers = len(request.conversation) > 1
        if "reasoning_content" in words and has_answers and request.model not in self._with_reasoning:
            self._with_reasoning.add(request.model)
            return True
        named = {name for name in _OPTIONAL if name in body and re.search(rf"\b{name}\b", words)}
        if not (named and _REJECTS.search(words)):
            return False
        self.refused[request.model] |= named
        return True

    async def fingerprint(self, model: str) -> JsonObject:
        """The facts of Ollama or llama.cpp about the model."""
        return await fingerprint(self.fetch, self.address, model)


def _messages_of(turn: Turn, *, with_reasoning: bool) -> list[JsonObject]:
    """Return a turn's messages: the user's, the model's, then one for each result."""
    asked: list[JsonObject] = []
    if turn.user is not None:
        asked.append({"role": "user", "content": users_content(turn, _picture)})
    if turn.is_users_alone:
        return asked
    # Without text the APIs require null beside calls, and a string if there are no calls.
    said: JsonObject = {"role": "assistant", "content": turn.text or (None if turn.calls else "")}
    if turn.calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.calls
        ]
    if with_reasoning:
        said["reasoning_content"] = turn.reasoning
    answered = zip(turn.calls, turn.results, strict=False)
    results = [{"role": "tool", "tool_call_id": call.id, "content": result} for call, result in answered]
    return [*asked, said, *results]


def _picture(image: Image) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": image.data_uri}}


def _read_piece(message: JsonObject, number: int, exchange: Exchange, *, at_end: bool = False) -> bool:
    """Add a delta; return whether it has any text or call."""
    text, reasoning, refusal = _texts_in(message)
    exchange.receive_reasoning(reasoning, choice=number, at_end=at_end)
    exchange.receive_text(text, choice=number, at_end=at_end)
    exchange.receive_refusal(refusal)
    entries = _calls_in(message)
    if len(entries) < 2 or not exchange.repeats_calls([*map(_call_of, entries)], at_end=at_end):
        for entry in entries:
            call, index = _call_of(entry), count_in(entry.get("index"))
            exchange.receive_tool_call(
                key=(number, index) if number and index is not None else index,
                id=call.id,
                name=call.name or None,
                arguments=call.arguments,
                whole=isinstance(object_in(entry.get("function")).get("arguments"), (dict, list)),
            )
    return bool(text or reasoning or refusal or entries)


def _read_whole(message: JsonObject, number: int, exchange: Exchange) -> list[ToolCall]:
    """Add the texts of a whole message, which may repeat the deltas; return its calls."""
    text, reasoning, refusal = _texts_in(message)
    exchange.receive_whole("reasoning", reasoning, choice=number)
    exchange.receive_whole("text", text, choice=number)
    exchange.receive_whole("refusal", refusal)
    return [*map(_call_of, _calls_in(message))]


def _texts_in(message: JsonObject) -> tuple[str, str, str]:
    """Return the text, the reasoning and the refusal of a message or delta."""
    reasoning = next((text for name in _REASONING_FIELDS if (text := text_in(message.get(name)))), "")
    content, text, refusal = message.get("content"), "", text_in(message.get("refusal"))
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            text += part
        elif isinstance(part, dict):
            text += text_in(part.get("text"))
            refusal += text_in(part.get("refusal"))
            thinking = part.get("thinking")  # a text, or a list of texts
            reasoning += text_in(thinking)
            reasoning += "".join(text_in(thought.get("text")) for thought in objects_in(thinking))
    return text, reasoning, refusal


def _calls_in(message: JsonObject) -> list[JsonObject]:
    """Return the entries of calls; `function_call` is an older form, which gateways send in addition."""
    entries = objects_in(message.get("tool_calls"))
    if not entries and (old := object_in(message.get("function_call"))):
        return [{"index": 0, "function": old}]
    return entries


def _call_of(entry: JsonObject) -> ToolCall:
    function = object_in(entry.get("function"))
    return ToolCall(
        name=text_in(function.get("name")),
        arguments=arguments_text(function.get("arguments")),
        id=text_in(entry.get("id")) or None,
    )


def _read_usage(usage: JsonObject, timings: JsonObject, exchange: Exchange) -> None:
    """Add the counts and llama.cpp's own speeds; the speed of a single token is meaningless."""
    n_prompt, n_new = count_in(usage.get("prompt_tokens")), count_in(timings.get("prompt_n"))
    cached = most_in(usage, *_CACHED)
    if cached is None:
        cached = count_in(timings.get("cache_n"))
    if cached is None and n_prompt and n_new and n_new <= n_prompt:  # versions before `cache_n`
        cached = n_prompt - n_new
    written = most_in(usage, *_CACHE_WRITE)
    counts = settled(
        n_prompt,
        count_in(usage.get("completion_tokens")),
        total=count_in(usage.get("total_tokens")),
        reasoning=most_in(usage, "completion_tokens_details.reasoning_tokens", "reasoning_tokens"),
        cached=cached,
        cache_write=written,
    )
    if usage:
        exchange.receive_usage(
            input_tokens=counts.input,
            output_tokens=counts.output,
            reasoning_tokens=counts.reasoning,
            cached_tokens=cached,
            cache_write_tokens=written,
        )
    if (count_in(timings.get("predicted_n")) or 0) > 1:
        exchange.receive_speed(positive_in(timings.get("predicted_per_second")))
    exchange.receive_prompt_speed(positive_in(timings.get("prompt_per_second")))
