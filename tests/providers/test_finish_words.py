"""How servers end an answer: each word, by each API, streamed and whole."""

import pytest

from pytest_openclaw.values.faults import outcome_of
from pytest_openclaw.values.replies import Fault, Reply
from tests.providers.servers.apis import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    ask,
    chat_chunk,
    event,
    gemini_answer,
)
from tests.providers.servers.misbehaving import Script, sse

pytestmark = pytest.mark.newest


@pytest.fixture
def end(server, api, stream):
    def asked(text, word):
        script = Script.stream(*([api.text(text)] if text else []), api.end(word))
        server.enqueue(script if stream else Script.answer(api.whole(text, word)))
        return ask(api.provider(server.url), stream=stream)

    return asked


def row(result):
    outcome = outcome_of(result)
    return outcome.status, outcome.failure_type, getattr(result, "finish_reason", None)


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        *((word, "stop") for word in ("stop", "STOP", "end_turn", "stop_sequence", "eos", "eos_token", "end", "COMPLETE")),
        *((word, "length") for word in ("length", "max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens")),
        ("model_context_window_exceeded", "length"),
        *((word, "tool_calls") for word in ("tool_use", "function_call")),
        ("refusal", "refusal"),
        *((word, "content_filter") for word in ("content_filter", "sensitive", "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST")),
        *((word, "content_filter") for word in ("PROHIBITED_CONTENT", "SPII", "guardrail_intervened", "IMAGE_SAFETY")),
        ("ESCALATION", "content_filter"),
        ("CONTINUATION", "length"),
        *((word, word) for word in ("pause_turn", "bored", "OTHER", "TOO_MANY_TOOL_CALLS")),
    ],
)  # fmt: skip
def test_a_word_after_an_answer(end, word, meaning):
    """A known word has its meaning in the row, in any case and by any API; an unknown one is kept."""
    reply = end("Hi.", word)

    failure = meaning if meaning in ("content_filter", "refusal") else None
    assert row(reply) == ("ok", failure, meaning)
    assert reply.text == "Hi."


FAILURES = (
    "network_error", "error", "abort", "aborted", "cancelled", "failed", "insufficient_system_resource", "upstream_error",
    "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE", "load", "unload", "OTHER",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        *(("", word, ("error", "stream_error", None)) for word in FAILURES),
        *(("Hel", word, ("error", "stream_error", None)) for word in ("network_error", "error", "abort")),
        ("", "sensitive", ("ok", "content_filter", "content_filter")),
        ("", "length", ("ok", "empty_response", "length")),
        ("", "bored", ("ok", "empty_response", "bored")),
        # A context that is full before the first token is too small for the prompt.
        ("", "model_context_window_exceeded", ("error", "context_overflow", None)),
        ("", "PUP_LIMITED_DISABLED", ("auth_error", "http_403", None)),
    ],
)
def test_a_word_without_an_answer(end, text, word, expected):
    """A word for the server's own failure is a fault, which is tried again if there were no tokens."""
    result = end(text, word)

    assert row(result) == expected
    if expected[1] == "stream_error":
        assert (result.raw, result.retryable, result.scope) == (text, not text, "cell")
        assert word in result.message


@pytest.mark.parametrize(
    ("finish_reason", "native_word", "text", "expected"),
    [
        ("stop", "network_error", "", ("error", "stream_error", None)),
        ("error", "network_error", "", ("error", "stream_error", None)),
        ("stop", "network_error", "Hel", ("error", "stream_error", None)),
        ("error", "stop", "", ("error", "stream_error", None)),
        ("stop", "SAFETY", "", ("ok", "content_filter", "content_filter")),
        ("stop", "MAX_TOKENS", "Hel", ("ok", None, "length")),
        ("tool_calls", "STOP", "Hi.", ("ok", None, "tool_calls")),
        ("length", "tired", "Hel", ("ok", None, "length")),
        ("stop", "end_turn", "Hi.", ("ok", None, "stop")),
        ("error", "MALFORMED_FUNCTION_CALL", "", ("ok", None, "malformed_call")),
    ],
)  # fmt: skip
def test_the_word_of_the_server_behind_a_gateway(server, stream, finish_reason, native_word, text, expected):
    """OpenRouter's `native_finish_reason` counts where it knows more than `finish_reason`."""
    chunk = chat_chunk({"content": text}, finish_reason)
    whole = CHAT.whole(text, finish_reason)
    for payload in (chunk, whole):
        payload["choices"][0]["native_finish_reason"] = native_word
    server.enqueue(Script.stream(sse(chunk, "[DONE]")) if stream else Script.answer(whole))

    assert row(ask(CHAT.provider(server.url), stream=stream)) == expected


def finished(reason, message):
    payload = gemini_answer(reason=reason)
    payload["candidates"][0]["finishMessage"] = message
    return payload


def blocked(**feedback):
    return {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 11, "totalTokenCount": 11}}


NO, WRITTEN = "This is not allowed.", "print(default_api.exec(command='df'))"
MALFORMED = finished("MALFORMED_FUNCTION_CALL", f"Malformed function call: {WRITTEN}")
UNEXPECTED = finished("UNEXPECTED_TOOL_CALL", "Unexpected tool call: exec{command: df}")
STOP_DETAILS = {"type": "refusal", "category": "cyber", "explanation": NO}
REFUSED = MESSAGES.whole(None, "refusal") | {"stop_details": STOP_DETAILS}


@pytest.mark.parametrize(
    ("api", "payload", "text", "raw", "word"),
    [
        # The call is the model's, and what the model wrote is its text.
        pytest.param(GEMINI, MALFORMED, WRITTEN, WRITTEN, "malformed_call", id="malformed-call"),
        pytest.param(GEMINI, UNEXPECTED, "exec{command: df}", "exec{command: df}", "unexpected_call", id="unexpected-call"),
        # The server's words about a filter or refusal are not the model's text.
        pytest.param(GEMINI, finished("PROHIBITED_CONTENT", NO), "", NO, "content_filter", id="filtered"),
        pytest.param(GEMINI, blocked(blockReason="SAFETY", blockReasonMessage=NO), "", NO, "content_filter", id="blocked"),
        pytest.param(GEMINI, blocked(blockReason="SAFETY"), "", "SAFETY", "content_filter", id="blocked-without-words"),
        pytest.param(MESSAGES, REFUSED, "", NO, "refusal", id="refused"),
    ],
)  # fmt: skip
def test_the_words_at_the_end(server, api, payload, text, raw, word):
    """What a server says about the end is kept in the raw output, in a chunk or a whole answer."""
    for streamed in (False, True) if api is GEMINI else (False,):
        server.enqueue(Script.stream(sse(payload)) if streamed else Script.answer(payload))

        reply = ask(api.provider(server.url), stream=streamed)

        assert isinstance(reply, Reply), reply
        assert (reply.text, reply.raw, reply.finish_reason) == (text, raw, word)
        assert "usageMetadata" not in payload or reply.input_tokens == 11


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param({"status": "completed"}, ("ok", None, "stop"), id="completed"),
        pytest.param({}, ("ok", None, "stop"), id="no-status"),
        pytest.param({"status": "incomplete", "incomplete_details": None}, ("ok", None, "incomplete"), id="no-reason"),
        pytest.param({"status": "cancelled"}, ("error", "stream_error", None), id="cancelled"),
        pytest.param({"status": "failed", "error": None}, ("error", "stream_error", None), id="failed-without-a-reason"),
        pytest.param({"status": "failed", "error": {"code": "server_error", "message": "boom"}}, ("error", "http_500", None), id="failed"),
        pytest.param({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}}, ("rate_limited", "http_429", None), id="rate-limit"),
    ],
)  # fmt: skip
def test_a_response(server, stream, response, expected):
    """The Responses API ends by a status, and gives a reason only for what is incomplete."""
    text = "" if expected[0] in ("error", "rate_limited") else "Hi."
    whole = {"object": "response", "output": RESPONSES.whole(text)["output"], **response}
    kind = f"response.{response.get('status', 'completed')}"
    server.enqueue(
        Script.stream(event({"type": kind, "response": whole})) if stream else Script.answer(whole)
    )

    result = ask(RESPONSES.provider(server.url), stream=stream)

    assert row(result) == expected
    assert not isinstance(result, Fault) or result.retryable
