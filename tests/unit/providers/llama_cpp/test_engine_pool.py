"""One engine at a time for one provider."""

from __future__ import annotations

import asyncio

import pytest

from pytest_openclaw.core.errors import EngineError
from pytest_openclaw.providers.llama_cpp.pool import Engines


class Handle:
    """A handle on a fake engine."""

    def __init__(self, model, events):
        self.model = model
        self.alive = True
        self._events = events

    async def release(self):
        """Note the release."""
        self._events.append(f"release {self.model}")


class Made:
    """Fake engines with a list of their starts and releases."""

    def __init__(self):
        self.events = []
        self.engines = Engines(self.acquire)

    async def acquire(self, model):
        """Pretend to start an engine."""
        self.events.append(f"acquire {model}")
        if model == "broken":
            raise EngineError("no such engine")
        return Handle(model, self.events)

    async def use(self, *models):
        """Use the engines one after the other."""
        for model in models:
            async with self.engines.serving(model):
                self.events.append(f"use {model}")


@pytest.mark.parametrize(
    ("models", "events"),
    [
        pytest.param("aa", ["acquire a", "use a", "use a"], id="kept-between-uses"),
        pytest.param(
            "aba",
            ["acquire a", "use a", "release a", "acquire b", "use b", "release b", "acquire a", "use a"],
            id="released-before-the-next",
        ),
    ],
)
def test_one_engine_at_a_time(models, events):
    """A model's engine stays until another model is requested, and ends before that one starts."""
    made = Made()

    asyncio.run(made.use(*models))

    assert made.events == events


def test_closing_gives_the_engine_back_once():
    """Closing releases the engine; closing again, or without one, does nothing."""
    made = Made()

    async def use():
        await made.use("a")
        await made.engines.aclose()
        await made.engines.aclose()

    asyncio.run(use())

    assert made.events == ["acquire a", "use a", "release a"]


def test_dead_engine_is_replaced_at_the_next_use():
    """An engine that died between two uses is acquired again."""
    made = Made()

    async def use():
        async with made.engines.serving("a") as handle:
            handle.alive = False
        await made.use("a")

    asyncio.run(use())

    assert made.events == ["acquire a", "release a", "acquire a", "use a"]


def test_failed_start_leaves_the_pool_usable():
    """After an engine that does not start, the same and others are tried as usual."""
    made = Made()

    async def use():
        for _ in range(2):
            with pytest.raises(EngineError, match="no such engine"):
                await made.use("broken")
        await made.use("a")

    asyncio.run(use())

    assert made.events == ["acquire broken", "acquire broken", "acquire a", "use a"]


def test_another_model_waits_until_the_engine_is_idle():
    """Two models never run at the same time; uses of one model may overlap."""
    made = Made()
    release_a = asyncio.Event()

    async def hold(model):
        async with made.engines.serving(model):
            made.events.append(f"use {model}")
            await release_a.wait()
            made.events.append(f"done {model}")

    async def use():
        holders = [asyncio.create_task(hold("a")), asyncio.create_task(hold("a"))]
        other = asyncio.create_task(made.use("b"))
        for _ in range(10):
            await asyncio.sleep(0)
        release_a.set()
        await asyncio.gather(*holders, other)

    asyncio.run(use())

    assert made.events == [
        *("acquire a", "use a", "use a", "done a", "done a"),
        *("release a", "acquire b", "use b"),
    ]


def test_cancelled_use_frees_the_engine():
    """A cancelled request does not keep the next model waiting."""
    made = Made()

    async def hold():
        async with made.engines.serving("a"):
            await asyncio.Event().wait()

    async def use():
        task = asyncio.create_task(hold())
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await made.use("b")

    asyncio.run(use())

    assert made.events == ["acquire a", "release a", "acquire b", "use b"]
