"""How a call ends, well or badly; no process is left behind."""

from __future__ import annotations

import asyncio
import sys

import pytest

from pytest_openclaw.providers import processes
from pytest_openclaw.values.requests import Request
from tests.providers.fake_claude import ask, dies, environ_of, provider_of

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is named in POSIX quoting"),
    pytest.mark.usefixtures("scratch"),
]

#: by then the CLI has started, on a busy machine too
STARTED_S = 3.0


def test_an_answer_has_text_times_and_counts():
    """A whole stream becomes a reply with TTFT by our own clock; the CLI's estimated costs are ignored."""
    reply = ask(environ_of("hello"))

    assert (reply.text, reply.raw, reply.finish_reason) == ("Hello", "Hello", "end_turn")
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens) == (18, 5, 3)
    assert 0 < reply.timing.ttft_ms <= reply.timing.e2e_ms
    assert "cost" not in repr(reply)


@pytest.mark.parametrize(
    ("mode", "text", "finish_reason"),
    [
        pytest.param("whole", "Hello", "end_turn", id="no-partial-messages"),
        pytest.param("noisy", "Hello", "end_turn", id="noise-on-both-streams"),
        pytest.param("long_line", "a" * (3 << 20), "end_turn", id="a-line-of-3-MiB"),
        pytest.param("continued", "Hello", "length", id="cut-by-the-output-limit"),
    ],
)
def test_answers_of_other_shapes(mode, text, finish_reason):
    """An answer is found among noise, in one piece, and without the CLI's own further requests."""
    reply = ask(environ_of(mode))

    assert (reply.text == text, reply.finish_reason) == (True, finish_reason)


def test_without_streaming_no_first_token_is_timed():
    """`stream = off` omits TTFT, as for every provider."""
    assert ask(environ_of("hello"), stream=False).timing.ttft_ms is None


@pytest.mark.parametrize("loop", ["main", "thread"])
def test_it_works_in_any_thread(loop):
    """The executor's loop runs beside the tests' thread, where no signal can be received."""
    if loop == "main":
        assert ask(environ_of("hello")).text == "Hello"
        return

    async def in_a_thread():
        return await asyncio.to_thread(ask, environ_of("hello"))

    assert asyncio.run(in_a_thread()).text == "Hello"


def test_calls_side_by_side_do_not_mix():
    """Concurrent calls have processes and folders of their own."""

    async def many():
        provider = provider_of(environ_of("hello"))
        return await asyncio.gather(*(provider.ask(Request(model="m", prompt="hi")) for _ in range(4)))

    assert [reply.text for reply in asyncio.run(many())] == ["Hello"] * 4


@pytest.mark.parametrize(
    ("mode", "failure_type", "message", "raw"),
    [
        pytest.param("max_turns", "cli_error", "the CLI ended with: Reached maximum number of turns (1).", "", id="another-subtype"),
        pytest.param("slash_command", "cli_error", "the CLI ended with: /help isn't available in this environment.", "", id="the-cli-spoke-by-itself"),
        pytest.param("garbage", "malformed_response", "the answer cannot be read: none of the CLI's 5 lines is a stream-json line, and it ended with exit status 0.", "", id="only-garbage"),
        pytest.param("killed", "harness_error", "the CLI was killed by SIGKILL.", "Hel", id="killed-by-a-signal"),
        pytest.param("terminated", "harness_error", "the CLI ended with exit status 143 (SIGTERM).", "Hel", id="a-signal-that-it-handles"),
        pytest.param("plain_text", "cli_error", "the CLI ended with exit status 1: No such setting: effort.", "", id="plain-text"),
        pytest.param("unfinished", "cli_error", "the CLI ended with exit status 3.", "Hello", id="no-result-line"),
        pytest.param("silent", "cli_error", "the CLI ended with exit status 0 and said nothing.", "", id="silent"),
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


def test_a_flood_is_stopped(monkeypatch):
    """A CLI that writes without end is stopped at the limit."""
    monkeypatch.setattr(processes, "MOST_OUTPUT_BYTES", 4 << 20)
    fault = ask(environ_of("flood"))

    assert (fault.failure_type, fault.message) == (
        "cli_error",
        "claude_code_cli: the CLI wrote more than 4 MiB and was stopped.",
    )


def test_a_hang_ends_in_time():
    """After its time limit the attempt is a timeout, and the text so far is kept."""
    fault = ask(environ_of("hang"), timeout_s=STARTED_S)

    assert (fault.failure_type, fault.raw) == ("timeout", "Hel")
    assert fault.message == (
        "claude_code_cli: no complete answer within 3 s. Raise --openclaw-timeout, or the prompt's timeout_s."
    )


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
