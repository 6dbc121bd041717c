"""No answer, an error, a redirect, a broken connection, no end: for all APIs, streamed and not."""

from __future__ import annotations

import errno
import socket
import time

import pytest

from pytest_openclaw.providers import http
from tests.providers.servers.apis import ask, described
from tests.providers.servers.misbehaving import (
    Close,
    MisbehavingServer,
    Reset,
    Script,
    head,
    unused_port,
)


@pytest.mark.parametrize(
    ("script", "failure_type", "why"),
    [
        pytest.param(Script.of(Reset()), "connect_error", "the connection was lost before any answer (closed by the server).", id="reset"),
        pytest.param(Script.of(Close()), "connect_error", "the connection was lost before any answer (closed by the server).", id="closed"),
        pytest.param(Script.of(b"HTTP/1.1 200 OK\r\ncontent-", Close()), "connect_error", "the connection was lost before any answer (closed by the server).", id="closed-in-the-headers"),
        pytest.param(Script.of(b"SSH-2.0\r\n\r\n", Close()), "malformed_response", "the answer cannot be read: no HTTP answer: illegal status line: bytearray(b'SSH-2.0').", id="no-http"),
    ],
)  # fmt: skip
def test_no_answer(form, stream, server, script, failure_type, why):
    """A connection that ends before any answer may be retried; an answer that is not HTTP may not."""
    server.enqueue(script)

    fault = ask(form.provider(server.url), stream=stream)

    assert described(fault) == (failure_type, "error", f"{form.kind.name}: {why}", "")
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


def look_up(monkeypatch, work):
    """Let every look-up of a host do this instead."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: work())


@pytest.mark.parametrize(
    ("error", "status", "why"),
    [
        pytest.param(socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "skipped_unavailable", "nothing answers at BASE (unknown host).", id="unknown-host"),
        pytest.param(OSError(errno.EHOSTUNREACH, "No route to host"), "skipped_unavailable", "nothing answers at BASE (no route to that host).", id="no-route"),
        pytest.param(OSError(errno.EMFILE, "Too many open files"), "error", "the connection was lost before any answer (Too many open files).", id="our-own-machine"),
    ],
)  # fmt: skip
def test_no_connection(form, monkeypatch, error, status, why):
    """A missing host marks the whole endpoint; a problem of this machine does not."""

    def fail():
        raise error

    look_up(monkeypatch, fail)

    fault = ask(form.provider("http://box.invalid/v1", **{form.key_env: "key"}))

    why = why.replace("BASE", form.base("http://box.invalid/v1"))
    assert described(fault) == ("connect_error", status, f"{form.kind.name}: {why}", "")
    assert fault.scope == ("endpoint" if status == "skipped_unavailable" else "cell")


def test_a_host_that_swallows_connections(form, monkeypatch):
    """A firewall that drops packets means no server, and does not use up the whole attempt's time."""
    monkeypatch.setattr(http, "CONNECT_TIMEOUT_S", 0.1)
    look_up(monkeypatch, lambda: time.sleep(0.5) or [])

    fault = ask(form.provider("http://box.invalid/v1", **{form.key_env: "key"}))

    why = f"{form.kind.name}: nothing answers at {form.base('http://box.invalid/v1')} (no connection within 0.1 s)."
    assert described(fault) == ("connect_error", "skipped_unavailable", why, "")


@pytest.mark.parametrize("size", ["zz", "-5"])
def test_a_body_that_is_not_http(form, stream, server, size):
    """Chunks without a size are an unreadable answer."""
    server.enqueue(Script.of(head(transfer_encoding="chunked"), f"{size}\r\n".encode(), Close()))

    fault = ask(form.provider(server.url), stream=stream)

    assert (fault.failure_type, fault.status, fault.raw) == ("malformed_response", "error", "")


def test_an_error_whose_body_breaks_off_is_that_error(form, server):
    """The status is known, even if its explanation is lost."""
    server.enqueue(Script.of(head(503, content_length="100", retry_after="7"), b'{"error', Reset()))

    fault = ask(form.provider(server.url))

    assert (fault.failure_type, fault.retryable, fault.retry_after_s) == ("http_503", True, 7.0)


# --- redirects ------------------------------------------------------------------------------------


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
