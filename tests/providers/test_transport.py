"""Our transport: connections, framing, limits, ends, and its recorded times; httpx2's client reads the answers."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import zlib
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from pytest_openclaw.providers import connection, stream, transport
from pytest_openclaw.providers.by_httpx2 import _Stream
from pytest_openclaw.providers.http import _Direct
from pytest_openclaw.providers.http_errors import (
    ConnectError,
    ConnectTimeout,
    HttpError,
    NetworkError,
    ProtocolError,
)
from pytest_openclaw.providers.stream import EventReader
from pytest_openclaw.providers.transport import Outgoing, Sending, Transport
from pytest_openclaw.providers.wire_errors import load_object
from pytest_openclaw.types.requests import Request
from tests.providers.servers.apis import CHAT, ask
from tests.providers.servers.misbehaving import (
    Close,
    Hang,
    Pause,
    Reset,
    Script,
    Wait,
    chunk,
    head,
    unused_port,
)

OK = Script.answer(b"ok")
#: only against hangs
BOUND_S = 120.0


def sending():
    """The sending of a request, which nothing waits for."""
    return Sending(lambda _: None)


class OverOurs(httpx2.AsyncBaseTransport):
    """Our transport as one of httpx2's; a response has `answer` in its extensions."""

    def __init__(self, connect_s=BOUND_S, **options):
        self.ours = Transport(connect_s=connect_s, **options)

    async def handle_async_request(self, request):
        """Send a request, and give back its answer."""
        headers = {name: value for name, value in request.headers.items() if name != "host"}
        outgoing = Outgoing(str(request.url), headers, None)
        answer = await self.ours.send(outgoing, request.extensions.get("sending", sending()))
        head = answer.head
        extensions = {"answer": answer, "reason_phrase": head.phrase.encode()}
        headers = httpx2.Headers(head.headers, encoding="utf-8")
        return httpx2.Response(head.status, headers=headers, stream=_Stream(answer), extensions=extensions)

    async def aclose(self):
        """Close the connections."""
        await self.ours.aclose()


async def pieces(answer):
    """Yield the pieces of an answer's body, with their times."""
    while arrived := await answer.read():
        for piece in arrived:
            yield piece


@asynccontextmanager
async def a_client(**options):
    """A client over our transport, closed at the end."""
    over_ours = OverOurs(**options)
    async with httpx2.AsyncClient(transport=over_ours, timeout=None) as client:
        yield client
    assert not over_ours.ours._open


def get(url, **options):
    """Send one request, and return the response with its body."""

    async def getting():
        async with a_client(**options) as client:
            return await client.get(url)

    return asyncio.run(asyncio.wait_for(getting(), BOUND_S))


def asked(work):
    """Run `work(client)` in a separate loop, with a time limit."""

    async def asking():
        async with a_client() as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(asking(), BOUND_S))


# --- framing --------------------------------------------------------------------------------------


def framed(*lines, body=b"ok", end=b"\r\n"):
    """A head of these lines, a blank line, and a body."""
    return end.join((*lines, b"", body))


LENGTH = b"Content-Length: 2"
STATUS = b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(framed(STATUS, LENGTH), id="length"),
        pytest.param(framed(STATUS, LENGTH, end=b"\n"), id="bare-line-feeds"),
        pytest.param(framed(b"HTTP/1.1 200", LENGTH), id="no-words"),
        pytest.param(framed(STATUS, b"A: folded", b"  line", LENGTH), id="folded-header"),
        pytest.param(framed(STATUS, b"A: b\x01\xe9", LENGTH), id="odd-header"),
        pytest.param(framed(STATUS, b"Transfer-Encoding: chunked", body=chunk(b"ok") + chunk(b"")), id="chunked"),
        pytest.param(
            framed(STATUS, b"Transfer-Encoding: Chunked", body=b"1;x=y\r\no\r\n1  \r\nk\r\n0\r\nTrailer: t\r\n\r\n"),
            id="extensions-blanks-and-trailers",
        ),
        pytest.param(
            framed(STATUS, b"Content-Length: 99", b"Transfer-Encoding: chunked", body=chunk(b"ok") + chunk(b"")),
            id="length-beside-chunks",
        ),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + framed(STATUS, LENGTH), id="continue"),
        pytest.param(
            framed(b"HTTP/1.1 103 Early Hints", b"Content-Length: 9", body=b"") + framed(STATUS, LENGTH),
            id="early-hints",
        ),
        pytest.param(framed(STATUS, b"Upgrade: h2c", b"Connection: Upgrade", LENGTH), id="upgrade-offered"),
        pytest.param(b"\r\n" + framed(STATUS, LENGTH), id="blank-line-first"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "byte-by-byte"])
def test_answers_as_servers_write_them(server, answer, cut):
    """An answer that other clients accept is accepted, however it is cut, and the connection is reused."""
    steps = [step for byte in answer for step in (bytes([byte]), Pause(0.0005))] if cut else [answer]
    server.enqueue(Script.of(*steps), OK)

    async def twice(client):
        return await client.get(server.origin), await client.get(server.origin)

    first, second = asked(twice)

    assert (first.status_code, first.content, second.content) == (200, b"ok", b"ok")
    assert "trailer" not in first.headers
    assert server.connections == 1


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        pytest.param(framed(STATUS), b"ok", id="no-length"),
        pytest.param(framed(b"HTTP/1.0 200 OK"), b"ok", id="http-1.0"),
        pytest.param(framed(STATUS, b"Transfer-Encoding: identity"), b"ok", id="identity"),
        pytest.param(framed(STATUS, b"Connection: close", body=b""), b"", id="empty"),
    ],
)
def test_a_body_without_length_ends_with_the_connection(server, answer, body):
    """That is its regular end."""
    server.enqueue(Script.of(answer, Pause(0.05), Close()))

    assert get(server.origin).content == body


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((framed(STATUS, b"Content-Length: 3"), Close()), id="length"),
        pytest.param((framed(STATUS, b"Transfer-Encoding: chunked", body=chunk(b"ok")), Close()), id="chunks"),
        pytest.param((framed(STATUS, b"Transfer-Encoding: chunked", body=b"5\r\nok"), Close()), id="in-a-chunk"),
        pytest.param((framed(STATUS, b"Transfer-Encoding: chunked", body=b"zz"), Hang()), id="no-chunk"),
    ],
)  # fmt: skip
def test_a_cut_body_is_an_error(server, steps):
    """A body that ends before its declared end is incomplete."""
    server.enqueue(Script.of(*steps))

    with pytest.raises(ProtocolError):
        get(server.origin)


def test_what_came_before_a_cut_is_given(server):
    """The error comes after the last piece, not instead of it."""
    server.enqueue(Script.of(framed(STATUS, b"Content-Length: 3"), Close()))

    async def reading(client):
        async with client.stream("GET", server.origin) as response:
            body = pieces(response.extensions["answer"])
            data, _ = await anext(body)
            with pytest.raises(ProtocolError):
                await anext(body)
        return data

    assert asked(reading) == b"ok"


@pytest.mark.parametrize(
    ("steps", "error", "text"),
    [
        pytest.param((Close(),), ProtocolError, "without sending", id="closed"),
        pytest.param((b"HTTP/1.1 200 OK\r\n", Close()), ProtocolError, "without sending", id="in-the-head"),
        pytest.param((b"HTTP/1.1 100 Continue\r\n\r\n", Close()), ProtocolError, "without sending", id="after-a-notice"),
        pytest.param((Reset(),), NetworkError, "reset by peer", id="reset"),
        pytest.param((b"SSH-2.0-x\r\n",), ProtocolError, "SSH-2.0-x", id="ssh"),
        pytest.param((b"HTTP/1.1 200 OK\r\nA B: c\r\n\r\n",), ProtocolError, "Invalid header", id="bad-header"),
        pytest.param((b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",), ProtocolError, "protocol", id="switch"),
    ],
)  # fmt: skip
def test_no_answer(server, steps, error, text):
    """A head that is cut or invalid is reported with its reason."""
    server.enqueue(Script.of(*steps))

    with pytest.raises(error, match=text):
        get(server.origin)


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(b"x-more: and more\r\n", id="headers"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n", id="notices"),
    ],
)
def test_a_head_without_end_is_refused(server, monkeypatch, flood):
    """A server cannot fill the memory with an invalid answer."""
    monkeypatch.setattr(connection, "MOST_FRAMING_BYTES", 10_000)
    first = b"" if flood.startswith(b"HTTP") else STATUS + b"\r\n"
    server.enqueue(Script.of(first, *[flood * 100] * 100, Hang()))

    with pytest.raises(ProtocolError, match="KiB without an answer"):
        get(server.origin)


def test_a_chunk_extension_without_end_is_refused(server, monkeypatch):
    """The same holds for bytes between the pieces of a body."""
    monkeypatch.setattr(connection, "MOST_FRAMING_BYTES", 10_000)
    server.enqueue(
        Script.of(head(transfer_encoding="chunked"), chunk(b"ok"), b"1;", *[b"x" * 1000] * 100, Hang())
    )

    with pytest.raises(ProtocolError, match="KiB without an answer"):
        get(server.origin)


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nx: y", "a\0b"])
def test_a_header_cannot_become_two(server, value):
    """A line break in a value is refused before anything is sent."""

    async def asking(client):
        await client.get(server.origin, headers={"a": value})

    with pytest.raises(HttpError):
        asked(asking)
    assert server.connections == 0


# --- connections ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(framed(STATUS, LENGTH) + b"more", id="rubbish"),
        pytest.param(framed(STATUS, LENGTH) + framed(STATUS, LENGTH, body=b"no"), id="second-answer"),
        pytest.param(framed(STATUS, b"Connection: close", LENGTH), id="close"),
        pytest.param(framed(b"HTTP/1.0 200 OK", LENGTH), id="http-1.0"),
    ],
)
def test_a_connection_that_cannot_be_trusted_is_not_used_again(server, answer):
    """Data after an answer's end belongs to no request; it spoils the connection, not the answer."""
    server.enqueue(Script.of(answer), OK)

    async def twice(client):
        return [(await client.get(server.origin)).content for _ in range(2)]

    assert asked(twice) == [b"ok", b"ok"]
    assert server.connections == 2


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((Close(),), id="closed"),
        pytest.param((b"HTTP/1.1 408 Timeout\r\n\r\n", Hang()), id="talks"),
    ],
)
def test_a_kept_connection_is_dropped_as_soon_as_it_ends(server, steps):
    """If a server closes a free connection, or sends unrequested bytes, it is not used again."""
    go_on = threading.Event()
    server.enqueue(Script.of(*OK.steps, Wait(go_on), *steps), OK)

    async def twice(client):
        again = sending()
        await client.get(server.origin)
        go_on.set()
        async with asyncio.timeout(BOUND_S):
            while client._transport.ours._open:
                await asyncio.sleep(0.01)
        await client.get(server.origin, extensions={"sending": again})
        return again.over_new_connection

    assert asked(twice)
    assert server.connections == 2


def test_a_connection_is_not_kept_for_ever(server, monkeypatch):
    """A firewall silently forgets an idle connection; it is not reused after a while."""
    monkeypatch.setattr(transport, "KEPT_S", 0.0)
    server.on("*", OK)

    async def twice(client):
        return [(await client.get(server.origin)).content for _ in range(2)]

    assert asked(twice) == [b"ok", b"ok"]
    assert server.connections == 2


def test_a_sending_says_whether_a_connection_was_opened(server):
    """This distinguishes a lost kept connection from a lost server; both requests say when they were sent."""
    server.on("*", OK)
    moments = []

    async def twice(client):
        both = [Sending(moments.append), Sending(moments.append)]
        for one in both:
            await client.get(server.origin, extensions={"sending": one})
        return [one.over_new_connection for one in both]

    assert asked(twice) == [True, False]
    assert len(moments) == 2


def test_a_request_may_want_its_connection_closed(server):
    """`Connection: close` in a request ends the connection with the answer."""
    server.on("*", OK)

    async def twice(client):
        for _ in range(2):
            await client.get(server.origin, headers={"connection": "close"})

    asked(twice)

    assert server.connections == 2


def test_an_answer_that_is_given_up_closes_its_connection(server):
    """The remaining bytes must not be mistaken for the next answer."""
    server.enqueue(Script.stream(b"first", Hang()), OK)

    async def given_up(client):
        async with client.stream("GET", server.origin) as response:
            await anext(aiter(response.aiter_bytes()))
        (given_up,) = client._transport.ours._open
        await asyncio.wait_for(given_up.lost, BOUND_S)
        return (await client.get(server.origin)).content

    assert asked(given_up) == b"ok"
    assert server.connections == 2


def test_closing_ends_what_is_under_way(server):
    """A closed transport leaves nothing open, and pending readers get an error."""
    server.on("*", Script.of(Hang()))

    async def closed():
        over_ours = OverOurs()
        client = httpx2.AsyncClient(transport=over_ours, timeout=None)
        waiting = [asyncio.create_task(client.get(server.origin)) for _ in range(3)]
        await asyncio.to_thread(server.wait_for, lambda: server.in_flight == 3)
        await over_ours.aclose()
        return await asyncio.gather(*waiting, return_exceptions=True), over_ours.ours._open

    errors, left = asyncio.run(asyncio.wait_for(closed(), BOUND_S))

    assert [type(error) for error in errors] == [ProtocolError] * 3
    assert not left


def test_reading_ahead_is_bounded(server, monkeypatch):
    """A server that is faster than its reader waits; nothing is lost."""
    monkeypatch.setattr(connection, "MOST_UNREAD_BYTES", 100_000)
    piece, count = b"x" * 50_000, 400
    server.enqueue(Script.stream(*[piece] * count))

    async def slowly(client):
        async with client.stream("GET", server.origin) as response:
            answer = response.extensions["answer"]
            while answer._unread <= 100_000:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)  # more would arrive in this time
            ahead = answer._unread
            return ahead, sum([len(data) async for data in response.aiter_bytes()])

    ahead, total = asked(slowly)

    assert 100_000 < ahead <= 100_000 + transport.BUFFER_BYTES
    assert total == len(piece) * count


# --- who is there ---------------------------------------------------------------------------------


def resolved(monkeypatch, *addresses):
    """Let every name resolve to these addresses."""

    def look_up(host, port, *args, **kwargs):
        families = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(families[":" in a], socket.SOCK_STREAM, 6, "", (a, port)) for a in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def os_errors(error):
    """The operating system's errors behind one of ours."""
    cause = error.__cause__
    return [type(one) for one in (cause.exceptions if isinstance(cause, BaseExceptionGroup) else [cause])]


@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("127.0.0.1", "127.0.0.2"), ("::1", "127.0.0.1")])
def test_refused_by_every_address(monkeypatch, addresses):
    """However many addresses a name has, a refusal is seen as one."""
    resolved(monkeypatch, *addresses)

    with unused_port() as port, pytest.raises(ConnectError) as caught:
        get(f"http://box.invalid:{port}/")

    assert ConnectionRefusedError in os_errors(caught.value)


def test_a_refusing_address_is_passed_over(server, monkeypatch):
    """If one address of a name refuses, the next one is tried."""
    resolved(monkeypatch, "127.0.0.9", "127.0.0.1")
    server.on("*", OK)

    assert get(f"http://box.invalid:{server.port}/").content == b"ok"


def test_a_host_that_is_no_name():
    """A label that is too long for a name server is an unknown host."""
    with pytest.raises(ConnectError) as caught:
        get(f"http://{'x' * 70}.invalid/")

    assert os_errors(caught.value) == [socket.gaierror]


def test_a_connection_that_does_not_come_about(monkeypatch):
    """Connecting has its own limit, and its error differs from the system's."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: time.sleep(0.3) or [])

    with pytest.raises(ConnectTimeout):
        get("http://box.invalid/", connect_s=0.05)


def test_the_systems_own_timeout_is_no_limit_of_ours(monkeypatch):
    """ETIMEDOUT, which Python calls a TimeoutError too, keeps its cause."""

    def look_up(*args, **kwargs):
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    with pytest.raises(ConnectError) as caught:
        get("http://box.invalid/")

    assert caught.value.__cause__.errno == errno.ETIMEDOUT


# --- TLS ------------------------------------------------------------------------------------------

CERTIFICATE = Path(__file__).parent / "servers" / "loopback.pem"


@contextmanager
def tls_server(*answers):
    """A TLS server that gives each connection one of the answers and closes without a close_notify."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    protocols = []

    def serve():
        for answer in answers:
            plain, _ = listener.accept()
            with suppress(OSError), context.wrap_socket(plain, server_side=True) as wrapped:
                protocols.append(wrapped.selected_alpn_protocol())
                while not wrapped.recv(65536).endswith(b"\r\n\r\n"):
                    pass
                wrapped.sendall(answer)
                socket.socket.shutdown(wrapped, socket.SHUT_WR)

    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/", protocols
        thread.join(10)


def trusting():
    """A context that trusts the test's own certificate."""
    return ssl.create_default_context(cafile=CERTIFICATE)


def test_tls():
    """A TLS server is asked with the certificates that were given, in HTTP/1.1."""
    with tls_server(framed(STATUS, LENGTH)) as (url, protocols):
        assert get(url, ssl_context=trusting()).content == b"ok"

    assert protocols == ["http/1.1"]


def test_a_large_body_over_tls():
    """Bytes received together with the connection's end are not lost."""
    body = bytes(range(256)) * 40_000
    answer = framed(STATUS, b"Content-Length: %d" % len(body), body=body)
    with tls_server(answer) as (url, _):

        async def busy():
            async with a_client(ssl_context=trusting()) as client, client.stream("GET", url) as response:
                received = []
                async for data in response.aiter_bytes():
                    received.append(data)
                    if sum(map(len, received)) < len(body) - 2_000_000:
                        time.sleep(0.005)  # so that much has arrived when the loop looks at the socket
                return b"".join(received)

        assert asyncio.run(asyncio.wait_for(busy(), BOUND_S)) == body


def test_there_is_room_for_all_that_tls_holds():
    """The TLS of asyncio loses bytes that do not fit, if the connection's end came with them."""

    async def room():
        held = connection.Connection(memoryview(bytearray(10)), connection.Bell(), print, print)
        return len(held.get_buffer(-1)), len(held.get_buffer(1000))

    assert asyncio.run(room()) == (10, 1000)


def test_tls_that_ends_without_a_farewell():
    """Many servers end so; it is the end of a body without a length, and a cut in one that has one."""
    with tls_server(framed(STATUS), framed(STATUS, b"Content-Length: 9")) as (url, _):
        assert get(url, ssl_context=trusting()).content == b"ok"
        with pytest.raises(ProtocolError):
            get(url, ssl_context=trusting())


def test_an_unknown_certificate_is_refused():
    """Without trust nothing is sent, and the cause says why."""
    with tls_server(b"") as (url, _), pytest.raises(ConnectError) as caught:
        get(url, ssl_context=ssl.create_default_context())

    assert os_errors(caught.value) == [ssl.SSLCertVerificationError]


URLS = [
    "http://127.0.0.1:11434/v1/chat/completions", "http://box/v1", "http://box:80/v1", "https://box:443/a/b",
    "http://box:08/v1", "http://box:65535/v1", "http://a-b.example.com/", "http://box/v1//models/",
    "http://box", "http://box?a=b", "http://box/a?b=c&d#e", "http://box/a/../b", "http://box/a/./b",
    "http://box/.hidden", "http://Box/A", "HTTP://box/a", "http://[::1]:8000/v1", "http://me:secret@box/v1",
    "http://box/a%20b", "http://box/a%zz", "http://box/a b", "http://box/{x}", "http://bücher.example/é",
    "http://box/models/qwen3:8b@main", "http://box/~a/!$&'()*+,;=-_.",
]  # fmt: skip


@pytest.mark.parametrize("url", URLS)
def test_a_url_leads_where_httpx2_says(monkeypatch, url):
    """Plain ones are read without it."""
    transport._place_of.cache_clear()
    ours = transport._place_of(url)
    monkeypatch.setattr(transport, "_PLAIN_URL", re.compile("(?!)"))
    transport._place_of.cache_clear()

    assert ours == transport._place_of(url)
    transport._place_of.cache_clear()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:65536/", "http://127.0.0.1:99999/v1", "http:///v1", "ftp://127.0.0.1/"]
)
def test_what_is_no_url_is_an_error(url):
    """Nothing is sent to anywhere."""
    with pytest.raises(HttpError):
        get(url)


def test_a_plain_server_is_asked_without_httpx2(server):
    """It takes 20 ms and 3 MB to load, in a process that starts for each run."""
    server.on("*", Script.answer(CHAT.whole()))
    code = (
        "import asyncio, sys; from pytest_openclaw.asking import asker_process;"
        "from pytest_openclaw.providers.ollama_openai import OllamaOpenAI;"
        "from pytest_openclaw.types.protocols import ProviderSetup; from pytest_openclaw.types.requests import Request;"
        "provider = OllamaOpenAI(ProviderSetup(name='a', base_url=sys.argv[1]));"
        "print(asyncio.run(provider.ask(Request(model='m', prompt='hello'))).text, 'httpx2' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, server.url], capture_output=True, text=True, timeout=600
    )

    assert done.stdout == "Hi. False\n", done.stderr


def test_https_is_never_sent_in_plain(server):
    """A transport without certificates sends no request to an https address."""
    with pytest.raises(HttpError):
        get(f"https://127.0.0.1:{server.port}/")
    assert server.connections == 0


# --- cookies --------------------------------------------------------------------------------------


def test_a_cookie_is_neither_kept_nor_sent_back(api, server):
    """State that a server stores with one cell would change the next one."""
    server.on("*", Script.answer(api.whole(), set_cookie="session=1; Path=/; Max-Age=9999"))
    provider = api.provider(server.url)

    async def twice():
        for _ in range(2):
            await provider.ask(Request(model="m", prompt="Hi", stream=False))
        await provider.aclose()

    asyncio.run(twice())

    assert [request.headers.get("cookie") for request in server.requests] == [None, None]


# --- times ----------------------------------------------------------------------------------------

LATE_S = 0.4


def read_late(server, first, second, **headers):
    """Read two pieces after both have arrived: the moments between which each arrived, and all data."""
    go_on = threading.Event()
    server.enqueue(Script.stream(first, Wait(go_on), second, **headers))

    async def more_than(answer, unread_bytes):
        while answer._unread <= unread_bytes:
            await asyncio.sleep(0.005)
        return time.perf_counter()

    async def late():
        began = time.perf_counter()
        ours = Transport(connect_s=BOUND_S)
        answer = await _Direct(ours).send(Outgoing(server.origin, {}, None), sending())
        arriving = getattr(answer, "_arriving", answer)
        between = await more_than(arriving, 0)
        go_on.set()
        after = await more_than(arriving, arriving._unread)
        found = [piece async for piece in pieces(answer)]
        await ours.aclose()
        return (began, between, after), found

    return asyncio.run(asyncio.wait_for(late(), BOUND_S))


def test_pieces_keep_the_time_of_their_arrival(server):
    """However late the reader is, each piece has its own time; pieces read together stay separate."""
    (began, between, after), found = read_late(server, b"one", b"two")

    assert [data for data, _ in found] == [b"one", b"two"]
    (_, first), (_, second) = found
    assert began < first < between < second < after


def test_pieces_of_a_compressed_body_keep_their_times(server):
    """The time of decompression is not the time of arrival."""
    packer = zlib.compressobj(wbits=31)
    parts = [packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH) for text in (b"one", b"two")]

    (began, between, after), found = read_late(server, *parts, content_encoding="gzip")

    assert b"".join(data for data, _ in found) == b"onetwo"
    assert began < found[0][1] < between < found[-1][1] < after


def test_a_busy_reader_does_not_delay_the_times_of_others(server):
    """All sockets that are ready are dated before any reader parses the data."""
    go_on, many = threading.Event(), 16
    parsing_from = []
    server.on("*", Script.stream(b"first", Wait(go_on), b"second"))

    async def read(client, started):
        async with client.stream("GET", server.origin) as response:
            body = pieces(response.extensions["answer"])
            await anext(body)
            await started.wait()
            _, arrived_at = await anext(body)
            parsing_from.append(time.perf_counter())
            time.sleep(0.01)  # a slow parser that blocks the loop
            await body.aclose()
            return arrived_at

    async def all_of_them(client):
        started = asyncio.Barrier(many + 1)
        reads = [asyncio.create_task(read(client, started)) for _ in range(many)]
        await started.wait()
        go_on.set()
        # Without the loop, so that all sockets are ready when it looks at them.
        server.wait_for(lambda: server.in_flight == 0)
        return await asyncio.gather(*reads)

    arrivals = asked(all_of_them)

    assert max(arrivals) <= min(parsing_from)


def test_few_readers_are_woken_at_a_time():
    """Between two batches the loop looks at its sockets; a reader that was cancelled delays no other."""

    async def woken():
        bell, loop = connection.Bell(), asyncio.get_running_loop()
        readers = [loop.create_future() for _ in range(3 * connection.MOST_WOKEN)]
        readers[connection.MOST_WOKEN].cancel()
        for reader in readers:
            bell.ring(reader)
        counts = []
        for _ in range(4):
            counts.append(sum(reader.done() for reader in readers))
            await asyncio.sleep(0)
        return counts

    few = connection.MOST_WOKEN
    assert asyncio.run(woken()) == [few + 1, 2 * few, 3 * few, 3 * few]


def test_the_clock_starts_at_the_send(api, server, monkeypatch):
    """Name resolution and connecting are not the model's latency."""
    look_up = socket.getaddrinfo

    def slowly(host, *args, **kwargs):
        time.sleep(LATE_S)
        return look_up("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    server.on("*", Script.stream(api.text("Hi."), api.end()))
    before = time.perf_counter()

    reply = ask(api.provider(f"http://localhost:{server.port}/v1"))

    took_ms = (time.perf_counter() - before) * 1000
    assert took_ms > LATE_S * 1000
    assert reply.timing.e2e_ms < took_ms - 0.9 * LATE_S * 1000


def test_tokens_are_dated_by_their_bytes(api, server, monkeypatch):
    """A slow reader makes neither the first token nor the end later."""
    feed = EventReader.feed

    def slow_feed(self, data):
        time.sleep(LATE_S)
        return feed(self, data)

    monkeypatch.setattr(EventReader, "feed", slow_feed)
    server.on("*", Script.stream(api.text("Hi."), Pause(0.05), api.end()))
    before = time.perf_counter()

    reply = ask(api.provider(server.url))

    took_ms = (time.perf_counter() - before) * 1000
    assert took_ms > LATE_S * 1000
    assert reply.timing.ttft_ms <= reply.timing.e2e_ms < took_ms - 0.9 * LATE_S * 1000


def test_a_whole_answer_is_dated_by_its_bytes(api, server, monkeypatch):
    """The end of an answer that is not streamed is the arrival of its last bytes."""
    monkeypatch.setattr(stream, "load_object", lambda text: time.sleep(LATE_S) or load_object(text))
    server.on("*", Script.answer(api.whole()))
    before = time.perf_counter()

    reply = ask(api.provider(server.url), stream=False)

    assert reply.timing.e2e_ms < (time.perf_counter() - before - 0.9 * LATE_S) * 1000


def test_by_a_proxy_times_are_taken_when_reading(api, server, monkeypatch):
    """httpx2's own transport, used for proxies, reports the send; a token's time is that of its reading."""
    feed, go_on = EventReader.feed, threading.Event()

    def feed_and_go_on(self, data):
        found = feed(self, data)
        time.sleep(0 if go_on.is_set() else LATE_S)
        go_on.set()
        return found

    monkeypatch.setattr(EventReader, "feed", feed_and_go_on)
    monkeypatch.setenv("HTTP_PROXY", server.origin)
    server.on("*", Script.stream(api.text("Hi."), Wait(go_on), api.end()))

    reply = ask(api.provider("http://box.invalid/v1", **{api.key_env: "a-key"}))

    assert 0 <= reply.timing.ttft_ms <= reply.timing.e2e_ms - LATE_S * 1000


@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_a_server_that_the_proxy_is_not_for_is_asked_directly(api, server, monkeypatch, name):
    """A host that the environment exempts from the proxy is reached directly."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv(name, "box.invalid")
    monkeypatch.delattr(httpx2.AsyncHTTPTransport, "handle_async_request")
    resolved(monkeypatch, "127.0.0.1")
    server.on("*", Script.answer(api.whole()))

    reply = ask(api.provider(f"http://box.invalid:{server.port}/v1", **{api.key_env: "a-key"}))

    assert reply.text == "Hi."
    assert server.requests[0].path == api.path


def test_a_clock_that_jumps_moves_no_row(api, server, monkeypatch):
    """Rows of one process keep their order when the system's clock is set back."""
    server.on("*", Script.answer(api.whole()))
    before = ask(api.provider(server.url), stream=False).timing
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86_400)

    after = ask(api.provider(server.url), stream=False).timing

    assert before.ended_at_ms <= after.started_at_ms + 1
    assert abs(after.started_at_ms / 1000 - now) < 60
