"""A target's cost in time and tokens: of one turn of OpenClaw, and of one solved task."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_openclaw.values.requests import OPENCLAW

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.rows import Record

PROMPT_TOKENS = 10_000
"""Of OpenClaw's first request: 2026.9.6 sends a local model 36 KB, and 3.5 to 4 bytes are a token."""
CONTEXT_TOKENS = 16_384
"""Of a local model, by OpenClaw's onboarding (its docs, start/onboarding and providers/ollama/setup)."""
REPLY_TOKENS = 4096
"""Room for thinking, answer and results of calls beside the prompt."""
BEARABLE_MS = 10_000.0
"""The limit for keeping a user's attention (Nielsen 1993, Usability Engineering, chapter 5)."""
ABORTED_MS = 300_000.0
"""Idle time after which OpenClaw aborts a request to a self-hosted model (its docs, concepts/agent-loop)."""

Bearable = Literal["yes", "slow", "aborted"]


@dataclass(frozen=True, kw_only=True)
class OpenClawTurn:
    """How long a target lets one turn of OpenClaw wait, and whether its prompt fits.

    Attributes:
        prompt_tokens: of OpenClaw's request.
        is_measured: by cells on the surface `openclaw`; else computed from the speed of reading.
        cold_ms: to the first token if the whole prompt is read; None if unknown.
        cached_ms: the same if most of the prompt is in the server's cache; None if not measured.
        bearable: `yes` up to 10 s, of a cached prompt if that is known; `slow` up to 300 s; `aborted` if a
            cold one takes longer. None if unknown.
        context_needed_tokens: what OpenClaw needs.
        context_tokens: the server's; None if it does not report it.
    """

    prompt_tokens: int
    is_measured: bool
    cold_ms: float | None
    cached_ms: float | None
    bearable: Bearable | None
    context_needed_tokens: int
    context_tokens: int | None

    @property
    def fits(self) -> bool | None:
        """Whether the server's context suffices; None if it is not known."""
        return None if self.context_tokens is None else self.context_tokens >= self.context_needed_tokens


@dataclass(frozen=True, kw_only=True)
class PerSolved:
    """What all tasks together took, divided by the solved ones; None where a cell's figure is unknown.

    Attributes:
        n_tasks: answered cells with a verdict, without probes, their twins and harder forms.
        n_solved: those of them that passed.
        tokens: read and generated.
        turns: requests to the model.
        seconds: of the model, without retries and queues.
    """

    n_tasks: int
    n_solved: int
    tokens: float | None
    turns: float | None
    seconds: float | None
    cost_usd: float | None


def prompt_speed(records: Iterable[Record]) -> float | None:
    """Return the tokens of prompts read per second, over all tokens that came from no cache."""
    read = [
        (max(0, (record.input_tokens or 0) - (record.cached_tokens or 0)), record.prompt_tokens_per_s)
        for record in records
        if record.prompt_tokens_per_s
    ]
    seconds = sum(tokens / speed for tokens, speed in read)
    return round(sum(tokens for tokens, _ in read) / seconds, 1) if seconds else None


def turn_of(
    records: Sequence[Record], tokens_per_s: float | None, context_tokens: int | None
) -> OpenClawTurn | None:
    """Return what a turn takes; None if nothing is known of it."""
    turns = [one for record in records if (one := _first_turn(record))]
    if not turns and tokens_per_s is None and context_tokens is None:
        return None
    cold_ms = cached_ms = None
    prompt_tokens = PROMPT_TOKENS
    if turns:
        # All cells on this surface begin alike, so the first one fills the cache for the others.
        first, *others = turns
        prompt_tokens = round(median(turn.tokens for turn in turns))
        cold_ms = None if first.is_cached else first.ttft_ms
        cached = [
            turn.ttft_ms for turn in (turns if first.is_cached else others) if turn.is_cached is not False
        ]
        cached_ms = median(cached) if cached else None
    elif tokens_per_s is not None:  # not that of a prompt's rest behind the cache, which is read more slowly
        cold_ms = round(prompt_tokens / tokens_per_s * 1000)
    return OpenClawTurn(
        prompt_tokens=prompt_tokens,
        is_measured=bool(turns),
        cold_ms=cold_ms,
        cached_ms=cached_ms,
        bearable=_bearable(cold_ms, cached_ms),
        context_needed_tokens=max(CONTEXT_TOKENS, prompt_tokens + REPLY_TOKENS),
        context_tokens=context_tokens,
    )


class _FirstTurn(NamedTuple):
    """The first request of a cell on the surface `openclaw`.

    Attributes:
        is_cached: whether most of it came from a cache; None if the server does not say so.
    """

    tokens: int
    ttft_ms: int
    is_cached: bool | None


def _first_turn(record: Record) -> _FirstTurn | None:
    """Return the first turn of a row; None on another surface, or without its figures."""
    if record.surface != OPENCLAW or record.ttft_ms is None:
        return None
    tokens, cached = record.input_tokens, record.cached_tokens
    if len(turns := record.turns or ()) > 1:  # these are the sums of all turns
        tokens, cached = turns[0].get("input_tokens"), None
    if not tokens:
        return None
    return _FirstTurn(tokens, record.ttft_ms, None if cached is None else cached >= tokens / 2)


def per_solved(tasks: Sequence[Record]) -> PerSolved | None:
    """Return the cost of a solved task, misses included; None without a solved task."""
    n_solved = sum(record.objective_pass is True for record in tasks)
    if not n_solved:
        return None

    def each(values: Iterable[float | None]) -> float | None:
        known = [*values]
        return None if None in known else sum(value or 0 for value in known) / n_solved

    return PerSolved(
        n_tasks=len(tasks),
        n_solved=n_solved,
        tokens=each(_tokens(record) for record in tasks),
        turns=each(max(1, len(record.turns or ())) for record in tasks),
        seconds=each(record.e2e_ms / 1000 for record in tasks),
        cost_usd=each(record.cost_usd for record in tasks),
    )


def context_in(inventory: JsonObject, label: str) -> int | None:
    """Return the context length that a target's server reports, the smallest if several do."""
    lengths = _reported(inventory, label, "context_length")
    return min((length for length in lengths if isinstance(length, int)), default=None)


def server_in(inventory: JsonObject, label: str) -> str | None:
    """Return the program that serves a target, as it reports itself; None if it does not."""
    return next((name for name in _reported(inventory, label, "server") if isinstance(name, str)), None)


def _reported(inventory: JsonObject, label: str, key: str) -> list[object]:
    servers = [serving.get("server") for serving in served_in(inventory, label)]
    return [server.get(key) for server in servers if isinstance(server, dict)]


def served_in(inventory: JsonObject, label: str) -> Iterator[JsonObject]:
    """Yield what is known of a target's serving, in each part of a merged run."""
    for part in [inventory, *inventory.get("parts", ())]:
        if serving := (part.get("targets") or {}).get(label):
            yield serving


def wait_in_words(turn: OpenClawTurn) -> str:
    """Say how long a turn waits and whether that is bearable; empty if it is not known."""
    if turn.cold_ms is None and turn.cached_ms is None:
        return ""
    waits = [] if turn.cold_ms is None else [_seconds(turn.cold_ms)]
    waits += [] if turn.cached_ms is None else [f"{_seconds(turn.cached_ms)} from the cache"]
    unless = " unless they are cached" if turn.cached_ms is None else ""
    limit = {
        "yes": "",
        "slow": f"{unless}, longer than the {_seconds(BEARABLE_MS)} that are bearable",
        "aborted": f"{unless}, and OpenClaw aborts it after {_seconds(ABORTED_MS)}",
    }
    about = "" if turn.is_measured else "about "
    what = f"an OpenClaw turn of {turn.prompt_tokens:,} tokens waits {about}{', '.join(waits)}"
    return f"{what} for its first token{limit[turn.bearable or 'yes']}"


def context_in_words(turn: OpenClawTurn) -> str:
    """Say how much context OpenClaw needs, and how much the server has."""
    needed = f"OpenClaw needs {turn.context_needed_tokens:,} tokens of context"
    return needed if turn.context_tokens is None else f"{needed}, the server has {turn.context_tokens:,}"


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms < BEARABLE_MS else f"{ms / 1000:,.0f} s"


def _bearable(cold_ms: float | None, cached_ms: float | None) -> Bearable | None:
    if cold_ms is not None and cold_ms > ABORTED_MS:
        return "aborted"
    usual_ms = cold_ms if cached_ms is None else cached_ms
    if usual_ms is None:
        return None
    return "slow" if usual_ms > BEARABLE_MS else "yes"


def _tokens(record: Record) -> int | None:
    if record.input_tokens is None or record.output_tokens is None:
        return None
    return record.input_tokens + record.output_tokens
