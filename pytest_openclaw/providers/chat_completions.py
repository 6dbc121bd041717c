"""Chat completions, OpenAI's older API, on Ollama or any other server."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from pytest_openclaw.providers import wire
from pytest_openclaw.providers.answer import Answer, Channel
from pytest_openclaw.providers.ollama_native import Ollama, entry_of, known_facts, sha256_of
from pytest_openclaw.providers.repairs import MOST_CALLS
from pytest_openclaw.providers.server_errors import error_of_object
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.replies import MALFORMED_CALL, UNEXPECTED_CALL, Image, Turn, meaning_of
from pytest_openclaw.values.requests import LISTED, Request
from pytest_openclaw.values.tool_calls import ToolCall

# Only the first of these is read: some servers send the same thinking under two names.
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
_COUNTS = {
    "input_tokens": "prompt_tokens input_tokens",
    "output_tokens": "completion_tokens output_tokens",
    "total_tokens": "total_tokens",
    "reasoning_tokens": "completion_tokens_details.reasoning_tokens reasoning_tokens",
    # The usual name, then others of Mistral, DeepSeek, Moonshot, Mistral again, and Anthropic's, which
    # gateways keep.
    "cached_tokens": "prompt_tokens_details.cached_tokens prompt_token_details.cached_tokens "
    "prompt_cache_hit_tokens cached_tokens num_cached_tokens cache_read_input_tokens "
    "input_tokens_details.cached_tokens",
    "cache_write_tokens": "prompt_tokens_details.cache_write_tokens cache_creation_input_tokens",
}
# Fields that can be left out without changing the prompt. Some servers reject every field unknown to them.
_OPTIONAL = ("think", "stream_options", "seed", "temperature", "tool_choice")
_SERVERS = {"llamacpp": "llama.cpp", "vllm": "vllm", "sglang": "sglang"}
"""The owner of a model, in the server's list of models → the server."""
_NO_REASONING = "turns without reasoning_content"
"""Servers refuse this if they require a model's own thinking in later turns."""
_REJECTS = r"(?=.*(support|extra|unknown|unrecogni[sz]ed|unexpected|permitted|allowed|deprecated))"
_MOST_CHOICES = 64  # Copilot has one for each part of an answer
_LIMITS = ("max_tokens", "max_completion_tokens")  # a server may refuse one of these names
_OTHER_LIMIT = r"(?!.*too large).*(unsupported|unrecogni[sz]ed|unknown|unexpected|extra|instead|use )"
# Signatures of thoughts: https://ai.google.dev/gemini-api/docs/thought-signatures#openai, and Copilot's.
_SIGNED = ("extra_content", "reasoning_opaque")
_DETAILS = ("reasoning_details", "thinking_blocks")  # of OpenRouter, and of LiteLLM in Anthropic's form
_CARRIED = "carried parts"


# --- requests -----------------------------------------------------------------------------------


def chat_body(request: Request, refused: Collection[str] = ()) -> JsonObject:
    """Return the body of `/chat/completions`.

    A thinking level is sent twice, as OpenAI's `reasoning_effort` and as Ollama's `think`.
    """
    limits = _LIMITS if request.surface == LISTED else _LIMITS[::-1]
    body: JsonObject = {
        "model": request.model,
        "messages": _messages(request, refused),
        **wire.chosen(temperature=request.temperature, seed=request.seed),
        "stream": request.stream,
    }
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    if request.thinking_level:
        body |= {"reasoning_effort": request.thinking_level, "think": True}
    if request.tools:
        body["tools"] = [{"type": "function", "function": wire.function_of(tool)} for tool in request.tools]
        body["tool_choice"] = "auto"
    limit = next((name for name in limits if name not in refused), limits[0])
    kept = {name: value for name, value in body.items() if name not in refused}
    return {**kept, limit: request.max_output_tokens}


def _messages(request: Request, refused: Collection[str]) -> list[JsonObject]:
    """Return the messages; without text, the API requires null in a turn with calls, else a string."""
    messages: list[JsonObject] = []
    if request.system is not None:
        messages.append({"role": "system", "content": request.system})
    conversation = request.conversation
    for received, turn in zip(conversation, wire.with_ids(conversation), strict=True):
        if turn.user is not None:
            messages.append({"role": "user", "content": wire.users_content(turn, _image_part)})
        if not turn.is_user_only:
            said: JsonObject = {"role": "assistant", "content": turn.text or (None if turn.calls else "")}
            for call in turn.calls:
                function = {"name": call.name, "arguments": call.arguments}
                entry = {"id": call.id, "type": "function", "function": function}
                said.setdefault("tool_calls", []).append(entry)
            if _NO_REASONING in refused:
                said["reasoning_content"] = turn.reasoning
            if _CARRIED not in refused:
                _carry(received, said)
            messages.append(said)
        for call, text in zip(turn.calls, turn.results, strict=False):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    return messages


def _carry(received: Turn, said: JsonObject) -> None:
    """Add what the server wants to see again to the message and its calls."""
    ids = (call.id for call in received.calls)
    parts = {"": said, **dict(zip(ids, said.get("tool_calls", ()), strict=False))}
    for block in received.carried:
        if "type" in block:
            said.setdefault(_DETAILS[block["type"].endswith("thinking")], []).append(block)
        else:
            parts.get(block["id"], {}).update({name: block[name] for name in _SIGNED if name in block})


def _image_part(image: Image) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": image.data_uri}}


# --- answers ------------------------------------------------------------------------------------


def read_chat(payload: JsonObject, answer: Answer) -> WireError | None:
    """Add a chunk, or a whole completion, to the answer so far; return the error that it reports."""
    answer.receive_model(wire.text_in(payload, "model"))
    choices = wire.objects_in(payload, "choices")[:_MOST_CHOICES]
    is_chunk = payload.get("object") == "chat.completion.chunk"
    calls: list[ToolCall] = []
    for position, choice in enumerate(choices):
        # Copilot sends an answer's text and calls as several choices.
        number = position if len(choices) > 1 else wire.count_in(choice, "index") or 0
        at_end = bool(wire.text_in(choice, "finish_reason"))
        message = wire.object_in(choice, "message")
        has_news = _read_delta(wire.object_in(choice, "delta"), number, answer, at_end=at_end)
        if is_chunk and not (at_end or has_news):
            _read_delta(message, number, answer)
        elif message and not (is_chunk and has_news):
            # The message may repeat the deltas.
            for channel, text in _texts_in(message).items():
                answer.receive_whole(channel, text)
            calls += map(wire.function_call_in, _calls_in(message))
            if not has_news:
                _keep_signed(message, answer)
        if error := _read_end(choice, answer):
            return error
    answer.receive_calls(calls)
    # In Moonshot's stream, the choice has the usage.
    holders = (payload, wire.object_in(payload, "x_groq"), *choices[:1])
    usage = next(filter(None, (wire.object_in(holder, "usage") for holder in holders)), {})
    _read_usage(usage, wire.object_in(payload, "timings"), answer)
    return None


def _read_delta(message: JsonObject, number: int, answer: Answer, *, at_end: bool = False) -> bool:
    """Add a delta; return whether it has any text or call."""
    texts = _texts_in(message)
    for channel, text in texts.items():
        answer.receive_text(text, channel, at_end=at_end)
    _keep_signed(message, answer)
    entries = _calls_in(message)
    calls = [*map(wire.function_call_in, entries)]
    if len(calls) < 2 or not answer.receive_repeated(calls, at_end=at_end):
        for entry, call in zip(entries, calls, strict=True):
            index = wire.count_in(entry, "index")
            key = (number, index) if number and index is not None else index
            is_whole = isinstance(wire.value_in(entry, "function.arguments"), (dict, list))
            answer.receive_tool_call(call, key=key, whole=is_whole)
    return bool(any(texts.values()) or entries)


def _keep_signed(message: JsonObject, answer: Answer) -> None:
    """Keep the signatures of a message or delta, and of its calls by their ids, for the next request."""
    for detail in (detail for name in _DETAILS for detail in wire.objects_in(message, name)):
        kind = wire.text_in(detail, "type")
        answer.receive_block({"type": kind, **detail}, key=(kind, wire.count_in(detail, "index")))
    for entry in (message, *_calls_in(message)):
        if signed := {name: entry[name] for name in _SIGNED if entry.get(name)}:
            id_ = wire.text_in(entry, "id")
            answer.receive_block({"id": id_, **signed}, key=("signed", id_))


def _texts_in(message: JsonObject) -> dict[Channel, str]:
    """Return the texts of a message or delta; its content may be a list of parts."""
    reasoning = next((text for name in _REASONING_FIELDS if (text := wire.text_in(message, name))), "")
    for detail in [] if reasoning else wire.objects_in(message, "reasoning_details"):
        reasoning += wire.text_in(detail, "text") or wire.text_in(detail, "summary")
    content, text, refusal = message.get("content"), "", wire.text_in(message, "refusal")
    for part in content[: wire.MOST_ITEMS] if isinstance(content, list) else [content]:
        text += wire.text_in(part) or wire.text_in(part, "text")
        refusal += wire.text_in(part, "refusal")
        reasoning += wire.text_in(part, "thinking")  # a text, or a list of texts, as Databricks' summary
        thoughts = [*wire.objects_in(part, "thinking"), *wire.objects_in(part, "summary")]
        reasoning += "".join(wire.text_in(thought, "text") for thought in thoughts)
    return {"reasoning": reasoning, "text": text, "refusal": refusal}


def _calls_in(message: JsonObject) -> list[JsonObject]:
    """Return the entries of calls; some gateways also send `function_call`, an older form."""
    entries = wire.objects_in(message, "tool_calls")[:MOST_CALLS]
    if not entries and (old := wire.object_in(message, "function_call")):
        return [{"index": 0, "function": old}]
    return entries


def _read_end(choice: JsonObject, answer: Answer) -> WireError | None:
    """Read how a choice ended; OpenRouter adds an error object if the server behind it failed."""
    reason, native = wire.text_in(choice, "finish_reason"), wire.text_in(choice, "native_finish_reason")
    errors = (wire.value_in(choice, path) for path in ("error", "delta.error", "message.error"))
    error = next((error_of_object(one) for one in errors if one), None)
    if error and meaning_of(native) not in (MALFORMED_CALL, UNEXPECTED_CALL):
        return error
    said = error.message if error else ""
    return answer.receive_finish_word(reason, native=native, said=said) if reason else None


def _read_usage(usage: JsonObject, timings: JsonObject, answer: Answer) -> None:
    """Add the counts and llama.cpp's own speeds; the speed of a single token is meaningless."""
    if usage:
        counts = wire.counts_in(usage, _COUNTS)
        n_prompt, n_new = counts["input_tokens"], wire.count_in(timings, "prompt_n")
        if counts["cached_tokens"] is None:
            counts["cached_tokens"] = wire.count_in(timings, "cache_n")
        if counts["cached_tokens"] is None and n_prompt and n_new and n_new <= n_prompt:
            counts["cached_tokens"] = n_prompt - n_new  # versions before `cache_n`
        answer.receive_usage(**counts)
    if timings:
        has_speed = (wire.count_in(timings, "predicted_n") or 0) > 1
        speed = wire.positive_in(timings, "predicted_per_second") if has_speed else None
        answer.receive_speeds(speed, wire.positive_in(timings, "prompt_per_second"))


class OllamaOpenAI(Ollama):
    """Ollama through its OpenAI-compatible API; as an endpoint of the ini, any server with that API."""

    name: ClassVar[str] = "ollama_openai"
    base_env: ClassVar[str | None] = "OLLAMA_OPENAI_BASE"
    api: ClassVar[str] = "openai-completions"
    path: ClassVar[str] = "/chat/completions"
    refusable: ClassVar[Mapping[str, str]] = {
        _NO_REASONING: "reasoning_content",
        _CARRIED: rf"{_REJECTS}.*({'|'.join((*_SIGNED, *_DETAILS))})",
        **{name: rf"(?=.*\b{name}\b){_OTHER_LIMIT}" for name in _LIMITS},
        **{name: rf"{_REJECTS}.*\b{name}\b" for name in _OPTIONAL},
    }
    dialect: ClassVar[Dialect] = Dialect(
        chat_body, read_chat, end_mark="a finish_reason or [DONE]", done_ends=True
    )

    async def fingerprint(self, model: str) -> JsonObject:
        """Return the facts from llama.cpp, another server with a list of models, or Ollama."""
        entry = entry_of(await self.query(f"{self.address.base_url}/models"), model)
        props, meta = await self.query(f"{self.address.root_url}/props"), wire.object_in(entry, "meta")
        in_use = wire.value_in(props, "default_generation_settings.n_ctx") or meta.get("n_ctx")
        facts = known_facts(
            server=_SERVERS.get(wire.text_in(entry, "owned_by")),
            server_version=props.get("build_info"),
            quantisation=props.get("model_ftype") or meta.get("ftype"),
            context_length=in_use or entry.get("max_model_len"),
            template_sha256=sha256_of(wire.text_in(props, "chat_template")),
            template_shows_tools=wire.value_in(props, "chat_template_caps.supports_tools"),
        )
        return facts | await super().fingerprint(model)
