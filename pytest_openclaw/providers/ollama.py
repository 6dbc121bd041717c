"""Ollama through its own API, `/api/chat`, which OpenClaw uses, and any server through chat completions.

The fingerprint distinguishes two models that are served under one name. Its queries are small, bounded and
optional: a server may answer none of them.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers import wire
from pytest_openclaw.providers.address import Address, parse_ollama_host
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.replies import MALFORMED_CALL, UNEXPECTED_CALL, meaning_of
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_openclaw.providers.answer import Answer, Channel
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.faults import WireError
    from pytest_openclaw.values.protocols import ProviderSetup
    from pytest_openclaw.values.replies import Image, Turn
    from pytest_openclaw.values.requests import Request, ThinkingLevel

QUERY_TIMEOUT_S = 2.0
# OpenClaw's mapping of its levels. Many versions of Ollama reject the API's highest, `max`.
THINK: dict[ThinkingLevel, str] = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high"}
# Only the first of these is read: some servers send the same thinking under two names.
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
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
# Fields that can be left out without changing the prompt. Some servers reject every field unknown to them.
_OPTIONAL = ("think", "stream_options", "seed", "temperature")
_SERVERS = {"llamacpp": "llama.cpp", "vllm": "vllm", "sglang": "sglang"}
"""The owner of a model, in the server's list of models → the server."""
_NO_REASONING = "turns without reasoning_content"
"""Servers refuse this if they require a model's own thinking in later turns."""
_REJECTS = r"(?=.*(support|extra|unknown|unrecogni[sz]ed|unexpected|permitted|allowed))"
_LIMITS = ("max_tokens", "max_completion_tokens")  # a server may refuse one of these names
_OTHER_LIMIT = r"(?!.*too large).*(unsupported|unrecogni[sz]ed|unknown|unexpected|extra|instead|use )"
# Signatures of thoughts: https://ai.google.dev/gemini-api/docs/thought-signatures#openai, and Copilot's.
_SIGNED = ("extra_content", "reasoning_opaque")
_CARRIED = "carried parts"


class Ollama(OverHttp):
    """Ollama through one of its APIs; as an endpoint of the ini, any server with that API.

    `OLLAMA_HOST` gives its address where `base_env` is not set.
    """

    own_url: ClassVar[str | None] = "http://127.0.0.1:11434/v1"
    key_envs: ClassVar[tuple[str, ...]] = ("OLLAMA_API_KEY",)
    warms_up: ClassVar[bool] = True

    def __init__(self, setup: ProviderSetup) -> None:
        super().__init__(setup)
        self._sees: dict[str, bool] = {}

    def find_address(self) -> Address:
        """Return the server's address."""
        environ = self.setup.environ
        host, base = environ.get("OLLAMA_HOST", "").strip(), environ.get(self.base_env or "", "").strip()
        return parse_ollama_host(host) if self.is_own and host and not base else super().find_address()

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine; Ollama itself always counts as local."""
        return self.is_own or super().is_local

    async def may_see(self, model: str) -> bool:
        """Whether a model takes images, as far as Ollama reports.

        For many models without vision, Ollama drops the images and the model answers without them:
        https://github.com/ollama/ollama/pull/9741 covers only Ollama's own engine.
        """
        if self.address.is_public and not self.is_own:
            return True
        if model not in self._sees:
            # Another server, or Ollama without this model, reports nothing; then the request shows it.
            url = f"{self.address.root_url.removesuffix('/api')}/api/show"
            shown = await self.query(url, {"model": model})
            self._sees[model] = "vision" in (wire.texts_in(shown.get("capabilities")) or ["vision"])
        return self._sees[model]

    async def fingerprint(self, model: str) -> JsonObject:
        """Return the facts that the server reports, under our names."""
        root = self.address.root_url
        version = wire.text_in((await self.query(f"{root}/api/version")).get("version"))
        shown = await self.query(f"{root}/api/show", {"model": model})
        running = _entry_of(await self.query(f"{root}/api/ps"), model)
        capabilities, template = wire.texts_in(shown.get("capabilities")), wire.text_in(shown.get("template"))
        found = {
            "server": "ollama" if version else None,
            "server_version": version,
            "digest": running.get("digest"),
            "quantisation": wire.object_in(shown.get("details")).get("quantization_level"),
            "context_length": running.get("context_length"),
            "template_sha256": _sha256_of(template),
            "template_shows_tools": "tools" in capabilities if capabilities else None,
            "parameters": shown.get("parameters"),
        }
        return {name: value for name, value in found.items() if value not in (None, "")}

    async def query(self, url: str, body: JsonObject | None = None) -> JsonObject:
        """Return the answer to a query that not every server knows; {} without an answer."""
        try:
            return await self.fetch(url, body, timeout_s=QUERY_TIMEOUT_S)
        except CallFailed:
            return {}


def _entry_of(answer: JsonObject, model: str) -> JsonObject:
    """Return the model's entry in a server's list; a name without a tag means `:latest`."""
    for name in (model, f"{model}:latest"):
        for entry in wire.objects_in(answer.get("data")) or wire.objects_in(answer.get("models")):
            if name in (*map(entry.get, ("id", "name", "model")), *wire.texts_in(entry.get("aliases"))):
                return entry
    return {}


def _sha256_of(template: str) -> str | None:
    """Return the hash of a chat template; None without one."""
    return hashlib.sha256(template.encode("utf-8", "replace")).hexdigest() if template else None


# --- requests of its own API ----------------------------------------------------------------------


def ollama_body(request: Request, refused: Collection[str] = ()) -> JsonObject:
    """Return the body of `/api/chat`; if `level` is refused, thinking is only switched on or off.

    As in OpenClaw, a prompt that is too long is rejected and not cut (`truncate`, `shift`), and thinking is
    off unless it is requested.
    """
    level = request.thinking_level
    body: JsonObject = {
        "model": request.model,
        "messages": _ollama_messages(request),
        "stream": request.stream,
        "think": level is not None if level is None or "level" in refused else THINK[level],
        "truncate": False,
        "shift": False,
        "options": {
            **wire.chosen(temperature=request.temperature, seed=request.seed),
            "num_predict": request.max_output_tokens,
        },
    }
    if request.tools:
        body["tools"] = [{"type": "function", "function": wire.function_of(tool)} for tool in request.tools]
    return body


def _ollama_messages(request: Request) -> list[JsonObject]:
    """Return the messages; arguments can only be an object, and in older versions calls have no id."""
    messages: list[JsonObject] = []
    if request.system is not None:
        messages.append({"role": "system", "content": request.system})
    for turn in request.conversation:
        if turn.user is not None:
            images = [image.base64 for image in turn.images]
            messages.append({"role": "user", "content": turn.user, **wire.chosen(images=images or None)})
        if not turn.is_user_only:
            calls = [
                {
                    "type": "function",
                    "function": {"name": call.name, "arguments": wire.load_object(call.arguments) or {}},
                    **wire.chosen(id=call.id or None),
                }
                for call in turn.calls
            ]
            more = wire.chosen(thinking=turn.reasoning or None, tool_calls=calls or None)
            messages.append({"role": "assistant", "content": strip_thinking(turn.text), **more})
        for call, text in zip(turn.calls, turn.results, strict=False):
            more = wire.chosen(tool_call_id=call.id or None)
            messages.append({"role": "tool", "tool_name": call.name, **more, "content": text})
    return messages


# --- answers of its own API -----------------------------------------------------------------------


def read_ollama(payload: JsonObject, answer: Answer) -> WireError | None:
    """Add a line of a stream, or a whole answer, to the answer so far; return the error that it reports."""
    answer.receive_model(wire.text_in(payload.get("model")))
    message = wire.object_in(payload.get("message"))
    reason, is_done = wire.text_in(payload.get("done_reason")), payload.get("done") is True
    at_end = is_done or bool(reason)
    answer.receive_text(wire.text_in(message.get("thinking")), "reasoning", at_end=at_end)
    answer.receive_text(wire.text_in(message.get("content")), at_end=at_end)
    calls = [call for entry in wire.objects_in(message.get("tool_calls")) if (call := _call_of(entry)).name]
    if not answer.receive_repeated(calls, at_end=at_end):
        for call in calls:  # a call always arrives whole
            answer.receive_tool_call(id=call.id, name=call.name, arguments=call.arguments, whole=True)
    if at_end:
        _read_ollama_counts(payload, answer)
    if reason and (error := answer.receive_finish_word(reason)):
        return error
    if is_done:
        answer.receive_end()
    return None


def _call_of(entry: JsonObject) -> ToolCall:
    """Return a call of an answer by either API; some servers send its arguments as an object."""
    function = wire.object_in(entry.get("function"))
    return ToolCall(
        name=wire.text_in(function.get("name")),
        arguments=wire.json_text(function.get("arguments")),
        id=wire.text_in(entry.get("id")) or None,
    )


def _read_ollama_counts(payload: JsonObject, answer: Answer) -> None:
    """Add the counts and the server's own speeds; cached tokens took no time to read."""
    n_prompt = wire.count_in(payload.get("prompt_eval_count"))
    n_output = wire.count_in(payload.get("eval_count"))
    cached = wire.count_in(payload.get("prompt_eval_cached_count"))
    if n_prompt is not None or n_output is not None:
        answer.receive_usage(input_tokens=n_prompt, output_tokens=n_output, cached_tokens=cached)
    n_new = None
    if cached is not None:  # otherwise, part of the prompt may have come from the cache
        n_new = (n_prompt or 0) - (cached if cached <= (n_prompt or 0) else 0)
    # The speed of a single token is meaningless.
    answer.receive_speeds(
        _per_second(n_output if n_output != 1 else None, payload.get("eval_duration")),
        _per_second(n_new, payload.get("prompt_eval_duration")),
    )


def _per_second(count: int | None, duration: Any) -> float | None:
    duration_ns = wire.positive_in(duration)
    return wire.positive_in(count * 1e9 / duration_ns) if count and duration_ns else None


class OllamaNative(Ollama):
    """Ollama through its own API; as an endpoint of the ini, any server with that API.

    The ini's `openclaw_num_ctx` is sent with each request.
    """

    name: ClassVar[str] = "ollama_native"
    api: ClassVar[str] = "ollama"
    path: ClassVar[str] = "/api/chat"
    models_path: ClassVar[str] = "/api/tags"
    # The thinking of some models has no levels.
    refusable: ClassVar[Mapping[str, str]] = {"level": "is not supported for this model"}
    dialect: ClassVar[Dialect] = Dialect(
        body=ollama_body,
        read=read_ollama,
        end_mark='"done": true',
    )

    def __init__(self, setup: ProviderSetup) -> None:
        super().__init__(setup)
        num_ctx = setup.options.get("num_ctx")
        self._num_ctx = int(num_ctx) if num_ctx else None

    def find_address(self) -> Address:
        """Return the server's root, whichever of its APIs the address names."""
        address = super().find_address()
        return replace(address, base_url=address.root_url.removesuffix("/api"))

    def describe(self) -> JsonObject:
        """The address, the route, the key's variable and the options of each request."""
        return {**super().describe(), "num_ctx": self._num_ctx}

    def context_tokens(self, request: Request) -> int:
        """Return the context set by the request's own fields or the ini, else the usual one."""
        num_ctx = wire.object_in(request.fields.get("options")).get("num_ctx", self._num_ctx)
        return wire.count_in(num_ctx) or super().context_tokens(request)

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body for `request`, with the context that the ini sets."""
        body = super().body(request)
        body["options"] |= wire.chosen(num_ctx=self._num_ctx)
        return body

    async def models(self) -> tuple[str, ...]:
        """Names of the server's models, without those that cannot chat."""
        url, names = f"{self.address.base_url}/api/show", await super().models()
        shown = {name: await self.query(url, {"model": name}) for name in names}
        # An older server reports no capabilities.
        known = {name: wire.texts_in(show.get("capabilities")) for name, show in shown.items()}
        return tuple(name for name, words in known.items() if "completion" in (words or ["completion"]))


# --- requests of chat completions -----------------------------------------------------------------


def chat_body(request: Request, refused: Collection[str] = ()) -> JsonObject:
    """Return the body of `/chat/completions`.

    A thinking level is sent twice, as OpenAI's `reasoning_effort` and as Ollama's `think`.
    """
    limits = _LIMITS if request.surface == LISTED else _LIMITS[::-1]
    body: JsonObject = {
        "model": request.model,
        "messages": _chat_messages(request, refused),
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


def _chat_messages(request: Request, refused: Collection[str]) -> list[JsonObject]:
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
            if turn.calls:
                said["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments},
                    }
                    for call in turn.calls
                ]
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
            said.setdefault("reasoning_details", []).append(block)
        else:
            parts.get(block["id"], {}).update({name: block[name] for name in _SIGNED if name in block})


def _image_part(image: Image) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": image.data_uri}}


# --- answers of chat completions ------------------------------------------------------------------


def read_chat(payload: JsonObject, answer: Answer) -> WireError | None:
    """Add a chunk, or a whole completion, to the answer so far; return the error that it reports."""
    answer.receive_model(wire.text_in(payload.get("model")))
    choices = wire.objects_in(payload.get("choices"))
    is_chunk = payload.get("object") == "chat.completion.chunk"
    calls: list[ToolCall] = []
    for position, choice in enumerate(choices):
        # Copilot sends an answer's text and calls as several choices.
        number = position if len(choices) > 1 else wire.count_in(choice.get("index")) or 0
        at_end = bool(wire.text_in(choice.get("finish_reason")))
        message = wire.object_in(choice.get("message"))
        has_news = _read_delta(wire.object_in(choice.get("delta")), number, answer, at_end=at_end)
        if is_chunk and not (at_end or has_news):
            _read_delta(message, number, answer)
        elif message and not (is_chunk and has_news):
            # The message may repeat the deltas.
            for channel, text in _texts_in(message).items():
                answer.receive_whole(channel, text)
            calls += map(_call_of, _calls_in(message))
            if not has_news:
                _keep_signed(message, answer)
        if error := _read_end(choice, answer):
            return error
    answer.receive_calls(calls)
    groq = wire.object_in(payload.get("x_groq"))
    # In Moonshot's stream, the choice has the usage.
    usages = [wire.object_in(holder.get("usage")) for holder in (payload, groq, *choices[:1])]
    _read_usage(next(filter(None, usages), {}), wire.object_in(payload.get("timings")), answer)
    return None


def _read_delta(message: JsonObject, number: int, answer: Answer, *, at_end: bool = False) -> bool:
    """Add a delta; return whether it has any text or call."""
    texts = _texts_in(message)
    for channel, text in texts.items():
        answer.receive_text(text, channel, at_end=at_end)
    _keep_signed(message, answer)
    entries = _calls_in(message)
    if len(entries) < 2 or not answer.receive_repeated([*map(_call_of, entries)], at_end=at_end):
        for entry in entries:
            call, index = _call_of(entry), wire.count_in(entry.get("index"))
            answer.receive_tool_call(
                key=(number, index) if number and index is not None else index,
                id=call.id,
                name=call.name or None,
                arguments=call.arguments,
                whole=isinstance(wire.object_in(entry.get("function")).get("arguments"), (dict, list)),
            )
    return bool(any(texts.values()) or entries)


def _keep_signed(message: JsonObject, answer: Answer) -> None:
    """Keep the signatures of a message or delta, and of its calls by their ids, for the next request."""
    for detail in wire.objects_in(message.get("reasoning_details")):
        kind = wire.text_in(detail.get("type"))
        answer.receive_block({"type": kind, **detail}, key=(kind, wire.count_in(detail.get("index"))))
    for entry in (message, *_calls_in(message)):
        if signed := {name: entry[name] for name in _SIGNED if entry.get(name)}:
            id_ = wire.text_in(entry.get("id"))
            answer.receive_block({"id": id_, **signed}, key=("signed", id_))


def _texts_in(message: JsonObject) -> dict[Channel, str]:
    """Return the texts of a message or delta; its content may be a list of parts."""
    reasoning = next((text for name in _REASONING_FIELDS if (text := wire.text_in(message.get(name)))), "")
    for detail in [] if reasoning else wire.objects_in(message.get("reasoning_details")):
        reasoning += wire.text_in(detail.get("text")) or wire.text_in(detail.get("summary"))
    content, text, refusal = message.get("content"), "", wire.text_in(message.get("refusal"))
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            text += part
        elif isinstance(part, dict):
            text += wire.text_in(part.get("text"))
            refusal += wire.text_in(part.get("refusal"))
            thinking = part.get("thinking")  # a text, or a list of texts
            reasoning += wire.text_in(thinking)
            reasoning += "".join(wire.text_in(thought.get("text")) for thought in wire.objects_in(thinking))
    return {"reasoning": reasoning, "text": text, "refusal": refusal}


def _calls_in(message: JsonObject) -> list[JsonObject]:
    """Return the entries of calls; some gateways also send `function_call`, an older form."""
    entries = wire.objects_in(message.get("tool_calls"))
    if not entries and (old := wire.object_in(message.get("function_call"))):
        return [{"index": 0, "function": old}]
    return entries


def _read_end(choice: JsonObject, answer: Answer) -> WireError | None:
    """Read how a choice ended; OpenRouter adds an error object if the server behind it failed."""
    reason = wire.text_in(choice.get("finish_reason"))
    native = wire.text_in(choice.get("native_finish_reason"))
    holders = (choice, wire.object_in(choice.get("delta")), wire.object_in(choice.get("message")))
    error = next((wire.error_of_object(one["error"]) for one in holders if one.get("error")), None)
    if error and meaning_of(native) not in (MALFORMED_CALL, UNEXPECTED_CALL):
        return error
    said = error.message if error else ""
    return answer.receive_finish_word(reason, native=native, said=said) if reason else None


def _read_usage(usage: JsonObject, timings: JsonObject, answer: Answer) -> None:
    """Add the counts and llama.cpp's own speeds; the speed of a single token is meaningless."""
    if usage:
        counts = wire.counts_in(usage, _COUNTS)
        n_prompt, n_new = counts["input_tokens"], wire.count_in(timings.get("prompt_n"))
        if counts["cached_tokens"] is None:
            counts["cached_tokens"] = wire.count_in(timings.get("cache_n"))
        if counts["cached_tokens"] is None and n_prompt and n_new and n_new <= n_prompt:
            counts["cached_tokens"] = n_prompt - n_new  # versions before `cache_n`
        answer.receive_usage(**counts)
    if timings:
        has_speed = (wire.count_in(timings.get("predicted_n")) or 0) > 1
        answer.receive_speeds(
            wire.positive_in(timings.get("predicted_per_second")) if has_speed else None,
            wire.positive_in(timings.get("prompt_per_second")),
        )


class OllamaOpenAI(Ollama):
    """Ollama through its OpenAI-compatible API; as an endpoint of the ini, any server with that API."""

    name: ClassVar[str] = "ollama_openai"
    base_env: ClassVar[str | None] = "OLLAMA_OPENAI_BASE"
    api: ClassVar[str] = "openai-completions"
    path: ClassVar[str] = "/chat/completions"
    refusable: ClassVar[Mapping[str, str]] = {
        _NO_REASONING: "reasoning_content",
        _CARRIED: rf"{_REJECTS}.*({'|'.join(_SIGNED)}|reasoning_details)",
        **{name: rf"(?=.*\b{name}\b){_OTHER_LIMIT}" for name in _LIMITS},
        **{name: rf"{_REJECTS}.*\b{name}\b" for name in _OPTIONAL},
    }
    dialect: ClassVar[Dialect] = Dialect(
        body=chat_body,
        read=read_chat,
        end_mark="a finish_reason or [DONE]",
        done_ends=True,
    )

    async def fingerprint(self, model: str) -> JsonObject:
        """Return the facts from llama.cpp, another server with a list of models, or Ollama."""
        entry = _entry_of(await self.query(f"{self.address.base_url}/models"), model)
        props, meta = await self.query(f"{self.address.root_url}/props"), wire.object_in(entry.get("meta"))
        in_use = wire.object_in(props.get("default_generation_settings")).get("n_ctx") or meta.get("n_ctx")
        found = {
            "server": _SERVERS.get(wire.text_in(entry.get("owned_by"))),
            "server_version": props.get("build_info"),
            "quantisation": props.get("model_ftype") or meta.get("ftype"),
            "context_length": in_use or entry.get("max_model_len"),
            "template_sha256": _sha256_of(wire.text_in(props.get("chat_template"))),
            "template_shows_tools": wire.object_in(props.get("chat_template_caps")).get("supports_tools"),
        }
        known = {name: value for name, value in found.items() if value not in (None, "")}
        return known | await super().fingerprint(model)
