"""A fast mock of an OpenAI-compatible chat server that logs its requests.

Its behavior is part of the base URL, so that it need not be restarted:
`http://127.0.0.1:PORT/run=a,ttft=100,jitter=200,itl=5,n=20/v1` answers with 20 tokens, the first after
100 to 300 ms, the others 5 ms apart. All are optional, all times are ms, `run` is a name; by default 5
tokens arrive at once, in one write. A stream begins at once with its headers and a role chunk, which is no
token. `think=32000` puts that many characters of reasoning before the first token, in the same write.

The answer is part of the prompt: `Reply with exactly: HEARTBEAT_OK item-000123` gets that text.
Everything but chat completions and `/v1/models` is a 404, as on a server that is not Ollama.

`GET /log?BASE` returns the requests under a base path, `DELETE /log` deletes all.

One process answers more than 10,000 streaming requests a second on one core with uvloop, so that even with
a client that needs 0.3 ms per request the client is measured, not the server. The wait for a token ends
0 to 1 ms late (the resolution of the loop's timers), never early; the log has the real send times.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from time import perf_counter
from typing import Any

ITEM = re.compile(r"item-\d+")
ANSWER = re.compile(r"Reply with exactly: (.+)")
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
#: the most by which a timer may be early
EARLY_S = 0.0002


@dataclass(frozen=True)
class Behavior:
    """When the tokens of an answer are sent."""

    ttft_s: float = 0.0
    jitter_s: float = 0.0
    itl_s: float = 0.0
    n_tokens: int = 5
    n_thought: int = 0

    @property
    def is_instant(self) -> bool:
        """Whether the whole answer is sent at once."""
        return not (self.ttft_s or self.jitter_s or self.itl_s)

    def due(self, n: int, item: str | None) -> float:
        """Seconds from the request to its token `n`, counted from 0; the same for an item in every run."""
        jitter = zlib.crc32((item or "").encode()) / 2**32 * self.jitter_s
        return self.ttft_s + jitter + n * self.itl_s


@dataclass(frozen=True)
class Route:
    """A parsed path: the base under which it is logged, the behavior, and the part after `/v1`."""

    base: str
    behavior: Behavior
    name: str | None


@lru_cache(maxsize=1000)
def parse_path(path: str) -> Route:
    """Parse a path; an invalid behavior is a ValueError."""
    base, v1, name = path.partition("/v1/")
    if not v1:
        return Route("", Behavior(), None)
    words = dict(word.split("=", 1) for word in base.removeprefix("/").split(",") if word)
    words.pop("run", None)
    behavior = Behavior(
        ttft_s=float(words.pop("ttft", 0)) / 1000,
        jitter_s=float(words.pop("jitter", 0)) / 1000,
        itl_s=float(words.pop("itl", 0)) / 1000,
        n_tokens=int(words.pop("n", 5)),
        n_thought=int(words.pop("think", 0)),
    )
    if words:
        raise ValueError(f"no such behavior: {', '.join(words)}")
    return Route(base, behavior, name)


@dataclass
class Log:
    """The requests under one base path.

    Attributes:
        requests: item (null if the prompt names none), time of the whole request, of the first token sent,
            of the last byte sent; by `time.perf_counter`, which processes of one machine share on Linux.
            A request that was given up has no last byte.
    """

    in_flight: int = 0
    max_in_flight: int = 0
    requests: list[tuple[str | None, float, float | None, float | None]] = field(default_factory=list)

    def begin(self) -> None:
        """Count a request that has been received."""
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def end(self, item: str | None, received: float, first: float | None, last: float | None) -> None:
        """Note a request that has been answered or given up."""
        self.in_flight -= 1
        self.requests.append((item, received, first, last))


def split_answer(answer: str, n: int) -> list[str]:
    """Cut an answer into `n` tokens as equal as possible, none of them empty.

    Raises:
        ValueError: it has fewer characters than that.
    """
    if not 0 < n <= len(answer):
        raise ValueError(f"{answer!r} cannot have {n} tokens")
    edges = [len(answer) * i // n for i in range(n + 1)]
    return [answer[start:end] for start, end in pairwise(edges)]


def event(
    delta: dict[str, Any] | None, finish: str | None = None, usage: dict[str, int] | None = None
) -> bytes:
    """Return one event of the stream, as a chunk of HTTP."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    payload: dict[str, Any] = {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": choices,
    }  # fmt: skip
    if usage:
        payload["usage"] = usage
    return chunk(b"data: " + json.dumps(payload).encode() + b"\n\n")


def chunk(data: bytes) -> bytes:
    """Return a chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


ROLE = event({"role": "assistant", "content": ""})
_TOKEN_HEAD, _TOKEN_TAIL = (
    b'data: {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "mock", '
    b'"choices": [{"index": 0, "delta": {"content": ',
    b'}, "finish_reason": null}]}\n\n',
)


def token(text: str) -> bytes:
    """Return the event of one token; `event` would work, at three times the cost."""
    return chunk(_TOKEN_HEAD + json.dumps(text).encode() + _TOKEN_TAIL)


@lru_cache(maxsize=100)
def thinking(n: int) -> bytes:
    """Return the event of thinking with `n` characters, if there are any."""
    return event({"reasoning_content": ("Let me think. " * (n // 14 + 1))[:n]}) if n else b""


@lru_cache(maxsize=100)
def stream_end(n_tokens: int, with_usage: bool) -> bytes:
    """Return the bytes after the last token."""
    usage = {"prompt_tokens": 10, "completion_tokens": n_tokens, "total_tokens": 10 + n_tokens}
    counts = event(None, usage=usage) if with_usage else b""
    return event({}, "stop") + counts + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def whole(answer: str, n_tokens: int) -> dict[str, Any]:
    """Return the completion for a request without a stream."""
    message = {"role": "assistant", "content": answer}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "mock",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": n_tokens, "total_tokens": 10 + n_tokens},
    }  # fmt: skip


def json_response(payload: Any, status: int = 200) -> bytes:
    """Return a whole response."""
    body = json.dumps(payload).encode()
    head = f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Connection(asyncio.Protocol):
    """One connection: a request, its answer, the next."""

    def __init__(self, logs: dict[str, Log], loop: asyncio.AbstractEventLoop) -> None:
        self._logs = logs
        self._loop = loop
        self._buffer = b""
        self._transport: Any = None
        self._fd = -1
        self.answer: Answer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._fd = transport.get_extra_info("socket").fileno()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fd = -1
        if self.answer:
            self.answer.give_up()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        lines = head.split(b"\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(b":") for line in lines[1:])}
        if b"transfer-encoding" in headers:
            self._send_json({"error": {"message": "a length is required"}}, 411)
            self._transport.close()
            return
        length = int(headers.get(b"content-length", 0))
        if len(rest) >= length:
            received = perf_counter()
            self._buffer = rest[length:]  # no client sends two at once
            method, path, _ = lines[0].decode().split(" ")
            self._handle(method, path, rest[:length], received)

    def _handle(self, method: str, path: str, body: bytes, received: float) -> None:
        if path.startswith("/log"):
            self._handle_log(method, path.partition("?")[2])
            return
        try:
            route = parse_path(path)
            if (method, route.name) == ("POST", "chat/completions"):
                self._answer(json.loads(body), route, received)
            elif (method, route.name) == ("GET", "models"):
                self._send_json({"object": "list", "data": [{"id": "mock", "object": "model"}]})
            else:
                self._send_json({"error": {"message": "there is no such route"}}, 404)
        except ValueError as error:
            self._send_json({"error": {"message": str(error), "code": "invalid_request"}}, 400)

    def _handle_log(self, method: str, base: str) -> None:
        if method == "DELETE":
            self._logs.clear()
        log = self._logs.get(base) or Log()
        self._send_json({"max_in_flight": log.max_in_flight, "requests": log.requests})

    def _answer(self, asked: dict[str, Any], route: Route, received: float) -> None:
        prompt = str(asked["messages"][-1]["content"])
        named, wanted = ITEM.search(prompt), ANSWER.search(prompt)
        item, behavior = named and named[0], route.behavior
        tokens = split_answer(wanted[1], behavior.n_tokens) if wanted else ["Hello"]
        dues = [received + behavior.due(n, item) for n in range(len(tokens))]
        log = self._logs.setdefault(route.base, Log())
        log.begin()
        self.answer = Answer(self, self._loop, log, item, received)
        if not asked.get("stream"):
            self.answer.begin([(dues[-1], json_response(whole("".join(tokens), len(tokens))))])
            return
        with_usage = bool((asked.get("stream_options") or {}).get("include_usage"))
        events = [token(text) for text in tokens]
        events[0] = thinking(behavior.n_thought) + events[0]
        events[-1] += stream_end(len(tokens), with_usage)
        if behavior.is_instant:
            self.answer.begin([(received, b"".join([STREAM_HEAD, ROLE, *events]))])
            return
        self.send(STREAM_HEAD + ROLE)
        self.answer.begin(list(zip(dues, events, strict=True)))

    def _send_json(self, payload: Any, status: int = 200) -> None:
        self.send(json_response(payload, status))

    def send(self, data: bytes) -> None:
        """Send now: uvloop's own `write` waits for the end of the loop's round, after the logged time."""
        if self._fd < 0:
            return
        sent = 0
        if not self._transport.get_write_buffer_size():
            try:
                sent = os.write(self._fd, data)
            except OSError:  # full, or broken: the transport handles both
                sent = 0
        if sent < len(data):
            self._transport.write(data[sent:])


class Answer:
    """An answer in progress: the parts to send, and their times."""

    def __init__(
        self,
        connection: Connection,
        loop: asyncio.AbstractEventLoop,
        log: Log,
        item: str | None,
        received: float,
    ) -> None:
        self._connection, self._loop, self._log = connection, loop, log
        self._item, self._received = item, received
        self._first: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, parts: list[tuple[float, bytes]]) -> None:
        """Send each part at its time; the first ends with the first token, the last ends the answer."""
        self._parts = parts
        self._n = 0
        self._send_due()

    def give_up(self) -> None:
        """The client is gone."""
        if self._timer:
            self._timer.cancel()
        self._log.end(self._item, self._received, self._first, None)

    def _send_due(self) -> None:
        while self._n < len(self._parts):
            due, data = self._parts[self._n]
            if (wait := due - perf_counter()) > EARLY_S:
                self._timer = self._loop.call_later(wait, self._send_due)
                return
            self._n += 1
            self._connection.send(data)
            sent = perf_counter()
            self._first = self._first or sent
        self._connection.answer = None
        self._log.end(self._item, self._received, self._first, sent)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop if it is installed, else asyncio's own, which answers half as many."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def serve() -> None:
    """Listen on a free port, print it, and end when the standard input is closed."""
    loop = asyncio.get_running_loop()
    logs: dict[str, Log] = {}
    server = await loop.create_server(lambda: Connection(logs, loop), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.buffer.read)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve())
