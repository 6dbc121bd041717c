"""A real HTTP server in a thread that does exactly what a script says, even if it is wrong.

    with MisbehavingServer() as server:
        server.on("/v1/chat/completions", Script.stream(sse(chunk), Reset()))
        ...ask server.url...
        assert server.requests[0].json["model"] == "m"

A request is answered by the first script left in the queue (`enqueue`), else by the one registered for
its path (`on`, which answers repeatedly; `"*"` matches every path), else by 404. `on` also takes
a function `Request -> Script`. A `Script` is a list of steps; it also defines the bytes of its head, so a
status line can be garbage.

Steps: `Send` bytes, `Pause` for seconds, `Wait` for an event that the test sets, `Reset` the connection
(RST), `Close` it, `Hang` until the server stops. A script that ends without one of the last three keeps
the connection for the next request.

Recorded: `requests` in order of arrival, `total`, `in_flight` now, `most_in_flight` so far, and
`connections` accepted; `wait_for` waits for a condition on them. The server binds to 127.0.0.1 and ends
with the `with` block.
"""

import itertools
import json
import os
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

CERTIFICATE = Path(__file__).with_name("loopback.pem")


@dataclass(frozen=True)
class Send:
    data: bytes


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Wait:
    event: threading.Event


class Reset:
    """End the connection with RST, so that the client reads `ECONNRESET`."""


class Close:
    """End the connection with FIN."""


@dataclass(frozen=True)
class Raw:
    """Send bytes that TLS has not made, also to a client of TLS."""

    data: bytes


class Hang:
    """Send nothing more and keep the connection open until the server stops."""


Step = Send | Pause | Wait | Reset | Close | Raw | Hang


@dataclass(frozen=True)
class Script:
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, *steps):
        return cls(tuple(Send(step) if isinstance(step, bytes) else step for step in steps))

    @classmethod
    def answer(cls, body=b"", status=200, **headers):
        """A whole answer with its length; `content_type="…"` becomes the header `content-type`."""
        if isinstance(body, (dict, list)):
            headers.setdefault("content_type", "application/json")
            body = json.dumps(body)
        data = body.encode() if isinstance(body, str) else body
        headers.setdefault("content_length", str(len(data)))
        return cls.of(head(status, **headers) + data)

    @classmethod
    def stream(cls, *steps, content_type="text/event-stream", **headers):
        """A chunked answer: bytes are one chunk each, and the end is regular unless a step prevents it."""
        framed = [head(content_type=content_type, transfer_encoding="chunked", **headers)]
        framed += [chunk(step) if isinstance(step, bytes) else step for step in steps]
        if not any(isinstance(step, (Reset, Close, Hang)) for step in steps):
            framed.append(chunk(b""))
        return cls.of(*framed)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def json(self):
        return json.loads(self.body)


Answer = Script | Callable[[Request], Script]


class MisbehavingServer:
    def __init__(self, *, has_tls=False):
        self._tls: ssl.SSLContext | None = None
        if has_tls:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(CERTIFICATE)
        self.requests: list[Request] = []
        self.connections = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self._by_path = {}
        self._queue = deque()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._open = set()
        self._threads = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listener.getsockname()[1]

    @property
    def origin(self):
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    @property
    def url(self):
        return f"{self.origin}/v1"

    @property
    def total(self):
        return len(self.requests)

    def on(self, path, answer):
        self._by_path[path] = answer

    def enqueue(self, *scripts):
        self._queue.extend(scripts)

    def wait_for(self, condition, *, timeout_s=60.0):
        latest = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < latest, "the condition did not come about"
            time.sleep(0.005)

    def __enter__(self):
        self._start(self._accept)
        return self

    def __exit__(self, *exc):
        self._stopping.set()
        # On Linux only closing it does not wake a thread in accept().
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread of the server did not end"

    def _start(self, target, *args):
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.add(connection)
            self._start(self._serve, connection)

    def _serve(self, accepted):
        try:
            # Many tests have a peer that disconnects early.
            with (
                suppress(OSError),
                self._opened(accepted) as connection,
                connection.makefile("rb") as received,
            ):
                while (request := _read_request(received)) is not None:
                    if not self._answer(connection, request):
                        break
        finally:
            with self._lock:
                self._open.discard(accepted)
            accepted.close()

    def _opened(self, connection):
        return self._tls.wrap_socket(connection, server_side=True) if self._tls else connection

    def _answer(self, connection, request):
        with self._lock:
            self.requests.append(request)
            answer = self._queue.popleft() if self._queue else self._registered(request)
        script = answer if isinstance(answer, Script) else answer(request)
        with self._counted():
            return all(self._do(connection, step) for step in script.steps)

    def _registered(self, request):
        missing = Script.answer({"error": {"message": "no such route"}}, status=404)
        return self._by_path.get(request.path) or self._by_path.get("*") or missing

    @contextmanager
    def _counted(self):
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            with self._lock:
                self.in_flight -= 1

    def _do(self, connection, step):
        """Do one step; False ends the connection."""
        match step:
            case Send(data):
                connection.sendall(data)
            case Pause(seconds):
                self._stopping.wait(seconds)
            case Wait(event):
                while not event.wait(0.02) and not self._stopping.is_set():
                    pass
            case Raw(data):
                os.write(connection.fileno(), data)
            case Hang():
                self._stopping.wait()
            case Reset():
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                # makefile keeps the socket open beyond close(); detaching the descriptor sends the RST now.
                with self._lock:
                    self._open.discard(connection)
                socket.close(connection.detach())
        return not self._stopping.is_set() and not isinstance(step, (Reset, Close, Hang))


@contextmanager
def unused_port():
    """A port without a listener; it stays reserved, so that no server of another test gets it meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def head(status=200, **headers):
    lines = [f"HTTP/1.1 {status} Whatever"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def sse(*payloads, event=None):
    name = f"event: {event}\n" if event else ""
    texts = (payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads)
    return "".join(f"{name}data: {text}\n\n" for text in texts).encode()


def pieces(data, cuts):
    places = [0, *sorted({cut for cut in cuts if 0 < cut < len(data)}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places) if start < end]


def _read_request(received):
    first = received.readline().decode("latin-1").split()
    if len(first) != 3:
        return None
    headers = {}
    while line := received.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = received.read(int(headers.get("content-length", "0")))
    return Request(method=first[0], path=first[1], headers=headers, body=body)
