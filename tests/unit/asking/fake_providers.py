"""Providers in this process whose behavior a test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from pytest_openclaw.judging.text import Noop
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.protocols import Provider, ProviderSetup
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import Request, Target

Answer = Callable[[Request], Awaitable[Reply]]


class Fake(Provider):
    """Answers as set by the test, and counts concurrent requests.

    Args:
        answer: the coroutine function that `ask` awaits.
        endpoint: the endpoint of its requests.
    """

    name: ClassVar[str] = "fake"

    def __init__(self, answer: Answer, *, endpoint: str = "fake") -> None:
        super().__init__(ProviderSetup(name="fake"))
        self.asked: list[Request] = []
        self.now = 0
        self.most = 0
        self.closed = False
        self._answer = answer
        self._endpoint = endpoint

    @property
    def endpoint(self) -> str:
        return self._endpoint

    async def ask(self, request: Request) -> Reply:
        self.asked.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self._answer(request)
        finally:
            self.now -= 1

    async def aclose(self) -> None:
        self.closed = True


class Warm(Fake):
    """Gets a request for one token before its first cell."""

    warms_up: ClassVar[bool] = True


class Handy(Fake):
    """Sends the tools that a prompt offers."""

    takes_tools: ClassVar[bool] = True


class Conversing(Fake):
    """Sends the conversation before a prompt."""

    takes_messages: ClassVar[bool] = True


def says(text: str) -> Answer:
    """An answer, at once."""

    async def answer(request: Request) -> Reply:
        return Reply(text=text)

    return answer


def waits(seconds: float) -> Answer:
    """An answer after a while."""

    async def answer(request: Request) -> Reply:
        await asyncio.sleep(seconds)
        return Reply(text="waited")

    return answer


def raises(*errors: BaseException) -> Answer:
    """Raises these faults one after the other, then answers."""
    left = list(errors)

    async def answer(request: Request) -> Reply:
        if left:
            raise left.pop(0)
        return Reply(text="at last")

    return answer


def cell(prompt_id: str = "P1", *, model: str = "m", provider: str = "fake", **changes: Any) -> Cell:
    """A cell whose prompt is its id."""
    prompt = Prompt(
        suite="s.toml", id=prompt_id, name=prompt_id, prompt=prompt_id, validator=Noop(), **changes
    )
    return Cell(prompt=prompt, target=Target(provider=provider, model=model))
