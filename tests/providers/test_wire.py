"""Errors that servers send instead of an answer: error objects of every kind, pages, plain text, waits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.wire import (
    error_in,
    error_of_body,
    retry_after_s,
    shortened,
)
from pytest_openclaw.values.faults import WireError


def body(**error):
    """An error object in OpenAI's envelope."""
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
    ("payload", "message"),
    [
        pytest.param({"error": {"message": "no"}}, "no", id="object"),
        pytest.param({"error": "no"}, "no", id="text"),
        pytest.param({"object": "error", "message": "no"}, "no", id="vllm"),
        pytest.param({"type": "error", "message": "no", "code": None}, "no", id="responses-event"),
        pytest.param({"type": "error", "error": {"message": "no"}}, "no", id="anthropic"),
        pytest.param({"error": None, "object": "response"}, None, id="null"),
        pytest.param({"choices": []}, None, id="none"),
    ],
)
def test_error_inside_a_200(payload, message):
    """An error in the place of an answer is recognised by its object; `"error": null` is none."""
    error = error_in(payload)

    assert (error and error.message) == message


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
        pytest.param({}, None, id="not-said"),
    ],
)
def test_retry_after(headers, seconds):
    """A wait is given in seconds, as an HTTP date or in milliseconds; anything else is ignored."""
    now_s = 1763719200.0  # Fri, 21 Nov 2025 10:00:00 GMT

    assert retry_after_s(headers, now_s=now_s) == seconds


@settings(deadline=None)
@given(text=st.text(st.characters(), max_size=2000))
def test_shortened_fits_into_a_message(text):
    """Any text from a server becomes one printable line of bounded length."""
    short = shortened(text)

    assert len(short) <= 303
    assert short.isprintable()
    short.encode()
