"""Ollama: what both of its APIs share, and its own API, `/api/chat`, which OpenClaw uses.

The fingerprint distinguishes two models that are served under one name. Its queries are small, bounded and
optional: a server may answer none of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers import wire
from pytest_openclaw.providers.address import Address, parse_ollama_host
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values.faults import CallFailed, WireError
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.requests import Request, ThinkingLevel

QUERY_TIMEOUT_S = 2.0
# OpenClaw's mapping of its levels. Many versions of Ollama reject the API's highest, `max`.
THINK: dict[ThinkingLevel, str] = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high"}


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
            self._sees[model] = "vision" in (await self.capabilities(model) or ["vision"])
        return self._sees[model]

    async def fingerprint(self, model: str) -> JsonObject:
        """Return the facts that the server reports, under our names."""
        root = self.address.root_url
        version = wire.text_in(await self.query(f"{root}/api/version"), "version")
        shown = await self.query(f"{root}/api/show", {"model": model})
        running = entry_of(await self.query(f"{root}/api/ps"), model)
        capabilities = wire.texts_in(shown, "capabilities")
        return known_facts(
            server="ollama" if version else None,
            server_version=version,
            digest=running.get("digest"),
            quantisation=wire.value_in(shown, "details.quantization_level"),
            context_length=running.get("context_length"),
            template_sha256=sha256_of(wire.text_in(shown, "template")),
            template_shows_tools="tools" in capabilities if capabilities else None,
            parameters=shown.get("parameters"),
        )

    async def capabilities(self, model: str) -> list[str]:
        """Return Ollama's words for the abilities of a model; empty without a report."""
        url = f"{self.address.root_url.removesuffix('/api')}/api/show"
        return wire.texts_in(await self.query(url, {"model": model}), "capabilities")

    async def query(self, url: str, body: JsonObject | None = None) -> JsonObject:
        """Return the answer to a query that not every server knows; {} without an answer."""
        try:
            return await self.fetch(url, body, timeout_s=QUERY_TIMEOUT_S)
        except CallFailed:
            return {}


def entry_of(answer: JsonObject, model: str) -> JsonObject:
    """Return the model's entry in a server's list; a name without a tag means `:latest`."""
    for name in (model, f"{model}:latest"):
        for entry in wire.objects_in(answer, "data") or wire.objects_in(answer, "models"):
            if name in (*map(entry.get, ("id", "name", "model")), *wire.texts_in(entry, "aliases")):
                return entry
    return {}


def known_facts(**facts: Any) -> JsonObject:
    """Return the facts that have a value."""
    return {name: value for name, value in facts.items() if value not in (None, "")}


def sha256_of(template: str) -> str:
    """Return the hash of a chat template; empty without one."""
    return hashlib.sha256(template.encode("utf-8", "replace")).hexdigest() if template else ""


def ollama_body(request: Request, refused: Collection[str] = ()) -> JsonObject:
    """Return the body of `/api/chat`; if `level` is refused, thinking is only switched on or off.

    As in OpenClaw, a prompt that is too long is rejected and not cut (`truncate`, `shift`), and thinking is
    off unless it is requested.
    """
    level = request.thinking_level
    options = wire.chosen(temperature=request.temperature, seed=request.seed)
    body: JsonObject = {
        "model": request.model,
        "messages": _messages(request),
        "stream": request.stream,
        "think": level is not None if level is None or "level" in refused else THINK[level],
        "truncate": False,
        "shift": False,
        "options": {**options, "num_predict": request.max_output_tokens},
    }
    if request.tools:
        body["tools"] = [{"type": "function", "function": wire.function_of(tool)} for tool in request.tools]
    return body


def _messages(request: Request) -> list[JsonObject]:
    """Return the messages; arguments can only be an object, and in older versions calls have no id."""
    messages: list[JsonObject] = []
    if request.system is not None:
        messages.append({"role": "system", "content": request.system})
    for turn in request.conversation:
        if turn.user is not None:
            images = [image.base64 for image in turn.images]
            messages.append({"role": "user", "content": turn.user, **wire.chosen(images=images or None)})
        if not turn.is_user_only:
            calls = []
            for call in turn.calls:
                function = {"name": call.name, "arguments": wire.load_object(call.arguments) or {}}
                calls.append({"type": "function", "function": function, **wire.chosen(id=call.id or None)})
            more = wire.chosen(thinking=turn.reasoning or None, tool_calls=calls or None)
            messages.append({"role": "assistant", "content": strip_thinking(turn.text), **more})
        for call, text in zip(turn.calls, turn.results, strict=False):
            more = wire.chosen(tool_call_id=call.id or None)
            messages.append({"role": "tool", "tool_name": call.name, **more, "content": text})
    return messages


def read_ollama(payload: JsonObject, answer: Answer) -> WireError | None:
    """Add a line of a stream, or a whole answer, to the answer so far; return the error that it reports."""
    answer.receive_model(wire.text_in(payload, "model"))
    reason, is_done = wire.text_in(payload, "done_reason"), payload.get("done") is True
    at_end = is_done or bool(reason)
    answer.receive_text(wire.text_in(payload, "message.thinking"), "reasoning", at_end=at_end)
    answer.receive_text(wire.text_in(payload, "message.content"), at_end=at_end)
    entries = wire.objects_in(payload, "message.tool_calls")
    calls = [call for entry in entries if (call := wire.function_call_in(entry)).name]
    if not answer.receive_repeated(calls, at_end=at_end):
        for call in calls:  # a call always arrives whole
            answer.receive_tool_call(call, whole=True)
    if at_end:
        _read_counts(payload, answer)
    if reason and (error := answer.receive_finish_word(reason)):
        return error
    if is_done:
        answer.receive_end()
    return None


def _read_counts(payload: JsonObject, answer: Answer) -> None:
    """Add the counts and the server's own speeds; cached tokens took no time to read."""
    n_prompt, n_output = wire.count_in(payload, "prompt_eval_count"), wire.count_in(payload, "eval_count")
    cached = wire.count_in(payload, "prompt_eval_cached_count")
    if n_prompt is not None or n_output is not None:
        answer.receive_usage(input_tokens=n_prompt, output_tokens=n_output, cached_tokens=cached)
    n_new = None
    if cached is not None:  # otherwise, part of the prompt may have come from the cache
        n_new = (n_prompt or 0) - (cached if cached <= (n_prompt or 0) else 0)
    # The speed of a single token is meaningless.
    answer.receive_speeds(
        _per_second(n_output if n_output != 1 else None, wire.positive_in(payload, "eval_duration")),
        _per_second(n_new, wire.positive_in(payload, "prompt_eval_duration")),
    )


def _per_second(count: int | None, duration_ns: float | None) -> float | None:
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
    dialect: ClassVar[Dialect] = Dialect(ollama_body, read_ollama, end_mark='"done": true')

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
        words = {name: await self.capabilities(name) for name in await super().models()}
        # An older server reports no capabilities.
        return tuple(name for name, known in words.items() if "completion" in (known or ["completion"]))
