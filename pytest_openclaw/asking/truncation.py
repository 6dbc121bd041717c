"""Tells a prompt that its server has cut, silently, from one that it has read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.providers.lengths import fewest_tokens
from pytest_openclaw.types import faults

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Fault, Reply
    from pytest_openclaw.types.requests import Request

# Shorter prompts fit into every context; there a small count is a server's way of counting.
LEAST_WORDS = 256


def cut_prompt(name: str, request: Request, reply: Reply) -> Fault | None:
    """Return the fault of a reply to a prompt that was cut; None if nothing tells so.

    The server's own count tells: a prompt has more tokens than words. What came from a cache is part of that
    count in every API, but some servers count it apart; one that tells of more tokens from its cache than in
    the prompt must be one of these. A server that counts nothing is not judged.

    Args:
        name: the provider.
        request: what was sent.
        reply: what came back.
    """
    words = fewest_tokens(request)
    if not reply.input_tokens or words < LEAST_WORDS:
        return None
    cached = reply.cached_tokens or 0
    if reply.input_tokens + (cached if cached > reply.input_tokens else 0) >= words:
        return None
    return faults.context_cut(name, request.model, words, reply.input_tokens, reply.raw, reply.timing)
