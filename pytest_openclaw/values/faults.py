"""Every failure of a cell, and the status, failure type and pytest outcome of each.

Providers call one function per failure; `outcome_of` maps a reply or a fault to a row's status.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any, Literal, get_args

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.signals import how_it_ended, was_ended_from_outside
from pytest_openclaw.util.text import cut, valid_text
from pytest_openclaw.values.replies import (
    MALFORMED_CALL,
    UNEXPECTED_CALL,
    AvailabilityStatus,
    Fault,
    FaultScope,
    PytestOutcome,
    Reply,
    Timing,
    Verdict,
)

NO_IMAGES, NO_TOOLS = "no_image_input", "no_tools"
FAILURE_TYPES: Mapping[str, str] = {
    "empty_response": "the model said nothing",
    "refusal": "the model refused, as the API says",
    "content_filter": "a filter withheld the answer",
    "auth_missing": "there is no key, or no login; nothing was sent",
    "quota_exhausted": "the credit or the quota is used up; never tried again",
    "budget_spent": "`--openclaw-budget-usd` was reached; no request was sent",
    "model_not_found": "the server does not know the model",
    "not_installed": "a program, weights or an ability that asking needs is not there; nothing was sent",
    "connect_error": "no server answers there, or the connection was lost before any answer",
    "timeout": "no complete answer in time",
    "stream_error": "the answer broke off or ended in an error after tokens; the received part is kept",
    "malformed_response": "the answer is not of the form that its API promises, or is too long",
    "context_overflow": "the prompt does not fit into the model's context, or was cut to fit",
    NO_IMAGES: "the model, or its server, takes no images; the prompt has some",
    NO_TOOLS: "the model, or its server, takes no tools, or not these; the prompt offers some",
    "cli_error": "a command line program ended without an answer",
    "harness_error": "our own code, a validator or a plugin's provider broke, judging took too long, or a "
    "signal from outside ended a program",
    "exception": "the original harness's word for anything that broke; only in rows that were read",
}
"""The closed set of `failure_type`, and what each means; `http_<status>` is the only other form."""

BUDGET_SPENT = "budget_spent"
UNPRICED = frozenset({"timeout", "stream_error", "malformed_response", "cli_error", "harness_error"})
"""Faults after which a server may charge for generated tokens that it has not reported."""
RETRYABLE_STATUSES = frozenset({408, 409, 429, 498, 500, 502, 503, 504, *range(520, 528), 529, 530})
"""Among them Groq's code of a full tier, and Cloudflare's codes for a silent server: 520 to 527 and 530."""
STATUSES: tuple[AvailabilityStatus, ...] = get_args(AvailabilityStatus)


class CallFailed(OpenClawError):
    """An attempt ended without a reply; raised by providers."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def checked(fault: Fault) -> Fault:
    """Return a plugin's fault, which may have been made without the functions below.

    Raises:
        ValueError: its failure type or its status is unknown.
    """
    failure_type = fault.failure_type
    is_known = failure_type in FAILURE_TYPES or re.fullmatch(r"http_[1-5][0-9][0-9]", failure_type)
    if not is_known or fault.status not in STATUSES:
        unknown = fault.status if is_known else failure_type
        raise ValueError(f"{unknown!r} is not known; make faults by pytest_openclaw.values.faults")
    return fault


# --- failures on the way to a reply -----------------------------------------------------------------


def _error(failure_type: str, message: str, **more: Any) -> Fault:
    return Fault(failure_type=failure_type, status="error", message=message, **more)


def _unsent(message: str, failure_type: str = "not_installed", **more: Any) -> Fault:
    facts: dict[str, Any] = {"status": "skipped_unavailable", "sent": False, **more}
    return Fault(failure_type=failure_type, message=message, **facts)


def unreachable(name: str, where: str, why: str) -> Fault:
    """A refused connection or an unknown host: no cell can reach this server."""
    message = f"{name}: nothing answers at {where} ({why})."
    return _unsent(message, "connect_error", scope="endpoint", sent=True)


def connection_lost(name: str, why: str) -> Fault:
    """The connection was reset or closed before any byte of an answer."""
    message = f"{name}: the connection was lost before any answer ({why})."
    return _error("connect_error", message, retryable=True)


def timed_out(name: str, timeout_s: float, raw: str = "") -> Fault:
    """The whole attempt took too long; the text received so far is kept."""
    hint = "Raise --openclaw-timeout, or the prompt's timeout_s."
    return _error("timeout", f"{name}: no complete answer within {timeout_s:g} s. {hint}", raw=raw)


def stream_broken(name: str, why: str, raw: str = "") -> Fault:
    """A stream ended without its end mark, or ended in an error after tokens."""
    return _error("stream_error", f"{name}: the stream broke: {why}.", raw=raw)


def malformed(name: str, why: str, raw: str = "") -> Fault:
    """The answer does not have the form that its API promises."""
    return _error("malformed_response", f"{name}: the answer cannot be read: {why}.", raw=raw)


def auth_missing(name: str, hint: str) -> Fault:
    """There are no credentials, so nothing was sent."""
    return _unsent(f"{name}: {hint}", "auth_missing", status="auth_error", scope="target")


def not_installed(name: str, why: str, scope: FaultScope = "endpoint") -> Fault:
    """A program, a model or an ability that the request needs is not on this machine."""
    return _unsent(f"{name}: {why}", scope=scope)


def cannot_play(name: str, why: str) -> Fault:
    """A provider cannot send this prompt, but may send others."""
    return _unsent(f"{name}: not asked: {why}")


def budget_spent(name: str, budget_usd: float) -> Fault:
    """The budget is spent; no more requests are sent."""
    return _unsent(f"{name}: not asked: the budget of {budget_usd:g} USD is spent.", BUDGET_SPENT)


def takes_no(what: Literal["tools", "messages", "images"], name: str) -> Fault:
    """A provider would leave out a part of the prompt, and so ask another question."""
    attribute = "images in its takes" if what == "images" else f"takes_{what} = True"
    hint = f"If it is your own, send request.{what}, and set {attribute} on its class."
    return cannot_play(name, f"the prompt has {what}, which this provider does not send. {hint}")


def sees_no_images(name: str, model: str) -> Fault:
    """A server would answer without the images of a prompt, because its model takes none."""
    why = f"the server says that {model} takes no images. Ask a model with vision."
    return _unsent(f"{name}: not asked: {why}", NO_IMAGES)


def context_cut(
    name: str, model: str, sent_words: int, counted_tokens: int, raw: str = "", timing: Timing | None = None
) -> Fault:
    """The server cut the prompt and answered the rest of it, so the answer is to another question."""
    message = (
        f"{name}: the prompt was cut to fit {model}'s context: {sent_words} words were sent, and the server "
        f"counted {counted_tokens} prompt tokens. Raise the server's context (num_ctx, in Ollama)."
    )
    return _error("context_overflow", message, raw=raw, timing=timing)


def cli_failed(name: str, why: str, raw: str = "") -> Fault:
    """A command line program ended without an answer, for a reason of its own."""
    return _error("cli_error", f"{name}: {why}", raw=raw)


def program_ended(name: str, program: str, status: int | None, words: str = "", raw: str = "") -> Fault:
    """Return the fault of a program that ended without an answer.

    A signal that ends programs from outside is an error of the harness; any other end is the program's own.
    """
    failure_type = "harness_error" if was_ended_from_outside(status) else "cli_error"
    return _error(failure_type, f"{name}: {program} {how_it_ended(status)}{words}.", raw=raw)


def broke(name: str, why: str) -> Fault:
    """Our own code, a validator, a plugin or the machine failed; the model did not cause it."""
    return _error("harness_error", f"{name}: {why}")


def not_asked(first: Fault) -> Fault:
    """A cell is not asked because the fault `first` of an earlier cell applies to it too."""
    message = f"not asked: {first.message}"
    return Fault(failure_type=first.failure_type, status=first.status, message=message, scope=first.scope)


def in_a_row(same: Sequence[Fault]) -> Fault:
    """Cells of a target, one after the other, ended with the same fault, so it is down."""
    last = same[-1]
    message = f"{last.message.removesuffix('.')}; {len(same)} cells in a row ended so."
    return replace(last, message=message, scope="target")


# --- errors of servers ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class WireError:
    """An error in a server's own words; each part as far as it is given.

    Attributes:
        status: the HTTP status, or the number that an error object in a stream carries.
        code, type: the short words of error objects; of Google's, `type` has all of them.
        written: the model's text of a call that the server could not read.
    """

    status: int | None = None
    code: str = ""
    type: str = ""
    message: str = ""
    retry_after_s: float | None = None
    written: str = ""


_MOST_SERVED, _MOST_COMPARED, _LONGEST_NAME, _LONGEST_WORDS = 8, 1000, 80, 2000


@cache
def _words() -> tuple[Mapping[str, re.Pattern[str]], Mapping[str, int], Mapping[str, Mapping[str, Any]]]:
    """Return patterns, statuses and meanings of `server_errors.toml`, which only a failing server needs."""
    text = resources.files("pytest_openclaw.values").joinpath("server_errors.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    status, meaning = tables.pop("status"), tables.pop("meaning")
    patterns = {kind: re.compile("|".join(words), re.IGNORECASE) for kind, words in tables.items()}
    return patterns, status, meaning


def with_served(fault: Fault, model: str, served: Sequence[str]) -> Fault:
    """Return a fault of an unknown model whose message names the models that there are."""
    if not served:
        return fault
    served = [cut(name, _LONGEST_NAME) for name in served[:_MOST_COMPARED]]
    names = [*dict.fromkeys([*get_close_matches(cut(model, _LONGEST_NAME), served, n=_MOST_SERVED), *served])]
    more = f" and {len(names) - _MOST_SERVED} more" if len(names) > _MOST_SERVED else ""
    shown = valid_text(", ".join(names[:_MOST_SERVED]))
    return replace(fault, message=f"{fault.message.rstrip('.')}. It has {shown}{more}.")


def after_attempts(fault: Fault, attempts: int, *, was_too_long: bool) -> Fault:
    """Return the last fault with the number of attempts and the wait that was obeyed or was too long."""
    wait_s = fault.retry_after_s if fault.retryable else None
    if attempts == 1 and (wait_s is None or not was_too_long):
        return fault
    tries = f"Tried {attempts} times" if attempts > 1 else "Tried once"
    if wait_s is not None:
        tries += f" (Retry-After: {wait_s:g} s, {'longer than the timeout' if was_too_long else 'obeyed'})"
    return replace(fault, message=f"{fault.message.rstrip('.')}. {tries}.")


_AVAILABILITY: Mapping[int, AvailabilityStatus] = {401: "auth_error", 403: "auth_error", 429: "rate_limited"}
SHORT_WAIT_S = 120.0
"""A quota is not used up if the server itself asks for a shorter wait."""


def refused_by_server(
    name: str, model: str, error: WireError, *, retry_after_s: float | None = None
) -> Fault:
    """Return the meaning of an error answer: by its own words first, by its HTTP status second."""
    # The patterns take microseconds for each character.
    code, type_, said = (cut(word, _LONGEST_WORDS) for word in (error.code, error.type, error.message))
    error = replace(error, code=code, type=type_, message=said)
    status = error.status or _status_of(error)
    reason = error.message or error.code or error.type or "no reason given"
    if error.written:
        why = f"the server cannot read a call of {model}: {reason}"
        return replace(malformed(name, why), written=error.written)
    wait_s = error.retry_after_s if retry_after_s is None else retry_after_s
    kind = _kind_of(replace(error, retry_after_s=wait_s), status, model)
    if meaning := _words()[2].get(kind or ""):
        values = {"status": error.status or 401, "model": model}
        return Fault(
            failure_type=meaning["failure_type"].format(**values),
            status=meaning["status"],
            message=f"{name}: {meaning['what'].format(**values)}: {reason}",
            scope=meaning["scope"],
        )
    may_recover, is_limited = kind != "permanent", kind == "moment" and status == 403
    if status is None or kind == "broken":
        return replace(stream_broken(name, f"the server says: {reason}"), retryable=may_recover)
    if not 100 <= status <= 599:
        return malformed(name, f"there is no HTTP status {status} ({reason})")
    return Fault(
        failure_type=f"http_{status}",
        status="rate_limited" if is_limited else _AVAILABILITY.get(status, "error"),
        message=f"{name}: HTTP {status}: {reason}",
        retryable=is_limited or (may_recover and status in RETRYABLE_STATUSES),
        retry_after_s=wait_s,
        scope="target" if status == 401 else "cell",
    )


def _kind_of(error: WireError, status: int | None, model: str) -> str | None:
    """Return the first table of `server_errors.toml` with words of the error, with `moment` as the last."""
    words = f"{error.code} {error.type} {error.message}".replace("\u2019", "'")
    wait_s, patterns = error.retry_after_s, _words()[0]
    is_brief = patterns["moment"].search(words) or 0 < (wait_s or 0) < SHORT_WAIT_S
    passed_over = {"moment", "busy"}
    if is_brief or patterns["busy"].search(words):
        passed_over |= {"model", "quota"} if is_brief else {"model"}
    for kind, pattern in patterns.items():
        if kind in passed_over:
            continue
        if pattern.search(words) or (kind == "model" and _lacks_model(status, words.lower(), model)):
            return kind
    return "spent" if status == 402 else "moment" if is_brief else None


def _status_of(error: WireError) -> int | None:
    for word in (error.code, *error.type.split()):
        if re.fullmatch(r"[45][0-9][0-9]", word):
            return int(word)
        if status := _words()[1].get(word.lower()):
            return status
    return None


def _lacks_model(status: int | None, words: str, model: str) -> bool:
    """Whether an error says so; with no status, or of any request, it must name the model."""
    signs = ("model" in words, model.lower() in words, "not found" in words)
    return sum(signs) >= {410: 1, 404: 2, 400: 3, None: 3}.get(status, 4)


# --- outcomes ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A cell's outcome in its row and in pytest."""

    status: AvailabilityStatus
    success: bool
    failure_type: str | None
    pytest: PytestOutcome


def outcome_of(result: Reply | Fault, verdict: Verdict | None = None) -> Outcome:
    """Map the result of a cell's call, and the verdict on a reply if it was judged, to its outcome."""
    status: AvailabilityStatus = result.status if isinstance(result, Fault) else "ok"
    failure = result.failure_type if isinstance(result, Fault) else _no_answer(result)
    pytest: PytestOutcome = "passed"
    if status != "ok":
        pytest = "skipped" if status == "skipped_unavailable" else "error"
    elif failure or (verdict is not None and verdict.passed is False):
        pytest = "failed"
    return Outcome(status=status, success=failure is None, failure_type=failure, pytest=pytest)


def _no_answer(reply: Reply) -> str | None:
    """Return why a reply has no answer: filtered, refused or empty; a tool call is one, even if malformed."""
    if reply.finish_reason == "content_filter":
        return "content_filter"
    if reply.refusal is not None or reply.finish_reason == "refusal":
        return "refusal"
    has_call = reply.tool_calls or reply.finish_reason in (MALFORMED_CALL, UNEXPECTED_CALL)
    if not reply.text.strip(" \t\r\n") and not has_call:
        return "empty_response"
    return None
