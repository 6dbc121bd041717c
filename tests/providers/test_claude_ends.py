"""How a call ends, well or badly; no process is left behind."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from pytest_openclaw.providers import processes
from pytest_openclaw.values.replies import Fault
from pytest_openclaw.values.requests import Request
from tests.providers.fake_claude import ask, dies, environ_of, provider_of

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is named in POSIX quoting"),
    pytest.mark.usefixtures("scratch"),
]


@pytest.mark.parametrize(
    ("mode", "text", "finish_reason"),
    [
        pytest.param("noisy", "Hello", "end_turn", id="noise-on-both-streams"),
        pytest.param("long_line", "a" * (3 << 20), "end_turn", id="a-line-of-3-MiB"),
        pytest.param("continued", "Hello", "length", id="cut-by-the-output-limit"),
    ],
)
def test_answers_of_other_shapes(mode, text, finish_reason):
    """An answer is found among noise, in one piece, and without the CLI's own further requests."""
    reply = ask(environ_of(mode))

    assert (reply.text == text, reply.finish_reason) == (True, finish_reason)


@pytest.mark.parametrize(
    ("mode", "failure_type", "message", "raw"),
    [
        pytest.param("max_turns", "cli_error", "the CLI ended with: Reached maximum number of turns (1).", "", id="another-subtype"),
        pytest.param("slash_command", "cli_error", "the CLI ended with: /help isn't available in this environment.", "", id="the-cli-spoke-by-itself"),
        pytest.param("killed", "harness_error", "the CLI was killed by SIGKILL.", "Hel", id="killed-by-a-signal"),
        pytest.param("terminated", "harness_error", "the CLI ended with exit status 143 (SIGTERM).", "Hel", id="a-signal-that-it-handles"),
        pytest.param("plain_text", "cli_error", "the CLI ended with exit status 1: No such setting: effort.", "", id="plain-text"),
        pytest.param("unfinished", "cli_error", "the CLI ended with exit status 3.", "Hello", id="no-result-line"),
        pytest.param("silent", "cli_error", "the CLI ended with exit status 0.", "", id="silent"),
        pytest.param("usage_error", "cli_error", "the CLI ended with exit status 1: error: unknown option '--bare'.", "", id="words-on-stderr"),
    ],
)  # fmt: skip
def test_ends_without_an_answer(mode, failure_type, message, raw):
    """An abnormal end is reported with its reason, and the text so far is kept."""
    fault = ask(environ_of(mode))

    assert (fault.failure_type, fault.status, fault.message) == (
        failure_type,
        "error",
        f"claude_code_cli: {message}",
    )
    assert (fault.raw, fault.retryable) == (raw, False)
    assert fault.timing.e2e_ms > 0


def test_cancelling_ends_the_cli(tmp_path, monkeypatch):
    """Ctrl-C cancels the request, and the CLI ends with it."""
    monkeypatch.setattr(processes, "GRACE_S", 0.3)
    pid_file = tmp_path / "pid"

    async def cancelled():
        provider = provider_of(environ_of("stubborn", str(pid_file)))
        task = asyncio.create_task(provider.ask(Request(model="m", prompt="hi")))
        while not (pid_file.exists() and pid_file.read_text(encoding="utf-8")):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    assert dies(int(pid_file.read_text(encoding="utf-8")))


LOGIN = "Run `claude /login`, or set ANTHROPIC_API_KEY."
NO_MODEL = "There's an issue with the selected model (m1). It may not exist or you may not have access to it."


@pytest.mark.parametrize(
    ("failure", "failure_type", "status", "reach", "message"),
    [
        pytest.param({"word": "authentication_failed", "text": "Not logged in · Please run /login"}, "auth_missing", "auth_error", "target", f"the Claude CLI says: Not logged in · Please run /login. {LOGIN}", id="not-logged-in"),
        pytest.param({"status": 401, "word": "authentication_failed", "text": "Failed to authenticate. API Error: 401 no"}, "http_401", "auth_error", "target", "HTTP 401: 401 no", id="401"),
        pytest.param({"status": 403, "word": "authentication_failed", "text": "Failed to authenticate. API Error: 403 no"}, "http_403", "auth_error", "cell", "HTTP 403: 403 no", id="403"),
        pytest.param({"status": 404, "word": "model_not_found", "text": NO_MODEL}, "model_not_found", "skipped_unavailable", "target", f"the server has no model 'm1': {NO_MODEL}", id="bad-model"),
        pytest.param({"status": 400, "word": "billing_error", "text": "Credit balance is too low"}, "quota_exhausted", "rate_limited", "target", "the quota or credit is used up: Credit balance is too low", id="no-credit"),
        pytest.param({"status": 429, "word": "rate_limit", "rejected": True, "text": "You've hit your session limit · resets 3am"}, "quota_exhausted", "rate_limited", "target", "the quota or credit is used up: You've hit your session limit · resets 3am", id="session-limit"),
        pytest.param({"status": 429, "word": "rate_limit", "text": "You've hit your weekly limit · resets 3am"}, "quota_exhausted", "rate_limited", "target", "the quota or credit is used up: You've hit your weekly limit · resets 3am", id="weekly-limit-in-words-alone"),
        pytest.param({"status": 429, "word": "rate_limit", "text": "API Error: Request rejected (429) · slow down"}, "http_429", "rate_limited", "cell", "HTTP 429: Request rejected (429) · slow down", id="429"),
        pytest.param(
            {
                "status": 429,
                "word": "rate_limit",
                "text": "API Error: Server is temporarily limiting requests (not your usage limit)",
            },
            "http_429",
            "rate_limited",
            "cell",
            "HTTP 429: Server is temporarily limiting requests (not your usage limit)",
            id="429-not-the-usage-limit",
        ),
        pytest.param({"status": 400, "word": "unknown", "text": "API Error: 400 cannot generate separate rates"}, "http_400", "error", "cell", "HTTP 400: 400 cannot generate separate rates", id="400-with-rate-in-its-words"),
        pytest.param({"status": 400, "word": "invalid_request", "text": "Prompt is too long · 210000 tokens"}, "context_overflow", "error", "cell", "the prompt is longer than m1's context: Prompt is too long · 210000 tokens", id="overflow"),
        pytest.param(
            {
                "status": 400,
                "text": "API Error: 400 request (9 tokens) exceeds the available context size",
            },
            "context_overflow",
            "error",
            "cell",
            "the prompt is longer than m1's context: 400 request (9 tokens) exceeds the available context size",
            id="overflow-of-a-local-server",
        ),
        pytest.param({"status": 500, "word": "server_error", "text": "API Error: 500 oops"}, "http_500", "error", "cell", "HTTP 500: 500 oops", id="500"),
        pytest.param({"status": 529, "word": "server_error", "text": "API Error: 529 Overloaded"}, "http_529", "error", "cell", "HTTP 529: 529 Overloaded", id="529"),
        pytest.param({"word": "unknown", "text": "API Error: Overloaded"}, "http_529", "error", "cell", "HTTP 529: Overloaded", id="overloaded-inside-a-200"),
        pytest.param({"word": "unknown", "text": "API Error: Overloaded", "pieces": ["Hel"]}, "stream_error", "error", "cell", "the stream broke: API Error: Overloaded.", id="overloaded-after-tokens"),
        pytest.param({"word": "server_error", "text": "API Error: Unable to connect to API (ConnectionRefused)"}, "connect_error", "skipped_unavailable", "endpoint", "nothing answers at the Anthropic API (Unable to connect to API (ConnectionRefused)).", id="refused"),
        pytest.param({"word": "server_error", "text": "API Error: Unable to connect to API (FailedToOpenSocket)"}, "connect_error", "skipped_unavailable", "endpoint", "nothing answers at the Anthropic API (Unable to connect to API (FailedToOpenSocket)).", id="unknown-host"),
        pytest.param({"word": "server_error", "text": "API Error: Unable to connect to API (ECONNRESET)"}, "connect_error", "error", "cell", "the connection was lost before any answer (Unable to connect to API (ECONNRESET)).", id="reset"),
        pytest.param({"text": "API Error: API returned an empty or malformed response (HTTP 200)"}, "cli_error", "error", "cell", "API Error: API returned an empty or malformed response (HTTP 200)", id="malformed"),
        pytest.param({"word": "max_output_tokens", "text": "API Error: Claude's response exceeded the 64 output tokens."}, "cli_error", "error", "cell", "API Error: Claude's response exceeded the 64 output tokens.", id="output-limit-without-output"),
        pytest.param({"word": "new_kind", "text": "Something new happened"}, "cli_error", "error", "cell", "Something new happened", id="unknown-words"),
    ],
)  # fmt: skip
def test_what_the_cli_reports(failure, failure_type, status, reach, message):
    """Each error of the CLI is classified by its status, its word, and only then by its text."""
    fault = ask(environ_of("error", json.dumps(failure)))

    assert isinstance(fault, Fault)
    assert (fault.failure_type, fault.status, fault.scope) == (failure_type, status, reach)
    assert fault.message == f"claude_code_cli: {message}"
    assert fault.raw == "".join(failure.get("pieces", ()))
    assert fault.retryable == (
        failure_type in {"http_429", "http_500", "http_529"} or failure["text"].endswith("RESET)")
    )


def test_an_answer_cut_by_the_output_limit_is_an_answer():
    """The CLI's message about the output limit does not discard the text received."""
    cut = {"word": "max_output_tokens", "text": "API Error: exceeded the maximum", "pieces": ["Hel", "lo"]}
    reply = ask(environ_of("error", json.dumps(cut)))

    assert (reply.text, reply.finish_reason) == ("Hello", "length")
