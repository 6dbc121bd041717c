"""The misbehaving server does what its scripts say, and records its requests."""

from __future__ import annotations

import http.client
import threading

import pytest

from tests.providers.servers.misbehaving import (
    Close,
    Hang,
    MisbehavingServer,
    Pause,
    Reset,
    Script,
    Wait,
    head,
    pieces,
)


def get(server, path="/", body=None):
    """Status and body of one request on a new connection."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        connection.request("GET" if body is None else "POST", path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_the_queue_comes_before_the_path(server):
    """Queued scripts answer first, in order; then the path's, then the star's; then 404."""
    server.on("/a", Script.answer("path"))
    server.enqueue(Script.answer("first"), Script.answer("second", status=500))

    assert [get(server, "/a") for _ in range(4)] == [
        (200, b"first"),
        (500, b"second"),
        (200, b"path"),
        (200, b"path"),
    ]
    assert get(server, "/b")[0] == 404
    server.on("*", lambda request: Script.answer(request.path))
    assert get(server, "/b") == (200, b"/b")


def test_requests_are_recorded(server):
    """Method, path, headers and body are recorded."""
    get(server, "/a?b=c", body=b'{"x": 1}')

    [request] = server.requests
    assert (request.method, request.path, request.json) == ("POST", "/a?b=c", {"x": 1})
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert (server.total, server.connections) == (1, 1)


def test_a_stream_arrives_in_pieces(server):
    """Chunks are framed, with pauses and waits between them."""
    go_on = threading.Event()
    server.enqueue(Script.stream(b"a", Pause(0.01), b"b", Wait(go_on), b"c"))
    threading.Timer(0.05, go_on.set).start()

    assert get(server) == (200, b"abc")


@pytest.mark.parametrize(
    ("script", "error"),
    [
        pytest.param(Script.of(Reset()), ConnectionResetError, id="reset"),
        pytest.param(Script.of(Close()), http.client.RemoteDisconnected, id="close"),
        pytest.param(
            Script.of(head(content_length="5"), b"ab", Close()), http.client.IncompleteRead, id="cut"
        ),
        pytest.param(
            Script.of(head(content_length="5"), b"ab", Pause(0.1), Reset()),
            ConnectionResetError,
            id="cut-off",
        ),
        pytest.param(Script.of(b"nonsense\r\n\r\n", Close()), http.client.BadStatusLine, id="nonsense"),
    ],
)
def test_misbehaviour(server, script, error):
    """A client sees the right error for each kind of misbehavior."""
    server.enqueue(script)

    with pytest.raises(error):
        get(server)


def test_requests_in_flight_are_counted(server):
    """The server counts its concurrent requests."""
    go_on = threading.Event()
    server.on("*", Script.of(Wait(go_on), Script.answer("x").steps[0]))
    clients = [threading.Thread(target=get, args=(server,)) for _ in range(3)]
    for client in clients:
        client.start()
    server.wait_for(lambda: server.in_flight == 3)
    go_on.set()
    for client in clients:
        client.join(10)

    assert server.most_in_flight == 3


def test_it_ends_while_it_hangs():
    """Leaving the block ends every script and every thread."""
    with MisbehavingServer() as server:
        server.on("*", Script.of(Hang()))
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        connection.request("GET", "/")
        server.wait_for(lambda: server.in_flight == 1)
    with pytest.raises(http.client.RemoteDisconnected):
        connection.getresponse()
    connection.close()

    assert server.in_flight == 0


def test_pieces():
    """Bytes are cut as requested, and none is lost."""
    assert pieces(b"abcdef", [2, 4, 2, 0, 9]) == [b"ab", b"cd", b"ef"]
