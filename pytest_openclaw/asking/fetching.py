"""The asking itself, in one event loop: warm-ups, slots, attempts, retries, what a server says of itself.

Where that loop runs is for `transport.py` to decide; nothing here knows of tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from pytest_openclaw.asking.attempt import ask_once, within
from pytest_openclaw.asking.budget import SpentBudget
from pytest_openclaw.asking.endpoint_limits import EndpointLimits
from pytest_openclaw.asking.exchanges import hold_exchange
from pytest_openclaw.asking.resources import collect_snapshot
from pytest_openclaw.asking.retry import wait_before_retry
from pytest_openclaw.asking.shared_limits import SharedLimits
from pytest_openclaw.core.redact import Redactor
from pytest_openclaw.core.run_once import once_in_loop
from pytest_openclaw.core.text import valid_text
from pytest_openclaw.providers.prices import Prices, total_usd
from pytest_openclaw.types import faults
from pytest_openclaw.types.faults import CallFailed
from pytest_openclaw.types.replies import CallResult, Fault, Reply
from pytest_openclaw.types.requests import Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from pytest_openclaw.asking.shared_limits import Others
    from pytest_openclaw.asking.shares import EndpointShare
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.replies import Timing
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target

CLOSING_S = 5.0
LIST_S = 10.0
# Beyond two attempts, for what another process of the run does meanwhile, such as starting an engine.
OTHERS_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Job:
    """A cell to ask, as the asking side needs it.

    Attributes:
        number: tells this job from the others of its session.
        part: of the endpoint; it holds the job back until there is room.
    """

    number: int
    target: Target
    request: Request
    part: EndpointShare


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """What a job brought.

    Attributes:
        ending: how the asking ended; None if something broke that is no fault of a provider.
        error: what broke then.
        notes: what is new about the target: `before` (a snapshot of the machine) and `serving` (its warm-up,
            and what its server says of itself).
    """

    number: int
    ending: CallResult | None = None
    error: BaseException | None = None
    notes: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A job waits before its next attempt; told for whoever looks on.

    Attributes:
        why: the fault of the last attempt, as a sentence.
        seconds: how long it waits.
    """

    number: int
    why: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Alive:
    """Nothing is new; the side that asks has not died."""


class Fetcher:
    """Asks jobs through their providers; all methods belong to one event loop.

    Args:
        providers: by name, made for this run.
        settings: timeouts and retries.
        shared_dir: the run's folder on this machine, common to all its processes.
        tell: hears of waits, if anybody does.
        others: what the other processes of the run on this machine ask.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        settings: Settings,
        shared_dir: Path,
        tell: Callable[[Waiting], None] | None = None,
        others: Others = "none",
    ) -> None:
        self._providers = providers
        self._settings = settings
        self._shared_dir = shared_dir
        self._tell = tell
        self._endpoints = EndpointLimits(
            None if others == "none" else SharedLimits(shared_dir, share_slots=others == "any_cell")
        )
        self._prices = Prices(providers, settings)
        self._prices.get_ready(target for target in settings.targets if target.provider in providers)
        self._budget = SpentBudget(shared_dir, settings.budget_usd)
        self._asked: set[str] = set()
        self._ready: dict[str, asyncio.Task[JsonObject]] = {}
        self._told: set[str] = set()

    async def fetch(self, job: Job) -> JobResult:
        """Ask the job when its part of the endpoint has room."""
        received = time.perf_counter()
        notes: JsonObject = {}
        try:
            provider = self._providers[job.target.provider]
            async with self._endpoints.slot(job.part):
                ending = await self._ask(provider, job, received, notes)
                if isinstance(ending.result, Reply) and job.target.label not in self._told:
                    # After the first answer, so that the questions wait for no loading and delay no clock;
                    # in the slot, so that a local server never has two requests at once.
                    self._told.add(job.target.label)
                    with contextlib.suppress(asyncio.CancelledError):  # the run ends; the answer has come
                        server = await self._fingerprint(provider, job.target)
                        notes["serving"] = {**notes.get("serving", {}), "server": server}
        except Exception as error:
            return JobResult(number=job.number, error=error, notes=notes)
        return JobResult(number=job.number, ending=ending, notes=notes)

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

    # --- one job ---

    async def _ask(self, provider: Provider, job: Job, received: float, notes: JsonObject) -> CallResult:
        if job.request.tools and not provider.takes_tools:
            return CallResult.never_sent(faults.takes_no_tools(job.target.provider))
        if fault := self._endpoints.down(provider.endpoint, job.target):
            return CallResult.never_sent(faults.not_asked(fault))
        if spent := self._spent(job.target):
            return CallResult.never_sent(spent)
        await self._make_ready(provider, job.target, notes)
        if job.request.world is None or provider.plays_worlds:
            return await self._attempts(provider, job, received)
        return await hold_exchange(
            job.request,
            lambda request: self._attempts(provider, replace(job, request=request), received),
        )

    async def _attempts(self, provider: Provider, job: Job, received: float) -> CallResult:
        label = job.target.label
        cold = label not in self._asked
        self._asked.add(label)
        began = time.perf_counter()
        waited_s = 0.0
        attempt = 0
        costs: list[tuple[Reply | Fault, float | None]] = []
        ending: CallResult | None = None
        while True:
            if spent := self._spent(job.target):
                return ending or CallResult.never_sent(spent)
            attempt += 1
            in_flight = self._endpoints.in_flight(provider.endpoint)
            result, timing = await ask_once(provider, job.request)
            if isinstance(result, Fault) and result.failure_type == "model_not_found":
                result = await self._with_served(result, job.target)
            costs.append((result, self._charge(provider, job.target, job.request, result, timing)))
            wait_s = None
            if isinstance(result, Fault):
                shown = replace(result, message=self._redactor.text(result.message))
                self._endpoints.mark(provider.endpoint, job.target, shown)
                if not result.sent:
                    return CallResult.never_sent(result)
                wait_s = wait_before_retry(
                    result,
                    attempt=attempt,
                    retries=self._settings.retries,
                    elapsed_s=time.perf_counter() - began,
                    timeout_s=job.request.timeout_s,
                    random=random.random,
                )
            ending = CallResult(
                result=result,
                timing=timing,
                attempts=attempt,
                retry_wait_ms=waited_s * 1000,
                queue_ms=(began - received) * 1000,
                cold_start=cold,
                in_flight=in_flight,
                cost_usd=total_usd(costs),
            )
            if wait_s is None:
                return ending
            assert isinstance(result, Fault), "only a fault is asked again"
            if self._tell:
                self._tell(Waiting(number=job.number, why=result.message, seconds=wait_s))
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
        """Why nobody is asked any more, once the budget is spent."""
        if not self._budget.is_empty:
            return None
        assert self._budget.budget_usd is not None, "only a budget can be spent"
        return faults.budget_spent(target.provider, self._budget.budget_usd)

    def _charge(
        self, provider: Provider, target: Target, request: Request, result: Reply | Fault, timing: Timing
    ) -> float | None:
        """Return what an attempt cost, and take it out of the budget.

        What the server did not count is taken out at the most that it can have been: the budget is a promise.
        """
        cost_usd = self._prices.cost_usd(target, result, timing.started_at_ms)
        paid_usd = cost_usd
        if paid_usd is None and (isinstance(result, Reply) or result.failure_type in faults.UNPRICED):
            turns = request.world.steps if request.world and provider.plays_worlds else 1
            paid_usd = turns * self._prices.most_usd(target, request)
        self._budget.pay(paid_usd or 0.0)
        return cost_usd

    # --- a target's first job ---

    async def _make_ready(self, provider: Provider, target: Target, notes: JsonObject) -> None:
        """Look at the machine and warm the target up, before the first of its jobs is asked."""
        label = target.label
        if label in self._ready:
            await asyncio.shield(self._ready[label])
            return
        notes["before"] = collect_snapshot()
        if not provider.warms_up:
            self._ready[label] = _done()
            return
        self._ready[label] = asyncio.ensure_future(self._warmed_up(provider, target))
        notes["serving"] = await self._ready[label]

    async def _warmed_up(self, provider: Provider, target: Target) -> JsonObject:
        """Warm up, once over all processes of the run.

        Returns:
            `{"warm_up": {"e2e_ms", "ok", "message"}}`. Its failure is told there and nowhere else: the cells
            will say why.
        """
        try:
            done = await self._once(
                f"warm-up {target.label} {provider.endpoint}", lambda: self._warm_up(provider, target)
            )
        except TimeoutError:
            return _no_warm_up("another process of this run does not end its warm-up")
        if done["warm_up"]["ok"]:
            self._asked.add(target.label)
        return done

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
        """Ask what is served, once over all processes of the run.

        A question that fails gives `{"error": …}`, because the cell that was answered before it counts.
        """
        try:
            return await self._once(
                f"fingerprint {target.label} {provider.endpoint}",
                lambda: within(self._settings.timeout_s, provider.fingerprint(target.model)),
            )
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    async def _once(self, name: str, make: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        """Make it once over all processes of the run; they share it in a file, which holds no secret."""

        async def redacted() -> JsonObject:
            return cast("JsonObject", self._redactor.value(await make()))

        async with asyncio.timeout(2 * self._settings.timeout_s + OTHERS_S):
            return await once_in_loop(self._shared_dir, name, redacted)

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor.of_run(self._providers.values(), os.environ)


def _done() -> asyncio.Task[JsonObject]:
    async def nothing() -> JsonObject:
        return {}

    return asyncio.ensure_future(nothing())


def _no_warm_up(why: str) -> JsonObject:
    return {"warm_up": {"ok": False, "e2e_ms": None, "message": why}}
