"""Makes a suite of a recorded session: each step of the recorded model is a prompt."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from msgspec import Struct, to_builtins

from pytest_openclaw.openclaw.catalog import DIRECT, load_catalogue
from pytest_openclaw.parts.sessions.records import Session, is_cut, read_entries, read_file
from pytest_openclaw.parts.sessions.rules import (
    Agreement,
    RecordedCall,
    RecordedWorld,
    Replay,
    changes,
    handled,
)
from pytest_openclaw.suites.offered import of_catalogue, read_tools
from pytest_openclaw.util.errors import OpenClawError, SuiteError
from pytest_openclaw.util.files import is_there
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.prompts import Prompt, Suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.openclaw.catalog import Catalogue
    from pytest_openclaw.parts.sessions.records import Step
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.tool_calls import Tool

OUTPUT_TOKENS = 2048
LEAST_STEPS, MOST_STEPS = 8, 50
"""Of a replay, whose model may take twice as many as the recorded one."""
ACCEPTED = "accepted.jsonl"
_TOOLING = re.compile(r"^## Tooling\n(.*?)(?=^#|\Z)", re.DOTALL | re.MULTILINE)
_TOOL = re.compile(r"^- ([A-Za-z0-9_.-]+)(?::|$)", re.MULTILINE)


def read_session(path: Path, name: str, *, is_replay: bool = False) -> Suite:
    """Return the suite of a session's file: its steps, or in a replay the user's messages.

    Those that are not asked are left out with the reason.

    Raises:
        SuiteError: the session cannot be read.
    """
    steps = Session(read_entries(path, name)).steps
    if not steps:
        raise SuiteError(f"{name}: has no message of a model.")
    labels, offers = read_labels(path), dict[int, Offer]()
    groups = groupby(steps, key=lambda step: step.id.partition(".")[0])
    asked = [(n, [*its]) for n, its in groups] if is_replay else [(step.id, [step]) for step in steps]
    prompts, left_out = [], {}
    for cell, its in asked:
        reasons = (_why_left_out(step, labels[key_of(step)], is_replay=is_replay) for step in its)
        if why := next(filter(None, reasons), ""):
            left_out[cell] = why
            continue
        context = its[0].context
        offer = offers.get(id(context)) or offers.setdefault(id(context), offer_of(context, steps))
        prompts.append(_prompt(cell, name, its, offer, labels[key_of(its[0])], is_replay=is_replay))
    return Suite(path=name, prompts=tuple(prompts), left_out=left_out)


def _why_left_out(step: Step, labels: Sequence[Label], *, is_replay: bool) -> str:
    if step.left_out:
        return step.left_out
    if any(one.label == "recorded_wrong" for one in labels):
        return "a review says that the recorded step is wrong"
    is_asked = not step.failed or is_replay  # a replay need not repeat failed calls
    return "" if is_asked else f"its call of {step.calls[min(step.failed)].name} failed"


def _recorded(steps: Sequence[Step], tools: Sequence[Tool]) -> Iterator[RecordedCall]:
    since = 0
    for n, step in enumerate(steps, start=1):
        calls = handled(step.calls, tools)
        for i, (call, result) in enumerate(zip(calls, step.results, strict=True)):
            if result is not None and not is_cut(result):
                is_change = changes(call)
                is_due = is_change and i not in step.failed
                yield RecordedCall(
                    call=call, result=result, step=n, since=since, is_change=is_change, is_due=is_due
                )
                since = n if is_change else since


def _prompt(
    cell: str, name: str, steps: Sequence[Step], offer: Offer, labels: Sequence[Label], *, is_replay: bool
) -> Prompt:
    before, tools = steps[0].before, offer.tools
    if is_replay:
        record = tuple(_recorded(steps, tools))
        rule: Any = Replay(record=record, tools=tools, n_steps=len(steps), cut=offer.cut)
        world = RecordedWorld(record=record, steps=min(max(LEAST_STEPS, 2 * len(steps)), MOST_STEPS))
        calls, facts = [one.call for one in record if one.is_due], to_builtins(record)
    else:
        key, calls, world = key_of(steps[0]), handled(steps[0].calls, tools), None
        accepted = tuple(one.calls for one in labels if one.label == "accepted")
        rule = Agreement(recorded=calls, tools=tools, key=key, accepted=accepted, cut=offer.cut)
        facts = [key, accepted]
    names = [*dict.fromkeys(one["tool"] for one in calls)] or ["answer"]
    n = max(n for n, turn in enumerate(before) if turn.user is not None)
    return Prompt(
        suite=name,
        id=cell,
        name="+".join(names),
        category=names[0],
        world=world,
        prompt=before[n].user or "",
        system=offer.system,
        messages=before[:n],
        history=before[n + 1 :],
        max_output_tokens=OUTPUT_TOKENS,
        tools=tools,
        tools_spec=offer.spec,
        validator=rule,
        # As of a benchmark in Python: `rescore` cannot judge without the session.
        validator_spec={"type": "python", "sha256": sha256(json.dumps(facts).encode()).hexdigest()},
        is_private=True,
    )


def check_providers(cells: Sequence[Cell], providers: Mapping[str, Provider], *, may_leave: bool) -> None:
    """Check that each provider may receive its steps and can replay them.

    Raises:
        pytest.UsageError: says what would be sent where, or that the provider cannot replay.
    """
    for name in dict.fromkeys(cell.target.provider for cell in cells):
        provider, own = providers[name], [cell for cell in cells if cell.target.provider == name]
        if provider.plays_worlds and any(cell.prompt.world for cell in own):
            why = "answers the calls of a model itself, so it cannot replay a session"
            raise pytest.UsageError(f"{name}: {why}. Leave out --openclaw-sessions=replay.")
        if may_leave:
            continue
        # OpenClaw itself may use any server, and a local Ollama passes requests for `…-cloud` on.
        stays = provider.is_local and not provider.is_openclaw
        if stays and not any(cell.target.model.endswith(("-cloud", ":cloud")) for cell in own):
            continue
        sent = {(cell.prompt.suite, cell.prompt.id) for cell in own}
        sessions = counted(len({suite for suite, _ in sent}), "recorded session")
        raise pytest.UsageError(
            f"{name}: {counted(len(sent), 'step')} of {sessions}, with system prompt, messages and results"
            f" of tools before them, would be sent to {provider.endpoint}, and may leave this machine"
            " from there. If they may, add --openclaw-sessions-may-leave."
        )


# --- the tools ------------------------------------------------------------------------------------


class Offer(NamedTuple):
    """The system prompt and the tools of a request, and the parts of them that the record does not have.

    Attributes:
        spec: the tools as a suite lists them.
    """

    system: str | None
    tools: tuple[Tool, ...]
    spec: Any
    cut: tuple[str, ...]


def offer_of(context: JsonObject, steps: Sequence[Step]) -> Offer:
    """Return what is offered: the tools that the system prompt lists as sent, and those that were called.

    Of the record's definitions only the first ones are whole; the others are from the installed OpenClaw if
    it is the recorded release and its requests have been captured, else from the shipped catalogue.
    """
    recorded, whole = context.get("systemPrompt"), context.get("tools")
    system = recorded.partition("...<truncated>")[0] if isinstance(recorded, str) else ""
    cut = [] if system and system == recorded else ["system prompt"]
    listed = whole if isinstance(whole, list) else ()
    own = {str(one.get("name")): one for one in listed if isinstance(one, dict)}
    catalogue = _catalogue(str(context.get("release")))
    section, known = _TOOLING.search(system), {*own, *catalogue.tools}
    sent = [name for name in (_TOOL.findall(section[1]) if section else ()) if name in known]
    called = (
        call.name
        for step in steps
        for n, call in enumerate(step.calls)
        if step.results[n] is not None and n not in step.failed
    )
    names = dict.fromkeys([*(sent or catalogue.surfaces[DIRECT]), *called])
    found = {name: _definition(name, own.get(name, {}), catalogue) for name in names}
    spec: Any = [definition for definition, _ in found.values()]
    if catalogue.file:
        spec = of_catalogue(catalogue, spec)
        captured = catalogue.requests.get(DIRECT, {}).get("system")
        # It lacks the owner's own files, so the row still names the prompt as cut.
        system = captured if cut and isinstance(captured, str) else system
    cut += [f"schema of {name}" for name, (_, is_open) in found.items() if is_open]
    return Offer(system or None, _tools(json.dumps(spec)), spec, tuple(cut))


@cache
def _catalogue(release: str) -> Catalogue:
    from pytest_openclaw.providers.openclaw.capture import installed_catalogue

    try:
        captured = installed_catalogue(os.environ, may_capture=False)
    except (OpenClawError, OSError):
        captured = None
    return captured if captured and captured.name == f"openclaw-{release}" else load_catalogue()


@lru_cache(maxsize=64)
def _tools(spec: str) -> tuple[Tool, ...]:
    return read_tools(json.loads(spec))


def _definition(name: str, recorded: JsonObject, catalogue: Catalogue) -> tuple[Any, bool]:
    """Return a tool as a suite lists it, and whether a part of its schema is missing and accepts anything."""
    text, rule = recorded.get("description") or "", recorded.get("parameters")
    is_whole, in_catalogue = isinstance(rule, dict) and not is_cut([text, rule]), name in catalogue.tools
    found = rule.get("properties") if isinstance(rule, dict) else None
    properties = found.items() if isinstance(found, dict) else ()
    parts = {key: {} if is_cut(part) else part for key, part in properties}
    opened = [{"type": "object", "properties": parts}, {"type": "object"}]
    for form in [rule] if is_whole else [] if in_catalogue else opened:
        spec = {"name": name, "description": "" if is_cut(text) else str(text), "parameters": form}
        with suppress(ValueError):  # not a schema
            read_tools([spec])
            return spec, not is_whole
    return (name, False) if in_catalogue else ({"name": name, "parameters": {"type": "object"}}, True)


# --- reviews --------------------------------------------------------------------------------------


class MadeCall(TypedDict):
    """A call as in `parsed_output`."""

    tool: str
    arguments: dict[str, Any] | None


class Label(Struct):
    """A line of `accepted.jsonl`: the label that a review gives an answer to a step.

    `session` is the name of the session's file; `step` is as of `key_of`.
    """

    session: str
    step: str
    label: Literal["accepted", "wrong", "recorded_wrong"]
    calls: list[MadeCall] = []
    target: str = ""


def key_of(step: Step) -> str:
    """Return the key of a step, which changes with the recorded calls."""
    calls = json.dumps([(call.name, call.arguments) for call in step.calls])
    return f"{step.id}:{sha256(calls.encode()).hexdigest()[:16]}"


def read_labels(path: Path) -> defaultdict[str, list[Label]]:
    """Return the labels of a session's steps, by the key of the step.

    Raises:
        SuiteError: `accepted.jsonl` is broken, or is a link, which could lead to any file.
    """
    file, found = path.with_name(ACCEPTED), defaultdict[str, list[Label]](list)
    data = read_file(file, file.name) if is_there(file) else b""
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            label = msgspec.json.decode(line, type=Label)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SuiteError(f"{file.name}: line {number} is not a label: {error}.") from None
        if label.session == path.name:
            found[label.step].append(label)
    return found
