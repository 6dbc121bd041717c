"""Servers that misbehave, in whole sessions: rows, pytest's outcomes, requests and attempts, waits and warm-ups."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.plugin.bad_servers import ModelServer, outcomes_by_cell, point_at
from tests.plugin.conftest import NOOP
from tests.providers.servers.apis import APIS, CHAT, GEMINI, MESSAGES, RESPONSES, Api
from tests.providers.servers.misbehaving import Close, Hang, Pause, Reset, Script, sse

pytestmark = pytest.mark.newest

TEXT = "Grüß dich 🦞."


@dataclass(frozen=True)
class Case:
    """What a server does for a model of this name, the cell's outcome, and fields of its row."""

    model: str
    behavior: Callable[..., Any]
    outcome: str
    row: dict[str, Any] = field(default_factory=dict)
    apis: tuple[Api, ...] = APIS


def says(api, *texts, end="stop"):
    return b"".join(api.text(text) for text in texts or ("Grüß ", "dich 🦞.")) + api.end(end)


def refuses(status, error, **headers):
    return lambda api: Script.answer({"error": error}, status=status, **headers)


def streams(*steps):
    return lambda api: Script.stream(*(api.text(step) if isinstance(step, str) else step for step in steps))


def _row(status, failure, verdict, attempts=1, **more):
    fields = {"availability_status": status, "failure_type": failure, "objective_pass": verdict}
    return {**fields, "success": status == "ok" and failure is None, "attempts": attempts, **more}


PASSED = _row("ok", None, True, raw_output=TEXT)
NO_MODEL = _row("skipped_unavailable", "model_not_found", None)
NOW = {"retry_after": "0"}

CASES = (
    Case("plain", lambda api: Script.stream(says(api)), "passed", {**PASSED, "input_tokens": 11, "output_tokens": 7}),
    Case("not-streamed", lambda api: Script.answer(api.whole(TEXT)), "passed", {**PASSED, "ttft_ms": None}),
    Case("no-usage", lambda api: Script.stream(api.text(TEXT), api.end().replace(b'"usage', b'"nothing')), "passed", {**PASSED, "input_tokens": None, "output_tokens": None}, apis=(RESPONSES, MESSAGES, GEMINI)),
    Case("wrong", lambda api: Script.stream(says(api, "no")), "failed", _row("ok", None, False, raw_output="no")),
    Case("cut-by-length", lambda api: Script.stream(says(api, "Grüß", end="length")), "failed", _row("ok", None, False, finish_reason="length")),
    Case("ten-megabytes", lambda api: Script.answer(api.whole("y" * 10_000_000)), "failed", _row("ok", None, False, truncated=True), apis=(CHAT,)),
    Case("empty", lambda api: Script.stream(says(api, "")), "failed", _row("ok", "empty_response", None)),
    Case("reasoning-only", lambda api: Script.stream(api.reasoning("Hm."), api.end()), "failed", _row("ok", "empty_response", None, raw_output="<think>\nHm.\n</think>\n\n")),
    Case("refusal", lambda api: Script.stream(says(api, "I will ", "not.", end="refusal")), "failed", _row("ok", "refusal", None, raw_output="I will not.")),
    Case("filtered", refuses(400, {"message": "It was filtered.", "code": "content_filter"}), "failed", _row("ok", "content_filter", None)),
    Case("no-model", refuses(404, {"message": "model 'no-model' not found", "type": "api_error"}), "skipped", NO_MODEL),
    Case("no-model-in-a-200", lambda api: Script.stream(sse({"error": {"code": "model_not_found", "message": "no"}})), "skipped", NO_MODEL),
    Case("forbidden", lambda api: Script.answer("<html><h1>403 Forbidden</h1></html>", status=403, content_type="text/html"), "error", _row("auth_error", "http_403", None)),
    Case("busy", refuses(429, {"message": "slow down", "type": "rate_limit_error"}, **NOW), "error", _row("rate_limited", "http_429", None, 2)),
    Case("no-quota", refuses(429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, **NOW), "error", _row("rate_limited", "quota_exhausted", None)),
    Case("reset", lambda api: Script.of(Reset()), "error", _row("error", "connect_error", None, 2, raw_output="")),
    Case("reset-in-stream", streams("Grüß ", "dich", Pause(0.05), Reset()), "error", _row("error", "stream_error", None, raw_output="Grüß dich")),
    Case("reset-after-thoughts", lambda api: Script.stream(api.reasoning("Hm."), Pause(0.05), Reset()), "error", _row("error", "stream_error", None)),
    Case("closed-in-stream", streams("Grüß ", "dich", Close()), "error", _row("error", "stream_error", None, raw_output="Grüß dich")),
    Case("error-after-tokens", streams("Grüß ", sse({"error": {"message": "busy", "type": "overloaded_error"}})), "error", _row("error", "stream_error", None, raw_output="Grüß ")),
    Case("error-in-a-200", lambda api: Script.stream(sse({"error": {"message": "boom"}})), "error", _row("error", "stream_error", None, 2)),
    Case("no-json-in-an-event", lambda api: Script.stream(api.text("Grüß "), sse('{"oops'), says(api, "dich")), "error", _row("error", "malformed_response", None, raw_output="Grüß ")),
    Case("a-page-with-502", lambda api: Script.answer("<html><title>Bad Gateway</title></html>", status=502, content_type="text/html", **NOW), "error", _row("error", "http_502", None, 2)),
    Case("wrong-route", lambda api: Script.answer("404 page not found", status=404, content_type="text/plain"), "error", _row("error", "http_404", None)),
    Case("too-long-for-it", refuses(400, {"message": "This model's maximum context length is 5 tokens."}), "error", _row("error", "context_overflow", None)),
    Case("redirected-elsewhere", lambda api: Script.answer(status=307, location="http://127.0.0.1:9/v1"), "error", _row("error", "http_307", None)),
    Case("silent", lambda api: Script.of(Hang()), "error", _row("error", "timeout", None, ttft_ms=None)),
    Case("stalled", streams("Grüß ", "dich", Hang()), "error", _row("error", "timeout", None, raw_output="Grüß dich")),
    Case("drips", streams(*["a", Pause(0.05)] * 400), "error", _row("error", "timeout", None)),
)  # fmt: skip


def test_a_bad_answer_affects_its_own_cell(project, monkeypatch):
    """Whatever a server does for one model, the cells of the others have their own rows and outcomes."""
    project.suite({"P1": ("Greet me.", {"type": "regex_fullmatch", "pattern": "Grüß dich 🦞\\."})})
    wanted = {f"{api.kind.name}/{case.model}": (api, case) for case in CASES for api in case.apis}
    words = (
        "--junitxml=junit.xml",
        "--openclaw-retries=1",
        "--openclaw-timeout=5",
        "--openclaw-concurrency=8",
    )

    with ModelServer({case.model: case.behavior for case in CASES}, keeps=False) as server:
        point_at(monkeypatch, server)
        session = project.run(*words, models=",".join(wanted))

    rows = {f"{row['provider']}/{row['model']}": row for row in session.rows}
    assert len(session.rows) == len(rows) == len(wanted)
    differing = {
        name: {key: rows[name][key] for key, value in case.row.items() if rows[name][key] != value}
        for name, (_, case) in wanted.items()
    }
    assert {name: found for name, found in differing.items() if found} == {}
    assert outcomes_by_cell(project.folder / "junit.xml") == {
        f"P1[{name}]": case.outcome for name, (_, case) in wanted.items()
    }
    assert session.status == 1
    assert {name: server.times(case.model, api) for name, (api, case) in wanted.items()} == {
        name: rows[name]["attempts"] for name in wanted
    }


def answers(api):
    return Script.stream(api.text("Hi."), api.end())


def at_first(*scripts):
    return lambda api: [*scripts, answers(api)]


def row_of(session, model):
    (row,) = (row for row in session.rows if (row["provider"], row["model"]) == (CHAT.kind.name, model))
    return row


def test_a_retry_does_not_pollute_a_latency(project, monkeypatch):
    """Times describe the attempt that counted: it began after the earlier one had ended, and the wait too."""
    slow_s = 0.3
    behaviors = {
        "answered": at_first(Script.of(Pause(slow_s), _busy(200))),
        "failed": lambda api: [Script.of(Pause(slow_s), _busy(200)), Script.of(_busy(200))],
    }
    project.suite({"P1": ("Hi", NOOP)})

    with ModelServer(behaviors) as server:
        point_at(monkeypatch, server)
        session = project.run("--openclaw-retries=1", models=",".join(behaviors))

    for model in behaviors:
        row = row_of(session, model)
        first = next(asked.at_s for asked in server.asked if asked.model == model)
        assert row["attempts"] == 2
        assert row["started_at_ms"] >= (first + slow_s) * 1000 + 200 - 50
        assert abs(row["ended_at_ms"] - row["started_at_ms"] - row["e2e_ms"]) <= 1


def _busy(wait_ms):
    return b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nretry-after-ms: %d\r\n\r\n" % wait_ms


@pytest.mark.parametrize(
    "warm_up",
    [
        pytest.param(Script.of(Reset()), id="reset"),
        pytest.param(Script.answer({"error": "model 'm' not found"}, status=404), id="404"),
    ],
)
def test_a_warm_up_that_fails(project, monkeypatch, warm_up):
    """It has no row and is not repeated; the cells are asked regardless, the first of them cold."""
    project.suite({f"P{n}": ("Hi", NOOP) for n in range(3)})

    with ModelServer({"m": answers}) as server:
        server.warm_up = warm_up
        point_at(monkeypatch, server)
        session = project.run(models="m")

    session.outcomes(passed=3)
    assert server.warm_ups == ["ollama_openai/m"]
    assert [row["attempts"] for row in session.rows] == [1, 1, 1]
    rows = sorted(session.rows, key=lambda row: row["started_at_ms"])
    assert [row["cold_start"] for row in rows] == [True, False, False]
    warm_up = session.load("inventory.json")["targets"]["ollama_openai/m"]["warm_up"]
    assert warm_up["ok"] is False
    assert warm_up["message"].startswith("ollama_openai: ")
    assert session.status == 0
