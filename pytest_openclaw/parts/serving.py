"""Serving: how long one turn of OpenClaw waits for a target, and whether its prompt fits the context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from pytest_openclaw.conclusions.recommendation import Evidence, Point, Testimony
from pytest_openclaw.conclusions.summary import Group
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values.parts import Part, PartKey
from pytest_openclaw.values.requests import OPENCLAW
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.run_files import reported

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
    tokens = seconds = 0.0
    for record in records:
        read = (record.input_tokens or 0) - (record.cached_tokens or 0)
        if record.prompt_tokens_per_s and read > (record.cached_tokens or 0):
            tokens += read
            seconds += read / record.prompt_tokens_per_s
    return tokens / seconds if seconds else None


def context_in(inventory: JsonObject, label: str) -> int | None:
    """Return the context length that a target's server reports, the smallest if several do."""
    lengths = reported(inventory, label, "context_length", int)
    return min(lengths, default=None)


def _points(turn: OpenClawTurn | None) -> Iterator[Point]:
    if turn and turn.wait_ms is not None:
        limit = {
            "slow": f" unless they are cached, longer than the {_seconds(BEARABLE_MS)} that are bearable",
            "aborted": f" unless they are cached, and OpenClaw aborts it after {_seconds(ABORTED_MS)}",
        }
        what = f"an OpenClaw turn of {turn.prompt_tokens:,} tokens waits about {_seconds(turn.wait_ms)}"
        code = f"turn_{turn.bearable}" if turn.bearable in limit else "turn"
        yield Point(code, f"{what} for its first token{limit.get(turn.bearable or '', '')}")
    if turn and turn.fits is False:
        needed = f"OpenClaw needs {turn.context_needed_tokens:,} tokens of context"
        yield Point("context_too_small", f"{needed}, the server has {turn.context_tokens:,}")


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms < BEARABLE_MS else f"{ms / 1000:,.0f} s"


def _turn(evidence: Evidence) -> OpenClawTurn | None:
    return turn_of(evidence.answered, context_in(evidence.inventory, evidence.label))


def _testify(evidence: Evidence) -> Testimony:
    points = [*_points(_turn(evidence))]
    return Testimony(reasons=points, caveats=[(40, point) for point in points if point.code != "turn"])


PART = Part(
    keys={
        Group: {
            "openclaw_turn": PartKey(
                OpenClawTurn | None,
                "how long one turn of OpenClaw would wait, and whether its prompt fits; None if unknown.",
                "tokens_per_s_interval_95",
                _turn,
            )
        }
    },
    testify=_testify,
)
