"""Ollama: its own API, `/api/chat`, which OpenClaw uses, and what its two providers have in common.

Facts about a model distinguish two models that are served under one name. Each question to the server is
small, bounded and optional: Ollama answers some, llama.cpp others, and a server may answer none of them. A
path on the server's machine is never recorded.
"""

from __future__ import annotations

import hashlib
import re
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

    Attributes:
        facts: routes that report facts about a model; of a fact that several report, the last one counts.
    """

    own_url: ClassVar[str | None] = "http://127.0.0.1:11434/v1"
    key_envs: ClassVar[tuple[str, ...]] = ("OLLAMA_API_KEY",)
    warms_up: ClassVar[bool] = True
    facts: ClassVar[tuple[str, ...]]

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
        found: JsonObject = {}
        for path in self.facts:
            base_url = self.address.base_url if path == "/models" else self.address.root_url
            answer = await self.question(base_url + path, {"model": model} if path == "/api/show" else None)
            facts = _facts_in(path, answer, model)
            found |= {name: value for name, value in facts.items() if value not in (None, "")}
        return found

    async def question(self, url: str, body: JsonObject | None = None) -> JsonObject:
        """Return the answer to a question that not every server knows; {} without one."""
        try:
            return await self.fetch(url, body, timeout_s=QUESTION_TIMEOUT_S)
        except CallFailed:
            return {}


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
    takes: ClassVar[frozenset[str]] = Ollama.takes - {"tool_choice"}
    path: ClassVar[str] = "/api/chat"
    models_path: ClassVar[str] = "/api/tags"
    facts: ClassVar[tuple[str, ...]] = ("/api/version", "/api/show", "/api/tags", "/api/ps")
    # Some models think, and have no levels.
    refusable: ClassVar[Mapping[str, str]] = {"level": "is not supported for this model"}
    dialect: ClassVar[Dialect] = Dialect(
        body=ollama_body,
        read=read_ollama,
        is_whole=lambda payload: payload.get("done") is True,
        end_mark='"done": true',
        done_ends=False,
        by_lines=True,
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
        """Return the context that the request asks for."""
        sets_it = "num_ctx" in object_in(request.fields.get("options"))
        return (None if sets_it else self._num_ctx) or super().context_tokens(request)

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


# --- facts about a model ------------------------------------------------------------------------

_SERVERS = {"llamacpp": "llama.cpp", "vllm": "vllm", "sglang": "sglang"}
"""Who owns a model in a server's list → the server."""
# An expression or a statement of a Jinja template, or an action of Ollama's Go template.
_TEMPLATE_CODE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_TOOLS_IN_CODE = re.compile(r"(?<![\w'\"])tools\b|\.Tools\b")


def _facts_in(path: str, answer: JsonObject, model: str) -> JsonObject:
    """Return what the answer of a route says about the model and its server."""
    entry, details = _entry(answer, model), object_in(answer.get("details"))
    meta = object_in(entry.get("meta"))
    match path:
        case "/models":  # llama.cpp has the model's sizes under `meta`, vLLM its context
            return {
                "server": _SERVERS.get(str(entry.get("owned_by"))),
                "quantisation": meta.get("ftype"),
                "parameter_count": meta.get("n_params"),
                "context_length": meta.get("n_ctx") or count_in(entry.get("max_model_len")),
                "context_length_trained": meta.get("n_ctx_train"),
            }
        case "/props":
            supported = object_in(answer.get("chat_template_caps")).get("supports_tools")
            return {
                "server_version": answer.get("build_info"),
                "quantisation": answer.get("model_ftype"),
                "context_length": object_in(answer.get("default_generation_settings")).get("n_ctx"),
                **_of_template(answer.get("chat_template")),
                **({"template_shows_tools": supported} if isinstance(supported, bool) else {}),
            }
        case "/api/version":
            version = text_in(answer.get("version"))
            return {"server": "ollama", "server_version": version} if version else {}
        case "/api/show":
            info = object_in(answer.get("model_info"))  # with keys such as `llama.context_length`
            capabilities = sorted(texts_in(answer.get("capabilities")))
            return {
                "quantisation": details.get("quantization_level"),
                "parameter_size": details.get("parameter_size"),
                "family": details.get("family"),
                "capabilities": capabilities or None,
                "context_length_trained": next(
                    (value for key, value in info.items() if key.endswith(".context_length")), None
                ),
                **_of_template(answer.get("template")),
                # Newer models are rendered by Ollama's own code, and not by the template.
                **({"template_shows_tools": "tools" in capabilities} if capabilities else {}),
                "parameters": answer.get("parameters"),
            }
        case "/api/tags":
            return {"digest": entry.get("digest")}
    return {  # of /api/ps; older versions of Ollama do not report the context
        "context_length": count_in(entry.get("context_length")),
        "size_bytes": count_in(entry.get("size")),
        "vram_bytes": count_in(entry.get("size_vram")),
    }


def _entry(answer: JsonObject, model: str) -> JsonObject:
    """Return the model's entry in a list of a server; a name without a tag means `:latest`."""
    for name in (model, f"{model}:latest"):
        for entry in objects_in(answer.get("data")) or objects_in(answer.get("models")):
            if name in (*map(entry.get, ("id", "name", "model")), *texts_in(entry.get("aliases"))):
                return entry
    return {}


def _of_template(template: Any) -> JsonObject:
    if not isinstance(template, str) or not template:
        return {}
    sha256 = hashlib.sha256(template.encode("utf-8", "replace")).hexdigest()
    return {"template_sha256": sha256, "template_shows_tools": shows_tools(template)}


def shows_tools(template: str) -> bool:
    """Whether the code of a chat template refers to the offered tools."""
    return any(_TOOLS_IN_CODE.search(code) for code in _TEMPLATE_CODE.findall(template))
