"""Chat completions: Ollama's OpenAI-compatible API, and every other server with it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.providers.bodies import chosen, function_of, users_content, with_ids
from pytest_openclaw.providers.ollama import Ollama, call_of, dialog, entry_of, sha256_of
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.providers.wire import (
    count_in,
    counts_in,
    error_in,
    error_of_object,
    object_in,
    objects_in,
    positive_in,
    text_in,
)
from pytest_openclaw.values.replies import MALFORMED_CALL, UNEXPECTED_CALL, meaning_of
from pytest_openclaw.values.requests import LISTED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_openclaw.providers.answer import Answer, Channel
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.faults import WireError
    from pytest_openclaw.values.replies import Image, Turn
    from pytest_openclaw.values.requests import Request
    from pytest_openclaw.values.tool_calls import ToolCall

# Only the first one is read: some servers send the same thinking under two names.
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
_COUNTS = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
    "reasoning_tokens": "completion_tokens_details.reasoning_tokens reasoning_tokens",
    # The usual name, then others of Mistral, DeepSeek, Moonshot, Mistral again, and Anthropic's, which
    # gateways keep.
    "cached_tokens": "prompt_tokens_details.cached_tokens prompt_token_details.cached_tokens "
    "prompt_cache_hit_tokens cached_tokens num_cached_tokens cache_read_input_tokens",
    "cache_write_tokens": "prompt_tokens_details.cache_write_tokens cache_creation_input_tokens",
}
# Without these the question is the same. Some servers reject each field that they do not know.
_OPTIONAL = ("think", "stream_options", "seed", "temperature")
_SERVERS = {"llamacpp": "llama.cpp", "vllm": "vllm", "sglang": "sglang"}
"""Who owns a model in a server's list → the server."""
_NO_REASONING = "turns without reasoning_content"
"""What servers refuse that require a model's own thinking in later turns."""
_REJECTS = r"(?=.*(support|extra|unknown|unrecogni[sz]ed|unexpected|permitted|allowed))"


# --- requests -----------------------------------------------------------------------------------


def chat_body(request: Request, refused: Collection[str] = ()) -> JsonObject:
    """Return the body of `/chat/completions`.

    A thinking level is sent twice, as OpenAI's `reasoning_effort` and as Ollama's `think`.
    """
    said = partial(_said, with_reasoning=_NO_REASONING in refused)
    body: JsonObject = {
        "model": request.model,
        "messages": dialog(request, with_ids(request.conversation), said, _result, _user),
        **chosen(temperature=request.temperature, seed=request.seed),
        "max_tokens" if request.surface == LISTED else "max_completion_tokens": request.max_output_tokens,
        "stream": request.stream,
    }
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    if request.thinking_level:
        body |= {"reasoning_effort": request.thinking_level, "think": True}
    if request.tools:
        body["tools"] = [{"type": "function", "function": function_of(tool)} for tool in request.tools]
        body["tool_choice"] = "auto"
    return {name: value for name, value in body.items() if name not in refused}


def _said(turn: Turn, *, with_reasoning: bool) -> JsonObject:
    """Return the model's text and calls.

    Without text the APIs require null next to calls, and a string if there are no calls.
    """
    said: JsonObject = {"content": turn.text or (None if turn.calls else "")}
    if turn.calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.calls
        ]
    return {**said, "reasoning_content": turn.reasoning} if with_reasoning else said


def _user(turn: Turn) -> JsonObject:
    def picture(image: Image) -> JsonObject:
        return {"type": "image_url", "image_url": {"url": image.data_uri}}

    return {"content": users_content(turn, picture)}


def _result(call: ToolCall) -> JsonObject:
    return {"tool_call_id": call.id}


# --- answers ------------------------------------------------------------------------------------


def read_chat(payload: JsonObject, answer: Answer) -> WireError | None:
    """Add a chunk, or a whole completion, to the answer so far; return the error, if it is one."""
    if error := error_in(payload):
        return error
    answer.receive_model(text_in(payload.get("model")))
    choices = objects_in(payload.get("choices"))
    is_chunk = payload.get("object") == "chat.completion.chunk"
    calls: list[ToolCall] = []
    for place, choice in enumerate(choices):
        # Copilot sends an answer's text and calls as several choices.
        number = place if len(choices) > 1 else count_in(choice.get("index")) or 0
        at_end = bool(text_in(choice.get("finish_reason")))
        message = object_in(choice.get("message"))
        has_news = _read_piece(object_in(choice.get("delta")), number, answer, at_end=at_end)
        if is_chunk and not (at_end or has_news):
            _read_piece(message, number, answer)
        elif message and not (is_chunk and has_news):
            # It may repeat the deltas.
            for channel, text in _texts_in(message).items():
                answer.receive_whole(channel, text, choice=number)
            calls += map(call_of, _calls_in(message))
        if error := _read_end(choice, answer):
            return error
    answer.receive_calls(calls)
    groq = object_in(payload.get("x_groq"))
    if groq.get("error"):
        return error_of_object(groq["error"])
    # Moonshot's stream has it in the choice.
    usages = [object_in(holder.get("usage")) for holder in (payload, groq, *choices[:1])]
    _read_usage(next(filter(None, usages), {}), object_in(payload.get("timings")), answer)
    return None


def _read_piece(message: JsonObject, number: int, answer: Answer, *, at_end: bool = False) -> bool:
    """Add a delta; return whether it has any text or call."""
    texts = _texts_in(message)
    for channel, text in texts.items():
        answer.receive_text(text, channel, choice=number, at_end=at_end)
    entries = _calls_in(message)
    if len(entries) < 2 or not answer.repeats_calls([*map(call_of, entries)], at_end=at_end):
        for entry in entries:
            call, index = call_of(entry), count_in(entry.get("index"))
            answer.receive_tool_call(
                key=(number, index) if number and index is not None else index,
                id=call.id,
                name=call.name or None,
                arguments=call.arguments,
                whole=isinstance(object_in(entry.get("function")).get("arguments"), (dict, list)),
            )
    return bool(any(texts.values()) or entries)


def _texts_in(message: JsonObject) -> dict[Channel, str]:
    """Return the texts of a message or delta; its content may be a list of parts."""
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
    return {"reasoning": reasoning, "text": text, "refusal": refusal}


def _calls_in(message: JsonObject) -> list[JsonObject]:
    """Return the entries of calls; `function_call` is an older form, which gateways send in addition."""
    entries = objects_in(message.get("tool_calls"))
    if not entries and (old := object_in(message.get("function_call"))):
        return [{"index": 0, "function": old}]
    return entries


def _read_end(choice: JsonObject, answer: Answer) -> WireError | None:
    """Read how a choice ended; with an error object OpenRouter reports a failure of the server behind it."""
    reason, native = text_in(choice.get("finish_reason")), text_in(choice.get("native_finish_reason"))
    error = error_of_object(choice["error"]) if choice.get("error") else None
    if error and meaning_of(native) not in (MALFORMED_CALL, UNEXPECTED_CALL):
        return error
    said = error.message if error else ""
    return answer.receive_finish_word(reason, native=native, said=said) if reason else None


def _read_usage(usage: JsonObject, timings: JsonObject, answer: Answer) -> None:
    """Add the counts and llama.cpp's own speeds; the speed of a single token is meaningless."""
    if usage:
        counts = counts_in(usage, _COUNTS)
        n_prompt, n_new = counts["input_tokens"], count_in(timings.get("prompt_n"))
        if counts["cached_tokens"] is None:
            counts["cached_tokens"] = count_in(timings.get("cache_n"))
        if counts["cached_tokens"] is None and n_prompt and n_new and n_new <= n_prompt:
            counts["cached_tokens"] = n_prompt - n_new  # versions before `cache_n`
        answer.receive_usage(**counts)
    if timings:
        has_speed = (count_in(timings.get("predicted_n")) or 0) > 1
        answer.receive_speeds(
            positive_in(timings.get("predicted_per_second")) if has_speed else None,
            positive_in(timings.get("prompt_per_second")),
        )


# --- the provider -------------------------------------------------------------------------------


class OllamaOpenAI(Ollama):
    """Ollama through its OpenAI-compatible API; as an endpoint of the user's, any server with that API."""

    name: ClassVar[str] = "ollama_openai"
    base_env: ClassVar[str | None] = "OLLAMA_OPENAI_BASE"
    api: ClassVar[str] = "openai-completions"
    path: ClassVar[str] = "/chat/completions"
    refusable: ClassVar[Mapping[str, str]] = {
        _NO_REASONING: "reasoning_content",
        **{name: rf"{_REJECTS}.*\b{name}\b" for name in _OPTIONAL},
    }
    dialect: ClassVar[Dialect] = Dialect(
        body=chat_body,
        read=read_chat,
        is_whole=lambda payload: bool(payload.get("choices")),
        end_mark="a finish_reason or [DONE]",
        done_ends=True,
    )

    async def fingerprint(self, model: str) -> JsonObject:
        """Return the facts of llama.cpp, of another server with a list of models, or of Ollama."""
        entry = entry_of(await self.question(f"{self.address.base_url}/models"), model)
        props, meta = await self.question(f"{self.address.root_url}/props"), object_in(entry.get("meta"))
        in_use = object_in(props.get("default_generation_settings")).get("n_ctx") or meta.get("n_ctx")
        found = {
            "server": _SERVERS.get(text_in(entry.get("owned_by"))),
            "server_version": props.get("build_info"),
            "quantisation": props.get("model_ftype") or meta.get("ftype"),
            "context_length": in_use or entry.get("max_model_len"),
            "template_sha256": sha256_of(text_in(props.get("chat_template"))),
            "template_shows_tools": object_in(props.get("chat_template_caps")).get("supports_tools"),
        }
        known = {name: value for name, value in found.items() if value not in (None, "")}
        return known | await super().fingerprint(model)
