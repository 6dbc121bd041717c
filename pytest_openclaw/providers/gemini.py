"""Google's Gemini API, and every server that speaks it too.

Requests and answers are as in https://ai.google.dev/api/generate-content.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers.finishing import finish
from pytest_openclaw.providers.json_values import count_in, object_in, objects_in, text_in
from pytest_openclaw.providers.over_http import MODELS_TIMEOUT_S, VendorApi
from pytest_openclaw.providers.request_fields import chosen
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.providers.token_counts import settled
from pytest_openclaw.providers.wire_errors import error_in, load_object
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.settings import THINKING_ROOM_TOKENS
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.providers.address import Address
    from pytest_openclaw.providers.exchange import Exchange
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.faults import WireError
    from pytest_openclaw.values.replies import Turn
    from pytest_openclaw.values.requests import Request

_VERSIONS = ("/v1beta", "/v1alpha")
_SIGNATURE = "thoughtSignature"
# For calls that no signature came with: https://ai.google.dev/gemini-api/docs/thought-signatures
_UNSIGNED = "skip_thought_signature_validator"


def gemini_body(request: Request, *, with_temperature: bool = True, with_budget: bool = False) -> JsonObject:
    """Return the body of `generateContent` that asks `request`; its model is in the path.

    The schemas of tools are sent whole, as `parametersJsonSchema`, and not as the older `parameters`, which
    takes a part of JSON Schema only.

    Args:
        request: what to ask.
        with_temperature: False for a model that refuses it.
        with_budget: True for a model that takes a budget of thinking tokens in place of a level.

    """
    temperature = request.temperature if with_temperature else None
    config = chosen(temperature=temperature, topP=request.top_p, seed=request.seed)
    config["maxOutputTokens"] = request.max_output_tokens
    if request.thinking_level:
        level = request.thinking_level
        amount = (
            {"thinkingBudget": THINKING_ROOM_TOKENS[level]}
            if with_budget
            else {"thinkingLevel": level.upper()}
        )
        config["thinkingConfig"] = {"includeThoughts": True, **amount}
    body: JsonObject = {"contents": _contents(request), "generationConfig": config}
    if request.system is not None:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        declarations = [
            {
                "name": tool.name,
                "description": tool.description,
                "parametersJsonSchema": dict(tool.parameters),
            }
            for tool in request.tools
        ]
        body["tools"] = [{"functionDeclarations": declarations}]
        if request.tool_choice == "required":
            body["toolConfig"] = {"functionCallingConfig": {"mode": "ANY"}}
    return body


def read_gemini(payload: JsonObject, exchange: Exchange) -> WireError | None:
    """Read a chunk of a stream, or a whole answer, into the exchange.

    Returns:
        The error that it is instead, if it is one.

    """
    if error := error_in(payload):
        return error
    exchange.receive_model(text_in(payload.get("modelVersion")))
    _read_usage(object_in(payload.get("usageMetadata")), exchange)
    feedback = object_in(payload.get("promptFeedback"))
    if blocked := text_in(feedback.get("blockReason")):
        exchange.receive_note(text_in(feedback.get("blockReasonMessage")) or blocked)
        exchange.receive_finish("content_filter")
    for place, candidate in enumerate(objects_in(payload.get("candidates"))):
        reason = text_in(candidate.get("finishReason"))
        parts = objects_in(object_in(candidate.get("content")).get("parts"))
        read = [_read_call(part) for part in parts if "functionCall" in part]
        calls = [ToolCall(name=name, arguments=arguments, id=id_) for id_, name, arguments in read]
        repeats = len(calls) > 1 and exchange.repeats_calls(calls, at_end=bool(reason))
        for part in parts:
            if not (repeats and "functionCall" in part):
                _read_part(part, exchange, choice=place, at_end=bool(reason))
        if reason and (error := _read_end(reason, candidate, exchange)):
            return error
    return None


def is_answer(payload: JsonObject) -> bool:
    """Whether an object is a whole answer, or says why there is none."""
    return bool(payload.get("candidates") or payload.get("promptFeedback"))


class Gemini(VendorApi):
    """Gemini models, by Google's own API; under a name of the user's, any server with that API.

    The address is `GOOGLE_GEMINI_BASE_URL`, else the ini's, else Google's; an endpoint of the user's has the
    one of its ini line. The key is in `GEMINI_API_KEY`, else in `GOOGLE_API_KEY`, or in the variable that the
    line names; an endpoint's key is sent as a bearer token too, since gateways differ in what they read.
    """

    name: ClassVar[str] = "gemini"
    takes_tools: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = VendorApi.takes | {"images"}
    takes_messages: ClassVar[bool] = True
    vendor_url: ClassVar[str] = "https://generativelanguage.googleapis.com/v1beta"
    base_env: ClassVar[str] = "GOOGLE_GEMINI_BASE_URL"
    key_envs: ClassVar[tuple[str, ...]] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    path: ClassVar[str] = "/models/MODEL:streamGenerateContent"
    # The most that one page of the list may have; without it there are 50.
    models_path: ClassVar[str] = "/models?pageSize=1000"
    refusable: ClassVar[Mapping[str, str]] = {"temperature": "temperature", "level": "thinking[ _]?level"}
    dialect: ClassVar[Dialect] = Dialect(
        read=read_gemini, is_whole=is_answer, end_mark="a finishReason", done_ends=False
    )

    def find_address(self) -> Address:
        """Return where the server is; `/v1beta` may be left out."""
        address = super().find_address()
        if address.base_url.endswith(_VERSIONS):
            return address
        return replace(address, base_url=f"{address.root_url}/v1beta")

    @property
    def endpoint(self) -> str:
        """The server, by whichever of its APIs it is asked."""
        root = self.address.base_url.rpartition("/")[0]
        return replace(self.address, base_url=root).server

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the headers that show the key."""
        is_google = self.is_vendors or self.address.base_url == self.vendor_url
        return {"x-goog-api-key": key} | ({} if is_google else dict(super().key_headers(key)))

    def route(self, request: Request) -> str:
        """Return the path that answers `request`, with the name of its model."""
        name = request.model if "/" in request.model else f"models/{request.model}"
        method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
        return f"/{quote(name)}:{method}"

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body that asks `request`."""
        refused = self.refused[request.model]
        return gemini_body(
            request, with_temperature="temperature" not in refused, with_budget="level" in refused
        )

    async def models(self) -> tuple[str, ...]:
        """Names of the models that generate text."""
        answer = await self.fetch(f"{self.address.base_url}{self.models_path}", timeout_s=MODELS_TIMEOUT_S)
        if not isinstance(answer.get("models"), list):
            raise CallFailed(faults.malformed(self.setup.name, "its list of models has no list"))
        return tuple(
            name.removeprefix("models/")
            for entry in objects_in(answer["models"])
            if (name := text_in(entry.get("name"))) and _generates(entry)
        )


# --- what is sent -------------------------------------------------------------------------------


def _contents(request: Request) -> list[JsonObject]:
    contents: list[JsonObject] = []
    for turn in request.conversation:
        if turn.user is not None:
            pictures = [
                {"inlineData": {"mimeType": image.media_type, "data": image.base64}} for image in turn.images
            ]
            contents.append({"role": "user", "parts": [{"text": turn.user}, *pictures]})
        # A content without parts is refused.
        is_signed = any(part.get(_SIGNATURE) for part in turn.carried)
        if said := _signed(turn) if is_signed else [*_unsigned(turn)]:
            contents.append({"role": "model", "parts": said})
        if turn.results:
            contents.append({"role": "user", "parts": _results(turn)})
    return contents


def _signed(turn: Turn) -> list[JsonObject]:
    """Return a turn's parts exactly as and where they were, with what is sent of its calls.

    The first call of an answer has a signature, and a request without it is refused.
    """
    left = [*turn.calls]
    parts: list[JsonObject] = []
    for part in turn.carried:
        if "functionCall" not in part:
            parts.append(part)
            continue
        same = [call for call in left if (call.id, call.name, call.arguments) == _read_call(part)]
        if same:
            left.remove(same[0])
            parts.append(part)
    parts += map(_call_part, left)
    place = next((place for place, part in enumerate(parts) if "functionCall" in part), None)
    if place is not None and not parts[place].get(_SIGNATURE):
        parts[place] = {**parts[place], _SIGNATURE: _UNSIGNED}
    return parts


def _unsigned(turn: Turn) -> Iterator[JsonObject]:
    if text := strip_thinking(turn.text).strip():
        yield {"text": text}
    yield from map(_call_part, turn.calls)


def _call_part(call: ToolCall) -> JsonObject:
    # The API has the arguments as an object and no place for anything else.
    return {"functionCall": {**_id(call), "name": call.name, "args": load_object(call.arguments) or {}}}


def _results(turn: Turn) -> list[JsonObject]:
    return [
        {"functionResponse": {**_id(call), "name": call.name, "response": {"output": result}}}
        for call, result in zip(turn.calls, turn.results, strict=False)
    ]


def _id(call: ToolCall) -> JsonObject:
    """The call's id, which older models do not give."""
    return {"id": call.id} if call.id else {}


# --- what is read -------------------------------------------------------------------------------


def _read_part(part: JsonObject, exchange: Exchange, *, choice: int, at_end: bool) -> None:
    text = text_in(part.get("text"))
    if part.get("thought"):
        exchange.receive_reasoning(text, choice=choice, at_end=at_end)
    else:
        exchange.receive_text(text, choice=choice, at_end=at_end)
    if "functionCall" in part:
        id_, name, arguments = _read_call(part)
        exchange.receive_tool_call(id=id_, name=name or None, arguments=arguments, whole=True)
    exchange.receive_block(part)


def _read_call(part: JsonObject) -> tuple[str | None, str, str]:
    """Return id, name and arguments of a call, which always comes whole."""
    call = object_in(part.get("functionCall"))
    arguments = json.dumps(object_in(call.get("args")), ensure_ascii=False)
    return text_in(call.get("id")) or None, text_in(call.get("name")), arguments


def _read_end(reason: str, candidate: JsonObject, exchange: Exchange) -> WireError | None:
    if reason == "STOP" and exchange.has_tool_calls:
        reason = "tool_calls"
    return finish(exchange, reason, said=text_in(candidate.get("finishMessage")))


def _read_usage(usage: JsonObject, exchange: Exchange) -> None:
    """Add the counts: the candidates' leaves out thoughts, and the prompt's leaves out what tools add.

    A gateway may count thoughts as output; then the total is already complete without them.
    """
    if usage:
        thoughts, written = (
            count_in(usage.get("thoughtsTokenCount")),
            count_in(usage.get("candidatesTokenCount")),
        )
        total, cached = count_in(usage.get("totalTokenCount")), count_in(usage.get("cachedContentTokenCount"))
        n_input = _sum(
            count_in(usage.get("promptTokenCount")), count_in(usage.get("toolUsePromptTokenCount"))
        )
        n_output = _sum(written, thoughts)
        if total is not None and written is not None:
            n_input, n_output, thoughts = settled(
                n_input, written, total=total, reasoning=thoughts, cached=cached
            )
        exchange.receive_usage(
            input_tokens=n_input,
            output_tokens=n_output,
            reasoning_tokens=thoughts,
            cached_tokens=cached,
        )


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _generates(entry: JsonObject) -> bool:
    """Whether a model may be asked; a gateway may not say."""
    methods = entry.get("supportedGenerationMethods")
    return not isinstance(methods, list) or "generateContent" in methods
