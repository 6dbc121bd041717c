"""Ollama: its own API, `/api/chat`, which OpenClaw uses, and what its two providers have in common.

Facts about a model distinguish two models that are served under one name. Each question to the server is
small, bounded and optional: a server may answer none of them.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers.address import Address, parse_ollama_host
from pytest_openclaw.providers.bodies import chosen, function_of
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.providers.wire import (
    count_in,
    error_in,
    json_text,
    load_object,
    object_in,
    objects_in,
    positive_in,
    text_in,
    texts_in,
)
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pytest_openclaw.providers.answer import Answer
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.faults import WireError
    from pytest_openclaw.values.protocols import ProviderSetup
    from pytest_openclaw.values.replies import Turn
    from pytest_openclaw.values.requests import Request, ThinkingLevel

QUESTION_TIMEOUT_S = 2.0
# OpenClaw's mapping of its levels. Many versions of Ollama reject the API's highest, `max`.
THINK: dict[ThinkingLevel, str] = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high"}


class Ollama(OverHttp):
    """Ollama through one of its APIs; as an endpoint of the user's, any server with that API.

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
        """Whether a model takes pictures, as far as Ollama says.

        It leaves out the pictures for many a model without vision, and has it answer nevertheless:
        https://github.com/ollama/ollama/pull/9741 is only for its own engine.
        """
        if self.address.is_public and not self.is_own:
            return True
        if model not in self._sees:
            # No Ollama, or one without this model, does not say; the request will.
            url = f"{self.address.root_url.removesuffix('/api')}/api/show"
            shown = await self.question(url, {"model": model})
            self._sees[model] = "vision" in (texts_in(shown.get("capabilities")) or ["vision"])
        return self._sees[model]

    async def fingerprint(self, model: str) -> JsonObject:
        """Return the server's facts under our names, without those that it does not report."""
        root = self.address.root_url
        version = text_in((await self.question(f"{root}/api/version")).get("version"))
        shown = await self.question(f"{root}/api/show", {"model": model})
        running = entry_of(await self.question(f"{root}/api/ps"), model)
        capabilities, template = texts_in(shown.get("capabilities")), text_in(shown.get("template"))
        found = {
            "server": "ollama" if version else None,
            "server_version": version,
            "digest": running.get("digest"),
            "quantisation": object_in(shown.get("details")).get("quantization_level"),
            "context_length": running.get("context_length"),
            "template_sha256": sha256_of(template),
            "template_shows_tools": "tools" in capabilities if capabilities else None,
            "parameters": shown.get("parameters"),
        }
        return {name: value for name, value in found.items() if value not in (None, "")}

    async def question(self, url: str, body: JsonObject | None = None) -> JsonObject:
        """Return the answer to a question that not every server knows; {} without one."""
        try:
            return await self.fetch(url, body, timeout_s=QUESTION_TIMEOUT_S)
        except CallFailed:
            return {}


def entry_of(answer: JsonObject, model: str) -> JsonObject:
    """Return the model's entry in a list of a server; a name without a tag means `:latest`."""
    for name in (model, f"{model}:latest"):
        for entry in objects_in(answer.get("data")) or objects_in(answer.get("models")):
            if name in (*map(entry.get, ("id", "name", "model")), *texts_in(entry.get("aliases"))):
                return entry
    return {}


def sha256_of(template: str) -> str | None:
    """Return the hash of a chat template; None without one."""
    return hashlib.sha256(template.encode("utf-8", "replace")).hexdigest() if template else None


# --- requests -----------------------------------------------------------------------------------


def ollama_body(request: Request, refused: Collection[str] = ()) -> JsonObject:
    """Return the body of `/api/chat`; the thinking of some models is on or off and has no levels.

    As in OpenClaw, a prompt that is too long is rejected and not cut (`truncate`, `shift`), and thinking is
    off unless it is requested.
    """
    level = request.thinking_level
    body: JsonObject = {
        "model": request.model,
        "messages": dialog(request, request.conversation, _said, _result, _user),
        "stream": request.stream,
        "think": level is not None if level is None or "level" in refused else THINK[level],
        "truncate": False,
        "shift": False,
        "options": {
            **chosen(temperature=request.temperature, seed=request.seed),
            "num_predict": request.max_output_tokens,
        },
    }
    if request.tools:
        body["tools"] = [{"type": "function", "function": function_of(tool)} for tool in request.tools]
    return body


def dialog(
    request: Request,
    turns: Iterable[Turn],
    said: Callable[[Turn], JsonObject],
    result: Callable[[ToolCall], JsonObject],
    user: Callable[[Turn], JsonObject],
) -> list[JsonObject]:
    """Return the messages of a conversation: of the system, of the user, of the model, and of each tool."""
    messages: list[JsonObject] = []
    if request.system is not None:
        messages.append({"role": "system", "content": request.system})
    for turn in turns:
        if turn.user is not None:
            messages.append({"role": "user", **user(turn)})
        if not turn.is_users_alone:
            messages.append({"role": "assistant", **said(turn)})
        for call, text in zip(turn.calls, turn.results, strict=False):
            messages.append({"role": "tool", **result(call), "content": text})
    return messages


def _said(turn: Turn) -> JsonObject:
    """Return the model's text, thinking and calls.

    In the API arguments can only be an object, and in older versions calls have no id.
    """
    calls = [
        {
            "type": "function",
            "function": {"name": call.name, "arguments": load_object(call.arguments) or {}},
            **chosen(id=call.id or None),
        }
        for call in turn.calls
    ]
    text = strip_thinking(turn.text)
    return {"content": text, **chosen(thinking=turn.reasoning or None, tool_calls=calls or None)}


def _user(turn: Turn) -> JsonObject:
    return {"content": turn.user, **chosen(images=[image.base64 for image in turn.images] or None)}


def _result(call: ToolCall) -> JsonObject:
    return {"tool_name": call.name, **chosen(tool_call_id=call.id or None)}


# --- answers ------------------------------------------------------------------------------------


def read_ollama(payload: JsonObject, answer: Answer) -> WireError | None:
    """Add a line of a stream, or a whole answer, to the answer so far; return the error, if it is one."""
    if error := error_in(payload):
        return error
    answer.receive_model(text_in(payload.get("model")))
    message = object_in(payload.get("message"))
    reason, is_done = text_in(payload.get("done_reason")), payload.get("done") is True
    at_end = is_done or bool(reason)
    answer.receive_text(text_in(message.get("thinking")), "reasoning", at_end=at_end)
    answer.receive_text(text_in(message.get("content")), at_end=at_end)
    calls = [call for entry in objects_in(message.get("tool_calls")) if (call := call_of(entry)).name]
    if not answer.repeats_calls(calls, at_end=at_end):
        for call in calls:  # each always arrives whole
            answer.receive_tool_call(id=call.id, name=call.name, arguments=call.arguments, whole=True)
    if at_end:
        _read_counts(payload, answer)
    if reason and (error := answer.receive_finish_word(reason)):
        return error
    if is_done:
        answer.receive_end()
    return None


def call_of(entry: JsonObject) -> ToolCall:
    """Return a call of an answer by either API; some servers send its arguments as an object."""
    function = object_in(entry.get("function"))
    return ToolCall(
        name=text_in(function.get("name")),
        arguments=json_text(function.get("arguments")),
        id=text_in(entry.get("id")) or None,
    )


def _read_counts(payload: JsonObject, answer: Answer) -> None:
    """Add the counts and the server's own speeds; what came from a cache took no time of reading."""
    n_prompt, n_output = count_in(payload.get("prompt_eval_count")), count_in(payload.get("eval_count"))
    cached = count_in(payload.get("prompt_eval_cached_count"))
    if n_prompt is not None or n_output is not None:
        answer.receive_usage(input_tokens=n_prompt, output_tokens=n_output, cached_tokens=cached)
    n_read = n_prompt or 0
    n_new = n_read if cached is None or cached > n_read else n_read - cached
    # The speed of a single token is meaningless.
    answer.receive_speeds(
        _per_second(n_output if n_output != 1 else None, payload.get("eval_duration")),
        _per_second(n_new, payload.get("prompt_eval_duration")),
    )


def _per_second(count: int | None, duration: Any) -> float | None:
    duration_ns = positive_in(duration)
    return count * 1e9 / duration_ns if count and duration_ns else None


# --- the provider of its own API -----------------------------------------------------------------


class OllamaNative(Ollama):
    """Ollama through its own API; as an endpoint of the user's, any server with that API.

    The ini's `openclaw_num_ctx` is sent with each request.
    """

    name: ClassVar[str] = "ollama_native"
    api: ClassVar[str] = "ollama"
    path: ClassVar[str] = "/api/chat"
    models_path: ClassVar[str] = "/api/tags"
    # Some models think, and have no levels.
    refusable: ClassVar[Mapping[str, str]] = {"level": "is not supported for this model"}
    dialect: ClassVar[Dialect] = Dialect(
        body=ollama_body,
        read=read_ollama,
        is_whole=lambda payload: payload.get("done") is True,
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
        """Return the context that the request's own fields or the ini ask for, or the usual one."""
        num_ctx = object_in(request.fields.get("options")).get("num_ctx", self._num_ctx)
        return count_in(num_ctx) or super().context_tokens(request)

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body for `request`, with the context that the ini sets."""
        body = super().body(request)
        body["options"] |= chosen(num_ctx=self._num_ctx)
        return body

    async def models(self) -> tuple[str, ...]:
        """Names of the server's models, without those that cannot chat."""
        url, names = f"{self.address.base_url}/api/show", await super().models()
        shown = {name: await self.question(url, {"model": name}) for name in names}
        # An older server reports no capabilities.
        known = {name: texts_in(show.get("capabilities")) for name, show in shown.items()}
        return tuple(name for name, words in known.items() if "completion" in (words or ["completion"]))
