"""What calls cost, in US dollars: the user's own prices, nothing on this machine, else list prices.

The list is genai-prices, the extra `cost`. It is loaded only where a target is asked over the internet, and
without it such a target's cost is not known.
"""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from math import fsum
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.installation import install_command
from pytest_openclaw.providers.lengths import most_tokens
from pytest_openclaw.types.replies import Reply, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.replies import Fault
    from pytest_openclaw.types.requests import Request
    from pytest_openclaw.types.settings import OwnPrice, Settings
    from pytest_openclaw.types.targets import Target

_MILLION = 1_000_000
_DIGITS = 12


class Prices:
    """What a run's calls cost.

    Args:
        providers: by name, made for this run.
        settings: with the user's own prices.
    """

    def __init__(self, providers: Mapping[str, Provider], settings: Settings) -> None:
        self._providers = providers
        self._own = settings.prices

    def get_ready(self, targets: Iterable[Target]) -> None:
        """Load the list now if a target needs it: later that would hold up the asking for 0.2 s."""
        for target in targets:
            self.is_known(target)

    def needs_list(self, target: Target) -> bool:
        """Whether the list alone could know the target's price."""
        provider = self._providers[target.provider]
        return not (self._own_of(target) or provider.is_free) and provider.billed_at is not None

    def is_known(self, target: Target) -> bool:
        """Whether it is known before the first call what one will cost."""
        return self.estimate_usd(target, Usage(input_tokens=1, output_tokens=1)) is not None

    def is_free(self, target: Target) -> bool:
        """Whether nobody charges for the target, and the user names no price for it."""
        return self._own_of(target) is None and self._providers[target.provider].is_free

    def cost_usd(self, target: Target, result: Reply | Fault, at_ms: int) -> float | None:
        """Return what an attempt cost; None if the price or the counts are not known.

        Of a fault it is what the server had counted by then.

        Args:
            target: that was asked.
            result: what it brought.
            at_ms: when, since the epoch: prices change.
        """
        if self.is_free(target):
            return 0.0
        usages = usages_of(result) if isinstance(result, Reply) else map(_as_far_as_told, result.usage)
        return _sum([self._one_usd(target, usage, at_ms) for usage in usages])

    def estimate_usd(self, target: Target, usage: Usage) -> float | None:
        """Return what so many tokens of the target would cost now; None if its price is not known."""
        return 0.0 if self.is_free(target) else self._one_usd(target, usage, None)

    def most_usd(self, target: Target, request: Request) -> float:
        """Return what a request may have cost at most, if its server did not say; 0 without a price."""
        usage = Usage(input_tokens=most_tokens(request), output_tokens=request.max_output_tokens)
        return self.estimate_usd(target, usage) or 0.0

    def _own_of(self, target: Target) -> OwnPrice | None:
        return _fitting(self._own, target)

    def _one_usd(self, target: Target, usage: Usage, at_ms: int | None) -> float | None:
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        if own := self._own_of(target):
            return _at_own_price(own, usage)
        where = self._providers[target.provider].billed_at
        return None if where is None else _at_list_price(where, usage.model or target.model, usage, at_ms)


def usages_of(reply: Reply) -> tuple[Usage, ...]:
    """Return what was counted of each request that a reply took."""
    counted = Usage(
        model=reply.effective_model,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cached_tokens=reply.cached_tokens,
    )
    return reply.usage or (counted,)


def total_usd(attempts: Iterable[tuple[Reply | Fault, float | None]]) -> float | None:
    """Return what several attempts cost together.

    None if that of a reply is not known, or of none; a fault whose cost nobody told is left out.
    """
    told = [*attempts]
    if any(usd is None for result, usd in told if isinstance(result, Reply)):
        return None
    return _sum([usd for _, usd in told if usd is not None])


def total_tokens(counts: Iterable[int | None]) -> int | None:
    """Return what the requests of an exchange took together; None if one of the counts is not known."""
    told = [*counts]
    known = [count for count in told if count is not None]
    return sum(known) if len(known) == len(told) else None


def has_list() -> bool:
    """Whether the list of prices is installed; asking loads it."""
    return _price_list() is not None


def install_list() -> str:
    """Return the command that installs the list of prices."""
    return install_command("cost")


def _sum(parts: Sequence[float | None]) -> float | None:
    known = [usd for usd in parts if usd is not None]
    return round(fsum(known), _DIGITS) if known and len(known) == len(parts) else None


def _as_far_as_told(usage: Usage) -> Usage:
    """What broke in the middle may have told its input alone."""
    return Usage(
        model=usage.model,
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
    )


# --- the user's own prices ----------------------------------------------------------------------


@cache
def _fitting(prices: tuple[OwnPrice, ...], target: Target) -> OwnPrice | None:
    """Return the last price that fits the target, with its thinking level or without."""
    plain = f"{target.provider}/{target.model}"
    names = {target.label.casefold(), plain.casefold()}
    fitting = [
        price for price in prices if any(fnmatchcase(name, price.pattern.casefold()) for name in names)
    ]
    return fitting[-1] if fitting else None


def _at_own_price(price: OwnPrice, usage: Usage) -> float:
    n_input, n_cached = usage.input_tokens or 0, usage.cached_tokens or 0
    usd = (n_input - n_cached) * price.input_usd + n_cached * price.cached_usd
    return round((usd + (usage.output_tokens or 0) * price.output_usd) / _MILLION, _DIGITS)


# --- list prices --------------------------------------------------------------------------------


@cache
def _price_list() -> Any | None:
    try:
        return importlib.import_module("genai_prices")
    except ImportError:
        return None


def _at_list_price(where: str, model: str, usage: Usage, at_ms: int | None) -> float | None:
    prices = _price_list()
    if prices is None:
        return None
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cache_write_1h_tokens": usage.cache_write_1h_tokens,
    }
    at = None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
    try:
        found = prices.calc_price(
            prices.Usage(**{name: count for name, count in counts.items() if count}),
            model,
            provider_api_url=where,
            genai_request_timestamp=at,
        )
    except LookupError:  # it knows no such model there
        return None
    except ValueError:  # a server whose counts do not fit together
        return None
    # Of some models it knows that they exist, and no price.
    has_price = found.model_price.input_mtok is not None and found.model_price.output_mtok is not None
    return float(found.total_price) if has_price else None
