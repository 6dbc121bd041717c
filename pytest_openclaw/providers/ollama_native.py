"""Ollama's own API, `/api/chat`, which OpenClaw uses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers.fingerprint import ask_all, ollama_fingerprint
from pytest_openclaw.providers.finishing import finish
from pytest_openclaw.providers.fragments import arguments_text
from pytest_openclaw.providers.json_values import count_in, object_in, objects_in, positive_in, text_in
from pytest_openclaw.providers.ollama import Ollama, offered
from pytest_openclaw.providers.request_fields import chosen
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.providers.token_counts import settled
from pytest_openclaw.providers.wire_errors import error_in, load_object
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.providers.address import Address
    from pytest_openclaw.providers.exchange import Exchange
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.faults import WireError
    from pytest_openclaw.values.protocols import ProviderSetup
    from pytest_openclaw.values.replies import Turn
    from pytest_openclaw.values.requests import Request, ThinkingLevel

# OpenClaw's mapping of its levels. Many versions of Ollama reject the API's highest, `max`.
THINK: dict[ThinkingLevel, str] = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high"}
_NS_IN_S = 1e9


def ollama_body(
    request: Request,
    *,
    num_ctx: int | None = None,
    keep_alive: str | float | None = None,
    with_level: bool = True,
) -> JsonObject:
    """Return the body of `/api/chat` for `request`.

    As in OpenClaw, a prompt that is too long is rejected and not cut (`truncate`, `shift`), and thinking is
    off unless it is requested.

    Args:
        request: the request.
        num_ctx: the context's length in tokens; None leaves it to the server.
        keep_alive: how long the model stays loaded; None leaves it to the server.
        with_level: False for a model whose thinking is on or off and has no levels.

    """
    options = chosen(temperature=request.temperature, top_p=request.top_p, seed=request.seed)
    options["num_predict"] = request.max_output_tokens
    if num_ctx is not None:
        options["num_ctx"] = num_ctx
    level = request.thinking_level
    body: JsonObject = {
        "model": request.model,
        "messages": _messages(request),
        "stream": request.stream,
        "think": False if level is None else THINK[level] if with_level else True,
        "truncate": False,
        "shift": False,
        "options": options,
    }
    if request.tools:
        body["tools"] = [offered(tool) for tool in request.tools]
    if keep_alive is not None:
        body["keep_alive"] = keep_alive
    return body


def read_ollama(payload: JsonObject, exchange: Exchange) -> WireError | None:
    """Add a line of a stream, or a whole answer, to the exchange.

    Returns:
        The error, if the payload is one.

    """
    if error := error_in(payload):
        return error
    exchange.receive_model(text_in(payload.get("model")))
    message = object_in(payload.get("message"))
    reason, is_done = text_in(payload.get("done_reason")), payload.get("done") is True
    at_end = is_done or bool(reason)
    exchange.receive_reasoning(text_in(message.get("thinking")), at_end=at_end)
    exchange.receive_text(text_in(message.get("content")), at_end=at_end)
    calls = [call for entry in objects_in(message.get("tool_calls")) if (call := _call_of(entry)).name]
    if not exchange.repeats_calls(calls, at_end=at_end):
        for call in calls:  # each always arrives whole
            exchange.receive_tool_call(id=call.id, name=call.name, arguments=call.arguments, whole=True)
    if at_end:
        _read_counts(payload, exchange)
    if reason and (error := finish(exchange, reason)):
        return error
    if is_done:
        exchange.receive_end()
    return None


def is_answer(payload: JsonObject) -> bool:
    """Whether an object is a whole answer."""
    return payload.get("done") is True


class OllamaNative(Ollama):
    """Ollama through its own API; as an endpoint of the user's, any server with that API.

    The ini's `openclaw_ollama_num_ctx` and `openclaw_ollama_keep_alive` are sent with each request.
    """

    name: ClassVar[str] = "ollama_native"
    takes_tools: ClassVar[bool] = True
    api: ClassVar[str] = "ollama"
    takes: ClassVar[frozenset[str]] = (Ollama.takes - {"tool_choice"}) | {"images"}
    takes_messages: ClassVar[bool] = True
    path: ClassVar[str] = "/api/chat"
    models_path: ClassVar[str] = "/api/tags"
    # Some models think, and have no levels.
    refusable: ClassVar[Mapping[str, str]] = {"level": "is not supported for this model"}
    dialect: ClassVar[Dialect] = Dialect(
        read=read_ollama, is_whole=is_answer, end_mark='"done": true', done_ends=False, by_lines=True
    )

    def __init__(self, setup: ProviderSetup) -> None:
        super().__init__(setup)
        num_ctx = setup.options.get("ollama_num_ctx")
        self._num_ctx = int(num_ctx) if num_ctx else None
        self._keep_alive = _keep_alive(setup.options.get("ollama_keep_alive"))

    def find_address(self) -> Address:
        """Return the server's root, whichever of its APIs the address names."""
        address = super().find_address()
        return replace(address, base_url=address.root_url.removesuffix("/api"))

    def describe(self) -> JsonObject:
        """The address, the route, the key's variable and the options of each request."""
        return {**super().describe(), "num_ctx": self._num_ctx, "keep_alive": self._keep_alive}

    def context_tokens(self, request: Request) -> int:
        """Return the context that the request asks for."""
        sets_it = "num_ctx" in object_in(request.fields.get("options"))
        return (None if sets_it else self._num_ctx) or super().context_tokens(request)

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body for `request`."""
        return ollama_body(
            request,
            num_ctx=self._num_ctx,
            keep_alive=self._keep_alive,
            with_level="level" not in self.refused[request.model],
        )

    async def models(self) -> tuple[str, ...]:
        """Names of the server's models, without those that cannot chat."""
        names = await super().models()
        questions = [(f"{self.address.base_url}/api/show", {"model": name}) for name in names]
        shown = await ask_all(self.fetch, *questions)
        return tuple(name for name, show in zip(names, shown, strict=True) if _may_chat(show))

    async def fingerprint(self, model: str) -> JsonObject:
        """The server's facts about the model."""
        return await ollama_fingerprint(self.fetch, self.address.base_url, model)


# --- requests -----------------------------------------------------------------------------------


def _messages(request: Request) -> list[JsonObject]:
    messages: list[JsonObject] = []
    if request.system is not None:
        messages.append({"role": "system", "content": request.system})
    for turn in request.conversation:
        messages += _turn_messages(turn)
    return messages


def _turn_messages(turn: Turn) -> list[JsonObject]:
    """Return the user's message, the model's text, thinking and calls, and then the result of each call."""
    asked: list[JsonObject] = []
    if turn.user is not None:
        pictures = [image.base64 for image in turn.images]
        asked.append({"role": "user", "content": turn.user, **({"images": pictures} if pictures else {})})
    if turn.is_users_alone:
        return asked
    said: JsonObject = {"role": "assistant", "content": strip_thinking(turn.text)}
    if turn.reasoning:
        said["thinking"] = turn.reasoning
    if turn.calls:
        said["tool_calls"] = [_call_message(call) for call in turn.calls]
    return [
        *asked,
        said,
        *(
            {"role": "tool", "tool_name": call.name, "content": result} | _named("tool_call_id", call)
            for call, result in zip(turn.calls, turn.results, strict=False)
        ),
    ]


def _call_message(call: ToolCall) -> JsonObject:
    # In the API arguments can only be an object.
    function = {"name": call.name, "arguments": load_object(call.arguments) or {}}
    return {"type": "function", "function": function} | _named("id", call)


def _named(key: str, call: ToolCall) -> JsonObject:
    """Return the call's id as a member; older versions have none."""
    return {key: call.id} if call.id else {}


def _keep_alive(written: str | None) -> str | float | None:
    """Return a duration such as `10m` as text, or seconds as the number that the API requires."""
    if not written:
        return None
    if re.fullmatch(r"-?[0-9]+", written):
        return int(written)
    return float(written) if re.fullmatch(r"-?[0-9]+\.[0-9]+", written) else written


# --- answers ------------------------------------------------------------------------------------


def _call_of(entry: JsonObject) -> ToolCall:
    function = object_in(entry.get("function"))
    return ToolCall(
        name=text_in(function.get("name")),
        arguments=arguments_text(function.get("arguments")),
        id=text_in(entry.get("id")) or None,
    )


def _read_counts(payload: JsonObject, exchange: Exchange) -> None:
    """Add the counts and the server's own speeds; what came from a cache took no time of reading."""
    n_prompt, n_output = count_in(payload.get("prompt_eval_count")), count_in(payload.get("eval_count"))
    cached = count_in(payload.get("prompt_eval_cached_count"))
    n_prompt = settled(n_prompt, 0, total=None, cached=cached).input
    if n_prompt is not None or n_output is not None:
        exchange.receive_usage(input_tokens=n_prompt, output_tokens=n_output, cached_tokens=cached)
    duration_ns = positive_in(payload.get("eval_duration"))
    if duration_ns and (n_output or 0) > 1:  # the speed of a single token is meaningless
        exchange.receive_speed((n_output or 0) * _NS_IN_S / duration_ns)
    n_new = (n_prompt or 0) - (cached or 0)
    if n_new > 0 and (reading_ns := positive_in(payload.get("prompt_eval_duration"))):
        exchange.receive_prompt_speed(n_new * _NS_IN_S / reading_ns)


def _may_chat(show: JsonObject) -> bool:
    """Whether a model may chat; an older server reports no capabilities."""
    capabilities = show.get("capabilities")
    return not (isinstance(capabilities, list) and capabilities and "completion" not in capabilities)
