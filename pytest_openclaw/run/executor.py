"""Asks targets, in one event loop away from the test thread.

A thread of its own, so that the moment a token arrives is read while tests run. Cells are asked one at
a time, when their item is set up.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw import faults
from pytest_openclaw.errors import CallFailed, OpenClawError
from pytest_openclaw.once import once
from pytest_openclaw.records import Ending, Fault, Reply, Request, Timing
from pytest_openclaw.run.lanes import Lanes
from pytest_openclaw.run.retry import wait_before_retry
from pytest_openclaw.settings import THINKING_ROOM_TOKENS
from pytest_openclaw.text import valid_text

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from pathlib import Path
    from typing import Any, TypeVar

    from pytest_openclaw.protocols import Provider
    from pytest_openclaw.records import Cell, JsonObject, Target
    from pytest_openclaw.settings import Settings

    T = TypeVar("T")

# A provider bounds its own attempt, so that it can keep what came; this is for one that does not.
GRACE_S = 5.0
CLOSING_S = 10.0
# Faults that a provider finds before it sends anything.
NEVER_SENT = frozenset({"auth_missing", "not_installed"})


class Executor:
    """Asks cells through their providers; open it with `with`.

    Args:
        providers: by name, made for this run.
        settings: timeouts, retries, concurrency, streaming.
        shared_dir: the run's folder on this machine, common to all its processes.
    """

    def __init__(self, providers: Mapping[str, Provider], settings: Settings, shared_dir: Path) -> None:
        self._providers = providers
        self._settings = settings
        self._shared_dir = shared_dir
        self._lanes = Lanes()
        self._asked: set[str] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="openclaw-executor", daemon=True)

    def __enter__(self) -> Executor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._thread.is_alive():
            return
        try:
            self._submit(self._close()).result(CLOSING_S)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSING_S)

    def ask(self, cell: Cell) -> Ending:
        """Ask the cell's target, with retries, and return how that ended.

        Raises:
            KeyboardInterrupt: passed on; the request is given up.
            OpenClawError: the executor itself has died.
            Exception: whatever a provider raised that is no `CallFailed`.
        """
        return self._wait(self._submit(self._ask(cell, time.perf_counter())))

    def prepare(self, target: Target) -> JsonObject:
        """Warm the target up, once over all processes of the run.

        Returns:
            `{"warm_up": {"e2e_ms", "ok", "message"}}`, or {} where nothing needs warming up.
        """
        provider = self._providers[target.provider]
        if not provider.warms_up or self._lanes.down(provider.lane, target):
            return {}
        done = once(
            self._shared_dir,
            f"warm-up {target.label}",
            lambda: self._wait(self._submit(self._warm_up(target))),
        )
        if done["warm_up"]["ok"]:
            self._asked.add(target.label)
        return done

    def fingerprint(self, target: Target) -> JsonObject:
        """Return what the target's server says that it serves, asked once over all processes of the run."""
        provider = self._providers[target.provider]
        return once(
            self._shared_dir,
            f"fingerprint {target.label}",
            lambda: self._wait(self._submit(provider.fingerprint(target.model))),
        )

    def served(self, target: Target) -> tuple[str, ...]:
        """Return the names of the models that the target's provider serves.

        Raises:
            CallFailed: it cannot be asked.
        """
        return self._wait(self._submit(self._providers[target.provider].models()))

    # --- the test thread's side ---

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if not self._thread.is_alive():
            work.close()
            raise OpenClawError("the executor has ended; no more cells can be asked")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _wait(self, future: Future[T]) -> T:
        """Wait for the result, but never for a dead thread."""
        try:
            while True:
                try:
                    return future.result(timeout=1.0)
                except TimeoutError:
                    if future.done():
                        raise
                    if not self._thread.is_alive():
                        raise OpenClawError("the executor died while a cell was being asked") from None
        except FutureCancelled:
            raise OpenClawError("the executor was closed while a cell was being asked") from None
        except BaseException:
            future.cancel()
            raise

    # --- the loop's side ---

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _close(self) -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        for provider in self._providers.values():
            await provider.aclose()

    async def _ask(self, cell: Cell, wished: float) -> Ending:
        provider = self._providers[cell.target.provider]
        if fault := self._lanes.down(provider.lane, cell.target):
            return never_asked(faults.not_asked(fault))
        limit = self._settings.concurrency.limit(cell.target.provider, is_local=provider.is_local)
        async with self._lanes.slot(provider.lane, limit):
            return await self._attempts(provider, cell, wished)

    async def _attempts(self, provider: Provider, cell: Cell, wished: float) -> Ending:
        request = request_for(cell, self._settings)
        cold = cell.target.label not in self._asked
        self._asked.add(cell.target.label)
        queue_ms = (time.perf_counter() - wished) * 1000
        waited_s = 0.0
        attempt = 0
        while True:
            attempt += 1
            in_flight = self._lanes.in_flight(provider.lane)
            result, timing = await _attempt(provider, request)
            wait_s = None
            if isinstance(result, Fault):
                self._lanes.mark(provider.lane, cell.target, result)
                wait_s = wait_before_retry(
                    result,
                    attempt=attempt,
                    retries=self._settings.retries,
                    waited_s=waited_s,
                    timeout_s=request.timeout_s,
                    random=random.random,
                )
                if result.failure_type in NEVER_SENT:
                    return never_asked(result)
            if wait_s is None:
                return Ending(
                    result=result,
                    timing=timing,
                    attempts=attempt,
                    retry_wait_ms=waited_s * 1000,
                    queue_ms=queue_ms,
                    cold_start=cold,
                    in_flight=in_flight,
                )
            await asyncio.sleep(wait_s)
            waited_s += wait_s

    async def _warm_up(self, target: Target) -> JsonObject:
        provider = self._providers[target.provider]
        request = Request(
            model=target.model,
            prompt="Hi",
            max_output_tokens=1,
            stream=False,
            timeout_s=self._settings.timeout_s,
        )
        async with self._lanes.slot(provider.lane, 1):
            result, timing = await _attempt(provider, request)
        message = None if isinstance(result, Reply) else result.message
        return {"warm_up": {"ok": message is None, "e2e_ms": round(timing.e2e_ms), "message": message}}


def request_for(cell: Cell, settings: Settings) -> Request:
    """Return what every provider is asked for this cell."""
    prompt, level = cell.prompt, cell.target.thinking_level
    # Every API counts thinking as output; without room for it no answer would be reached.
    room = THINKING_ROOM_TOKENS[level] if level else 0
    return Request(
        model=cell.target.model,
        prompt=prompt.prompt,
        system=prompt.system,
        thinking_level=level,
        max_output_tokens=prompt.max_output_tokens + room,
        stream=settings.stream,
        timeout_s=prompt.timeout_s or settings.timeout_s,
    )


async def _attempt(provider: Provider, request: Request) -> tuple[Reply | Fault, Timing]:
    """Ask once; a provider's own times go before those taken here, around the call."""
    started_at_ms = time.time_ns() // 1_000_000
    started = time.perf_counter()
    result: Reply | Fault
    try:
        result = _tidy(await asyncio.wait_for(provider.ask(request), request.timeout_s + GRACE_S))
    except CallFailed as failed:
        fault = failed.fault
        result = replace(fault, message=valid_text(fault.message), raw=valid_text(fault.raw))
    except TimeoutError:
        result = faults.timed_out(provider.setup.name, request.timeout_s)
    e2e_ms = (time.perf_counter() - started) * 1000
    outside = Timing(started_at_ms=started_at_ms, ended_at_ms=started_at_ms + round(e2e_ms), e2e_ms=e2e_ms)
    return result, result.timing or outside


def _tidy(reply: Reply) -> Reply:
    """Make a guest's texts valid too: a lone surrogate on a report would end an xdist worker."""
    return replace(
        reply,
        text=valid_text(reply.text),
        raw=valid_text(reply.raw or reply.text),
        reasoning=valid_text(reply.reasoning),
        refusal=None if reply.refusal is None else valid_text(reply.refusal),
        finish_reason=None if reply.finish_reason is None else valid_text(reply.finish_reason),
        effective_model=None if reply.effective_model is None else valid_text(reply.effective_model),
        tool_calls=tuple(
            replace(call, name=valid_text(call.name), arguments=valid_text(call.arguments))
            for call in reply.tool_calls
        ),
    )


def never_asked(fault: Fault) -> Ending:
    """Return the ending of a cell that was not asked: it started and ended when that was decided."""
    now = time.time_ns() // 1_000_000
    return Ending(result=fault, timing=Timing(started_at_ms=now, ended_at_ms=now, e2e_ms=0.0), attempts=0)
