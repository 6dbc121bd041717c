"""Answers in a wrong form, and in unusual but valid forms: for all APIs, streamed and not."""

from __future__ import annotations

import gzip

import pytest

from pytest_openclaw.providers import stream as reading
from tests.providers.servers.apis import APIS, CHAT, MESSAGES, ask, described, prompt_of
from tests.providers.servers.misbehaving import Close, Hang, Pause, Reset, Script, sse
from tests.providers.servers.ollama import OLLAMA


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


def test_after_the_end_mark_nothing_matters(form, server, monkeypatch):
    """Unreadable events, errors, resets and silence after the end mark change nothing."""
    monkeypatch.setattr("pytest_openclaw.providers.stream.SILENCE_S", 0.1)
    monkeypatch.setattr("pytest_openclaw.providers.stream.LINGER_S", 0.1)
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


def test_a_missing_end_mark(form, server):
    """A stream that ends regularly, but without its end mark, was cut off."""
    server.enqueue(Script.stream(form.text("Hel")))

    fault = ask(form.provider(server.url))

    why = f"{form.kind.name}: the stream broke: it ended without {form.kind.dialect.end_mark}."
    assert described(fault) == ("stream_error", "error", why, "Hel")


def test_a_whole_answer_without_a_finish_reason(server):
    """It is complete, because no stream was requested; the row has no reason."""
    server.enqueue(Script.answer({"choices": [{"message": {"content": "Hi."}, "finish_reason": None}]}))

    reply = ask(CHAT.provider(server.url), stream=False)

    assert (reply.text, reply.finish_reason) == ("Hi.", None)


@pytest.mark.parametrize(
    ("error", "failure_type", "availability"),
    [
        pytest.param({"message": "m not here", "code": "model_not_found"}, "model_not_found", "skipped_unavailable", id="code"),
        pytest.param({"message": "busy", "type": "overloaded_error"}, "http_529", "error", id="type"),
        pytest.param({"message": "slow", "code": 429}, "http_429", "rate_limited", id="number"),
        pytest.param({"message": "boom"}, "stream_error", "error", id="unclassed"),
        pytest.param("boom", "stream_error", "error", id="text"),
    ],
)  # fmt: skip
def test_an_error_inside_a_200(form, stream, server, error, failure_type, availability):
    """Before any token, an error object is classified by its own code or type."""
    payload = {"error": error}
    server.enqueue(Script.stream(sse(payload)) if stream else Script.answer(payload))

    fault = ask(form.provider(server.url), stream=stream)

    assert (fault.failure_type, fault.status, fault.raw) == (failure_type, availability, "")


@pytest.mark.parametrize(
    "data",
    [
        b"event: error\ndata: boom\n\n",
        b'{"error": {"message": "boom"}}\n',
        b'{"error": "boom"}',
    ],
    ids=["named-event", "bare-line", "bare-line-cut"],
)
def test_errors_in_odd_frames(server, data):
    """An error that a server frames badly is still read."""
    server.enqueue(Script.stream(data))

    fault = ask(APIS[0].provider(server.url))

    assert fault.message == "ollama_openai: the stream broke: the server says: boom."


# --- bodies as they may come ----------------------------------------------------------------------


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


def test_a_body_that_swells(form, stream, server, monkeypatch):
    """The limit applies to the size after decompression."""
    monkeypatch.setattr(reading, "MOST_BYTES", 1 << 20)
    bomb = gzip.compress(b": \n" * (1 << 20))
    server.enqueue(Script.answer(bomb, content_type="text/event-stream", content_encoding="gzip"))

    fault = ask(form.provider(server.url), stream=stream)

    assert fault.message == f"{form.kind.name}: the answer cannot be read: it is longer than 1 MiB."


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
