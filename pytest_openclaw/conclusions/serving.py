"""Facts about a target's server, and how long one turn of OpenClaw waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal, TypeVar

from pytest_openclaw.values.requests import OPENCLAW

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.rows import Record

Known = TypeVar("Known", int, str)
PROMPT_TOKENS = 10_000
"""The size of OpenClaw's first request: 2026.9.6 sends 36 KB to a local model, 3.5 to 4 bytes a token."""
CONTEXT_TOKENS = 16_384
"""OpenClaw's onboarding sets it for a local model (its docs, start/onboarding and providers/ollama/setup)."""
REPLY_TOKENS = 4096
"""Room for thinking, answer and results of calls next to the prompt."""
BEARABLE_MS = 10_000.0
"""The limit for keeping a user's attention (Nielsen 1993, Usability Engineering, chapter 5)."""
ABORTED_MS = 300_000.0
"""Idle time after which OpenClaw aborts a request to a self-hosted model (its docs, concepts/agent-loop)."""


@dataclass(frozen=True, kw_only=True)
class OpenClawTurn:
    """How long one turn of OpenClaw waits for a target, and whether its prompt fits.

    Attributes:
        prompt_tokens: the size of OpenClaw's request, measured if cells were asked on the surface `openclaw`.
        wait_ms: until the first token, at the speed at which the server reads an uncached prompt; None if
            unknown.
        context_needed_tokens: the context that OpenClaw needs.
        context_tokens: the server's context; None if the server does not report it.
    """

    prompt_tokens: int
    wait_ms: float | None
    context_needed_tokens: int
    context_tokens: int | None

    @property
    def bearable(self) -> Literal["yes", "slow", "aborted"] | None:
        """Whether a user and OpenClaw will wait that long; None if unknown."""
        if self.wait_ms is None:
            return None
        return "aborted" if self.wait_ms > ABORTED_MS else "slow" if self.wait_ms > BEARABLE_MS else "yes"

    @property
    def fits(self) -> bool | None:
        """Whether the server's context suffices; None if unknown."""
        return None if self.context_tokens is None else self.context_tokens >= self.context_needed_tokens


def turn_of(answered: Sequence[Record], context_tokens: int | None) -> OpenClawTurn | None:
    """Return how long a turn waits; None if neither the speed nor the context is known."""
    speed = _prompt_speed(answered)
    sizes = [
        tokens
        for record in answered
        # The row of an exchange has the sum over all turns.
        if record.surface == OPENCLAW and (tokens := record.input_tokens) and not record.ended_by
    ]
    if speed is None and context_tokens is None:
        return None
    prompt_tokens = round(median(sizes)) if sizes else PROMPT_TOKENS
    return OpenClawTurn(
        prompt_tokens=prompt_tokens,
        wait_ms=round(prompt_tokens / speed * 1000) if speed else None,
        context_needed_tokens=max(CONTEXT_TOKENS, prompt_tokens + REPLY_TOKENS),
        context_tokens=context_tokens,
    )


def _prompt_speed(records: Iterable[Record]) -> float | None:
    """Return the prompt tokens read per second, over all prompts that were mostly not cached."""
    tokens = seconds = 0.0
    for record in records:
        read = (record.input_tokens or 0) - (record.cached_tokens or 0)
        if record.prompt_tokens_per_s and read > (record.cached_tokens or 0):
            tokens += read
            seconds += read / record.prompt_tokens_per_s
    return tokens / seconds if seconds else None


def context_in(inventory: JsonObject, label: str) -> int | None:
    """Return the context length that a target's server reports, the smallest if several do."""
    lengths = _reported(inventory, label, "context_length", int)
    return min(lengths, default=None)


def server_in(inventory: JsonObject, label: str) -> str | None:
    """Return the name of the program that serves a target; None if the program does not report it."""
    return next(iter(_reported(inventory, label, "server", str)), None)


def _reported(inventory: JsonObject, label: str, key: str, kind: type[Known]) -> list[Known]:
    servers = (serving.get("server") for serving in served_in(inventory, label))
    values = (server.get(key) for server in servers if isinstance(server, dict))
    return [value for value in values if isinstance(value, kind)]


def served_in(inventory: JsonObject, label: str) -> Iterator[JsonObject]:
    """Yield the known facts about how a target is served, from each part of a merged run."""
    for part in [inventory, *inventory.get("parts", ())]:
        if serving := (part.get("targets") or {}).get(label):
            yield serving
