"""Connections: proxies, many at once, one after the other, and giving up."""

from __future__ import annotations

import asyncio

import pytest

from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import Request
from tests.providers.servers.apis import CHAT, ask
from tests.providers.servers.misbehaving import Close, Hang, Reset, Script, head


def together(provider, work):
    """Let a provider do something in a separate loop, and close it."""

    async def doing():
        try:
            return await work()
        finally:
            await provider.aclose()

    return asyncio.run(doing())


def test_no_proxy_sees_what_stays_on_this_machine(form, stream, server, monkeypatch):
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


def test_connections_are_used_again(form, stream, server, monkeypatch):
    """One provider's calls, one after the other, share a connection."""
    monkeypatch.setattr(
        "pytest_openclaw.providers.stream.LINGER_S", 60.0
    )  # even if a busy machine ends the answer late
    answer = Script.stream(form.text("Hi."), form.end()) if stream else Script.answer(form.whole())
    server.on("*", answer)
    provider = form.provider(server.url)

    async def three_times():
        return [await provider.ask(Request(model="m", prompt="Hi", stream=stream)) for _ in range(3)]

    replies = together(provider, three_times)

    assert [type(reply) for reply in replies] == [Reply] * 3
    assert (server.total, server.connections) == (3, 1)


@pytest.mark.parametrize("end", [Reset(), Close()], ids=["reset", "closed"])
def test_a_kept_connection_that_ends_when_it_is_used_again_is_no_loss(form, server, end):
    """A request over a connection that the server closed is sent over a new one: no fault, no retry."""
    server.enqueue(Script.answer(form.whole()), Script.of(end), Script.answer(form.whole()))
    provider = form.provider(server.url)

    async def twice():
        return [await provider.ask(Request(model="m", prompt="Hi", stream=False)) for _ in range(2)]

    replies = together(provider, twice)

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
    monkeypatch.setattr("pytest_openclaw.providers.stream.LINGER_S", 60.0)
    server.on(CHAT.path, script)
    provider = CHAT.provider(server.url)

    async def cancelled():
        asked = asyncio.create_task(provider.ask(Request(model="m", prompt="Hi")))
        await asyncio.to_thread(server.wait_for, lambda: server.in_flight == 1)
        asked.cancel()
        await asyncio.wait([asked])
        return asked.cancelled()

    assert together(provider, cancelled)
