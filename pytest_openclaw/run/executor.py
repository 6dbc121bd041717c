"""Asks targets, in one event loop away from the test thread.

A thread of its own, so that the moment a token arrives is read while tests run. Cells are asked one at
a time, when their item is set up.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

from pytest_openclaw import faults
from pytest_openclaw.errors import CallFailed, OpenClawError
from pytest_openclaw.once import once
from pytest_openclaw.records import Ending, Fault, Reply, Request, Timing
from pytest_openclaw.run.attempt import ask_once, within
from pytest_openclaw.run.lanes import Lanes
from pytest_openclaw.run.retry import wait_before_retry
from pytest_openclaw.settings import THINKING_ROOM_TOKENS

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from pathlib import Path
    from typing import Any, TypeVar

    from pytest_openclaw.protocols import Provider
    from pytest_openclaw.records import Cell, JsonObject, Target
    from pytest_openclaw.settings import Settings

    T = TypeVar("T")

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
        self._under_way: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="openclaw-executor", daemon=True)

    def __enter__(self) -> Executor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._thread.is_alive():
            return
        closing = self._submit(self._close())
        try:
            # What a provider raises now, or that it does not end, must not cost the run its summary.
            wait([closing], CLOSING_S)
        finally:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(1.0)

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
            `{"warm_up": {"e2e_ms", "ok", "message"}}`, or {} where nothing needs warming up. Its failure is
            told there and nowhere else: the cells will say why.
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
        """Return what the target's server says that it serves, asked once over all processes of the run.

        A question that fails gives `{"error": …}`, because the cell that was answered before it counts.
        """
        provider = self._providers[target.provider]

        async def question() -> JsonObject:
            return await within(self._settings.timeout_s, provider.fingerprint(target.model))

        try:
            return once(
                self._shared_dir,
                f"fingerprint {target.label}",
                lambda: self._wait(self._submit(question())),
            )
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def served(self, target: Target) -> tuple[str, ...]:
        """Return the names of the models that the target's provider serves.

        Raises:
            CallFailed: it cannot be asked.
        """
        provider = self._providers[target.provider]

        async def question() -> tuple[str, ...]:
            try:
                return await within(self._settings.timeout_s, provider.models())
            except TimeoutError:
                fault = faults.timed_out(target.provider, self._settings.timeout_s)
                raise CallFailed(fault) from None

        return self._wait(self._submit(question()))

    # --- the test thread's side ---

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if not self._thread.is_alive():
            work.close()
            raise OpenClawError("the executor has ended; no more cells can be asked")
        return asyncio.run_coroutine_threadsafe(self._noted(work), self._loop)

    def _wait(self, future: Future[T]) -> T:
        """Wait for the result, but never for a dead thread."""
        try:
            while True:
                try:
                    return future.result(timeout=1.0)
                except TimeoutError:
                    if future.done():  # in this very moment, or with a TimeoutError of its own
                        return future.result()
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

    async def _noted(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None, "submitted work runs as a task"
        self._under_way.add(task)
        try:
            return await work
        finally:
            self._under_way.discard(task)

    async def _close(self) -> None:
        """Give up what is under way, let it end what it started, and close the providers."""
        own = asyncio.current_task()
        # Each once: a second cancellation would end the cleaning up that the first one began.
        for task in self._under_way - {own}:
            if not task.cancelling():
                task.cancel()
        if others := asyncio.all_tasks() - {own}:
            await asyncio.wait(others, timeout=CLOSING_S / 2)
        closings = (within(CLOSING_S / 2, provider.aclose()) for provider in self._providers.values())
        await asyncio.gather(*closings, return_exceptions=True)
        await self._loop.shutdown_asyncgens()

    async def _ask(self, cell: Cell, wished: float) -> Ending:
        provider = self._providers[cell.target.provider]
        async with self._lanes.slot(provider.lane, self._limit(cell.target)):
            if fault := self._lanes.down(provider.lane, cell.target):
                return never_asked(faults.not_asked(fault))
            return await self._attempts(provider, cell, wished)

    def _limit(self, target: Target) -> int:
        provider = self._providers[target.provider]
        return self._settings.concurrency.limit(target.provider, is_local=provider.is_local)

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
            result, timing = await ask_once(provider, request)
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
        async with self._lanes.slot(provider.lane, self._limit(target)):
            try:
                result, timing = await ask_once(provider, request)
            except Exception as error:
                broken = f"{type(error).__name__}: {error}"
                return {"warm_up": {"ok": False, "e2e_ms": None, "message": broken}}
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


def never_asked(fault: Fault) -> Ending:
    """Return the ending of a cell that was not asked: it started and ended when that was decided."""
    now = time.time_ns() // 1_000_000
    return Ending(result=fault, timing=Timing(started_at_ms=now, ended_at_ms=now, e2e_ms=0.0), attempts=0)
