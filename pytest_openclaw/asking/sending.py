"""Sends one cell: its request, warm-up, attempts with retries, budget, the server's description of itself.

`asker.py` decides which cell is sent next; this module does not know about tests. An attempt detects prompts
that a server has silently cut, and limits the size of a reply.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from inspect import isawaitable
from pathlib import Path
from typing import Any, NamedTuple, cast

import psutil

from pytest_openclaw.asking.exchanges import hold_exchange
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers import BUILTIN
from pytest_openclaw.providers.prices import Prices, has_list, total_usd, usages_of
from pytest_openclaw.providers.wire import count_in, fewest_tokens, positive_in
from pytest_openclaw.suites.cells import how_read
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import MAX_ANSWER_BYTES, MAX_CALLS_BYTES, MAX_TEXT_BYTES, clip, cut_text
from pytest_openclaw.util.typed import LARGEST
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.replies import CallResult, Fault, Reply, Timing, Turn
from pytest_openclaw.values.requests import NEW, Request, Target, in_new_conversation
from pytest_openclaw.values.run_files import BEFORE, facts_of, server_facts
from pytest_openclaw.values.settings import SERVER, THINKING_ROOM_TOKENS, Settings
from pytest_openclaw.values.tool_calls import LOOKUP_TURNS, ToolCall

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
CLOSING_S = 5.0
LIST_S = 10.0
MOST_IN_A_ROW = 3
"""So many cells of a target in a row with the same fault end its asking."""
# A provider limits its own attempt, to keep the partial reply; this limits a provider that does not.
GRACE_S = 5.0
_NUMBERS: dict[str, Callable[[Any], float | None]] = {
    **dict.fromkeys(
        ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens"),
        partial(count_in, most=LARGEST),
    ),
    **dict.fromkeys(("tokens_per_s", "prompt_tokens_per_s"), positive_in),
}


def request_for(cell: Cell, settings: Settings, provider: Provider | None = None) -> Request:
    """Return the request of a cell: the same for every provider, plus the parts of OpenClaw's surface."""
    prompt, level = cell.prompt, cell.target.thinking_level
    # Every API counts thinking as output, so without room for thinking there would be no answer.
    room = THINKING_ROOM_TOKENS[level] if level else 0
    seed = cell.repeat if cell.n_repeats > 1 else None
    listed = Request(
        model=cell.target.model,
        prompt=prompt.prompt,
        system=prompt.system,
        images=prompt.images,
        messages=prompt.messages,
        history=prompt.history,
        thinking_level=level,
        max_output_tokens=prompt.max_output_tokens + room,
        temperature=None if settings.temperature == SERVER else settings.temperature,
        seed=seed if settings.seed is None else settings.seed + cell.repeat - 1,
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
        seed=None,
        lookup_turns=0 if listed.world else LOOKUP_TURNS,
        surface=cell.target.surface,
    )
    if provider.is_openclaw:  # OpenClaw itself adds the rest
        return replace(asked, system=prompt.listed.system, listed_tools=prompt.listed.tools or ())
    surface, model = prompt.surface, f"{cell.target.provider}/{cell.target.model}"
    before, after = _named(surface.before, model), _named(surface.after, model)
    begun = ((in_new_conversation(turn), turn) for turn in asked.turns)
    return replace(
        asked,
        prompt=f"{before}{asked.prompt}{after}",
        turns=tuple(turn if text is None else f"{NEW}{before}{text}{after}" for text, turn in begun),
        system=_named(asked.system or "", model),
        context=_named(surface.context, model),
        fields={**(surface.fields if provider.api == surface.api else {}), **asked.fields},
    )


@cache  # one text for all cells of a target, because a plan has thousands
def _named(text: str, model: str) -> str:
    return text.replace("<model>", model)


def endpoint_limits(providers: Mapping[str, Provider], settings: Settings) -> dict[str, int]:
    """Return the limit of each endpoint; if several providers share an endpoint, their smallest limit."""
    limits: dict[str, int] = {}
    for name, provider in providers.items():
        limit = settings.concurrency.limit(name, is_local=provider.is_local)
        limits[provider.endpoint] = min(limit, limits.get(provider.endpoint, limit))
    return limits


def wait_before_retry(
    fault: Fault, *, attempt: int, retries: int, elapsed_s: float, timeout_s: float
) -> float | None:
    """Return the seconds to wait before the next attempt, or None for no further attempt.

    Exponential back-off with full jitter (Brooker, "Exponential Backoff And Jitter", AWS Architecture
    Blog, 2015): a random time up to 1, 2, 4 … s, at most 60 s. A server's `Retry-After` has precedence. No
    attempt begins later than `timeout_s` after the first, so a cell takes at most twice this time; there is
    no further attempt if the server asks for a longer wait.
    """
    if not fault.retryable or attempt > retries:
        return None
    if fault.retry_after_s is not None:
        wait_s = max(0.0, fault.retry_after_s)
    else:
        most_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 10))
        wait_s = random.uniform(0.0, most_s)  # noqa: S311 - no secret
    return wait_s if elapsed_s + wait_s <= timeout_s else None


# --- all cells --------------------------------------------------------------------------------


async def close_all(providers: Iterable[Provider]) -> None:
    """Close providers; one that raises an error, or calls `sys.exit`, does not affect the others."""

    async def close(provider: Provider) -> None:
        with contextlib.suppress(SystemExit):  # it would end the event loop
            await provider.aclose()

    closings = (asyncio.wait_for(close(provider), CLOSING_S) for provider in providers)
    await asyncio.gather(*closings, return_exceptions=True)


class Waiting(NamedTuple):
    """The wait after a fault, until the next attempt begins, on the clock of `time.perf_counter`."""

    failure_type: str
    attempt: int
    of: int
    begins_at: float


class Sender:
    """Sends cells through their providers; all methods belong to one event loop.

    Attributes:
        facts: new facts about targets: `resources_before` (a snapshot of the machine), `warm_up` and `server`
            (how the server describes itself). The caller removes the facts that it has recorded.
        spent_usd: the cost of all calls; 0 without a budget.
        waiting: the targets that wait before another attempt, by label.
    """

    def __init__(self, providers: Mapping[str, Provider], settings: Settings) -> None:
        self.facts: deque[tuple[Target, JsonObject]] = deque()
        self.spent_usd = 0.0
        self.waiting: dict[str, Waiting] = {}
        self._providers = providers
        self._settings = settings
        self._down: dict[tuple[str, str], Fault] = {}
        self._in_a_row: defaultdict[str, list[Fault]] = defaultdict(list)
        self._in_flight: Counter[str] = Counter()
        self._prices = Prices(providers, settings)
        if any(self._prices.needs_list(one) for one in settings.targets if one.provider in providers):
            has_list()  # loaded now: later it would delay requests by 0.2 s
        self._asked: set[str] = set()
        self._ready: dict[str, asyncio.Future[None]] = {}
        self._identified: set[str] = set()
        self._most_read: Counter[tuple[str, str]] = Counter()

    async def send(self, cell: Cell, request: Request, queued_at: float | None = None) -> CallResult:
        """Send a cell, with its retries; first make its target ready, if this is the target's first cell.

        Raises:
            Exception: a provider broke; a fault of a server or a model is a result.
        """
        target = cell.target
        provider = self._providers[target.provider]
        queued = time.perf_counter() if queued_at is None else queued_at

        def attempts(request: Request) -> Coroutine[Any, Any, CallResult]:
            return self._attempts(provider, target, request, queued)

        self._in_flight[provider.endpoint] += 1
        try:
            if fault := self._never_sent(provider, target, request):
                return CallResult.never_sent(self._explained(provider, target, fault))
            await self._make_ready(provider, target)
            if provider.plays_worlds or not request.is_exchange:
                result = await attempts(request)
            else:
                context_tokens = provider.context_tokens(request)
                result = await hold_exchange(request, attempts, context_tokens=context_tokens)
            self._count_faults(target, request, result.result)
            if isinstance(result.result, Fault):
                result = replace(result, result=self._explained(provider, target, result.result))
            elif target.label not in self._identified:
                # After the first answer, so that these queries neither wait for loading nor delay an answer;
                # before the next cell, so that a local server never has two requests at once.
                self._identified.add(target.label)
                with contextlib.suppress(asyncio.CancelledError):  # the run ends, but has the answer
                    self.facts.append((target, {"server": await self._fingerprint(provider, target)}))
        finally:
            self._in_flight[provider.endpoint] -= 1
        return result

    # --- one cell ---

    def _never_sent(self, provider: Provider, target: Target, request: Request) -> Fault | None:
        """Return the reason why a request is not sent at all, or None."""
        if request.tools and not provider.takes_tools:
            return faults.takes_no("tools", target.provider)
        if (request.messages or request.history or request.turns) and not provider.takes_messages:
            return faults.takes_no("messages", target.provider)
        if request.images and "images" not in provider.takes:
            return faults.takes_no("images", target.provider)
        for scope in (("endpoint", provider.endpoint), ("target", target.label)):
            if first := self._down.get(scope):
                return faults.not_asked(first)
        if len(row := self._in_a_row[target.label]) == MOST_IN_A_ROW:
            return faults.not_asked(faults.in_a_row(row))
        return self._spent(target)

    async def _attempts(
        self, provider: Provider, target: Target, request: Request, queued_at: float
    ) -> CallResult:
        cold = target.label not in self._asked
        self._asked.add(target.label)
        began = time.perf_counter()
        waited_s = 0.0
        costs: list[tuple[Reply | Fault, float | None]] = []
        ended: CallResult | None = None
        while True:
            if spent := self._spent(target):
                return ended or CallResult.never_sent(spent)
            in_flight = self._in_flight[provider.endpoint]
            served = (provider.endpoint, request.model)
            result, timing = await ask_once(provider, request, self._most_read[served])
            if isinstance(result, Fault):
                result = await self._examined(provider, target, result)
                if not result.sent:
                    return CallResult.never_sent(result)
            costs.append((result, self._charge(provider, target, request, result, timing)))
            ended = CallResult(
                result=result,
                timing=timing,
                attempts=len(costs),
                retry_wait_ms=waited_s * 1000,
                queue_ms=(began - queued_at) * 1000,
                cold_start=cold,
                in_flight=in_flight,
                cost_usd=total_usd(costs),
            )
            if isinstance(result, Reply):
                self._most_read[served] = max(self._most_read[served], result.input_tokens or 0)
                return ended
            retries = self._settings.retries
            wait_s = wait_before_retry(
                result,
                attempt=len(costs),
                retries=retries,
                elapsed_s=time.perf_counter() - began,
                timeout_s=request.timeout_s,
            )
            if wait_s is None:
                last = faults.after_attempts(result, len(costs), was_too_long=len(costs) <= retries)
                return replace(ended, result=last)
            begins_at = time.perf_counter() + wait_s
            self.waiting[target.label] = Waiting(result.failure_type, len(costs) + 1, retries + 1, begins_at)
            await asyncio.sleep(wait_s)
            self.waiting.pop(target.label, None)
            waited_s += wait_s

    async def _examined(self, provider: Provider, target: Target, fault: Fault) -> Fault:
        """Name the served models if the model is unknown; mark the affected endpoint or target down."""
        if fault.failure_type == "model_not_found":
            # The fault is known; a server that does not list its models changes nothing.
            with contextlib.suppress(Exception):
                models = await asyncio.wait_for(provider.models(), LIST_S)
                fault = faults.with_served(fault, target.model, models)
        if fault.scope != "cell":
            name = provider.endpoint if fault.scope == "endpoint" else target.label
            shown = replace(fault, message=self._redactor.text(fault.message))
            self._down.setdefault((fault.scope, name), shown)
        return fault

    def _count_faults(self, target: Target, request: Request, result: Reply | Fault) -> None:
        """Count the cells of a target in a row, as they end, that had the same fault after all retries.

        Faults count that another prompt would have had, too: those that are retried, and a timeout before any
        token. A cell that was not sent, or that had less time than others, is left out; another ending begins
        a new row. A target that is down is up again if a cell that was in flight is answered.
        """
        row = self._in_a_row[target.label]
        if isinstance(result, Reply):
            row.clear()
            return
        is_timeout = result.failure_type == "timeout"
        is_short = is_timeout and request.timeout_s < self._settings.timeout_s
        if result.sent and not is_short and len(row) < MOST_IN_A_ROW:
            is_silent = not result.raw and (result.timing is None or result.timing.ttft_ms is None)
            counts = is_silent if is_timeout else result.retryable
            if not counts or (row and row[0].failure_type != result.failure_type):
                row.clear()
            row += [result] if counts else []

    def _explained(self, provider: Provider, target: Target, fault: Fault) -> Fault:
        """Add how the target's name was read to a fault that a misread name may have caused."""
        if fault.failure_type not in ("connect_error", "model_not_found") or provider.is_openclaw:
            return fault
        endpoints = (endpoint.name for endpoint in self._settings.endpoints)
        names = {*(one.name for one in BUILTIN), *endpoints, *self._providers}
        hint = how_read(target, names)
        return replace(fault, message=f"{fault.message.removesuffix('.')}.{hint}") if hint else fault

    # --- money ---

    def _spent(self, target: Target) -> Fault | None:
        budget_usd = self._settings.budget_usd
        if budget_usd is None or self.spent_usd < budget_usd:
            return None
        return faults.budget_spent(target.provider, budget_usd)

    def _charge(
        self, provider: Provider, target: Target, request: Request, result: Reply | Fault, timing: Timing
    ) -> float | None:
        """Return the cost of an attempt, and add it to the spending.

        An attempt without the server's counts is charged at its upper bound, because the budget is a promise.
        """
        cost_usd = self._prices.cost_usd(target, result, timing.started_at_ms)
        paid_usd = cost_usd
        if paid_usd is None and (isinstance(result, Reply) or result.failure_type in faults.UNPRICED):
            turns = request.most_turns if provider.plays_worlds else 1
            paid_usd = turns * self._prices.most_usd(target, request)
        if self._settings.budget_usd is not None:
            self.spent_usd += paid_usd or 0.0
        return cost_usd

    # --- a target's first cell ---

    async def _make_ready(self, provider: Provider, target: Target) -> None:
        """Take a snapshot of the machine and warm the target up, before its first cell."""
        label = target.label
        if label not in self._ready:
            self.facts.append((target, {BEFORE: collect_snapshot()}))
            work = self._warm_up(provider, target) if provider.warms_up else asyncio.sleep(0)
            self._ready[label] = asyncio.ensure_future(work)
        await asyncio.shield(self._ready[label])

    async def _warm_up(self, provider: Provider, target: Target) -> None:
        request = Request(
            model=target.model,
            prompt="Hi",
            max_output_tokens=1,
            stream=False,
            timeout_s=self._settings.timeout_s,
        )
        e2e_ms: int | None = None
        try:
            result, timing = await ask_once(provider, request)
            self._charge(provider, target, request, result, timing)
            message = None if isinstance(result, Reply) else result.message
            e2e_ms = round(timing.e2e_ms)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        if message is None:
            self._asked.add(target.label)
        done = facts_of({"ok": message is None, "e2e_ms": e2e_ms, "message": message})
        self.facts.append((target, self._redactor.value({"warm_up": done})))

    async def _fingerprint(self, provider: Provider, target: Target) -> JsonObject:
        """Return the server's description of itself; `{"error": …}` without an answer."""
        try:
            found = await asyncio.wait_for(provider.fingerprint(target.model), self._settings.timeout_s)
            facts = server_facts(found)
        except Exception as error:
            facts = server_facts({"error": f"{type(error).__name__}: {error}"})
        return cast("JsonObject", self._redactor.value(facts))

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor.of_run(self._providers.values(), os.environ)


# --- one attempt --------------------------------------------------------------------------------


async def ask_once(provider: Provider, request: Request, most_read: int = 0) -> tuple[Reply | Fault, Timing]:
    """Ask once; a provider's own times have precedence over the times measured around the call.

    `most_read` is the largest number of prompt tokens that the server has counted for this model.
    """
    if request.context:  # the context is the last message
        request = replace(request, history=(*request.history, Turn(user=request.context)), context="")
    started = time.perf_counter()
    started_at_ms = epoch_ms(started)
    result: Reply | Fault
    try:
        # A provider that plays the exchange itself has this time for each turn.
        turns = request.most_turns if provider.plays_worlds else 1
        async with asyncio.timeout(request.timeout_s * turns + GRACE_S):
            answering: object = provider.ask(request)
            if not isawaitable(answering):
                raise TypeError(f"{type(provider).__name__}.ask is not async: write async def ask")
            reply = bounded_reply(_checked(await answering))
        if cut := cut_prompt(provider.setup.name, request, reply, most_read):
            result = replace(cut, usage=usages_of(reply), cut=reply.cut)  # the tokens are charged
        else:
            result = reply
    except CallFailed as failed:
        result = bounded_fault(faults.checked(failed.fault))
    except TimeoutError:
        result = faults.timed_out(provider.setup.name, request.timeout_s)
    except SystemExit as error:  # otherwise it ends the loop, and with it the requests of all other cells
        raise OpenClawError(f"the provider called sys.exit({error.code!r})") from error
    e2e_ms = (time.perf_counter() - started) * 1000
    outside = Timing(started_at_ms=started_at_ms, ended_at_ms=started_at_ms + round(e2e_ms), e2e_ms=e2e_ms)
    return result, result.timing or outside


def _checked(reply: Reply) -> Reply:
    """Return a plugin's reply; raise `TypeError` if it is not a `Reply` or cannot be written to a row."""
    if not isinstance(reply, Reply):
        raise TypeError(f"a provider's ask returns a Reply, not {type(reply).__name__}")
    for name, read in _NUMBERS.items():
        if (value := getattr(reply, name)) is not None and read(value) is None:
            raise TypeError(f"Reply.{name} cannot be {value!r}")
    return reply


# --- cut prompts --------------------------------------------------------------------------------

# Shorter prompts fit into every context, so a small count is only the server's way of counting.
LEAST_WORDS = 256
# No context is smaller.
LEAST_CONTEXT_TOKENS = 64


def cut_prompt(name: str, request: Request, reply: Reply, most_read: int = 0) -> Fault | None:
    """Return a fault if the server has cut the prompt of a reply; None if its token count shows no cut.

    A prompt has more tokens than words. A reply without counts is not checked. Some servers count only tokens
    outside their cache (Ollama 0.30.0). Such a count can be too small even for a cut prompt, which keeps the
    system prompt and the last message, or fills half of the context.
    """
    counted, words = reply.input_tokens or 0, fewest_tokens(request)
    cached = reply.cached_tokens or 0
    counted += cached if cached > counted else 0
    if not counted or words < LEAST_WORDS or counted >= words:
        return None
    last = request.conversation[-1]
    last_text = last.results[-1] if last.results else last.user or ""
    kept = len((request.system or "").split()) + len(last_text.split())
    if counted < min(kept, max(most_read // 2, LEAST_CONTEXT_TOKENS)):
        return None
    return faults.context_cut(name, request.model, words, counted, reply.raw, reply.timing)


# --- the size of a reply ------------------------------------------------------------------------

MAX_CALLS = 256
"""The most calls of one turn; together they take at most `MAX_CALLS_BYTES`."""
_MOST_THINKING_BYTES = 16 * MAX_ANSWER_BYTES


def bounded_reply(reply: Reply) -> Reply:
    """Return a reply that is short enough to be judged in bounded time.

    Its `cut` names the shortened fields of the row. Two of its words are not fields: `answer`, if only the
    beginning of a text is judged, and `reasoning`.
    """
    cut = {*reply.cut}
    turns = tuple(_turn(turn, cut) for turn in reply.turns)
    calls = tuple(call for turn in turns for call in turn.calls)
    return replace(
        reply,
        text=_judged_text(reply.text, cut),
        reasoning=cut_text(cut, "reasoning", reply.reasoning, MAX_ANSWER_BYTES),
        raw=cut_text(cut, "raw_output", reply.raw or reply.text, MAX_ANSWER_BYTES),
        refusal=cut_text(set(), "", reply.refusal, MAX_TEXT_BYTES),  # `raw` has it too
        finish_reason=cut_text(cut, "finish_reason", reply.finish_reason),
        effective_model=cut_text(cut, "effective_model", reply.effective_model),
        turns=turns,
        tool_calls=calls if turns else _calls(reply.tool_calls, cut),
        cut=frozenset(cut),
    )


def bounded_fault(fault: Fault) -> Fault:
    """Return a fault with limited texts; its `cut` names the shortened fields."""
    cut = {*fault.cut}
    return replace(
        fault,
        message=cut_text(cut, "fault_message", fault.message, MAX_TEXT_BYTES),
        raw=cut_text(cut, "raw_output", fault.raw, MAX_ANSWER_BYTES),
        turns=tuple(_turn(turn, cut) for turn in fault.turns),
        cut=frozenset(cut),
    )


def _judged_text(text: str, cut: set[str]) -> str:
    """Return the part of a text that is judged; thinking is removed first if the text is too long."""
    beginning = cut_text(cut, "answer", text, _MOST_THINKING_BYTES)
    if clip(beginning, MAX_ANSWER_BYTES) == beginning:
        return beginning
    return cut_text(cut, "answer", strip_thinking(beginning), MAX_ANSWER_BYTES)


def _calls(calls: Sequence[ToolCall], cut: set[str]) -> tuple[ToolCall, ...]:
    kept: list[ToolCall] = []
    room = MAX_CALLS_BYTES
    for call in calls:
        if len(kept) == MAX_CALLS or room <= 0:
            cut.add("tool_call_details")
            break
        arguments = cut_text(cut, "tool_call_details", call.arguments, room)
        name, id_ = (cut_text(cut, "tool_call_details", word) for word in (call.name, call.id))
        kept.append(replace(call, name=name or "", id=id_, arguments=arguments))
        room -= len(f"{name}{arguments}".encode())
    return tuple(kept)


def _turn(turn: Turn, cut: set[str]) -> Turn:
    calls = _calls(turn.calls, cut)
    return replace(
        turn,
        text=_judged_text(turn.text, cut),
        reasoning=cut_text(cut, "reasoning", turn.reasoning, MAX_ANSWER_BYTES),
        calls=calls,
        results=tuple(
            cut_text(cut, "turns", result, MAX_TEXT_BYTES) for result in turn.results[: len(calls)]
        ),
        finish_reason=cut_text(cut, "turns", turn.finish_reason),
    )


# --- the machine ------------------------------------------------------------------------------------


def collect_snapshot() -> JsonObject:
    """Query memory, swap, load and the disk of the current folder; null where the system does not report it.

    `cpu_percent` is the mean since this process took its last snapshot.
    """
    return {
        "taken_at_ms": epoch_ms(),
        "memory_total_bytes": _query(lambda: psutil.virtual_memory().total),
        "memory_available_bytes": _query(lambda: psutil.virtual_memory().available),
        "swap_used_bytes": _query(lambda: psutil.swap_memory().used),
        "disk_free_bytes": _query(lambda: psutil.disk_usage(str(Path.cwd())).free),
        "load_1m": _query(lambda: round(psutil.getloadavg()[0], 2)),
        "cpu_percent": _query(lambda: psutil.cpu_percent(interval=None)),
    }


def _query(read: Callable[[], Any]) -> Any:
    """Return a figure, or None if the system does not report it, as in some containers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return read()
    except (OSError, RuntimeError, psutil.Error):
        return None
