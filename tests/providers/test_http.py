"""HTTP: connections, answers that do not come or have a wrong form; for all APIs, streamed and not."""

import asyncio
import errno
import gzip
import socket
import threading
import time
import zlib
from contextlib import suppress
from itertools import pairwise

import pytest

from pytest_openclaw.providers import http
from pytest_openclaw.providers import stream as reading
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import Request
from tests.providers.servers.apis import (
    APIS,
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    ask,
    described,
    prompt_of,
    using,
)
from tests.providers.servers.misbehaving import (
    CERTIFICATE,
    Close,
    Hang,
    MisbehavingServer,
    Pause,
    Raw,
    Reset,
    Script,
    chunk,
    head,
    sse,
    unused_port,
)
from tests.providers.servers.ollama import OLLAMA

MODEL = "/v1beta/models/m"
ROUTES = {
    "ollama_openai": ["/v1/chat/completions"],
    "openai_responses": ["/v1/responses"],
    "anthropic_messages": ["/v1/messages"],
    "gemini": [f"{MODEL}:streamGenerateContent?alt=sse", f"{MODEL}:generateContent"],
    "ollama_native": ["/api/chat"],
}
"""Of a stream, and of a whole answer."""


def test_the_request_on_the_wire(api, stream, server):
    """The prompt goes to the route of the API, with the key in its header, not in the address, and the API's version."""
    server.on("*", Script.stream(api.text("Hi."), api.end()) if stream else Script.answer(api.whole()))

    reply = ask(api.provider(server.url, **{api.key_env: "a-key"}), stream=stream, prompt="Grüße 🦞")

    [request] = server.requests
    path = ROUTES[api.kind.name]
    assert (request.method, request.path) == ("POST", path[0] if stream else path[-1])
    assert prompt_of(request.json) == "Grüße 🦞"
    name, value = api.shown_key("a-key")
    assert request.headers[name] == value
    assert ("authorization" in request.headers) == (name == "authorization")
    assert request.headers.get("anthropic-version") == ("2023-06-01" if api is MESSAGES else None)
    assert api.content_type in request.headers["accept"] or not stream
    assert reply.text == "Hi."


LOST = "the connection was lost before any answer (closed by the server)."


@pytest.mark.parametrize(
    ("script", "failure_type", "why"),
    [
        pytest.param(Script.of(Reset()), "connect_error", LOST, id="reset"),
        pytest.param(Script.of(Close()), "connect_error", LOST, id="closed"),
        pytest.param(Script.of(b"HTTP/1.1 200 OK\r\ncontent-", Close()), "connect_error", LOST, id="closed-in-the-headers"),
        pytest.param(Script.of(b"SSH-2.0\r\n\r\n", Close()), "malformed_response", "the answer cannot be read: no HTTP answer: illegal status line: bytearray(b'SSH-2.0').", id="not-http"),
        *(pytest.param(Script.of(head(transfer_encoding="chunked"), size, Close()), "malformed_response", "", id=f"size-{size!r}") for size in (b"zz\r\n", b"-5\r\n")),
    ],
)  # fmt: skip
def test_no_answer(form, stream, server, script, failure_type, why):
    """A connection that ends before any answer may be retried; an answer that is not HTTP may not."""
    server.enqueue(script)

    fault = ask(form.provider(server.url), stream=stream)

    assert (fault.failure_type, fault.status, fault.raw) == (failure_type, "error", "")
    assert fault.message.startswith(f"{form.kind.name}: {why}")
    assert fault.retryable is (failure_type == "connect_error")
    assert fault.scope == "cell"
    assert fault.timing.ttft_ms is None


def test_no_listener(form, stream):
    """A refused connection marks the whole base URL, without another attempt."""
    with unused_port() as port:
        url = f"http://127.0.0.1:{port}/v1"
        fault = ask(form.provider(url), stream=stream)

    why = f"{form.kind.name}: nothing answers at {form.base(url)} (connection refused)."
    assert described(fault) == ("connect_error", "skipped_unavailable", why, "")
    assert (fault.retryable, fault.scope) == (False, "endpoint")


def failing(error):
    def fail():
        raise error

    return fail


NO_HOST = failing(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
NO_ROUTE = failing(OSError(errno.EHOSTUNREACH, "No route to host"))
NO_FILES = failing(OSError(errno.EMFILE, "Too many open files"))


@pytest.mark.parametrize(
    ("look_up", "status", "why"),
    [
        pytest.param(NO_HOST, "skipped_unavailable", "nothing answers at BASE (unknown host).", id="unknown-host"),
        pytest.param(NO_ROUTE, "skipped_unavailable", "nothing answers at BASE (no route to that host).", id="no-route"),
        pytest.param(NO_FILES, "error", "the connection was lost before any answer (Too many open files).", id="our-own-machine"),
        # A firewall that drops packets does not use up the whole attempt's time.
        pytest.param(lambda: time.sleep(0.5) or [], "skipped_unavailable", "nothing answers at BASE (no connection within 0.1 s).", id="no-reply"),
    ],
)  # fmt: skip
def test_no_connection(form, monkeypatch, look_up, status, why):
    """A missing host marks the whole endpoint; a problem of this machine does not."""
    monkeypatch.setattr(http, "CONNECT_TIMEOUT_S", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: look_up())

    fault = ask(form.provider("http://box.invalid/v1", **{form.key_env: "key"}))

    why = why.replace("BASE", form.base("http://box.invalid/v1"))
    assert described(fault) == ("connect_error", status, f"{form.kind.name}: {why}", "")
    assert fault.scope == ("endpoint" if status == "skipped_unavailable" else "cell")


@pytest.mark.parametrize("variables", [{}, {"http_proxy": "http://\u24db.invalid"}], ids=["server", "proxy"])
def test_a_host_that_is_no_name(form, monkeypatch, variables):
    """An address or a proxy that the HTTP library refuses is unreachable, not an error of ours."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    host = "box.invalid" if variables else "\u24dbocalhost"

    fault = ask(form.provider(f"http://{host}/v1"))

    assert (fault.failure_type, fault.status) == ("connect_error", "skipped_unavailable")


@pytest.mark.parametrize("location", [f"http://{'xn--a.' * 60}/", "http://%xn--a/", ":ws://\\@?"])
def test_a_redirect_to_no_address(form, stream, server, location):
    """It is a fault of the server's answer, whatever the HTTP library raises."""
    server.enqueue(Script.answer(status=307, location=location))

    fault = ask(form.provider(server.url), stream=stream)

    assert fault.failure_type == "malformed_response"


def test_a_request_nested_too_deep(server):
    """An exchange repeats blocks of an answer, which the reader may still have read and no writer can write."""
    deep = []
    for _ in range(100_000):
        deep = [deep]
    call = reading.HttpCall(base_url=server.url, url=server.url, body={"block": deep}, headers={})

    with pytest.raises(CallFailed, match="nested too deep"):
        asyncio.run(http.HttpClient("box").fetch(call, timeout_s=5))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_key_never_follows_to_another_origin(form, stream, server, status):
    """Neither key nor prompt goes to a server that was not named; the fault names the redirect's target."""
    with MisbehavingServer() as other:
        other.on("*", Script.answer(form.whole()))
        location = f"http://user:pw@127.0.0.1:{other.port}/v1/x?token=t"
        server.enqueue(Script.answer(status=status, location=location))

        fault = ask(form.provider(server.url, **{form.key_env: "a-secret-key"}), stream=stream)

        assert other.connections == 0
    assert described(fault) == (
        f"http_{status}",
        "error",
        f"{form.kind.name}: HTTP {status}: redirected to http://127.0.0.1:{other.port}/v1/x, "
        "and no prompt or key is sent there. If it is right, name that address.",
        "",
    )


def test_an_error_whose_body_breaks_off_is_that_error(form, server):
    """The status is known, even if its explanation is lost."""
    server.enqueue(Script.of(head(503, content_length="100", retry_after="7"), b'{"error', Reset()))

    fault = ask(form.provider(server.url))

    assert (fault.failure_type, fault.retryable, fault.retry_after_s) == ("http_503", True, 7.0)


@pytest.mark.parametrize(
    ("body", "content_type", "why"),
    [
        pytest.param(b"", "application/json", "it is empty", id="empty"),
        pytest.param(b'{"choi', "application/json", 'no JSON object: {"choi', id="cut-json"),
        pytest.param(b"[1]", "application/json", "no JSON object: [1]", id="a-list"),
        pytest.param(b"{}", "application/json", "this holds no answer: {}", id="another-object"),
        pytest.param(b"<html><title>Log in</title>", "text/html; charset=utf-8", "a web page, 'Log in'", id="captive-portal"),
    ],
)  # fmt: skip
def test_malformed(form, stream, server, body, content_type, why):
    """A 200 that is not an answer is malformed, and its text is kept."""
    server.enqueue(Script.answer(body, content_type=content_type))

    fault = ask(form.provider(server.url), stream=stream)

    message = f"{form.kind.name}: the answer cannot be read: {why}."
    assert described(fault) == ("malformed_response", "error", message, body.decode())


@pytest.mark.parametrize(
    ("api", "steps"),
    [
        pytest.param(CHAT, (), id="chat"),
        pytest.param(OLLAMA, (), id="ollama"),
        # `[DONE]` is not the end mark of this API.
        pytest.param(RESPONSES, (sse("[DONE]"),), id="responses"),
        pytest.param(MESSAGES, (), id="messages"),
        pytest.param(GEMINI, (), id="gemini"),
    ],
)
def test_a_missing_end_mark(api, server, steps):
    """A stream that ends regularly, but without its end mark, was cut off."""
    server.enqueue(Script.stream(api.text("Hel"), *steps))

    fault = ask(api.provider(server.url))

    why = f"{api.kind.name}: the stream broke: it ended without {api.kind.dialect.end_mark}."
    assert described(fault) == ("stream_error", "error", why, "Hel")


def test_after_the_end_mark_nothing_matters(form, server, monkeypatch):
    """Unreadable events, errors, resets and silence after the end mark change nothing."""
    monkeypatch.setattr(reading, "SILENCE_S", 0.1)
    monkeypatch.setattr(reading, "LINGER_S", 0.1)
    for rest in (
        (sse('{"oops'),),
        (sse({"error": {"message": "late"}}),),
        (Pause(0.05), Reset()),
        (Close(),),
        (Hang(),),
    ):
        server.enqueue(Script.stream(form.text("Hi."), form.end(), *rest))

        reply = ask(form.provider(server.url))

        assert (reply.text, reply.finish_reason, reply.output_tokens) == ("Hi.", "stop", 7)


def test_a_whole_answer_without_a_finish_reason(server):
    """It is complete, because no stream was requested; the row has no reason."""
    server.enqueue(Script.answer({"choices": [{"message": {"content": "Hi."}, "finish_reason": None}]}))

    reply = ask(CHAT.provider(server.url), stream=False)

    assert (reply.text, reply.finish_reason) == ("Hi.", None)


def _raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("size", [1, 1 << 20], ids=["bytes", "whole"])
@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        pytest.param("gzip", gzip.compress, id="gzip"),
        pytest.param("X-GZip", gzip.compress, id="x-gzip"),
        pytest.param("gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]), id="members"),
        pytest.param("gzip", lambda data: gzip.compress(data) + bytes(600), id="padded"),
        pytest.param("deflate", zlib.compress, id="zlib"),
        pytest.param("deflate", _raw_deflate, id="without-a-header"),
    ],
)
def test_compressed_answers(form, server, coding, packed, size):
    """A gateway may compress although no compression is asked for; the pieces may be cut anywhere."""
    body = packed(form.text("Hi.") + form.end())
    parts = (body[start : start + size] for start in range(0, len(body), size))
    server.enqueue(Script.stream(*parts, content_type=form.content_type, content_encoding=coding))

    assert ask(form.provider(server.url)).text == "Hi."


def test_a_large_compressed_answer(form, server):
    """Nothing is lost where a small piece becomes a large text."""
    body = zlib.compress(form.text("ab" * (1 << 20)) + form.end())
    server.enqueue(Script.stream(body, content_type=form.content_type, content_encoding="deflate"))

    assert ask(form.provider(server.url)).text == "ab" * (1 << 20)


@pytest.mark.parametrize("status", [200, 500])
def test_nothing_is_read_after_the_end_of_compressed_data(form, stream, server, status):
    """A decoder that kept it would copy all of it with each of the next chunks."""
    more = chunk(b"x") * 100_000
    first = head(status, transfer_encoding="chunked", content_encoding="gzip") + chunk(gzip.compress(b" "))
    server.enqueue(Script.of(first + chunk(b"x" * (8 << 20)), more, Hang()))

    fault = ask(form.provider(server.url), stream=stream, timeout_s=30.0)

    assert fault.failure_type != "timeout"


@pytest.mark.parametrize(
    ("limit", "body", "why"),
    [
        pytest.param("MOST_BYTES", gzip.compress(b": \n" * (1 << 20)), "it is longer than 1 MiB", id="swells"),
        # What can be decompressed to nothing is limited as it was sent.
        pytest.param("MOST_EVENT_BYTES", b"\x1f\x8b\x08\x08" + bytes(6) + b"A" * (2 << 20), "its compression is broken: it is too long", id="without-a-byte"),
    ],
)  # fmt: skip
def test_a_body_that_swells(form, stream, server, monkeypatch, limit, body, why):
    """The limit applies to the size after decompression."""
    monkeypatch.setattr(reading, limit, 1 << 20)
    server.enqueue(Script.answer(body, content_type="text/event-stream", content_encoding="gzip"))

    fault = ask(form.provider(server.url), stream=stream)

    assert fault.message == f"{form.kind.name}: the answer cannot be read: {why}."


EMPTY_BLOCKS = b"\x1f\x8b\x08" + bytes(6) + b"\x03" + b"\0\0\0\xff\xff" * 1000


@pytest.mark.parametrize(
    ("status", "failure", "why"),
    [
        (200, "malformed_response", "the answer cannot be read: it is compressed more than once."),
        (407, "connect_error", "refuses the request: 407"),
        (429, "http_429", "429"),
        (500, "http_500", "500"),
    ],
)
@pytest.mark.parametrize("coding", ["gzip, gzip", "identity, gzip, deflate", "br,zstd"])
def test_an_answer_that_is_compressed_twice(form, stream, server, coding, status, failure, why):
    """No byte of it is read: its layers could keep the decoders busy without an end. An error has its status."""
    server.enqueue(Script.answer(gzip.compress(EMPTY_BLOCKS), status=status, content_encoding=coding))

    fault = ask(form.provider(server.url), stream=stream)

    assert fault.failure_type == failure
    assert why in fault.message


def _events(*messages, key="message"):
    return sse(*({"choices": [{key: {"tool_calls": calls}}]} for calls in messages))


def _call(arguments, **more):
    return {**more, "function": {"name": "a", "arguments": arguments}}


COSTLY = {
    "gzip": Script.answer(gzip.compress(b": \n" * (8 << 20)), content_type="text/event-stream", content_encoding="gzip"),
    "gzip-of-objects": Script.answer(gzip.compress(b"{}\n" * 360_000), content_encoding="gzip"),
    "titles": Script.answer("<" + "<title>" * 20_000, status=400),
    "unread-calls": Script.answer({"error": "error parsing tool call: raw='" * 40_000}),
    "long-code": Script.answer({"error": {"code": "model " * 400_000}}),
    "lists-of-calls": Script.stream(_events(*([_call("y" * 50_000, index=n)] for n in [*range(200)] * 2), key="delta") + _events(*[[_call("{}")] * 300] * 20)),
    "choices": Script.answer({"choices": [{"delta": {"tool_calls": [_call("{}")] * 300}}] * 700}),
}  # fmt: skip


@pytest.mark.parametrize("answer", COSTLY.values(), ids=COSTLY)
def test_other_requests_go_on_while_an_answer_swells(server, answer):
    """No answer stops the loop for seconds, so that a time limit acts."""
    server.enqueue(answer)
    ticks = [time.monotonic()]

    async def ticking():
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0)

    async def both(provider):
        other = asyncio.create_task(ticking())
        with suppress(CallFailed):
            await provider.ask(Request(model="m", prompt="x"))
        other.cancel()

    using(CHAT.provider(server.url), both)

    assert max(after - before for before, after in pairwise([*ticks, time.monotonic()])) < 6


@pytest.mark.parametrize(
    ("api", "piece"),
    [
        *(pytest.param(api, b"x" * 65536, id=f"{api.kind.name}-a-line") for api in (*APIS, OLLAMA)),
        *(pytest.param(api, b"data: 1\n" * 8192, id=f"{api.kind.name}-many-lines") for api in APIS),
    ],
)
def test_an_event_without_end(api, stream, server, monkeypatch, piece):
    """One event may have a limited share of a body; the text before it is kept."""
    monkeypatch.setattr(reading, "MOST_EVENT_BYTES", 1 << 20)
    server.enqueue(Script.stream(api.text("Hm."), b"data: ", *[piece] * 32, Hang()))

    fault = ask(api.provider(server.url), stream=stream)

    assert (fault.failure_type, fault.raw) == ("malformed_response", "Hm.")
    assert fault.message == (
        f"{api.kind.name}: the answer cannot be read: an event of it is longer than 1 MiB."
    )


def test_a_stream_to_a_whole_request(form, server):
    """An unrequested stream is read too; the lines of Ollama's own API have no time of a first token then."""
    server.enqueue(Script.stream(form.text("Hi."), form.end(), content_type=form.content_type))

    reply = ask(form.provider(server.url), stream=False)

    assert reply.text == "Hi."
    assert (reply.timing.ttft_ms is None) == (form is OLLAMA)


def test_no_proxy_is_used_for_this_machine(form, stream, server, monkeypatch):
    """A proxy of the environment is for servers elsewhere."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    server.on("*", Script.answer(form.whole()))

    assert ask(form.provider(server.url), stream=stream).text == "Hi."


def test_a_proxy_is_used_for_a_server_elsewhere(form, server, monkeypatch):
    """A proxy that is set is needed."""
    monkeypatch.setenv("HTTP_PROXY", server.origin)
    server.on("*", Script.answer(form.whole()))

    reply = ask(form.provider("http://box.invalid/v1", **{form.key_env: "a-key"}))

    assert reply.text == "Hi."
    assert server.requests[0].path == f"http://box.invalid{form.path}"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses(server, monkeypatch, scheme):
    """A 407 is an error of the proxy, and no other cell is sent through it; its text may have the password."""
    monkeypatch.setenv(f"{scheme.upper()}_PROXY", server.origin.replace("//", "//me:pass-word-123@"))
    server.on("*", Script.of(b"HTTP/1.1 407 No pass-word-123 you\r\ncontent-length: 0\r\n\r\n", Close()))

    fault = ask(CHAT.provider(f"{scheme}://box.invalid/v1"))

    assert (fault.failure_type, fault.status, fault.scope) == (
        "connect_error",
        "skipped_unavailable",
        "endpoint",
    )
    assert "the proxy of this machine refuses the request: 407" in fault.message
    assert "pass-word-123" not in repr(fault)


@pytest.mark.parametrize(
    "value",
    ["socks5://127.0.0.1:1", "ftp://127.0.0.1:1", "http://:9", "http://a:b", "http://[::1", "http://a\n"],
)
@pytest.mark.parametrize("variable", ["ALL_PROXY", "https_proxy"])
def test_a_proxy_that_cannot_be_used(form, variable, value):
    """It is an error of the usage that names the variable, and not its value."""
    setup = ProviderSetup(name="lab", base_url="http://box.invalid/v1", environ={variable: value})

    with pytest.raises(TargetError, match=variable) as error:
        form.kind(setup)

    assert value not in str(error.value)


@pytest.mark.parametrize("text", [None, "", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_certificates_that_cannot_be_read(form, text, tmp_path):
    """A missing, an empty and a broken file are errors of the usage; none is read for plain HTTP on this machine."""
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    environ = {"SSL_CERT_FILE": str(path)}
    form.kind(ProviderSetup(name="lab", base_url="http://127.0.0.1:9/v1", environ=environ))

    with pytest.raises(TargetError, match="SSL_CERT_FILE: no certificate can be read from it"):
        form.kind(ProviderSetup(name="lab", base_url="http://box.invalid/v1", environ=environ))
    with pytest.raises(TargetError, match="SSL_CERT_FILE: no certificate can be read from it"):
        form.kind(ProviderSetup(name="lab", base_url="https://127.0.0.1:9/v1", environ=environ))


def test_a_certificate_is_trusted_if_the_environment_names_it(monkeypatch):
    """Also on this machine; else the fault says so, and nothing is tried again."""
    with MisbehavingServer(has_tls=True) as server:
        server.on("*", Script.answer(CHAT.whole("Hi.")))
        refused = ask(CHAT.provider(server.url))
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert ask(CHAT.provider(server.url)).text == "Hi."

    assert (refused.retryable, refused.scope) == (False, "endpoint")
    assert "its certificate is not trusted: self-signed certificate; set SSL_CERT_FILE" in refused.message


NO_RECORD = Raw(b"\x17\x03\x03\x00\x20" + b"x" * 32)


@pytest.mark.parametrize(
    ("steps", "failure_type"),
    [
        pytest.param([], "malformed_response", id="before-the-head"),
        pytest.param([head(content_type="text/event-stream")], "stream_error", id="after-the-head"),
        pytest.param([head(), CHAT.text("Hi.")], "stream_error", id="in-the-answer"),
        pytest.param([head(500)], "http_500", id="in-an-error"),
        pytest.param([head(), CHAT.text("Hi."), CHAT.end()], None, id="after-the-end"),
    ],
)
def test_tls_that_breaks(monkeypatch, steps, failure_type):
    """It is a fault of the cell like any broken connection, and no error of ours; a whole answer counts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with MisbehavingServer(has_tls=True) as server:
        server.on("*", Script.of(*steps, NO_RECORD, Close()))
        result = ask(CHAT.provider(server.url))

    assert getattr(result, "failure_type", None) == failure_type


def test_a_server_without_tls():
    """The fault says what to look at."""

    def answer(listener):
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        fault = ask(CHAT.provider(f"https://127.0.0.1:{listener.getsockname()[1]}"))
        thread.join()

    assert (fault.retryable, "does its address begin with http://?" in fault.message) == (False, True)


def test_connections_are_used_again(form, stream, server, monkeypatch):
    """One provider's calls, one after the other, share a connection."""
    # Even if a busy machine ends the answer late.
    monkeypatch.setattr(reading, "LINGER_S", 60.0)
    answer = Script.stream(form.text("Hi."), form.end()) if stream else Script.answer(form.whole())
    server.on("*", answer)

    async def three_times(provider):
        return [await provider.ask(Request(model="m", prompt="Hi", stream=stream)) for _ in range(3)]

    replies = using(form.provider(server.url), three_times)

    assert [type(reply) for reply in replies] == [Reply] * 3
    assert (server.total, server.connections) == (3, 1)


@pytest.mark.parametrize("end", [Reset(), Close()], ids=["reset", "closed"])
def test_a_kept_connection_may_have_ended(form, server, end):
    """A request over a connection that the server closed is sent over a new one: no fault, no retry."""
    server.enqueue(Script.answer(form.whole()), Script.of(end), Script.answer(form.whole()))

    async def twice(provider):
        return [await provider.ask(Request(model="m", prompt="Hi", stream=False)) for _ in range(2)]

    replies = using(form.provider(server.url), twice)

    assert [reply.text for reply in replies] == ["Hi.", "Hi."]
    assert (server.total, server.connections) == (3, 2)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(Script.of(Hang()), id="before-the-headers"),
        pytest.param(Script.stream(CHAT.text("Hel"), Hang()), id="in-the-stream"),
        pytest.param(Script.of(head(500, content_length="9"), Hang()), id="in-an-error"),
        pytest.param(Script.stream(CHAT.text("Hi."), CHAT.end(), Hang()), id="after-the-end-mark"),
    ],
)
def test_a_cancelled_request_ends_at_once(server, monkeypatch, script):
    """Cancelling ends a request in any state; the result is neither a fault nor a reply."""
    monkeypatch.setattr(reading, "LINGER_S", 60.0)
    server.on(CHAT.path, script)

    async def cancelled(provider):
        asked = asyncio.create_task(provider.ask(Request(model="m", prompt="Hi")))
        await asyncio.to_thread(server.wait_for, lambda: server.in_flight == 1)
        asked.cancel()
        await asyncio.wait([asked])
        return asked.cancelled()

    assert using(CHAT.provider(server.url), cancelled)
