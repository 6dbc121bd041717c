"""Asks ahead of the tests: cells in the order of their items, for each endpoint a bounded number at a time.

What a test needs is asked before it comes up, and no further: on each part of an endpoint, `ahead_of(limit)`
cells are asked or answered and not yet taken. So a reply is there when its test begins, and replies are
never hoarded.
"""

from __future__ import annotations

import contextlib
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_openclaw.asking.fetching import Job, JobResult, Waiting
from pytest_openclaw.asking.shares import Part
from pytest_openclaw.asking.transport import Host, Message, ProcessHost, ThreadHost
from pytest_openclaw.core.errors import HostDied
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.settings import THINKING_ROOM_TOKENS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pytest_openclaw.asking.repeats import Permit
    from pytest_openclaw.asking.shared_limits import Others
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.replies import CallResult
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target

MOST_DEATHS = 3
SILENCE_S = 60.0


def ahead_of(limit: int) -> int:
    """Return how many cells of a part may be asked or answered before their tests come up."""
    return 2 * limit + 2


@dataclass
class _Line:
    """The cells of one part of an endpoint that are still to be asked, and how many are out."""

    part: Part
    to_ask: deque[str] = field(default_factory=deque)
    out: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Asking:
    """A cell on its way."""

    cell: Cell
    line: _Line
    job_result: JobResult | None = None


class Executor:
    """Asks cells through their providers; use it with `with`, from one thread.

    Cells go by tokens, any text that is unique in the session.

    Attributes:
        notes: what is new about targets, until somebody takes it; see `JobResult`.
        is_stopping: no more cells are asked ahead; any thread may set it.

    Args:
        providers: by name, made for this run.
        settings: timeouts, retries, streaming, and as concurrency what this process may have in flight.
        shared_dir: the run's folder on this machine, common to all its processes.
        others: what the other processes of the run on this machine ask.
        tell: hears a token and why its cell waits.
        permit: says of a cell whether it is asked ahead, now or later.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        settings: Settings,
        shared_dir: Path,
        *,
        others: Others = "none",
        tell: Callable[[str, Waiting], None] | None = None,
        permit: Callable[[Cell], Permit] = lambda _: "ask",
    ) -> None:
        self._providers = providers
        self._settings = settings
        self._shared_dir = shared_dir
        self._others = others
        self._tell = tell
        self._permit = permit
        self._lines: dict[str, _Line] = {}
        self._planned: dict[str, _Asking] = {}
        self._tokens: dict[int, str] = {}
        self._numbers = 0
        self._hosts: dict[type[Host], Host] = {}
        self._deaths = 0
        self._kinds = _kinds(providers)
        self._limits = endpoint_limits(providers, settings)
        self.notes: dict[Target, JsonObject] = {}
        self.is_stopping = False

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the child that asks, if there will be one, so that it is ready when the tests are."""
        if ProcessHost in self._kinds.values():
            with contextlib.suppress(HostDied):  # whoever asks hears it
                self._host_of(ProcessHost)

    def plan(self, cells: Iterable[tuple[str, Cell]]) -> None:
        """Learn all cells of the session, in their order; none is asked by that."""
        for token, cell in cells:
            endpoint = self._providers[cell.target.provider].endpoint
            line = self._lines.setdefault(endpoint, _Line(Part(endpoint, self._limits[endpoint])))
            self._planned[token] = _Asking(cell, line)

    def expect(self, tokens: Iterable[str]) -> None:
        """Ask these cells ahead of their tests, which will come in this order."""
        for token in tokens:
            self._planned[token].line.to_ask.append(token)
        self.feed()

    def feed(self) -> None:
        """Ask ahead what may be asked by now."""
        for line in self._lines.values():
            self._feed(line)

    def is_asked(self, token: str) -> bool:
        """Whether the cell is being asked, or has its reply."""
        asking = self._planned.get(token)
        return asking is not None and token in asking.line.out

    def ask(self, token: str, cell: Cell) -> CallResult:
        """Return how the cell's asking ended; asks now what was not expected.

        Raises:
            KeyboardInterrupt: passed on; the request goes on until the executor is closed.
            HostDied: the side that asks has ended; what it was asking is lost.
            Exception: whatever a provider raised that is no `CallFailed`.
        """
        if token not in self._planned:
            self.plan([(token, cell)])
        asking = self._planned[token]
        if token not in asking.line.out and asking.job_result is None:
            self._send_now(token, asking)
        while asking.job_result is None:
            self._hear(cell)
        job_result = asking.job_result
        self._taken(token, asking)
        if job_result.error is not None:
            raise job_result.error
        assert job_result.ending is not None, "what did not break has ended"
        return job_result.ending

    def drop(self, token: str) -> None:
        """Forget a cell whose test does not want its reply."""
        if (asking := self._planned.get(token)) is not None:
            self._taken(token, asking)

    @property
    def n_out(self) -> int:
        """Cells asked or answered that no test has taken yet."""
        return sum(len(line.out) for line in self._lines.values())

    def awaited(self) -> dict[str, str]:
        """Return each endpoint's token that has waited longest for an answer; any thread may call it."""
        oldest: dict[str, str] = {}
        for token in list(self._tokens.values()):
            if asking := self._planned.get(token):
                oldest.setdefault(asking.line.part.endpoint, token)
        return oldest

    def close(self) -> list[tuple[Cell, CallResult]]:
        """Stop asking, and return what was answered and not taken, in the order of the plan."""
        hosts, self._hosts = self._hosts, {}
        self._deaths = MOST_DEATHS  # nobody is asked from now on
        for host in hosts.values():
            for message in host.close():
                self._note(message)
        left = [
            (asking.cell, asking.job_result.ending)
            for token, asking in self._planned.items()
            if token in asking.line.out and asking.job_result and asking.job_result.ending
        ]
        self._planned.clear()
        return left

    # --- how ---

    def _feed(self, line: _Line) -> None:
        most = ahead_of(line.part.limit)
        while line.to_ask and len(line.out) < most and not self.is_stopping:
            permit = self._permit(self._planned[line.to_ask[0]].cell)
            if permit == "wait":
                return
            token = line.to_ask.popleft()
            if permit == "ask":
                self._send(token, self._planned[token])

    def _send_now(self, token: str, asking: _Asking) -> None:
        if token in asking.line.to_ask:
            asking.line.to_ask.remove(token)
        self._send(token, asking)

    def _send(self, token: str, asking: _Asking) -> None:
        self._numbers += 1
        self._tokens[self._numbers] = token
        asking.line.out.add(token)
        target = asking.cell.target
        job = Job(
            number=self._numbers,
            target=target,
            request=request_for(asking.cell, self._settings),
            part=asking.line.part,
        )
        try:
            self._host_of(self._kinds[target.provider]).send(job)
        except HostDied as error:
            self._note(JobResult(number=self._numbers, error=error))

    def _taken(self, token: str, asking: _Asking) -> None:
        asking.line.out.discard(token)
        # A test that is run again asks again.
        self._planned[token] = _Asking(asking.cell, asking.line)
        self._feed(asking.line)

    def _hear(self, cell: Cell) -> None:
        """Wait for one message, and fail all that are out if none can come any more."""
        kind = self._kinds[cell.target.provider]
        # A guest's provider may hold the loop up as long as an attempt may take.
        longest_s = max(self._settings.timeout_s, cell.prompt.timeout_s or 0.0)
        try:
            self._host_of(kind).receive(longest_s + SILENCE_S, self._note)
        except HostDied as error:
            self._bury(kind, error)

    def _note(self, message: Message) -> None:
        match message:
            case Waiting() if self._tell:
                self._tell(self._tokens[message.number], message)
            case JobResult():
                token = self._tokens.pop(message.number)
                if message.notes:
                    self.notes.setdefault(self._planned[token].cell.target, {}).update(message.notes)
                # A test that was dropped wants no reply.
                if token in self._planned[token].line.out:
                    self._planned[token].job_result = message

    def _bury(self, kind: type[Host], error: HostDied) -> None:
        self._deaths += 1
        host = self._hosts.pop(kind, None)
        for message in host.close() if host else ():
            self._note(message)
        for number, token in list(self._tokens.items()):
            if self._kinds[self._planned[token].cell.target.provider] is kind:
                self._note(JobResult(number=number, error=error))

    def _host_of(self, kind: type[Host]) -> Host:
        if kind not in self._hosts:
            if self._deaths >= MOST_DEATHS:
                raise HostDied("the side that asks has ended; no more cells are asked")
            providers = {n: p for n, p in self._providers.items() if self._kinds[n] is kind}
            try:
                self._hosts[kind] = kind(  # type: ignore[call-arg]
                    providers, self._settings, self._shared_dir, self._others
                )
            except OSError as error:
                self._deaths += 1
                raise HostDied(f"the side that asks cannot be started: {error}") from error
        return self._hosts[kind]


def _kinds(providers: Mapping[str, Provider]) -> dict[str, type[Host]]:
    """Return where each provider is asked; an endpoint is asked in one place, which keeps its limit."""
    in_thread = {provider.endpoint for provider in providers.values() if not ProcessHost.can_ask(provider)}
    return {
        name: ThreadHost if provider.endpoint in in_thread else ProcessHost
        for name, provider in providers.items()
    }


def endpoint_limits(providers: Mapping[str, Provider], settings: Settings) -> dict[str, int]:
    """Return the limit of each endpoint: where several providers share one, the smallest of theirs."""
    limits: dict[str, int] = {}
    for name, provider in providers.items():
        limit = settings.concurrency.limit(name, is_local=provider.is_local)
        limits[provider.endpoint] = min(limit, limits.get(provider.endpoint, limit))
    return limits


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
        seed=cell.repeat if cell.n_repeats > 1 else None,
        stream=settings.stream,
        timeout_s=prompt.timeout_s or settings.timeout_s,
        tools=prompt.tools or (),
        world=prompt.world,
    )
