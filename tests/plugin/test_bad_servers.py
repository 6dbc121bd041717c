"""Servers that misbehave, in whole sessions: each ends in its row, pytest's outcome and the exit status."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.plugin.bad_servers import Behavior, ModelServer, outcomes_by_cell, point_at
from tests.providers.servers.apis import (
    APIS,
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    Api,
    chat_chunk,
)
from tests.providers.servers.misbehaving import Close, Hang, Pause, Reset, Script, sse

pytestmark = pytest.mark.newest

TEXT = "Grüß dich 🦞."
FITS = {"type": "regex_fullmatch", "pattern": "Grüß dich 🦞\\."}
NOOP = {"type": "noop"}
ANSWERED = {"availability_status": "ok", "success": True, "failure_type": None}
PASSED = {**ANSWERED, "objective_pass": True, "raw_output": TEXT}
TEN_MB = 10_000_000
MOST_ROW_BYTES = 1 << 20


@dataclass(frozen=True)
class Case:
    """A model of this name, its server's behavior, and the expected row."""

    model: str
    behavior: Behavior
    row: dict[str, Any] = field(default_factory=dict)
    apis: tuple[Api, ...] = APIS


@dataclass(frozen=True)
class Line:
    """A line of the outcomes table, with all causes that lead to it."""

    cases: tuple[Case, ...]
    outcome: str
    row: dict[str, Any]
    status: int = 1
    validator: dict[str, Any] = field(default_factory=lambda: FITS)
    options: tuple[str, ...] = ()
    keeps: bool = True


def says(api: Api, *texts: str, end: str = "stop") -> bytes:
    """A stream's bytes: these texts and its end."""
    return b"".join(api.text(text) for text in texts or ("Grüß ", "dich 🦞.")) + api.end(end)


def calls(*pieces: str) -> bytes:
    """A stream's bytes: one call whose arguments arrive in these pieces, repeatedly."""
    events = [{"tool_calls": [{"index": 0, "id": "c", "function": {"name": "read"}}]}]
    events += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    return b"".join(sse(chat_chunk(event)) for event in events) + CHAT.end("tool_calls")


def refuses(status: int, error: Any, **headers: str) -> Behavior:
    """An error answer with an error object."""
    return lambda api: Script.answer({"error": error}, status=status, **headers)


def streams(*steps: Any) -> Behavior:
    """A stream of these texts and steps, without a regular end."""
    return lambda api: Script.stream(*(api.text(step) if isinstance(step, str) else step for step in steps))


ODD_BUT_RIGHT = (
    Case("plain", lambda api: Script.stream(says(api)), {"finish_reason": "stop"}),
    Case("not-streamed", lambda api: Script.answer(api.whole(TEXT)), {"ttft_ms": None, "output_tokens": 7}),
    Case("surrogates-in-two-events", lambda api: Script.stream(says(api, "Grüß dich \ud83e", "\udd9e."))),
    Case(
        "usage-at-the-end",
        lambda api: Script.stream(says(api)),
        {"input_tokens": 11, "output_tokens": 7, "reasoning_tokens": 5, "cached_tokens": 3},
    ),
    Case(
        "no-usage",
        lambda api: Script.stream(api.text(TEXT), sse(chat_chunk({}, "stop"), "[DONE]")),
        {"input_tokens": None, "output_tokens": None, "reasoning_tokens": None, "cached_tokens": None},
        apis=(CHAT,),
    ),
    Case(
        "no-usage",
        lambda api: Script.stream(api.text(TEXT), api.end().replace(b'"usage', b'"nothing')),
        {"input_tokens": None, "output_tokens": None, "reasoning_tokens": None, "cached_tokens": None},
        apis=(RESPONSES, MESSAGES, GEMINI),
    ),
    Case(
        "thinks-first",
        lambda api: Script.stream(api.reasoning("Hm."), says(api)),
        {"raw_output": f"<think>\nHm.\n</think>\n\n{TEXT}"},
    ),
)

RESET = {"failure_type": "connect_error", "attempts": 2, "raw_output": ""}
BROKEN = {"failure_type": "stream_error", "attempts": 1}
UNREADABLE = {"failure_type": "malformed_response", "attempts": 1}
NOW = {"retry_after": "0"}

CALL_OF_20_MB = {
    "tool_call_details": [{"id": "c", "name": "read", "arguments": "x" * 65536}],
    "raw_output": "",
    "truncated": True,
    "cut": ["tool_call_details"],
}

LINES = {
    "verdict-passed": Line(ODD_BUT_RIGHT, "passed", PASSED, status=0),
    "noop": Line(
        (
            Case("half-a-character", lambda api: Script.stream(says(api, "a\ud83eb")), {"raw_output": "a\ufffdb"}),
            Case("ten-megabytes", lambda api: Script.stream(*[api.text("x" * 100_000)] * 100, api.end()), {"raw_output": "x" * 65536, "truncated": True}, apis=(CHAT,)),
            Case("cut-by-length", lambda api: Script.stream(says(api, "a", end="length")), {"finish_reason": "length"}),
            Case("a-call-of-twenty-megabytes", lambda api: Script.stream(calls(*["x" * 100_000] * 200)), CALL_OF_20_MB, apis=(CHAT,)),
        ),
        "passed",
        {**ANSWERED, "objective_pass": None},
        status=0,
        validator=NOOP,
    ),
    "verdict-failed": Line(
        (
            Case("wrong", lambda api: Script.stream(says(api, "no")), {"raw_output": "no"}),
            Case("half-a-character", lambda api: Script.stream(says(api, "Grüß dich \ud83e."))),
            Case("cut-by-length", lambda api: Script.stream(says(api, "Grüß", end="length")), {"finish_reason": "length"}),
            Case("ten-megabytes", lambda api: Script.answer(api.whole("y" * TEN_MB)), {"truncated": True, "ttft_ms": None}, apis=(CHAT,)),
        ),
        "failed",
        {**ANSWERED, "objective_pass": False},
    ),
    "no-answer": Line(
        (
            Case("empty", lambda api: Script.stream(says(api, "")), {"failure_type": "empty_response"}),
            Case("null", lambda api: Script.answer(api.whole(None)), {"failure_type": "empty_response"}),
            Case("reasoning-only", lambda api: Script.stream(api.reasoning("Hm."), api.end()), {"failure_type": "empty_response", "raw_output": "<think>\nHm.\n</think>\n\n"}),
            Case("all-tokens-thought", lambda api: Script.stream(api.reasoning("Hm."), api.end("length")), {"failure_type": "empty_response", "finish_reason": "length"}),
            Case("refusal", lambda api: Script.stream(api.refusal("I will "), api.refusal("not."), api.end()), {"failure_type": "refusal", "raw_output": "I will not."}, apis=(CHAT, RESPONSES)),
            Case("refusal-by-its-end", lambda api: Script.stream(says(api, "I will ", "not.", end="refusal")), {"failure_type": "refusal", "raw_output": "I will not."}),
            Case("filtered", lambda api: Script.stream(says(api, "Gr", end="content_filter")), {"failure_type": "content_filter", "raw_output": "Gr"}),
            Case("filtered-at-once", refuses(400, {"message": "It was filtered.", "code": "content_filter"}), {"failure_type": "content_filter"}),
        ),
        "failed",
        {"availability_status": "ok", "success": False, "objective_pass": None, "attempts": 1},
    ),
    "nothing-there": Line(
        (
            Case("ollama-model", refuses(404, {"message": "model 'ollama-model' not found", "type": "api_error"})),
            Case("openai-model", refuses(404, {"message": "The model `openai-model` does not exist", "type": "invalid_request_error", "code": "model_not_found"})),
            Case("in-a-200", lambda api: Script.stream(sse({"error": {"code": "model_not_found", "message": "no"}}))),
        ),
        "skipped",
        {"availability_status": "skipped_unavailable", "success": False, "failure_type": "model_not_found", "objective_pass": None, "attempts": 1},
    ),
    "no-access": Line(
        (
            Case("wrong-key", refuses(401, {"message": "Incorrect API key provided", "code": "invalid_api_key"}), {"failure_type": "http_401"}),
            Case("forbidden", lambda api: Script.answer("<html><h1>403 Forbidden</h1></html>", status=403, content_type="text/html"), {"failure_type": "http_403"}),
            Case("in-a-200", lambda api: Script.stream(sse({"error": {"type": "authentication_error", "message": "no"}})), {"failure_type": "http_401"}),
        ),
        "error",
        {"availability_status": "auth_error", "success": False, "objective_pass": None, "attempts": 1},
    ),
    "too-much": Line(
        (
            Case("busy", refuses(429, {"message": "slow down", "type": "rate_limit_error"}, **NOW), {"failure_type": "http_429", "attempts": 2}),
            Case("no-quota", refuses(429, {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}, **NOW), {"failure_type": "quota_exhausted", "attempts": 1}),
            Case("pay-first", refuses(402, {"message": "Insufficient credits", "code": 402}), {"failure_type": "quota_exhausted", "attempts": 1}),
        ),
        "error",
        {"availability_status": "rate_limited", "success": False, "objective_pass": None},
        options=("--openclaw-retries=1",),
    ),
    "broken": Line(
        (
            Case("reset-before-headers", lambda api: Script.of(Reset()), RESET),
            Case("reset-in-stream", streams("Grüß ", "dich", Pause(0.05), Reset()), {**BROKEN, "raw_output": "Grüß dich"}),
            Case("no-end-mark", streams("Grüß ", "dich"), {**BROKEN, "raw_output": "Grüß dich"}),
            Case("error-after-tokens", streams("Grüß ", sse({"error": {"message": "busy", "type": "overloaded_error"}})), {**BROKEN, "raw_output": "Grüß "}),
            Case("error-in-a-200", lambda api: Script.stream(sse({"error": {"message": "boom"}})), {**BROKEN, "attempts": 2}),
            Case("overloaded-in-a-200", lambda api: Script.answer({"error": {"message": "busy", "type": "overloaded_error"}}), {"failure_type": "http_529", "attempts": 2}),
            Case("no-json-in-an-event", lambda api: Script.stream(api.text("Grüß "), sse('{"oops'), says(api, "dich")), {**UNREADABLE, "raw_output": "Grüß "}),
            Case("a-page", lambda api: Script.answer("<html><title>Log in</title></html>", content_type="text/html"), {**UNREADABLE, "raw_output": "<html><title>Log in</title></html>"}),
            Case("nothing", lambda api: Script.answer(b"", content_type="application/json"), UNREADABLE),
            Case("a-page-with-502", lambda api: Script.answer("<html><title>Bad Gateway</title></html>", status=502, content_type="text/html", **NOW), {"failure_type": "http_502", "attempts": 2}),
            Case("wrong-route", lambda api: Script.answer("404 page not found", status=404, content_type="text/plain"), {"failure_type": "http_404", "attempts": 1}),
            Case("bad-request", refuses(400, {"message": "unknown field"}), {"failure_type": "http_400", "attempts": 1}),
            Case("too-long-for-it", refuses(400, {"message": "This model's maximum context length is 5 tokens."}), {"failure_type": "context_overflow", "attempts": 1}),
            Case("redirected-elsewhere", lambda api: Script.answer(status=307, location="http://127.0.0.1:9/v1"), {"failure_type": "http_307", "attempts": 1}),
        ),
        "error",
        {"availability_status": "error", "success": False, "objective_pass": None},
        options=("--openclaw-retries=1",),
        keeps=False,
    ),
    "too-slow": Line(
        (
            Case("silent", lambda api: Script.of(Hang()), {"ttft_ms": None}),
            Case("stalled", streams("Grüß ", "dich", Hang()), {"raw_output": "Grüß dich"}),
            Case("drips", streams(*["a", Pause(0.05)] * 200)),
            Case("comments-only", streams(*[b": still here\n\n", Pause(0.05)] * 200), {"ttft_ms": None, "raw_output": ""}),
        ),
        "error",
        {"availability_status": "error", "failure_type": "timeout", "success": False, "objective_pass": None, "attempts": 1},
        options=("--openclaw-timeout=2", "--openclaw-concurrency=8"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", [pytest.param(line, id=name) for name, line in LINES.items()])
def test_each_misbehaviour_has_its_row_outcome_and_status(
    project: Any, monkeypatch: pytest.MonkeyPatch, line: Line
) -> None:
    """Whatever a server does, only its cell is affected, with one row, one outcome and one exit status."""
    project.suite({"P1": ("Greet me.", line.validator)})
    wanted = {f"{api.kind.name}/{case.model}": (api, case) for case in line.cases for api in case.apis}

    def behave(model: str) -> Behavior:
        return lambda api: wanted[f"{api.kind.name}/{model}"][1].behavior(api)

    behaviors = {case.model: behave(case.model) for case in line.cases}
    with ModelServer(behaviors, keeps=line.keeps) as server:
        point_at(monkeypatch, server)
        session = project.run("--junitxml=junit.xml", *line.options, models=",".join(wanted))

    rows = {f"{row['provider']}/{row['model']}": row for row in session.rows}
    assert len(session.rows) == len(rows) == len(wanted)
    assert max(map(len, (session.run_dir / "results.jsonl").read_bytes().splitlines())) <= MOST_ROW_BYTES
    differing = {
        name: {key: row[key] for key, value in {**line.row, **case.row}.items() if row[key] != value}
        for name, (_, case) in wanted.items()
        if (row := rows[name])
    }
    assert {name: found for name, found in differing.items() if found} == {}
    assert outcomes_by_cell(project.folder / "junit.xml") == {f"P1[{name}]": line.outcome for name in wanted}
    assert session.status == line.status
    assert {name: server.times(case.model, api) for name, (api, case) in wanted.items()} == {
        name: rows[name]["attempts"] for name in wanted
    }


BY_PROMPT = {
    "good": lambda api: Script.stream(says(api)),
    "wrong": lambda api: Script.stream(says(api, "no")),
    "empty": lambda api: Script.stream(says(api, "")),
    "reset": streams("Gr", Pause(0.05), Reset()),
    "closed": streams("Gr", Close()),
    "busy": refuses(503, {"message": "later"}),
}


def test_a_bad_answer_spoils_no_other_cell(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Good cells between bad ones pass, every cell has one row, and rates count replies only."""
    order = ("good", "reset", "good", "empty", "closed", "good", "busy", "wrong", "good")
    project.suite({f"P{n}": (word, FITS) for n, word in enumerate(order)})

    with ModelServer(BY_PROMPT) as server:
        point_at(monkeypatch, server)
        session = project.run("--openclaw-retries=0", models="m")

    session.outcomes(passed=4, failed=2, errors=3)
    assert session.status == 1
    assert sorted(row["prompt_id"] for row in session.rows) == [f"P{n}" for n in range(len(order))]
    (group,) = session.summary["groups"]
    assert (group["n_total"], group["n_error"]) == (9, 3)
    assert group["objective_pass_rate"] == pytest.approx(4 / 5)


def test_unknown_finish_words_are_listed(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept in the rows, and counted in the summary."""
    project.suite({"P1": ("good", FITS), "P2": ("bored", FITS), "P3": ("bored", FITS)})
    bored = lambda api: Script.stream(says(api, TEXT, end="bored"))  # noqa: E731

    with ModelServer({**BY_PROMPT, "bored": bored}) as server:
        point_at(monkeypatch, server)
        session = project.run(models="m")

    session.outcomes(passed=3)
    assert [session.row(name)["finish_reason"] for name in ("P1", "P2")] == ["stop", "bored"]


def test_what_is_not_there_beside_what_answers(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing model is skipped and does not fail a session in which another model answers."""
    project.suite({"P1": ("Greet me.", FITS)})
    missing = refuses(404, {"message": "model 'missing' not found"})

    with ModelServer({"good": BY_PROMPT["good"], "missing": missing}) as server:
        point_at(monkeypatch, server)
        session = project.run(models="missing,good")
        strict = project.run("--openclaw-run-id=strict", "--openclaw-fail-unavailable", models="missing,good")

    session.outcomes(passed=1, skipped=1)
    assert "model 'missing' not found" in " ".join(session.text.split())
    assert session.status == 0
    strict.outcomes(passed=1, errors=1)
    assert strict.status == 1


def test_without_a_key_no_request_is_sent(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote server without its key is an auth error that names the variable to set."""
    project.suite({"P1": ("Greet me.", FITS), "P2": ("Greet me.", FITS)})
    project.pytester.makeini(
        "[pytest]\nopenclaw_endpoints = far = openai_responses https://far.invalid/v1 FAR_KEY"
    )

    session = project.run(models="far/m")

    session.outcomes(errors=2)
    fields = {"availability_status": "auth_error", "failure_type": "auth_missing", "attempts": 0, "e2e_ms": 0}
    assert [{key: row[key] for key in fields} for row in session.rows] == [fields] * 2
    assert "far: there is no key. Set FAR_KEY." in session.text
    assert session.status == 1


CRASHING = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Crashing:
    type: ClassVar[str] = "crashing"

    def check(self, reply):
        raise ZeroDivisionError("the validator is broken")

def pytest_openclaw_validators():
    return [Crashing]
"""


def test_a_broken_validator_is_no_fault_of_the_model(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A validator that raises is an error with its traceback; the row keeps the model's reply."""
    project.pytester.makeconftest(CRASHING)
    project.suite({"P1": ("Greet me.", {"type": "crashing"})})

    with ModelServer({"good": BY_PROMPT["good"]}) as server:
        point_at(monkeypatch, server)
        session = project.run(models="good")

    session.outcomes(errors=1)
    row = session.row("P1")
    assert (row["availability_status"], row["failure_type"], row["raw_output"]) == (
        "error",
        "harness_error",
        TEXT,
    )
    assert "ZeroDivisionError: the validator is broken" in session.text
    assert "conftest.py" in session.text
    assert session.status == 1
