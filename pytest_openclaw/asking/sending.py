"""Sends one cell: warm-up, slot on its endpoint, attempts with retries, budget, the server's own facts.

`asker.py` decides which cell is sent next; nothing here knows of tests.

What bounds the requests of a run: the limit of each endpoint, outages, retries, the budget.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import time
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from pytest_openclaw.asking.attempt import PromptCache, ask_once, within
from pytest_openclaw.asking.exchanges import hold_exchange
from pytest_openclaw.asking.resources import collect_snapshot
from pytest_openclaw.providers.prices import Prices, total_usd
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.replies import CallResult, Fault, Reply
from pytest_openclaw.values.requests import LISTED, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.replies import Timing
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.settings import Settings


FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0


class DownMarks:
    """The endpoints and targets that are not asked any more, each with its first fault."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}

    def add(self, endpoint: str, target: Target, fault: Fault) -> None:
        """Remember a fault that affects more than its own cell."""
        if fault.scope != "cell":
            self._faults.setdefault(
                _endpoint(endpoint) if fault.scope == "endpoint" else _target(target), fault
            )

    def fault(self, endpoint: str, target: Target) -> Fault | None:
        """Return the fault because of which this target is not asked any more, if there is one."""
        return self._faults.get(_endpoint(endpoint)) or self._faults.get(_target(target))


def endpoint_limits(providers: Mapping[str, Provider], settings: Settings) -> dict[str, int]:
    """Return the limit of each endpoint: where several providers share one, the smallest of theirs."""
    limits: dict[str, int] = {}
    for name, provider in providers.items():
        limit = settings.concurrency.limit(name, is_local=provider.is_local)
        limits[provider.endpoint] = min(limit, limits.get(provider.endpoint, limit))
    return limits


def _endpoint(name: str) -> str:
    return f"endpoint {name}"


def _target(target: Target) -> str:
    return f"target {target.label}"


def wait_before_retry(
    fault: Fault,
    *,
    attempt: int,
    retries: int,
    elapsed_s: float,
    timeout_s: float,
    random: Callable[[], float],
) -> float | None:
    """Return the seconds to wait before the next attempt, or None if there shall be none.

    Exponential back-off with full jitter (Brooker, "Exponential Backoff And Jitter", AWS Architecture
    Blog, 2015): a random time up to 1, 2, 4 … s, at most 60 s. A server's `Retry-After` goes first. No
    attempt begins later than `timeout_s` after the first, so a cell takes twice that at most; a server that
    asks for more is not asked again.

    Args:
        fault: how the attempt ended.
        attempt: attempts made so far, 1 or more.
        retries: attempts allowed after the first.
        elapsed_s: seconds since the first attempt of this cell began.
        timeout_s: the cell's time for one attempt.
        random: draws from 0 to 1.

    """
    if not fault.retryable or attempt > retries:
        return None
    if fault.retry_after_s is not None:
        wait_s = max(0.0, fault.retry_after_s)
    else:
        wait_s = random() * min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 10))
    return wait_s if elapsed_s + wait_s <= timeout_s else None


class Budget:
    """The money that a run has spent. The cost of a reply counts when the reply arrives.

    Attributes:
        spent_usd: so far; without a budget nothing is counted.

    Args:
        budget_usd: no request is sent after this much is spent; None sets no limit.

    """

    def __init__(self, budget_usd: float | None) -> None:
        self.budget_usd = budget_usd
        self.spent_usd = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether the budget is spent."""
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    def pay(self, usd: float) -> None:
        """Add the cost of an attempt."""
        if self.budget_usd is not None:
            self.spent_usd += usd


CLOSING_S = 5.0
LIST_S = 10.0


class Sender:
    """Sends cells through their providers; all methods belong to one event loop.

    Attributes:
        budget: what the calls have cost.

    Args:
        providers: by name, made for this run.
        settings: timeouts, retries, budget.
        on_wait: receives a token, the reason and the seconds before another attempt.
        on_fact: receives a target and new facts about it, see `Asker.facts`.

    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        settings: Settings,
        on_wait: Callable[[str, str, float], None] = lambda *_: None,
        on_fact: Callable[[Target, JsonObject], None] = lambda *_: None,
    ) -> None:
        self._providers = providers
        self._settings = settings
        self._on_wait = on_wait
        self._on_fact = on_fact
        self._down = DownMarks()
        self._in_flight: Counter[str] = Counter()
        self._prices = Prices(providers, settings)
        self._prices.get_ready(target for target in settings.targets if target.provider in providers)
        self.budget = Budget(settings.budget_usd)
        self._asked: set[str] = set()
        self._ready: dict[str, asyncio.Future[None]] = {}
        self._identified: set[str] = set()
        self._caches: defaultdict[tuple[str, str], PromptCache] = defaultdict(PromptCache)

    async def send(self, token: str, cell: Cell, request: Request, queued_at: float) -> CallResult:
        """Send a cell, with its retries; before the first of a target, make the target ready.

        Args:
            token: for `on_wait`.
            cell: the cell.
            request: its request.
            queued_at: since when a test has waited for it, by `time.perf_counter`.

        Raises:
            Exception: a provider broke; a fault of a server or a model is a result.

        """
        target = cell.target
        provider = self._providers[target.provider]

        def attempts(request: Request) -> Coroutine[Any, Any, CallResult]:
            return self._attempts(provider, token, target, request, queued_at)

        self._in_flight[provider.endpoint] += 1
        try:
            if fault := self._never_sent(provider, target, request):
                return CallResult.never_sent(fault)
            await self._make_ready(provider, target)
            if provider.plays_worlds or not request.is_exchange:
                result = await attempts(request)
            else:
                context_tokens = provider.context_tokens(request)
                result = await hold_exchange(request, attempts, context_tokens=context_tokens)
            if isinstance(result.result, Reply) and target.label not in self._identified:
                # After the first answer, so that the questions wait for no loading and delay no clock;
                # before the next cell, so that a local server never has two requests at once.
                self._identified.add(target.label)
                with contextlib.suppress(asyncio.CancelledError):  # the run ends; the answer has come
                    self._on_fact(target, {"serving": {"server": await self._fingerprint(provider, target)}})
        finally:
            self._in_flight[provider.endpoint] -= 1
        return result

    async def served(self, target: Target) -> tuple[str, ...]:
        """Return the names of the models that the target's provider serves.

        Raises:
            CallFailed: it cannot be asked.

        """
        try:
            return await within(self._settings.timeout_s, self._providers[target.provider].models())
        except TimeoutError:
            raise CallFailed(faults.timed_out(target.provider, self._settings.timeout_s)) from None

    async def aclose(self) -> None:
        """Close the providers; what one raises now must not cost the others their closing."""
        closings = (within(CLOSING_S, provider.aclose()) for provider in self._providers.values())
        await asyncio.gather(*closings, return_exceptions=True)

    # --- one cell ---

    def _never_sent(self, provider: Provider, target: Target, request: Request) -> Fault | None:
        """Return why the request is not sent at all, if so."""
        surface = self._settings.surface
        if surface and surface.missing and target.surface != LISTED:
            return faults.surface_missing(target.provider, surface.missing)
        if request.tools and not provider.takes_tools:
            return faults.takes_no("tools", target.provider)
        if (request.messages or request.turns) and not provider.takes_messages:
            return faults.takes_no("messages", target.provider)
        if request.images and "images" not in provider.takes:
            return faults.takes_no("images", target.provider)
        if fault := self._down.fault(provider.endpoint, target):
            return faults.not_asked(fault)
        return self._spent(target)

    async def _attempts(
        self, provider: Provider, token: str, target: Target, request: Request, queued_at: float
    ) -> CallResult:
        cold = target.label not in self._asked
        self._asked.add(target.label)
        began = time.perf_counter()
        waited_s = 0.0
        attempt = 0
        costs: list[tuple[Reply | Fault, float | None]] = []
        ended: CallResult | None = None
        while True:
            if spent := self._spent(target):
                return ended or CallResult.never_sent(spent)
            attempt += 1
            in_flight = self._in_flight[provider.endpoint]
            cache = self._caches[provider.endpoint, request.model]
            result, timing = await ask_once(provider, request, cache)
            if isinstance(result, Fault) and result.failure_type == "model_not_found":
                result = await self._with_served(result, target)
            costs.append((result, self._charge(provider, target, request, result, timing)))
            wait_s = None
            if isinstance(result, Fault):
                shown = replace(result, message=self._redactor.text(result.message))
                self._down.add(provider.endpoint, target, shown)
                if not result.sent:
                    return CallResult.never_sent(result)
                wait_s = wait_before_retry(
                    result,
                    attempt=attempt,
                    retries=self._settings.retries,
                    elapsed_s=time.perf_counter() - began,
                    timeout_s=request.timeout_s,
                    random=random.random,
                )
            ended = CallResult(
                result=result,
                timing=timing,
                attempts=attempt,
                retry_wait_ms=waited_s * 1000,
                queue_ms=(began - queued_at) * 1000,
                cold_start=cold,
                in_flight=in_flight,
                cost_usd=total_usd(costs),
            )
            if wait_s is None:
                return ended
            assert isinstance(result, Fault), "only a fault is asked again"
            self._on_wait(token, self._redactor.text(result.message), wait_s)
            await asyncio.sleep(wait_s)
            waited_s += wait_s

    async def _with_served(self, fault: Fault, target: Target) -> Fault:
        """Add to a fault of an unknown model which models the server has, if it says so."""
        try:
            models = await within(LIST_S, self._providers[target.provider].models())
        except Exception:  # the fault is known; a server that does not list its models changes nothing
            return fault
        return faults.with_served(fault, target.model, [valid_text(model) for model in models])

    # --- money ---

    def _spent(self, target: Target) -> Fault | None:
        """Return the fault of a cell that is not sent because the budget is spent."""
        if not self.budget.is_empty:
            return None
        assert self.budget.budget_usd is not None, "only a budget can be spent"
        return faults.budget_spent(target.provider, self.budget.budget_usd)

    def _charge(
        self, provider: Provider, target: Target, request: Request, result: Reply | Fault, timing: Timing
    ) -> float | None:
        """Return what an attempt cost, and take it out of the budget.

        What the server did not count is taken out at the most that it can have been: the budget is a promise.
        """
        cost_usd = self._prices.cost_usd(target, result, timing.started_at_ms)
        paid_usd = cost_usd
        if paid_usd is None and (isinstance(result, Reply) or result.failure_type in faults.UNPRICED):
            turns = request.most_turns if provider.plays_worlds else 1
            paid_usd = turns * self._prices.most_usd(target, request)
        self.budget.pay(paid_usd or 0.0)
        return cost_usd

    # --- a target's first cell ---

    async def _make_ready(self, provider: Provider, target: Target) -> None:
        """Take a snapshot of the machine and warm the target up, before its first cell."""
        label = target.label
        if label not in self._ready:
            self._on_fact(target, {"before": collect_snapshot()})
            work = self._warmed_up(provider, target) if provider.warms_up else asyncio.sleep(0)
            self._ready[label] = asyncio.ensure_future(work)
        await asyncio.shield(self._ready[label])

    async def _warmed_up(self, provider: Provider, target: Target) -> None:
        """Note `{"warm_up": {"e2e_ms", "ok", "message"}}`; if it failed, the cells will say why too."""
        done = await self._warm_up(provider, target)
        if done["warm_up"]["ok"]:
            self._asked.add(target.label)
        self._on_fact(target, {"serving": self._redactor.value(done)})

    async def _warm_up(self, provider: Provider, target: Target) -> JsonObject:
        request = Request(
            model=target.model,
            prompt="Hi",
            max_output_tokens=1,
            stream=False,
            timeout_s=self._settings.timeout_s,
        )
        try:
            result, timing = await ask_once(provider, request)
        except Exception as error:
            return _no_warm_up(f"{type(error).__name__}: {error}")
        self._charge(provider, target, request, result, timing)
        message = None if isinstance(result, Reply) else result.message
        return {"warm_up": {"ok": message is None, "e2e_ms": round(timing.e2e_ms), "message": message}}

    async def _fingerprint(self, provider: Provider, target: Target) -> JsonObject:
        """Return what the server says of itself; `{"error": …}` if it cannot be asked."""
        try:
            found = await within(self._settings.timeout_s, provider.fingerprint(target.model))
            return cast("JsonObject", json.loads(json.dumps(self._redactor.value(found))))
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor.of_run(self._providers.values(), os.environ)


def _no_warm_up(why: str) -> JsonObject:
    return {"warm_up": {"ok": False, "e2e_ms": None, "message": why}}
