"""An asker with one provider, `fake`, and providers in this process whose behavior a test sets."""

import asyncio
from contextlib import contextmanager

from pytest_openclaw.asking.asker import Asker, PlannedCell
from pytest_openclaw.judging.text import Noop
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.protocols import Provider, ProviderSetup
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.settings import Concurrency, Settings


class Fake(Provider):
    name = "fake"

    def __init__(self, answer):
        super().__init__(ProviderSetup(name="fake"))
        self.asked = []
        self.now = 0
        self.most = 0
        self.closed = False
        self._answer = answer

    async def ask(self, request):
        self.asked.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self._answer(request)
        finally:
            self.now -= 1

    async def aclose(self):
        self.closed = True


class Warm(Fake):
    """Gets a request for one token before its first cell."""

    warms_up = True


class Handy(Fake):
    takes_tools = True


def says(text):
    async def answer(request):
        return Reply(text=text)

    return answer


def waits(seconds):
    async def answer(request):
        await asyncio.sleep(seconds)
        return Reply(text="waited")

    return answer


def raises(*errors):
    left = list(errors)

    async def answer(request):
        if left:
            raise left.pop(0)
        return Reply(text="at last")

    return answer


def cell(prompt_id="P1", *, model="m", provider="fake", **changes):
    prompt = Prompt(
        suite="s.toml", id=prompt_id, name=prompt_id, prompt=prompt_id, validator=Noop(), **changes
    )
    return Cell(prompt=prompt, target=Target(provider=provider, model=model))


class Room:
    def __init__(self, asker):
        self.asker = asker

    def plan(self, *cells):
        self.asker.plan([PlannedCell(token=token_of(one), cell=one) for one in cells])

    def ask(self, one):
        return self.asker.ask(token_of(one), one)


def token_of(one):
    return f"{one.prompt.id} r{one.repeat}"


@contextmanager
def open_room(provider, *, limit=1, **settings):
    chosen = Settings(**{"concurrency": Concurrency(everywhere=limit), **settings})
    asker = Asker({"fake": provider}, chosen)
    try:
        yield Room(asker)
    finally:
        asker.close()
