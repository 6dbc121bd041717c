"""The bare loops that a careful user writes by hand, one per client library; each in a separate process.

`python -m tests.performance.clients NAME BASE_URL N CONCURRENCY FILE` asks for N items with this many tasks
that take them from a queue. Each call streams, reads every line, checks the answer and writes a line of
JSON with its times; a wrong answer ends the program with an error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit


def answer_to(item: str) -> str:
    """The right answer for an item."""
    return f"HEARTBEAT_OK {item}"


def prompt_of(item: str) -> str:
    """The prompt of an item."""
    return f"Reply with exactly: {answer_to(item)}"


def items(n: int) -> list[str]:
    """The names of `n` items."""
    return [f"item-{i:06d}" for i in range(n)]


def body_of(item: str) -> dict[str, Any]:
    """The request that every client sends."""
    return {
        "model": "mock",
        "messages": [{"role": "user", "content": prompt_of(item)}],
        "temperature": 0,
        "max_tokens": 1024,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


class RecordedRun:
    """A reply during its arrival, line by line."""

    def __init__(self) -> None:
        self.began = perf_counter()
        self.text = ""
        self.ttft_ms: float | None = None

    def line(self, line: str | bytes) -> None:
        """Read a line of the stream."""
        if not line:
            return
        payload = line[5:].strip()
        if payload in ("[DONE]", b"[DONE]"):
            return
        for choice in json.loads(payload)["choices"]:
            if content := choice["delta"].get("content"):
                if self.ttft_ms is None:
                    self.ttft_ms = (perf_counter() - self.began) * 1000
                self.text += content

    def row(self, item: str) -> str:
        """Return the row; the reply has ended now."""
        e2e_ms = (perf_counter() - self.began) * 1000
        if self.text != answer_to(item):
            raise SystemExit(f"{item} was answered {self.text!r}")
        return json.dumps({"item": item, "passed": True, "ttft_ms": self.ttft_ms, "e2e_ms": e2e_ms}) + "\n"


Ask = Callable[[str], Awaitable[str]]


@asynccontextmanager
async def over_httpx2(base: str, concurrency: int) -> AsyncIterator[Ask]:
    """One shared client, as its documentation advises, with enough connections for all calls."""
    import httpx2

    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as client:

        async def ask(item: str) -> str:
            received = RecordedRun()
            async with client.stream("POST", f"{base}/chat/completions", json=body_of(item)) as response:
                response.raise_for_status()
                async for line in response.aiter_lines():
                    received.line(line)
            return received.row(item)

        yield ask


@asynccontextmanager
async def over_aiohttp(base: str, concurrency: int) -> AsyncIterator[Ask]:
    """One shared session."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, raise_for_status=True) as session:

        async def ask(item: str) -> str:
            received = RecordedRun()
            async with session.post(f"{base}/chat/completions", json=body_of(item)) as response:
                async for line in response.content:
                    received.line(line.strip())
            return received.row(item)

        yield ask


@asynccontextmanager
async def over_asyncio(base: str, concurrency: int) -> AsyncIterator[Ask]:
    """The floor: asyncio's protocol and httptools' parser alone, without a client."""
    import httptools

    url = urlsplit(base)
    host, port = url.hostname or "", url.port or 80
    idle: list[Wire] = []
    loop = asyncio.get_running_loop()
    head = f"POST {url.path}/chat/completions HTTP/1.1\r\nhost: {url.netloc}\r\ncontent-type: application/json\r\n"

    class Wire(asyncio.Protocol):
        """A connection with one request at a time."""

        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            self.parser = httptools.HttpResponseParser(self)

        def ask(self, item: str) -> asyncio.Future[str]:
            body = json.dumps(body_of(item)).encode()
            self.item, self.rest, self.received, self.row = item, b"", RecordedRun(), loop.create_future()
            self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            return self.row

        def data_received(self, data: bytes) -> None:
            self.parser.feed_data(data)

        def on_body(self, data: bytes) -> None:
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                self.received.line(line)

        def on_message_complete(self) -> None:
            self.parser = httptools.HttpResponseParser(self)
            self.row.set_result(self.received.row(self.item))

        def connection_lost(self, exc: Exception | None) -> None:
            if not self.row.done():
                self.row.set_exception(exc or ConnectionError("closed"))

    async def ask(item: str) -> str:
        if idle:
            wire = idle.pop()
        else:
            _, wire = await loop.create_connection(Wire, host, port)
        row = await wire.ask(item)
        idle.append(wire)
        return row

    yield ask
    for wire in idle:
        wire.transport.close()


Client = Callable[[str, int], AbstractAsyncContextManager[Ask]]
CLIENTS: dict[str, tuple[str, Client]] = {
    "httpx2": ("httpx2", over_httpx2),
    "aiohttp": ("aiohttp", over_aiohttp),
    "asyncio": ("httptools", over_asyncio),
}


def installed() -> list[str]:
    """The clients whose library is installed."""
    return [name for name, (library, _) in CLIENTS.items() if find_spec(library)]


async def loop_over(client: Client, base: str, todo: Iterable[str], concurrency: int, out: Path) -> None:
    """Ask for all items with `concurrency` tasks, and write a line for each."""
    queue = iter(todo)  # used in one thread: no lock is needed
    with out.open("w", encoding="utf-8", buffering=1) as file:
        async with client(base, concurrency) as ask, asyncio.TaskGroup() as group:

            async def worker() -> None:
                for item in queue:
                    file.write(await ask(item))

            for _ in range(concurrency):
                group.create_task(worker())


def main() -> None:
    """Run one loop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("base")
    parser.add_argument("n", type=int)
    parser.add_argument("concurrency", type=int)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    client = CLIENTS[asked.client][1]
    asyncio.run(loop_over(client, asked.base, items(asked.n), asked.concurrency, asked.out))


if __name__ == "__main__":
    main()
