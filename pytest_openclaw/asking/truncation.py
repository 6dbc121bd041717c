"""Detects prompts that a server has silently cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.providers.lengths import fewest_tokens
from pytest_openclaw.types import faults

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Fault, Reply
    from pytest_openclaw.types.requests import Request

# Shorter prompts fit into every context; a small count is then the server's way of counting.
LEAST_WORDS = 256


def cut_prompt(name: str, request: Request, reply: Reply) -> Fault | None:
    """Return the fault of a reply to a prompt that was cut; None if there is no sign of it.

    The sign is the server's own count: a prompt has more tokens than words. Cached tokens are part of that
    count in every API, but some servers count them separately; one that reports more cached tokens than
    prompt tokens must be one of these. A server without counts is not checked.

    Args:
        name: of the provider.
        request: the request.
        reply: its reply.
    """
    if not reply.input_tokens or (words := fewest_tokens(request)) < LEAST_WORDS:
        return None
    cached = reply.cached_tokens or 0
    if reply.input_tokens + (cached if cached > reply.input_tokens else 0) >= words:
        return None
    return faults.context_cut(name, request.model, words, reply.input_tokens, reply.raw, reply.timing)
