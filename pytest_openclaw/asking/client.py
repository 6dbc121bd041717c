"""What the process that runs tests uses to get replies, wherever the requests are made.

`AskingClient` is the seam between tests and requests: of this folder the execution hooks use nothing else.
"""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from pytest_openclaw.asking.endpoint_limits import endpoint_limits
from pytest_openclaw.asking.links import (
    AskerThread,
    connect,
    exit_reason,
    own_thread,
    runs_in_process,
)
from pytest_openclaw.asking.messages import (
    CellPlan,
    ClaimCells,
    Elsewhere,
    Hello,
    JobResult,
    Left,
    Listed,
    Membership,
    NotSent,
    PlannedCell,
    RepeatDecision,
    StopAhead,
    Taken,
    Waiting,
    Want,
    Welcome,
)
from pytest_openclaw.asking.starting import place_of, start_process
from pytest_openclaw.core.clock import anchor_s
from pytest_openclaw.core.errors import CellNotSent, HostDied
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.settings import SERVER, THINKING_ROOM_TOKENS
from pytest_openclaw.types.surface import LOOKUP_TURNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.asking.links import Link
    from pytest_openclaw.asking.messages import FromAsker, FromClient
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.protocols import Provider, ProviderSetup
    from pytest_openclaw.types.replies import CallResult
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target

SILENCE_S = 60.0
_ENDING_S = 5.0
_CELLS_A_PART = 500
"""Of a long plan: the asker sends the first cells while the client still prepares the others."""


@dataclass(kw_only=True)
class _Side:
    """One asker, as this process sees it.

    Attributes:
        started: the process or thread that this process has started.
        died: how the last asker ended.
        ended: the cells whose tests have ended, which it does not know yet.
        has_plan: whether the asker had the plan when this process connected; None before it has said so.
        is_set_up: it knows what this process knows.
        left: its last message.
        spent_usd, n_out: as it has said last.
    """

    place: Path
    providers: dict[str, Provider]
    in_process: bool
    link: Link | None = None
    started: Any = None
    died: str | None = None
    ended: list[str] = field(default_factory=list)
    has_plan: bool | None = None
    is_set_up: bool = False
    left: Left | None = None
    spent_usd: float = 0.0
    n_out: int = 0


class AskingClient:
    """Gets replies from the asker; use it with `with`, from one thread, but for what says otherwise.

    Attributes:
        notes: what is new about targets, `before` and `serving`; the caller removes what it has reported.

    Args:
        providers: by name, made for this run.
        settings: timeouts, retries, streaming, limits.
        shared_dir: the run's folder on this machine.
        membership: who else uses the asker.
        early: the process that this one has started for it already.
        on_wait: receives a token and why its cell waits.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        settings: Settings,
        shared_dir: Path,
        membership: Membership | None = None,
        *,
        early: subprocess.Popen[bytes] | None = None,
        on_wait: Callable[[Waiting], None] = lambda _: None,
    ) -> None:
        self.notes: dict[Target, JsonObject] = {}
        self._settings = settings
        self._membership = membership or Membership()
        self._on_wait = on_wait
        self._providers = providers
        self._sides = _sides(providers, shared_dir, self._membership.name, early)
        self._limits = endpoint_limits(providers, settings)
        self._plan: Sequence[Listed] = ()
        self._places: dict[str, int] = {}
        self._further: dict[str, Cell] = {}
        self._claimed: set[str] = set()
        self._used: set[str] = set()
        self._received: dict[str, JobResult | NotSent] = {}
        self._decisions: list[RepeatDecision] = []
        self._elsewhere_usd = 0.0
        self._is_stopping = False
        self._is_closed = False

    def __enter__(self) -> AskingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.let_go()

    def start(self) -> None:
        """Connect; what that starts takes a moment."""
        for side in self._sides:
            with contextlib.suppress(HostDied):  # each cell that needs it reports that
                self._connect(side)

    def plan(self, cells: Sequence[Listed], limits: Mapping[str, int] | None = None) -> None:
        """Take all cells of the session, in their order, and have them sent ahead of their tests.

        Args:
            cells: the same in every process of the session.
            limits: requests in flight by endpoint, where they are not what the settings say.
        """
        self._plan = cells
        self._places = {listed.token: place for place, listed in enumerate(cells)}
        self._limits = {**self._limits, **(limits or {})}
        if self._membership.is_alone:
            self._claimed = {listed.token for listed in cells if listed.is_ahead}
        for side in self._sides:
            with contextlib.suppress(HostDied):  # each cell that needs it reports that
                self._ready(side)

    def claim(self, tokens: Iterable[str]) -> None:
        """Have the replies of these cells, which this process runs next, sent as they arrive."""
        new = [token for token in tokens if token in self._places and token not in self._claimed]
        self._claimed.update(new)
        for side in self._sides:
            own = [token for token in new if self._is_of(token, side)]
            if own and side.link:
                side.link.send(*_news(side), ClaimCells(tokens=own))

    def ask(self, token: str, cell: Cell, request: Request | None = None) -> CallResult:
        """Return how the cell's call ended; have it sent if it was not.

        Args:
            token: of the cell.
            cell: of the plan, or a further one.
            request: of a further one, where it is not what its prompt and the settings say.

        Raises:
            KeyboardInterrupt: passed on; the request goes on until the client is closed.
            CellNotSent: its target's repeats have ended.
            HostDied: the asker has ended; what it was sending is lost.
            Exception: what a provider raised that is no `CallFailed`.
        """
        if token not in self._places:
            self._further[token] = cell
        side = self._side_of(cell)
        # A plugin's provider may hold the loop up as long as an attempt may take.
        patience_s = max(self._settings.timeout_s, cell.prompt.timeout_s or 0.0) + SILENCE_S
        wanted_from: Link | None = None
        has_died = False
        while token not in self._received:
            try:
                link = self._ready(side)
            except HostDied as error:
                raise HostDied(side.died) if has_died else error from None
            try:
                if link is not wanted_from:
                    if link.receive_arrived(partial(self._note, side)):
                        continue
                    link.send(*_news(side), self._want(token, cell, request))
                    wanted_from = link
                link.receive(patience_s, partial(self._note, side))
            except HostDied as error:
                has_died = True
                self._forget_asker(side, error)
                if token not in self._places:  # the next asker could not know that it was sent
                    raise HostDied(side.died) from None
        answer = self._received.pop(token)
        self._used.add(token)
        if isinstance(answer, NotSent):
            raise CellNotSent(answer.why)
        if isinstance(answer.error, HostDied) and side.died:
            raise HostDied(side.died)  # this process may know more than the one that started the next asker
        if answer.error is not None:
            raise answer.error
        assert answer.ending is not None, "what did not break has ended"
        return answer.ending

    def forget(self, token: str) -> None:
        """Keep a cell's reply no longer: its test has ended, with the reply or without it."""
        self._received.pop(token, None)
        self._claimed.discard(token)
        self._used.discard(token)
        if token not in self._places and token not in self._further:
            return
        side = self._side_of(self._cell_of(token))
        side.ended.append(token)
        if side.link and len(side.ended) >= self._most_ended:
            side.link.send(*_news(side))

    @property
    def _most_ended(self) -> int:
        """How many tests may end before the asker learns of it, which keeps so many fewer replies ahead.

        The bound of the asker leaves room for as many as the limit, beside those in flight.
        A worker says so when it claims its next cells.
        """
        return max(1, min(self._limits.values())) if self._membership.is_alone else 2

    def release(self, token: str) -> None:
        """Forget a cell whose test was interrupted, unless its reply has come and was not used."""
        if token in self._used:
            self.forget(token)

    # --- from any thread ---

    def decide(self, decision: RepeatDecision) -> None:
        """Take a decision on the repeats of a target; any thread may call it."""
        self._decisions.append(decision)
        self._send_all(decision)

    def count_elsewhere(self, usd: float) -> None:
        """Take what all other machines have spent; any thread may call it."""
        self._elsewhere_usd = max(usd, self._elsewhere_usd)
        for side in self._sides:
            self._send_spent(side)

    def stop(self) -> None:
        """Have nothing sent ahead any more; any thread may call it."""
        self._is_stopping = True
        self._send_all(StopAhead())

    @property
    def n_out(self) -> int:
        """Cells that were sent and that no test has taken, when a reply arrived last."""
        return sum(side.n_out for side in self._sides)

    @property
    def spent_usd(self) -> float:
        """What this machine has spent, as far as it is known here."""
        return sum(side.spent_usd for side in self._sides)

    def awaited(self) -> Mapping[str, str]:
        """Return, by endpoint, the first cell of this process without a reply; any thread may call it."""
        first: dict[str, str] = {}
        for listed in self._plan:
            if listed.token in self._claimed and listed.token not in self._received:
                first.setdefault(self._endpoint(listed.cell), listed.token)
        return first

    # --- the end ---

    def close(self) -> list[tuple[Cell, CallResult]]:
        """Disconnect; return what was answered and no test has taken, in the order of the plan.

        Where other processes use the asker, only the last of them gets that.
        """
        self._is_closed = True
        left: dict[str, JobResult | NotSent] = {}
        for side in self._sides:
            left.update(self._close(side))
        self._received.clear()
        ends = [
            (token, one.ending) for token, one in left.items() if isinstance(one, JobResult) and one.ending
        ]
        ends.sort(key=lambda pair: self._places.get(pair[0], len(self._places)))
        return [(self._cell_of(token), ending) for token, ending in ends]

    def let_go(self) -> None:
        """Wait for the processes that this one has started and that have been closed; they end meanwhile."""
        for side in self._sides:
            if isinstance(side.started, subprocess.Popen):
                _let_go(side.started)

    def _close(self, side: _Side) -> Mapping[str, JobResult | NotSent]:
        link, side.link = side.link, None
        if link is None:
            return {}
        try:
            link.send(*_news(side))
            link.goodbye(partial(self._note, side))
        finally:
            link.close()
        if isinstance(side.started, AskerThread) and side.left:
            side.started.wait()
        if side.left is None:  # it has died, or has not answered
            return {token: one for token, one in self._received.items() if self._is_of(token, side)}
        return {one.token: one for one in side.left.results}

    # --- how ---

    def _ready(self, side: _Side) -> Link:
        """Return the link to an asker that knows what this process knows.

        Raises:
            HostDied: there is none, and none can be started.
        """
        link = self._connect(side)
        while not side.is_set_up:
            try:
                while side.has_plan is None:
                    link.receive(SILENCE_S, partial(self._note, side))
            except HostDied as error:
                self._forget_asker(side, error)
                link = self._connect(side)
                continue
            self._set_up(side, link)
            side.is_set_up = True
        return link

    def _set_up(self, side: _Side, link: Link) -> None:
        link.send(*_news(side))
        if not side.has_plan:
            for part in self._parts(side):
                link.send(part)
        if not self._membership.is_alone:
            link.send(ClaimCells(tokens=[token for token in self._claimed if self._is_of(token, side)]))
        for decision in self._decisions:
            link.send(decision)
        if self._is_stopping:
            link.send(StopAhead())
        self._send_spent(side)

    def _connect(self, side: _Side) -> Link:
        if side.link:
            return side.link
        if self._is_closed:
            raise HostDied("the asker has ended; no more cells are asked")
        try:
            if side.in_process:
                link, started = connect(side.place, start_process)
            elif self._membership.is_alone:
                link, started = own_thread(side.place, side.providers)
            else:
                link, started = connect(side.place, partial(AskerThread, side.providers))
        except OSError as error:
            raise HostDied(f"the side that asks cannot be started: {error}") from error
        side.link, side.started = link, started or side.started
        # One that other processes use may have it from them.
        side.has_plan, side.is_set_up = False if self._membership.is_alone else None, False
        # It may still be starting.
        link.longest_send_s = self._settings.timeout_s + SILENCE_S
        link.send(self._hello(side))
        return link

    def _hello(self, side: _Side) -> Hello:
        makings = {
            name: (type(one).__module__, type(one).__qualname__, _portable(one.setup))
            for name, one in side.providers.items()
            if side.in_process
        }
        return Hello(
            makings=makings,
            settings=self._settings,
            place=side.place,
            anchor_s=anchor_s(),
            is_alone=self._membership.is_alone,
            died=side.died,
            held=[token for token in (*self._received, *self._used) if self._is_of(token, side)],
        )

    def _parts(self, side: _Side) -> Iterator[CellPlan]:
        own = [
            place for place, listed in enumerate(self._plan) if listed.cell.target.provider in side.providers
        ]
        endpoints = {name: provider.endpoint for name, provider in side.providers.items()}
        limits = {endpoint: self._limits[endpoint] for endpoint in endpoints.values()}
        for start in range(0, max(1, len(own)), _CELLS_A_PART):
            yield CellPlan(
                cells=[
                    self._planned(self._plan[place], place) for place in own[start : start + _CELLS_A_PART]
                ],
                limits=limits,
                endpoints=endpoints,
                is_claimed=self._membership.is_alone,
                awaits_decisions=self._membership.awaits_decisions,
                is_last=start + _CELLS_A_PART >= len(own),
            )

    def _planned(self, listed: Listed, place: int) -> PlannedCell:
        cell = listed.cell
        return PlannedCell(
            token=listed.token,
            place=place,
            target=cell.target,
            request=request_for(cell, self._settings, self._providers[cell.target.provider]),
            repeat=cell.repeat,
            is_fixed_repeat=cell.is_fixed_repeat,
            is_ahead=listed.is_ahead,
        )

    def _want(self, token: str, cell: Cell, request: Request | None) -> Want:
        # In a plain session the asker forgets a cell when its test has ended.
        known = token in (self._claimed if self._membership.is_alone else self._places)
        place = self._places.get(token, -1)
        planned = None if known else self._planned(Listed(token, cell, is_ahead=False), place)
        if planned and request:
            planned = planned._replace(request=request)
        return Want(token=token, cell=planned, is_again=token in self._used)

    def _note(self, side: _Side, message: FromAsker) -> None:
        match message:
            case JobResult():
                side.n_out = message.n_out
                if message.notes:
                    self.notes.setdefault(self._cell_of(message.token).target, {}).update(message.notes)
                self._count_spent(side, message.spent_usd)
                self._received[message.token] = message
            case NotSent():
                self._received[message.token] = message
            case Waiting():
                self._on_wait(message)
            case Welcome():
                side.has_plan = message.has_plan
            case Left():
                side.left = message
                side.n_out = message.n_out
                self._count_spent(side, message.spent_usd)
                for result in message.results:
                    if result.notes:
                        self.notes.setdefault(self._cell_of(result.token).target, {}).update(result.notes)

    def _forget_asker(self, side: _Side, error: HostDied) -> None:
        """Forget an asker that has died; the next one says what is lost with it."""
        side.died = exit_reason(side.place, side.started, error)
        side.started = None
        if side.link:
            link, side.link = side.link, None
            link.close()

    def _count_spent(self, side: _Side, usd: float) -> None:
        if usd > side.spent_usd:
            side.spent_usd = usd
            for other in self._sides:
                if other is not side:
                    self._send_spent(other)

    def _send_spent(self, side: _Side) -> None:
        usd = self._elsewhere_usd + self.spent_usd - side.spent_usd
        if usd and side.link:
            side.link.send(Elsewhere(usd=usd))

    def _send_all(self, message: FromClient) -> None:
        for side in self._sides:
            if link := side.link:
                link.send(message)

    def _side_of(self, cell: Cell) -> _Side:
        return next(side for side in self._sides if cell.target.provider in side.providers)

    def _cell_of(self, token: str) -> Cell:
        place = self._places.get(token)
        return self._further[token] if place is None else self._plan[place].cell

    def _is_of(self, token: str, side: _Side) -> bool:
        return self._cell_of(token).target.provider in side.providers

    def _endpoint(self, cell: Cell) -> str:
        return self._providers[cell.target.provider].endpoint


def _news(side: _Side) -> list[FromClient]:
    """Return what the asker is to know before anything else, and note that it does."""
    ended, side.ended = side.ended, []
    return [Taken(tokens=ended)] if ended else []


def host_thread_askers(providers: Mapping[str, Provider], shared_dir: Path, name: str) -> list[AskerThread]:
    """Serve, in this process, the askers that other processes cannot make: those of plugins' providers."""
    threads = []
    for side in _sides(providers, shared_dir, name):
        if not side.in_process:
            link, thread = connect(side.place, partial(AskerThread, side.providers))
            link.close()
            threads.append(thread)
    return threads


def request_for(cell: Cell, settings: Settings, provider: Provider | None = None) -> Request:
    """Return what every provider is asked for this cell.

    Args:
        cell: the cell.
        settings: timeout, streaming, sampling.
        provider: is asked; None for any, on the surface `listed`.
    """
    prompt, level = cell.prompt, cell.target.thinking_level
    # Every API counts thinking as output; without room for it no answer would be reached.
    room = THINKING_ROOM_TOKENS[level] if level else 0
    listed = Request(
        model=cell.target.model,
        prompt=prompt.prompt,
        system=prompt.system,
        images=prompt.images,
        messages=prompt.messages,
        thinking_level=level,
        max_output_tokens=prompt.max_output_tokens + room,
        temperature=None if settings.temperature == SERVER else settings.temperature,
        top_p=settings.top_p,
        seed=_seed(cell, settings),
        tool_choice=settings.tool_choice,
        fields=settings.request_fields.get(cell.target.provider, {}),
        stream=settings.stream,
        timeout_s=prompt.timeout_s or settings.timeout_s,
        tools=prompt.tools or (),
        turns=prompt.turns,
        world=prompt.world,
    )
    if prompt.surface is None or prompt.listed is None or provider is None:
        return listed
    asked = replace(
        listed,
        temperature=None,
        top_p=None,
        seed=None,
        tool_choice="auto",
        lookup_turns=0 if listed.world else LOOKUP_TURNS,
        surface=cell.target.surface,
    )
    if provider.is_openclaw:  # it adds the rest itself
        return replace(asked, system=prompt.listed.system, listed_tools=prompt.listed.tools or ())
    surface, model = prompt.surface, f"{cell.target.provider}/{cell.target.model}"
    return replace(
        asked,
        prompt=f"{_named(surface.before, model)}{asked.prompt}{_named(surface.after, model)}",
        system=_named(asked.system or "", model),
        context=_named(surface.context, model),
        fields={**(surface.fields if provider.api == surface.api else {}), **asked.fields},
    )


def _seed(cell: Cell, settings: Settings) -> int | None:
    """Return the seed that distinguishes a repeat; a single question has the user's, if there is one."""
    if settings.seed is not None:
        return settings.seed + cell.repeat - 1
    return cell.repeat if cell.n_repeats > 1 else None


@cache  # one text for all cells of a target, because a plan has thousands
def _named(text: str, model: str) -> str:
    return text.replace("<model>", model)


def _sides(
    providers: Mapping[str, Provider],
    shared_dir: Path,
    name: str,
    early: subprocess.Popen[bytes] | None = None,
) -> list[_Side]:
    """Return the askers of these providers; an endpoint belongs to one, which keeps its limit."""
    in_thread = {one.endpoint for one in providers.values() if not runs_in_process(one)}
    sides = []
    for in_process in (True, False):
        own = {n: one for n, one in providers.items() if (one.endpoint not in in_thread) == in_process}
        if own:
            place = place_of(shared_dir, name, in_process=in_process)
            started = early if in_process else None
            sides.append(_Side(place=place, providers=own, in_process=in_process, started=started))
    return sides


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Wait for the process if it ends now; it goes on where others use it."""
    try:
        process.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        # Popen would warn of a process that outlives it.
        process.returncode = 0


def _portable(setup: ProviderSetup) -> ProviderSetup:
    return replace(setup, environ=dict(setup.environ))
