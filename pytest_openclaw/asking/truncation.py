"""Detects prompts that a server has silently cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.providers.lengths import fewest_tokens
from pytest_openclaw.types import faults

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Fault, Reply, Turn
    from pytest_openclaw.types.requests import Request

# Shorter prompts fit into every context; a small count is then the server's way of counting.
LEAST_WORDS = 256
# No context is smaller.
LEAST_CONTEXT_TOKENS = 64


def cut_prompt(name: str, request: Request, reply: Reply, most_tokens: int = 0) -> Fault | None:
    """Return the fault of a reply to a prompt that was cut; None if there is no sign of it.

    The sign is the server's own count: a prompt has more tokens than words. A server without counts is not
    checked. Some servers count only what was not in their cache (Ollama 0.30.0), and a count can be too small
    for a cut prompt: its server keeps the system prompt and the last message, or half of its context.

    Args:
        name: of the provider.
        request: the request.
        reply: its reply.
        most_tokens: the largest count of a prompt that this model has read completely.
    """
    counted, words = reply.input_tokens or 0, fewest_tokens(request)
    cached = reply.cached_tokens or 0
    counted += cached if cached > counted else 0
    if not counted or words < LEAST_WORDS or counted >= words:
        return None
    kept = len((request.system or "").split()) + _n_words(request.conversation[-1])
    if counted < min(kept, max(most_tokens // 2, LEAST_CONTEXT_TOKENS)):
        return None
    return faults.context_cut(name, request.model, words, counted, reply.raw, reply.timing)


def _n_words(turn: Turn) -> int:
    last = turn.results[-1] if turn.results else turn.user or ""
    return len(last.split())
