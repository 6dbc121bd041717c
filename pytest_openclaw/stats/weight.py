"""A target's cost in time and tokens: of one turn of OpenClaw, and of one solved task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.records import Record

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
        cold_ms: to the first token if the whole prompt is read, computed from the speed; None if unknown.
        bearable: `yes` up to 10 s, `slow` up to 300 s; then OpenClaw aborts the request. None if unknown.
        context_needed_tokens: what OpenClaw needs.
        context_tokens: the server's; None if it does not report it.
    """

    prompt_tokens: int
    cold_ms: float | None
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
    read = [(_uncached(record), record.prompt_tokens_per_s) for record in records]
    seconds = [tokens / speed for tokens, speed in read if speed]
    return round(sum(tokens for tokens, speed in read if speed) / sum(seconds), 1) if any(seconds) else None


def turn_of(tokens_per_s: float | None, context_tokens: int | None) -> OpenClawTurn | None:
    """Return the cost of a turn; None if it is unknown.

    Args:
        tokens_per_s: of the prompt, see `prompt_speed`.
        context_tokens: the server's.
    """
    if tokens_per_s is None and context_tokens is None:
        return None
    cold_ms = None if tokens_per_s is None else round(PROMPT_TOKENS / tokens_per_s * 1000)
    return OpenClawTurn(
        prompt_tokens=PROMPT_TOKENS,
        cold_ms=cold_ms,
        bearable=None if cold_ms is None else _bearable(cold_ms),
        context_needed_tokens=max(CONTEXT_TOKENS, PROMPT_TOKENS + REPLY_TOKENS),
        context_tokens=context_tokens,
    )


def per_solved(tasks: Sequence[Record]) -> PerSolved | None:
    """Return the cost of a solved task, misses included; None without a solved task.

    Args:
        tasks: judged cells.
    """
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
    found = [serving.get("server") for serving in served_in(inventory, label)]
    lengths = [server.get("context_length") for server in found if isinstance(server, dict)]
    return min((length for length in lengths if isinstance(length, int)), default=None)


def served_in(inventory: JsonObject, label: str) -> Iterator[JsonObject]:
    """Yield what is known of a target's serving on each machine, and in each part of a merged run."""
    parts = [inventory, *inventory.get("parts", ())]
    for place in [*parts, *(host for part in parts for host in (part.get("hosts") or {}).values())]:
        if serving := (place.get("targets") or {}).get(label):
            yield serving


def wait_in_words(turn: OpenClawTurn) -> str:
    """Say how long a turn waits and whether that is bearable; empty if it is not known."""
    if turn.cold_ms is None:
        return ""
    what = f"an OpenClaw turn of {turn.prompt_tokens:,} tokens"
    waits = f"{what} waits about {_seconds(turn.cold_ms)} for its first token"
    limit = {
        "yes": "",
        "slow": f" unless they are cached, longer than the {_seconds(BEARABLE_MS)} that are bearable",
        "aborted": f" unless they are cached, and OpenClaw aborts it after {_seconds(ABORTED_MS)}",
    }
    return waits + limit[turn.bearable or "yes"]


def context_in_words(turn: OpenClawTurn) -> str:
    """Say how much context OpenClaw needs, and how much the server has."""
    needed = f"OpenClaw needs {turn.context_needed_tokens:,} tokens of context"
    return needed if turn.context_tokens is None else f"{needed}, the server has {turn.context_tokens:,}"


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms < BEARABLE_MS else f"{ms / 1000:,.0f} s"


def _bearable(first_token_ms: float) -> Bearable:
    if first_token_ms > ABORTED_MS:
        return "aborted"
    return "slow" if first_token_ms > BEARABLE_MS else "yes"


def _uncached(record: Record) -> int:
    return max(0, (record.input_tokens or 0) - (record.cached_tokens or 0))


def _tokens(record: Record) -> int | None:
    if record.input_tokens is None or record.output_tokens is None:
        return None
    return record.input_tokens + record.output_tokens
