"""Errors that servers send instead of an answer: their forms, their words, their waits."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.server_errors import error_of_body, retry_after_s, shortened
from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.replies import Fault, Reply
from tests.providers.servers.apis import CHAT, ask, described, rows_in
from tests.providers.servers.misbehaving import Script, sse


def body(**error):
    return json.dumps({"error": error}).encode()


@pytest.mark.parametrize(
    ("data", "code", "type_", "message"),
    [
        pytest.param(body(message="Bad key", type="invalid_request_error", param=None, code="invalid_api_key"), "invalid_api_key", "invalid_request_error", "Bad key", id="openai"),
        pytest.param(b'{"error": "model \'x\' not found"}', "", "", "model 'x' not found", id="ollama-text"),
        pytest.param(json.dumps({"error": body(message="Too long", type="exceed", code=400).decode()}).encode(), "400", "exceed", "Too long", id="ollama-text-of-its-engine"),
        pytest.param(body(message="model 'x' not found", type="api_error", param=None, code=None), "", "api_error", "model 'x' not found", id="ollama-object"),
        pytest.param(body(code=503, message="Loading model", type="unavailable_error"), "503", "unavailable_error", "Loading model", id="llama.cpp"),
        pytest.param(b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', "", "overloaded_error", "Overloaded", id="anthropic"),
        pytest.param(b'{"object": "error", "message": "No.", "type": "NotFoundError", "code": 404}', "404", "NotFoundError", "No.", id="vllm"),
        pytest.param(b'{"detail": "Not Found"}', "", "", "Not Found", id="fastapi"),
        pytest.param(b'{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE", "details": [{"reason": "LOAD"}, 5]}}', "503", "UNAVAILABLE LOAD", "busy", id="google"),
        pytest.param(b'[{"error": {"code": 400, "message": "API key"}}]', "400", "", "API key", id="in-a-list"),
        pytest.param(b'{"error": {"message": {"de": "nein"}}}', "", "", '{"de": "nein"}', id="message-an-object"),
        pytest.param(b"\xef\xbb\xbf" + body(message="bom"), "", "", "bom", id="byte-order-mark"),
        pytest.param(b"<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body>nginx</body>", "", "", "a web page, '502 Bad Gateway'", id="html"),
        pytest.param(b"upstream\r\n  gone\n", "", "", "upstream gone", id="plain-text"),
        pytest.param(b"caf\xe9", "", "", "caf\ufffd", id="broken-bytes"),
        pytest.param(b"", "", "", "Bad Gateway", id="empty-takes-the-status-line"),
        pytest.param(b"null", "", "", "Bad Gateway", id="null"),
        pytest.param(b"[" * 100_000, "", "", f"{'[' * 150} … {'[' * 150}", id="nested-too-deep"),
    ],
)  # fmt: skip
def test_error_of_body(data, code, type_, message):
    """Code, type and message are found in every form, and the HTTP status is kept."""
    error = error_of_body(502, data, phrase="Bad Gateway")

    assert error == WireError(status=502, code=code, type=type_, message=message)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({"retry-after": "7"}, 7.0, id="seconds"),
        pytest.param({"retry-after": "0.5"}, 0.5, id="fraction"),
        pytest.param({"retry-after": " 7 "}, 7.0, id="blanks"),
        pytest.param({"retry-after": "Fri, 21 Nov 2025 10:00:30 GMT"}, 30.0, id="date"),
        pytest.param({"retry-after-ms": "250", "retry-after": "7"}, 0.25, id="milliseconds-first"),
        pytest.param({"retry-after": "soon"}, None, id="words"),
        pytest.param({"retry-after": "inf"}, None, id="infinite"),
        pytest.param({"retry-after": ""}, None, id="empty"),
        pytest.param({}, None, id="no-header"),
    ],
)
def test_retry_after(headers, seconds):
    """A wait is given in seconds, as an HTTP date or in milliseconds; anything else is ignored."""
    now_s = 1763719200.0  # Fri, 21 Nov 2025 10:00:00 GMT

    assert retry_after_s(headers, now_s=now_s) == seconds


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        pytest.param({"error": {"message": "Please try again in 1.5s."}}, 1.5, id="in-words"),
        pytest.param({"error": "Slow down: retry after 250 ms"}, 0.25, id="milliseconds"),
        pytest.param({"error": "Too many requests", "retry_after": 3}, 3.0, id="a-field"),
        pytest.param(
            {"error": {"message": "busy", "metadata": {"retry_after_seconds": 4}}}, 4.0, id="metadata"
        ),
    ],
)
def test_wait_in_an_error(error, seconds):
    """A server without the header may name the wait in its error."""
    assert error_of_body(429, json.dumps(error).encode()).retry_after_s == seconds


@settings(deadline=None)
@given(text=st.text(st.characters(), max_size=2000))
def test_shortened_fits_into_a_message(text):
    """Any text from a server becomes one printable line of bounded length."""
    short = shortened(text)

    assert len(short) <= 303
    assert short.isprintable()
    short.encode()


def openai(message, **more):
    return {"error": {"message": message, **more}}


OUTCOMES = {
    "no_model": ("model_not_found", "skipped_unavailable", "target", False),
    "no_tools": ("no_tools", "skipped_unavailable", "cell", False),
    "context": ("context_overflow", "error", "cell", False),
    "quota": ("quota_exhausted", "rate_limited", "target", False),
    "filter": ("content_filter", "ok", "cell", False),
    "broken": ("stream_error", "error", "cell", True),
    "key": ("http_400", "auth_error", "target", False),
}
"""Failure type, availability, scope, and whether the request is repeated."""
ROWS = rows_in("errors.jsonl")
BY_ID = {row["id"]: row for row in ROWS if row["status"] != 200}


def expected(row):
    outcome = row["outcome"]
    return OUTCOMES[outcome] if isinstance(outcome, str) else tuple(outcome)


def kind(fault):
    assert isinstance(fault, Fault), fault
    return fault.failure_type, fault.status, fault.scope, fault.retryable


@pytest.mark.newest
@pytest.mark.parametrize("row", BY_ID.values(), ids=BY_ID)
def test_an_error_by_its_words(server, row):
    """A server's own words take precedence over its status, and its message is shown."""
    server.enqueue(Script.answer(row["body"], status=row["status"]))

    fault = ask(CHAT.provider(server.url), model="qwen3")

    assert kind(fault) == expected(row)
    assert fault.message.rpartition(": ")[2].strip(" .")


@pytest.mark.newest
@pytest.mark.parametrize("row", [row for row in ROWS if row["status"] == 200], ids=lambda row: row["id"])
def test_an_error_in_the_place_of_an_answer(server, form, stream, row):
    """An error in a 200 has no status, so that only its words count; without any it is tried again."""
    server.enqueue(Script.stream(sse(row["body"])) if stream else Script.answer(row["body"]))

    fault = ask(form.provider(server.url), stream=stream, model="qwen3")

    assert (kind(fault), fault.raw) == (expected(row), "")


@pytest.mark.newest
@pytest.mark.parametrize(
    "name", ["anthropic-context", "google-context", "openrouter-tools", "anthropic-model", "azure-filter"]
)
def test_other_apis_say_the_same(server, api, stream, name):
    """The words mean the same by every API."""
    row = BY_ID[name]
    server.enqueue(Script.answer(row["body"], status=row["status"]))

    fault = ask(api.provider(server.url), stream=stream, model="qwen3")

    assert kind(fault) == expected(row)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        pytest.param({"raw": "upstream is down", "provider_name": "Acme"}, "error (Acme: upstream is down)", id="text"),
        pytest.param({"raw": '{"error":{"message":"upstream is down"}}'}, "error (upstream is down)", id="json-text"),
        pytest.param({"raw": {"message": "upstream is down"}}, "error (upstream is down)", id="object"),
        pytest.param({"raw": {"reason": 7}}, 'error ({"reason": 7})', id="another-object"),
        pytest.param({"provider_name": "Acme"}, "error", id="none"),
    ],
)  # fmt: skip
def test_the_error_of_the_server_behind_openrouter(server, metadata, said):
    """It is part of the message."""
    server.enqueue(Script.answer(openai("Provider returned error", code=502, metadata=metadata), status=502))

    fault = ask(CHAT.provider(server.url))

    message = f"ollama_openai: HTTP 502: Provider returned {said}"
    assert described(fault)[:3] == ("http_502", "error", message)


def test_a_404_names_the_address(server, api, stream):
    """A path that the server does not have is shown as it was asked for, without its query."""
    server.enqueue(Script.answer({"detail": "Not Found"}, status=404))

    fault = ask(api.provider(server.url), stream=stream)

    assert isinstance(fault, Fault), fault
    asked = server.requests[0].path.partition("?")[0]
    assert fault.message.endswith(f"Not Found. The request went to {server.origin}{asked}.")


WRITTEN = '<function=exec{"command": "df -h"}</function>'
SEE = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."
FAILED = openai(SEE, code="tool_use_failed", failed_generation=WRITTEN)
BROKEN_CALL, LONG_CALL = '{"command": "df', json.dumps({"content": "x" * 5000})[:-1]


def unread(call):
    return {"error": f"error parsing tool call: raw='{call}', err=unexpected end of JSON input"}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(FAILED, WRITTEN, id="groq"),
        pytest.param(unread(BROKEN_CALL), BROKEN_CALL, id="ollama"),
        # Messages are shortened; what a model wrote is not.
        pytest.param(unread(LONG_CALL), LONG_CALL, id="long"),
    ],
)
def test_an_answer_in_an_error_is_judged(server, form, stream, body, text):
    """An error that quotes a call is the model's reply, also after thinking that was streamed."""
    events = (form.reasoning("hm"), sse(body, event="error"))
    server.enqueue(Script.stream(*events) if stream else Script.answer(body, status=500))

    reply = ask(form.provider(server.url), stream=stream)

    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.finish_reason) == (text, "malformed_call")
    assert reply.raw == ("<think>\nhm\n</think>\n\n" if stream else "") + text
    assert reply.timing is not None
    assert server.total == 1
