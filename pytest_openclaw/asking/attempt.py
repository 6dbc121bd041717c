"""One attempt: a provider is called once, within its timeout, and the result is made fit for a row.

Detects prompts that a server has silently cut, and speeds of prompts that were partly in its cache.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pytest_openclaw.asking.clipping import bounded_fault, bounded_reply
from pytest_openclaw.providers.bodies import fewest_tokens, texts_read
from pytest_openclaw.providers.prices import usages_of
from pytest_openclaw.providers.wire import count_in, positive_in
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.replies import Fault, Reply, Timing, Turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.requests import Request

T = TypeVar("T")

# A provider bounds its own attempt, to keep the partial reply; this bounds one that does not.
GRACE_S = 5.0
_NUMBERS: dict[str, Callable[[Any], float | None]] = {
    **dict.fromkeys(("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens"), count_in),
    **dict.fromkeys(("tokens_per_s", "prompt_tokens_per_s"), positive_in),
}


async def ask_once(
    provider: Provider, request: Request, cache: PromptCache | None = None
) -> tuple[Reply | Fault, Timing]:
    """Ask once; a provider's own times have precedence over those measured here, around the call."""
    cache = cache or PromptCache()
    may_be_cached = cache.add(request)
    if request.context:  # it is the last message
        request = replace(request, history=(*request.history, Turn(user=request.context)), context="")
    started = time.perf_counter()
    started_at_ms = epoch_ms(started)
    result: Reply | Fault
    try:
        # One that holds an exchange itself has the time for each turn.
        turns = request.most_turns if provider.plays_worlds else 1
        answered = await asyncio.wait_for(provider.ask(request), request.timeout_s * turns + GRACE_S)
        reply = bounded_reply(_checked(answered))
        if cut := cut_prompt(provider.setup.name, request, reply, cache.most_tokens):
            result = replace(cut, usage=usages_of(reply), cut=reply.cut)  # its tokens are charged
        else:
            cache.most_tokens = max(cache.most_tokens, reply.input_tokens or 0)
            # The server timed what it read, and does not say how much that was.
            is_unknown = may_be_cached and reply.cached_tokens is None
            result = replace(reply, prompt_tokens_per_s=None) if is_unknown else reply
    except CallFailed as failed:
        result = bounded_fault(faults.checked(failed.fault))
    except TimeoutError:
        result = faults.timed_out(provider.setup.name, request.timeout_s)
    e2e_ms = (time.perf_counter() - started) * 1000
    outside = Timing(started_at_ms=started_at_ms, ended_at_ms=started_at_ms + round(e2e_ms), e2e_ms=e2e_ms)
    return result, result.timing or outside


def _checked(reply: Reply) -> Reply:
    """Return a plugin's reply; raise `TypeError` if it is not one, or cannot be written to a row."""
    if not isinstance(reply, Reply):
        raise TypeError(f"a provider's ask returns a Reply, not {type(reply).__name__}")
    for name, read in _NUMBERS.items():
        if (value := getattr(reply, name)) is not None and read(value) is None:
            raise TypeError(f"Reply.{name} cannot be {value!r}")
    return reply


# --- what a server has read ---------------------------------------------------------------------

_FIRST_WORDS = 16


class PromptCache:
    """The prompts that were sent to one model. A server reads only the rest of one that begins like another.

    Attributes:
        most_tokens: the largest count of a prompt that the server has read completely.
    """

    def __init__(self) -> None:
        self.most_tokens = 0
        self._sent: set[str] = set()

    def add(self, request: Request) -> bool:
        """Note a request that is about to be sent; return whether a part of it may be in the cache.

        Its tools or its first words were sent before; templates differ in which of them comes first.
        """
        tools = json.dumps([[tool.name, tool.description, dict(tool.parameters)] for tool in request.tools])
        words = " ".join(" ".join(texts_read(request)).split()[:_FIRST_WORDS])
        starts = {words, tools} if request.tools else {words}
        may_be_cached = not starts.isdisjoint(self._sent)
        self._sent |= starts
        return may_be_cached


# Shorter prompts fit into every context; a small count is then the server's way of counting.
LEAST_WORDS = 256
# No context is smaller.
LEAST_CONTEXT_TOKENS = 64


def cut_prompt(name: str, request: Request, reply: Reply, most_tokens: int = 0) -> Fault | None:
    """Return the fault of a reply to a prompt that was cut; None if there is no sign of it.

    The sign is the server's own count: a prompt has more tokens than words. A server without counts is not
    checked. Some servers count only what was not in their cache (Ollama 0.30.0), and a count can be too small
    for a cut prompt: its server keeps the system prompt and the last message, or half of its context.
    """
    counted, words = reply.input_tokens or 0, fewest_tokens(request)
    cached = reply.cached_tokens or 0
    counted += cached if cached > counted else 0
    if not counted or words < LEAST_WORDS or counted >= words:
        return None
    last = request.conversation[-1]
    last_text = last.results[-1] if last.results else last.user or ""
    kept = len((request.system or "").split()) + len(last_text.split())
    if counted < min(kept, max(most_tokens // 2, LEAST_CONTEXT_TOKENS)):
        return None
    return faults.context_cut(name, request.model, words, counted, reply.raw, reply.timing)
