"""Google's Gemini API, on Google's or any other server.

Requests and answers are as in https://ai.google.dev/api/generate-content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import ClassVar
from urllib.parse import quote

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers import wire
from pytest_openclaw.providers.address import Address
from pytest_openclaw.providers.answer import Answer, Channel
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.settings import THINKING_ROOM_TOKENS
from pytest_openclaw.values.tool_calls import ToolCall

_VERSIONS = ("/v1beta", "/v1alpha")
_COUNTS = {
    "input_tokens": "promptTokenCount",
    "output_tokens": "candidatesTokenCount",
    "total_tokens": "totalTokenCount",
    "reasoning_tokens": "thoughtsTokenCount",
    "cached_tokens": "cachedContentTokenCount",
}
_SIGNATURE = "thoughtSignature"
# For calls that came without a signature: https://ai.google.dev/gemini-api/docs/thought-signatures
_UNSIGNED = "skip_thought_signature_validator"


# --- requests -----------------------------------------------------------------------------------


def gemini_body(request: Request, refused: Collection[str] = ()) -> JsonObject:
    """Return the body of `generateContent`; the model is in the path, and some take no temperature or level.

    The schemas of tools are sent whole, as `parametersJsonSchema`, and not as the older `parameters`, which
    takes only a part of JSON Schema.
    """
    temperature = None if "temperature" in refused else request.temperature
    config = wire.chosen(temperature=temperature, seed=request.seed)
    config["maxOutputTokens"] = request.max_output_tokens
    if level := request.thinking_level:
        budget, name = {"thinkingBudget": THINKING_ROOM_TOKENS[level]}, {"thinkingLevel": level.upper()}
        config["thinkingConfig"] = {"includeThoughts": True, **(budget if "level" in refused else name)}
    body: JsonObject = {"contents": _contents(request), "generationConfig": config}
    if request.system is not None:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        functions = [wire.function_of(tool, "parametersJsonSchema") for tool in request.tools]
        body["tools"] = [{"functionDeclarations": functions}]
    return body


def _contents(request: Request) -> list[JsonObject]:
    contents: list[JsonObject] = []
    for turn in request.conversation:
        if turn.user is not None:
            images = [
                {"inlineData": {"mimeType": image.media_type, "data": image.base64}} for image in turn.images
            ]
            contents.append({"role": "user", "parts": [{"text": turn.user}, *images]})
        # A content without parts is refused.
        if parts := _parts(turn):
            contents.append({"role": "model", "parts": parts})
        if turn.results:
            results = [
                {"functionResponse": {**_id(call), "name": call.name, "response": {"output": result}}}
                for call, result in zip(turn.calls, turn.results, strict=False)
            ]
            contents.append({"role": "user", "parts": results})
    return contents


def _parts(turn: Turn) -> list[JsonObject]:
    """Return a turn's parts: a signed answer unchanged, if all of its calls count.

    The first call of a signed answer must have a signature, or the request is refused.
    """
    is_signed = any(part.get(_SIGNATURE) or part.get("thought_signature") for part in turn.carried)
    made = [_call_in(part) for part in turn.carried if "functionCall" in part]
    if is_signed and made == [replace(call, unoffered=False) for call in turn.calls]:
        return [*turn.carried]
    text = strip_thinking(turn.text).strip()
    calls = [*map(_call_part, turn.calls)]
    if is_signed and calls:
        calls[0][_SIGNATURE] = _UNSIGNED
    return [*([{"text": text}] if text else []), *calls]


def _call_part(call: ToolCall) -> JsonObject:
    # In the API the arguments can only be an object.
    return {"functionCall": {**_id(call), "name": call.name, "args": wire.load_object(call.arguments) or {}}}


def _id(call: ToolCall) -> JsonObject:
    """Return the call's id, which older models do not send."""
    return {"id": call.id} if call.id else {}


# --- answers ------------------------------------------------------------------------------------


def read_gemini(payload: JsonObject, answer: Answer) -> WireError | None:
    """Add a chunk of a stream, or a whole answer, to the answer so far; return the error that it reports."""
    answer.receive_model(wire.text_in(payload, "modelVersion"))
    _read_usage(wire.object_in(payload, "usageMetadata"), answer)
    feedback = wire.object_in(payload, "promptFeedback")
    if blocked := wire.text_in(feedback, "blockReason"):
        answer.receive_note(wire.text_in(feedback, "blockReasonMessage") or blocked)
        answer.receive_finish("content_filter")
    candidate = next(iter(wire.objects_in(payload, "candidates")), {})
    reason = wire.text_in(candidate, "finishReason")
    parts = wire.objects_in(candidate, "content.parts")
    calls = [_call_in(part) for part in parts if "functionCall" in part]
    repeats = len(calls) > 1 and answer.receive_repeated(calls, at_end=bool(reason))
    for part in parts:
        channel: Channel = "reasoning" if part.get("thought") else "text"
        answer.receive_text(wire.text_in(part, "text"), channel, at_end=bool(reason))
        answer.receive_block(part)
    for call in [] if repeats else calls:
        answer.receive_tool_call(call, whole=True)
    if reason == "STOP" and answer.has_tool_calls:
        reason = "tool_calls"
    said = wire.text_in(candidate, "finishMessage")
    return answer.receive_finish_word(reason, said=said) if reason else None


def _call_in(part: JsonObject) -> ToolCall:
    """Return a call, which always arrives whole."""
    return wire.call_in(wire.object_in(part, "functionCall"), wire.object_in(part, "functionCall.args"))


def _read_usage(usage: JsonObject, answer: Answer) -> None:
    """Add the counts; the candidates' count excludes thoughts, unless the total shows that it has them."""
    if not usage:
        return
    counts = wire.counts_in(usage, _COUNTS)
    if counts["input_tokens"] is not None:  # what Google's own tools found is a part of the total
        counts["input_tokens"] += wire.count_in(usage, "toolUsePromptTokenCount") or 0
    n_written, n_thought = counts["output_tokens"], counts["reasoning_tokens"]
    if n_thought is not None and None in (n_written, counts["total_tokens"]):
        counts |= {"output_tokens": (n_written or 0) + n_thought, "total_tokens": None}
    answer.receive_usage(**counts)


class Gemini(OverHttp):
    """Gemini models through Google's own API; as an endpoint of the ini, any server with that API."""

    name: ClassVar[str] = "gemini"
    key_header: ClassVar[str] = "x-goog-api-key"
    needs_key: ClassVar[bool] = True
    own_url: ClassVar[str | None] = "https://generativelanguage.googleapis.com/v1beta"
    base_env: ClassVar[str | None] = "GOOGLE_GEMINI_BASE_URL"
    key_envs: ClassVar[tuple[str, ...]] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    path: ClassVar[str] = "/models/MODEL:streamGenerateContent"
    # The most that one page of the list may have; without it there are 50.
    models_path: ClassVar[str] = "/models?pageSize=1000"
    refusable: ClassVar[Mapping[str, str]] = {"temperature": "temperature", "level": "thinking[ _]?level"}
    dialect: ClassVar[Dialect] = Dialect(gemini_body, read_gemini, end_mark="a finishReason")

    def find_address(self) -> Address:
        """Return the server's address; `/v1beta` may be left out."""
        address = super().find_address()
        if address.base_url.endswith(_VERSIONS):
            return address
        return replace(address, base_url=f"{address.root_url}/v1beta")

    def route(self, request: Request) -> str:
        """Return the path that answers `request`, with the name of its model."""
        name = request.model if "/" in request.model else f"models/{request.model}"
        method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
        return f"/{quote(name)}:{method}"

    async def models(self) -> tuple[str, ...]:
        """Names of the models that generate text."""
        method = "generateContent"
        return tuple(
            name.removeprefix("models/")
            for entry in await self.listed_models()
            # A gateway may leave out the methods of its models.
            if method in (wire.texts_in(entry, "supportedGenerationMethods") or [method])
            and (name := wire.text_in(entry, "name"))
        )
