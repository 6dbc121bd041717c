"""A mock of an OpenAI-compatible chat server as a process of its own, and the reader of its log.

Its behavior is part of the base URL, so that one server serves all runs:
`http://127.0.0.1:PORT/run=1,ttft=100,jitter=200,itl=5,n=20/v1` answers with 20 tokens, the first after 100 to
300 ms, the others 5 ms apart. All but `run` are optional, times are ms; by default 5 tokens arrive at once.
The answer to a prompt with `item-000123` is `HEARTBEAT_OK item-000123`. `GET /log/BASE` returns the requests.
A token is up to 1 ms late; the log has the real times, by a clock that the processes of a Linux machine share.
"""

import asyncio
import json
import re
import subprocess
import sys
import urllib.request
import zlib
from collections import defaultdict
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import NamedTuple

ITEM = re.compile(r"item-\d+|$")  # a warm-up names none
LENGTH = re.compile(r"(?i)\r\ncontent-length: *(\d+)")
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
COMPLETION = {"id": "1", "object": "chat.completion", "created": 1, "model": "mock"}
CHUNK = COMPLETION | {"object": "chat.completion.chunk"}


class RunFailed(Exception):
    """A run that does not count, with the reason."""


class Served(NamedTuple):
    """When a request had arrived, its first token and its last byte were sent, in s by `perf_counter`."""

    received: float
    first: float
    last: float


def _event(payload):
    data = b"data: " + (b"[DONE]" if payload is None else json.dumps(payload).encode()) + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


def _delta(delta, finish=None):
    return _event(CHUNK | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _json_response(payload, status=200):
    body = json.dumps(payload).encode()
    head = f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def answer_parts(asked, item, base):
    """Return what to send, and when: in s after the request; the second part has the first token."""
    set_ = {name: float(value) for name, value in (word.split("=") for word in base.split(","))}
    n, itl_ms, text = int(set_.get("n", 5)), set_.get("itl", 0), f"HEARTBEAT_OK {item}"
    # The jitter of an item is the same in every run.
    first_ms = set_.get("ttft", 0) + zlib.crc32(item.encode()) / 2**32 * set_.get("jitter", 0)
    dues = [(first_ms + i * itl_ms) / 1000 for i in range(n)]
    usage = {"usage": {"prompt_tokens": 10, "completion_tokens": n, "total_tokens": 10 + n}}
    if not asked.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return [(0.0, b""), (dues[-1], _json_response(COMPLETION | usage | {"choices": [choice]}))]
    tokens = [text[len(text) * i // n : len(text) * (i + 1) // n] for i in range(n)]
    events = [_delta({"content": token}) for token in tokens]
    events[-1] += _delta({}, "stop") + _event(CHUNK | usage | {"choices": []}) + _event(None) + b"0\r\n\r\n"
    head = STREAM_HEAD + _delta({"role": "assistant", "content": ""})
    at_once = [(0.0, b""), (0.0, head + b"".join(events))]
    return [(0.0, head), *zip(dues, events, strict=True)] if dues[-1] else at_once


async def _serve_client(logs, reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = LENGTH.search(head)
            body = (await reader.readexactly(int(length[1]) if length else 0)).decode()
            received = perf_counter()
            base, _, route = head.split(" ", 2)[1].strip("/").partition("/v1/")
            if route == "chat/completions":
                item = ITEM.findall(body)[0]
                sent = []
                for due, data in answer_parts(json.loads(body), item, base):
                    if (wait := received + due - perf_counter()) > 0:
                        await asyncio.sleep(wait)
                    writer.write(data)
                    sent.append(perf_counter())
                logs[base].append((item, Served(received, sent[1], sent[-1])))
            elif base.startswith("log/"):
                writer.write(_json_response(logs[base.removeprefix("log/")]))
            else:
                writer.write(_json_response({"data": [{"id": "mock"}]}, 200 if route == "models" else 404))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()  # the client has left


async def _serve():
    server = await asyncio.start_server(partial(_serve_client, defaultdict(list)), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)


@contextmanager
def serving():
    command, pipe = [sys.executable, __file__], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()


def read_log(address, base, n):
    """Return the items that were answered under a base; `RunFailed` unless they are `n`, once each."""
    with urllib.request.urlopen(f"{address}/log/{base}", timeout=60) as response:
        answered = [(item, Served(*times)) for item, times in json.load(response) if item]
    if not len(answered) == len(dict(answered)) == n:
        raise RunFailed(f"{n} items: {len(answered)} answers for {len(dict(answered))} of them")
    return dict(answered)


if __name__ == "__main__":
    asyncio.run(_serve())
