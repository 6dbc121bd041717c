"""The server for the measures: its answers, their times, and its log."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.performance.clients import answer_to, body_of, prompt_of
from tests.performance.server import Behavior, parse_path, split_answer
from tests.performance.serving import MockServer, RunFailed, ServerLog

pytestmark = pytest.mark.newest


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    """A server for all tests of this file; each uses its own addresses."""
    with MockServer() as server:
        yield server


def _ask(server: MockServer, method: str, url: str, body: Any = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(server.root.removeprefix("http://"), timeout=30)
    try:
        connection.request(method, url.removeprefix(server.root), None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def _events(stream: str) -> list[Any]:
    *events, done, rest = stream.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


@pytest.mark.parametrize("behavior", ["", "n=20", "ttft=2,itl=1,n=3", "jitter=3"])
def test_a_stream_holds_the_answer_that_the_prompt_asks_for(server: MockServer, behavior: str) -> None:
    """A role, as many tokens as the base URL says, a finish, the usage and [DONE]."""
    status, text = _ask(server, "POST", f"{server.base(behavior)}/chat/completions", body_of("item-000007"))

    role, *tokens, finish, usage = _events(text)
    contents = [token["choices"][0]["delta"]["content"] for token in tokens]
    n_tokens = {"n=20": 20, "ttft=2,itl=1,n=3": 3}.get(behavior, 5)
    assert status == 200
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(contents) == "HEARTBEAT_OK item-000007"
    assert len(contents) == n_tokens
    assert all(contents)
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == n_tokens


def test_a_reply_can_begin_with_a_long_thought(server: MockServer) -> None:
    """Reasoning comes before the first token and is no part of the answer."""
    _, text = _ask(server, "POST", f"{server.base('think=1000')}/chat/completions", body_of("item-000007"))

    _, thought, first, *_ = _events(text)
    assert len(thought["choices"][0]["delta"]["reasoning_content"]) == 1000
    assert first["choices"][0]["delta"]["content"] == "HEARTBEAT_OK"[:4]


def test_without_a_stream_the_answer_comes_whole(server: MockServer) -> None:
    """Programs that do not stream get the same answer as one object."""
    base = server.base("ttft=2,itl=1,n=3")

    status, text = _ask(
        server, "POST", f"{base}/chat/completions", body_of("item-000001") | {"stream": False}
    )

    assert status == 200
    assert json.loads(text)["choices"][0]["message"]["content"] == answer_to("item-000001")
    (served,) = server.log(base).answered
    assert served.first == served.last
    assert served.e2e_ms >= 3.5  # 2 + 2 × 1, a timer may be a little early


def test_usage_is_sent_only_if_requested(server: MockServer) -> None:
    """As OpenAI's own server does."""
    body = {key: value for key, value in body_of("item-000001").items() if key != "stream_options"}

    _, text = _ask(server, "POST", f"{server.base()}/chat/completions", body)

    assert all("usage" not in event for event in _events(text))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models", 200),
        ("GET", "/v1/unknown", 404),
        ("GET", "/props", 404),
        ("POST", "/api/show", 404),
        ("GET", "/v1/chat/completions", 404),
        ("POST", "/speed=1/v1/chat/completions", 400),
        ("POST", "/n=many/v1/chat/completions", 400),
        ("POST", "/n=1000/v1/chat/completions", 400),
    ],
)
def test_other_routes(server: MockServer, method: str, path: str, status: int) -> None:
    """There are models, and no routes of Ollama's or llama.cpp's; an invalid behavior is refused."""
    body = body_of("item-000001") if method == "POST" else None

    assert _ask(server, method, path, body)[0] == status


def test_the_log_has_the_times_of_each_item(server: MockServer) -> None:
    """Received, first token, last byte, by item; another address has another log."""
    base = server.base("ttft=20,itl=10,n=3")
    for item in ("item-000001", "item-000002"):
        _ask(server, "POST", f"{base}/chat/completions", body_of(item))
    _ask(server, "POST", f"{base}/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]})

    log = server.log(base)

    assert sorted(log.by_item) == ["item-000001", "item-000002"]
    assert (log.n_other, log.n_given_up, log.max_in_flight) == (1, 0, 1)
    for served in log.answered:
        assert served.ttft_ms >= 19.5
        assert served.e2e_ms >= 39.5
        assert served.first < served.last
    first, second = log.answered
    assert log.window_s == second.last - first.received
    log.require(2)
    assert server.log(server.base()) == ServerLog(answered=(), n_other=0, n_given_up=0, max_in_flight=0)


def test_the_log_counts_what_is_in_flight_and_given_up(server: MockServer) -> None:
    """Two requests at once are two, and one whose client leaves is not an answer."""
    base = server.base("ttft=1000")
    path, body = base.removeprefix(server.root), json.dumps(body_of("item-000001")).encode()
    request = f"POST {path}/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    address = ("127.0.0.1", int(server.root.rpartition(":")[2]))
    with socket.create_connection(address) as leaving, socket.create_connection(address) as staying:
        for connection in (leaving, staying):
            connection.sendall(request[:100])
            connection.sendall(request[100:])  # in two pieces, as a network may
        # The head comes at once: both have been received before one leaves.
        received = leaving.recv(10) and staying.recv(10)
        leaving.close()
        while b"[DONE]" not in received:
            received += staying.recv(1000)

    log = server.log(base)

    assert (len(log.answered), log.n_given_up, log.max_in_flight) == (1, 1, 2)


def test_a_log_can_be_forgotten(server: MockServer) -> None:
    """Therefore a long-lived server can be used for many runs under one address."""
    base = server.base()
    _ask(server, "POST", f"{base}/chat/completions", body_of("item-000001"))
    assert len(server.log(base).answered) == 1

    _ask(server, "DELETE", "/log")

    assert server.log(base).answered == ()


@pytest.mark.parametrize("items", [[], ["item-1"], ["item-1", "item-1"], ["item-1", "item-2", "item-3"]])
def test_a_run_that_asked_something_else_does_not_count(server: MockServer, items: list[str]) -> None:
    """Two items should be asked, once each."""
    base = server.base()
    for item in items:
        _ask(server, "POST", f"{base}/chat/completions", body_of(item))

    with pytest.raises(RunFailed, match=f"^2 items: the server answered {len(items)} requests for"):
        server.log(base).require(2)


def test_the_behavior_is_in_the_path() -> None:
    """Times in ms, the log's name without the `/v1`."""
    route = parse_path("/run=1,ttft=100,jitter=200,itl=5,n=20/v1/chat/completions")

    assert route.base == "/run=1,ttft=100,jitter=200,itl=5,n=20"
    assert route.behavior == Behavior(ttft_s=0.1, jitter_s=0.2, itl_s=0.005, n_tokens=20)
    assert route.name == "chat/completions"
    assert parse_path("/v1/models").behavior.is_instant


def test_jitter_is_the_items_own() -> None:
    """An item waits the same time in every run, within the range; different items wait differently."""
    behavior = Behavior(ttft_s=0.1, jitter_s=0.2)

    dues = [behavior.due(0, f"item-{i}") for i in range(100)]

    assert dues == [behavior.due(0, f"item-{i}") for i in range(100)]
    assert 0.1 <= min(dues) < 0.15
    assert 0.25 < max(dues) <= 0.3


def test_an_answer_is_split_into_tokens_that_are_not_empty() -> None:
    """Joined they are the answer; more tokens than characters are refused."""
    for n in range(1, 25):
        tokens = split_answer(answer_to("item-000001"), n)
        assert (len(tokens), "".join(tokens), all(tokens)) == (n, "HEARTBEAT_OK item-000001", True)
    with pytest.raises(ValueError, match="cannot have 4 tokens"):
        split_answer("abc", 4)


def test_a_prompt_names_its_item_and_its_answer() -> None:
    """The validator `exact` can pass for the right item only."""
    assert prompt_of("item-000001") == "Reply with exactly: HEARTBEAT_OK item-000001"
