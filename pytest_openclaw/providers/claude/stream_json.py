"""Reads the Claude CLI's `--output-format stream-json` into an `Exchange`.

The answer is only the model's first message. The CLI continues by itself after an answer that was cut by the
output limit (three more requests) or empty (one more). No other provider does, so the stream is over as soon
as a second request starts. (`played_stream.py` reads further for scripted exchanges.)
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_openclaw.providers.claude.tools import plain_name
from pytest_openclaw.providers.json_values import count_in, object_in, objects_in, text_in
from pytest_openclaw.providers.wire_errors import load_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.providers.exchange import Exchange
    from pytest_openclaw.types.replies import Reply, Timing

#: the model name on assistant lines that the CLI wrote itself
SYNTHETIC = "<synthetic>"
_FINISH_REASONS = {"max_tokens": "length", "model_context_window_exceeded": "length"}
_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


@dataclass
class Stream:
    """The state of the stream after the lines so far.

    Attributes:
        offered: the tools' names on the wire → their own.
        lacking: those that the CLI does not offer, by their own names; then the stream is over.
        servers: the CLI's status of each of its servers, in its words.
        messages: number of complete messages of the model before the current one.
        over: whether the answer is complete, so that later lines do not belong to it.
        result: the CLI's last line.
        error: the error word of an assistant line that the CLI wrote itself, such as `billing_error`.
        stop_reason: of the model, as in the API.
        message_done: whether the model's message is complete.
        limit_reached: whether the plan's usage limit rejected the request.
        by_itself: whether the CLI answered instead of the model.
        received: number of lines of the format; `skipped` is the number of other lines.
        last_skipped: the text of the latest of those.
    """

    exchange: Exchange
    offered: Mapping[str, str] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()
    servers: str = ""
    messages: int = 0
    over: bool = False
    result: JsonObject | None = None
    error: str = ""
    stop_reason: str | None = None
    message_done: bool = False
    limit_reached: bool = False
    by_itself: bool = False
    received: int = 0
    skipped: int = 0
    last_skipped: str = ""
    _partial: bool = False
    _message_id: str = ""
    _model_known: bool = False
    _tool_keys: dict[Any, str | int] = field(default_factory=dict)
    _with_arguments: set[str | int] = field(default_factory=set)

    def reply(self, *, at_limit: bool = False) -> Reply:
        """Return the reply received so far.

        Args:
            at_limit: whether the CLI ended because the model needed more turns than allowed.
        """
        del at_limit  # one turn was requested
        return self.exchange.reply()

    def timing(self) -> Timing:
        """Return the times up to now or to the end."""
        return self.exchange.timing()

    def raw(self) -> str:
        """Return everything received so far."""
        return self.exchange.raw()

    def receive_model(self, name: Any) -> None:
        """Set the name of the answering model."""
        if text := text_in(name):
            self._model_known = True
            self.exchange.receive_model(text)

    def receive_usage(self, usage: Any, *, at_start: bool = False) -> None:
        """Add the API's counts; at the start of a message that of its output is only a placeholder."""
        given = object_in(usage)
        created = object_in(given.get("cache_creation"))
        counts = {
            "uncached_tokens": count_in(given.get("input_tokens")),
            "output_tokens": None if at_start else count_in(given.get("output_tokens")),
            "cached_tokens": count_in(given.get("cache_read_input_tokens")),
            "cache_write_tokens": count_in(given.get("cache_creation_input_tokens")),
            "cache_write_1h_tokens": count_in(created.get("ephemeral_1h_input_tokens")),
        }
        if any(count is not None for count in counts.values()):
            self.exchange.receive_usage(**counts)

    def receive_offer(self, names: Any, servers: Any) -> None:
        """Compare the tools that the CLI offers with the requested ones."""
        given = names if isinstance(names, list) else []
        self.lacking = tuple(own for name, own in self.offered.items() if name not in given)
        self.servers = ", ".join(text_in(server.get("status")) for server in objects_in(servers))
        self.over = self.over or bool(self.lacking)

    def receive_result(self, call_id: str, text: str) -> None:
        """Ignore the result of a call; for a single prompt the call is the answer."""

    def end_message(self) -> None:
        """Note the end of the model's message; later work of the CLI is not part of the model's time."""
        self.message_done = True
        self._receive_end(self.stop_reason)

    def next_request(self) -> None:
        """Note that the CLI sends another request."""
        self.end(self.stop_reason)

    def begin_message(self, exchange: Exchange) -> None:
        """Start another message of the model."""
        self.exchange = exchange
        self.messages += 1
        self.message_done = False
        self.stop_reason = None
        self._message_id = ""
        self._tool_keys, self._with_arguments = {}, set()

    def end(self, finish_reason: str | None) -> None:
        """Note that the answer is complete."""
        self.over = True
        self._receive_end(finish_reason)

    def _receive_end(self, finish_reason: str | None) -> None:
        self.exchange.receive_end(_FINISH_REASONS.get(finish_reason or "", finish_reason))


def receive_line(stream: Stream, raw: bytes) -> None:
    """Read one line of output; other lines than those of the format are skipped and counted."""
    text = raw.decode("utf-8", "replace").strip()
    line = load_object(text) if text else {}
    if line is not None and text_in(line.get("type")) in _READERS:
        stream.received += 1
        read_line(stream, line)
    elif text:
        stream.skipped += 1
        stream.last_skipped = text


def read_line(stream: Stream, line: Mapping[str, Any]) -> None:
    """Add one line; lines of a subagent, and those after the end, are ignored."""
    if not stream.over and not line.get("parent_tool_use_id"):
        _READERS[line["type"]](stream, line)


def _read_system(stream: Stream, line: Mapping[str, Any]) -> None:
    if line.get("subtype") == "init":
        stream.receive_offer(line.get("tools"), line.get("mcp_servers"))
    if line.get("status") == "requesting" and stream.message_done:
        stream.next_request()


def _read_user(stream: Stream, line: Mapping[str, Any]) -> None:
    """Read what the CLI sends to the model, of which only results of calls matter."""
    for block in objects_in(object_in(line.get("message")).get("content")):
        if block.get("type") == "tool_result":
            content = block.get("content")
            texts = [text_in(part.get("text")) for part in objects_in(content)] or [text_in(content)]
            stream.receive_result(text_in(block.get("tool_use_id")), "\n".join(texts))


def _read_rate_limit(stream: Stream, line: Mapping[str, Any]) -> None:
    stream.limit_reached = object_in(line.get("rate_limit_info")).get("status") == "rejected"


def _read_event(stream: Stream, line: Mapping[str, Any]) -> None:
    stream._partial = True
    event = object_in(line.get("event"))
    if event.get("type") == "message_start" and stream.message_done:
        stream.next_request()
        if stream.over:
            return
    match event.get("type"):
        case "message_start":
            message = object_in(event.get("message"))
            stream.receive_model(message.get("model"))
            stream.receive_usage(message.get("usage"), at_start=True)
        case "content_block_start":
            _begin_block(stream, event.get("index"), object_in(event.get("content_block")))
        case "content_block_delta":
            _read_delta(stream, event.get("index"), object_in(event.get("delta")))
        case "content_block_stop":
            _end_block(stream, event.get("index"))
        case "message_delta":
            reason = object_in(event.get("delta")).get("stop_reason")
            stream.stop_reason = text_in(reason) or stream.stop_reason
            stream.receive_usage(event.get("usage"))
        case "message_stop":
            stream.end_message()


def _begin_block(stream: Stream, index: Any, block: Mapping[str, Any]) -> None:
    if block.get("type") == "tool_use":
        stream._tool_keys[str(index)] = text_in(block.get("id")) or str(index)
        # An empty input is only a placeholder for the pieces.
        block = {**block, "input": block.get("input") or None}
    _read_block(stream, block, key=stream._tool_keys.get(str(index)))


def _end_block(stream: Stream, index: Any) -> None:
    """Set empty arguments for a call without pieces, unless a later line has them."""
    key = stream._tool_keys.get(str(index))
    if key is not None and key not in stream._with_arguments:
        stream.exchange.receive_tool_call(key=key, arguments="{}", whole=True)


def _read_delta(stream: Stream, index: Any, delta: Mapping[str, Any]) -> None:
    match delta.get("type"):
        case "text_delta":
            stream.exchange.receive_text(text_in(delta.get("text")))
        case "thinking_delta":
            stream.exchange.receive_reasoning(text_in(delta.get("thinking")))
        case "input_json_delta" if key := stream._tool_keys.get(str(index)):
            if piece := text_in(delta.get("partial_json")):
                stream._with_arguments.add(key)
                stream.exchange.receive_tool_call(key=key, arguments=piece)


def _read_block(stream: Stream, block: Mapping[str, Any], *, key: str | int | None) -> None:
    """Add the part of a content block that is in its first event."""
    match block.get("type"):
        case "text":
            stream.exchange.receive_text(text_in(block.get("text")))
        case "thinking":
            stream.exchange.receive_reasoning(text_in(block.get("thinking")))
        case "tool_use":
            given = block.get("input")
            if given is not None and key is not None:
                stream._with_arguments.add(key)
            stream.exchange.receive_tool_call(
                key=key,
                id=text_in(block.get("id")) or None,
                name=plain_name(text_in(block.get("name")), stream.offered),
                arguments="" if given is None else json.dumps(given, ensure_ascii=False),
                whole=True,
            )


def _read_assistant(stream: Stream, line: Mapping[str, Any]) -> None:
    message = object_in(line.get("message"))
    stream.error = text_in(line.get("error")) or stream.error
    if stream.error or message.get("model") == SYNTHETIC:
        stream.by_itself = True
        return
    blocks = objects_in(message.get("content"))
    if stream._partial:
        # Its text arrived in pieces; the pieces of a tool call may be missing.
        blocks = [block for block in blocks if _lacks_arguments(stream, block)]
    else:
        stream.exchange.streaming = False
        if stream._message_id and message.get("id") != stream._message_id:
            stream.next_request()
            if stream.over:
                return
        stream._message_id = text_in(message.get("id"))
        stream.stop_reason = text_in(message.get("stop_reason")) or stream.stop_reason
        stream.receive_model(message.get("model"))
    for block in blocks:
        _read_block(stream, block, key=text_in(block.get("id")) or None)


def _lacks_arguments(stream: Stream, block: Mapping[str, Any]) -> bool:
    key = block.get("id")
    return key in stream._tool_keys.values() and key not in stream._with_arguments


def _read_result(stream: Stream, line: Mapping[str, Any]) -> None:
    stream.result = dict(line)
    usage = object_in(line.get("usage"))
    # The counts of several messages are summed here, and also arrive with each message.
    known = stream.exchange.has_usage or stream.messages
    if not known and any(count_in(usage.get(name)) for name in _COUNTS):
        stream.receive_usage(usage)
    models = object_in(line.get("modelUsage"))
    if not stream._model_known and len(models) == 1:
        stream.receive_model(next(iter(models)))
    if not (line.get("is_error") or stream.by_itself or stream.exchange.has_tokens):
        stream.exchange.streaming = False
        stream.exchange.receive_text(text_in(line.get("result")))
    stream.end(stream.stop_reason or text_in(line.get("stop_reason")) or None)


_READERS: dict[str, Callable[[Stream, Mapping[str, Any]], None]] = {
    "system": _read_system,
    "user": _read_user,
    "rate_limit_event": _read_rate_limit,
    "stream_event": _read_event,
    "assistant": _read_assistant,
    "result": _read_result,
}
