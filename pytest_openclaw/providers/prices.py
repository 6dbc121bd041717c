"""Computes the cost of calls in US dollars: the user's own prices, 0 on this machine, else list prices.

The list is genai-prices, in the extra `cost`. It is loaded only for targets on the internet, whose cost is
unknown without it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from math import fsum
from typing import TYPE_CHECKING, Any

from pytest_openclaw.providers.wire import most_tokens
from pytest_openclaw.values.replies import Fault, Reply, Timing, Usage
from pytest_openclaw.values.requests import Request, Target, label_fits

if TYPE_CHECKING:
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.settings import OwnPrice, Settings

_MILLION = 1_000_000
_DIGITS = 12


class Prices:
    """The prices of a run's calls."""

    def __init__(self, providers: Mapping[str, Provider], settings: Settings) -> None:
        self._providers = providers
        self._own = settings.prices

    def needs_list(self, target: Target) -> bool:
        """Whether the target's price could be only in the list."""
        provider = self._providers[target.provider]
        return not (self._own_price(target) or provider.is_free) and provider.billed_at is not None

    def is_known(self, target: Target) -> bool:
        """Whether the price is known."""
        return self.estimate_usd(target, Usage(input_tokens=1, output_tokens=1)) is not None

    def is_free(self, target: Target) -> bool:
        """Whether calls to the target cost nothing, and the user sets no price for it."""
        return self._own_price(target) is None and self._providers[target.provider].is_free

    def cost_usd(self, target: Target, result: Reply | Fault, at_ms: int) -> float | None:
        """Return the cost of an attempt, at its time; None if the price or the counts are unknown.

        A fault costs the tokens that the server has counted, perhaps only the input.
        """
        if self.is_free(target):
            return 0.0
        usages = usages_of(result) if isinstance(result, Reply) else map(_known, result.usage)
        return _sum([self.estimate_usd(target, usage, at_ms) for usage in usages])

    def estimate_usd(self, target: Target, usage: Usage, at_ms: int | None = None) -> float | None:
        """Return the cost of this usage of the target, now or at a time; None if its price is not known."""
        if self.is_free(target):
            return 0.0
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        if own := self._own_price(target):
            n_cached = usage.cached_tokens or 0
            usd = (usage.input_tokens - n_cached) * own.input_usd + n_cached * own.cached_usd
            return round((usd + usage.output_tokens * own.output_usd) / _MILLION, _DIGITS)
        where = self._providers[target.provider].billed_at
        return None if where is None else _list_price(where, usage.model or target.model, usage, at_ms)

    def most_usd(self, target: Target, request: Request) -> float:
        """Return an upper bound of a request's cost, for a server without counts; 0 without a price."""
        usage = Usage(input_tokens=most_tokens(request), output_tokens=request.max_output_tokens)
        return self.estimate_usd(target, usage) or 0.0

    def _own_price(self, target: Target) -> OwnPrice | None:
        """Return the user's last price that fits the target, with or without its thinking level."""
        names = (target.label, f"{target.provider}/{target.model}")
        fitting = [price for price in self._own if any(label_fits(name, price.pattern) for name in names)]
        return fitting[-1] if fitting else None


def _known(usage: Usage) -> Usage:
    return replace(usage, input_tokens=usage.input_tokens or 0, output_tokens=usage.output_tokens or 0)


def usages_of(reply: Reply) -> tuple[Usage, ...]:
    """Return the usage of each request of a reply."""
    counted = Usage(
        model=reply.effective_model,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cached_tokens=reply.cached_tokens,
    )
    return reply.usage or (counted,)


def total_usd(attempts: Iterable[tuple[Reply | Fault, float | None]]) -> float | None:
    """Return the total cost of several attempts, without faults of unknown cost.

    None if the cost of a reply is unknown, or all costs are.
    """
    return _sum([usd for result, usd in attempts if isinstance(result, Reply) or usd is not None])


def summed(replies: Sequence[Reply]) -> Reply:
    """Return the last reply of an exchange with the texts, calls, turns, counts and time of all replies.

    A total is None if one of its counts is unknown.
    """
    timings = [reply.timing for reply in replies if reply.timing]
    totals: dict[str, Any] = {"timing": together(timings) if timings else None}
    for name in ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens"):
        counts = [getattr(reply, name) for reply in replies]
        totals[name] = None if None in counts else sum(counts)
    return replace(
        replies[-1],
        raw="\n\n".join(raw for reply in replies if (raw := reply.raw or reply.text)),
        tool_calls=tuple(call for reply in replies for call in reply.tool_calls),
        turns=tuple(turn for reply in replies for turn in reply.turns),
        effective_model=next((r.effective_model for r in reversed(replies) if r.effective_model), None),
        usage=tuple(usage for reply in replies for usage in reply.usage),
        **totals,
    )


def together(timings: Sequence[Timing]) -> Timing:
    """Return the time of several attempts, without the time between them, so that it is a latency."""
    e2e_ms = sum(timing.e2e_ms for timing in timings)
    return replace(timings[0], e2e_ms=e2e_ms, ended_at_ms=timings[0].started_at_ms + round(e2e_ms))


def _sum(parts: Sequence[float | None]) -> float | None:
    known = [usd for usd in parts if usd is not None]
    return round(fsum(known), _DIGITS) if known and len(known) == len(parts) else None


def has_list() -> bool:
    """Whether the list of prices is installed; loads it."""
    return _price_list() is not None


@cache
def _price_list() -> Any | None:
    try:
        return importlib.import_module("genai_prices")
    except ImportError:
        return None


def _list_price(where: str, model: str, usage: Usage, at_ms: int | None) -> float | None:
    if (prices := _price_list()) is None:
        return None
    try:
        found = prices.calc_price(
            prices.Usage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cached_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                cache_write_1h_tokens=usage.cache_write_1h_tokens,
            ),
            model,
            provider_api_url=where,
            genai_request_timestamp=None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC),
        )
    except (LookupError, ValueError):  # the list has no such model there, or the counts are inconsistent
        return None
    # Some models are in the list without a price.
    has_price = found.model_price.input_mtok is not None and found.model_price.output_mtok is not None
    return float(found.total_price) if has_price else None
