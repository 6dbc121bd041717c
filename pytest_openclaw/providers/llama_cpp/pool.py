"""Keeps one engine at a time: releases a model's engine before it acquires another model's."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from pytest_openclaw.providers.llama_cpp.supervisor import EngineHandle


class Engines:
    """Keeps the engine of the model in use.

    Args:
        acquire: returns a handle on a running engine for a model, or raises `EngineError`.
    """

    def __init__(self, acquire: Callable[[str], Awaitable[EngineHandle]]) -> None:
        self._acquire = acquire
        self._model: str | None = None
        self._handle: EngineHandle | None = None
        self._users = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._switching = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def serving(self, model: str) -> AsyncIterator[EngineHandle]:
        """Keep an engine for `model` while the body runs; one that has crashed meanwhile is replaced.

        Raises:
            EngineError: it cannot be started.
        """
        async with self._switching:
            handle = await self._engine_for(model)
            self._users += 1
            self._idle.clear()
        try:
            yield handle
        finally:
            self._users -= 1
            if not self._users:
                self._idle.set()

    async def aclose(self) -> None:
        """Release the engine."""
        async with self._switching:
            await self._release()

    async def _engine_for(self, model: str) -> EngineHandle:
        if model != self._model:
            await self._idle.wait()  # two models at once would compete for processors and memory
        if self._handle and model == self._model and self._handle.alive:
            return self._handle
        await self._release()
        self._handle = await self._acquire(model)
        self._model = model
        return self._handle

    async def _release(self) -> None:
        handle, self._handle, self._model = self._handle, None, None
        if handle:
            await handle.release()
