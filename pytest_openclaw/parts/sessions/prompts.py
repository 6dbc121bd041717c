"""Makes a suite of a recorded session of OpenClaw: each step of the recorded model is a prompt.

A bundle is a folder with `events.jsonl` (docs.openclaw.ai/tools/trajectory); `session-branch.json` and
`tools.json` are cut earlier. Older releases have a transcript, `agents/<id>/sessions/<session>.jsonl`, with
the same messages. Both are read as entries of a transcript, in one pass.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

import pytest
from msgspec import Struct, to_builtins

from pytest_openclaw.openclaw.catalog import DIRECT, Catalogue, load_catalogue
from pytest_openclaw.openclaw.dispatch import read_json
from pytest_openclaw.parts.sessions.rules import (
    WORDS,
    Agreement,
    RecordedCall,
    RecordedWorld,
    Replay,
    changes,
    handled,
)
from pytest_openclaw.suites.offered import of_catalogue, read_tools
from pytest_openclaw.util.bounded import within_steps
from pytest_openclaw.util.errors import OpenClawError, SuiteError
from pytest_openclaw.util.files import JsonObject, is_there, parse_json, read_whole
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.text import MAX_NAME_BYTES, counted
from pytest_openclaw.util.typed import converted, prefixed
from pytest_openclaw.values.prompts import Cell, Prompt, Suite
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.tool_calls import Tool, ToolCall

MANIFEST, SCHEMA, VERSION = "manifest.json", "openclaw-trajectory", 1
NO_RESULT, _FLAW = "(the record has no result of this call)", "a message is cut in the record"
MOST_CALLS, MOST_TOOLS, MOST_KEYWORDS = 300, 1000, 100_000
"""Of a message; of a request; of the schemas of all its tools, which are tried once, to end in any case."""
MOST_BYTES, MOST_CONTEXT_CHARS, TURN_CHARS = 256 << 20, 1 << 20, 200
"""Of a file; of the conversation before a step, which OpenClaw compacts earlier; of a turn without texts."""
# What OpenClaw 2026.9.6 writes for what it cuts: `projectDiagnosticValue` and `limitTrajectoryPayloadValue`.
# A text with a brace that is not JSON is replaced as a whole, such as a program.
_CUT = re.compile(
    r"\[(?:Truncated|Circular|Unserializable|\w+ diagnostic JSON redacted)\]|\.\.\.<truncated>"
    r'|"reason": "trajectory-[\w-]+"'
)
# OpenClaw 2026.9.6: `COMPACTION_SUMMARY_PREFIX`.
_SUMMARY = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{}"
    "\n</summary>"
)
# Most of a bundle: copies of the conversation, such as in `model.completed`.
_UNUSED = re.compile(rb'"source": ?"runtime", ?"type": ?"(?!context\.compiled|trace\.metadata)')
_EXITED = re.compile(r"\(Command exited with code [1-9]\d*\)\s*\Z")
_OBJECTIONS = re.compile("|".join(WORDS["objections"]), re.IGNORECASE)
OUTPUT_TOKENS = 2048
LEAST_STEPS, MOST_STEPS = 8, 50
"""Of a replay, whose model may take twice as many as the recorded one."""
ACCEPTED = "accepted.jsonl"
_TOOLING = re.compile(r"^## Tooling\n(.*?)(?=^#|\Z)", re.DOTALL | re.MULTILINE)
_TOOL = re.compile(r"^- ([A-Za-z0-9_.-]+)(?::|$)", re.MULTILINE)


# --- the files ------------------------------------------------------------------------------------


def is_session(path: Path) -> bool:
    """Whether a session is collected by this file: the manifest of a bundle, or a transcript."""
    if path.name == MANIFEST:
        if path.parent.name.startswith(f"{SCHEMA}-"):
            return True
        with suppress(OSError), path.open("rb") as file:
            return f'"{SCHEMA}"'.encode() in file.read(200)
    is_other = path.name.endswith((".trajectory.jsonl", "accepted.jsonl"))
    return path.suffix == ".jsonl" and path.parent.name == "sessions" and not is_other


def read_entries(path: Path, name: str) -> list[JsonObject]:
    """Return the entries of a session's active branch, each with its `type`.

    Raises:
        SuiteError: a file is broken, foreign or too large; the message has its name and the reason.
    """
    if path.name == MANIFEST:
        (manifest,) = _objects(path, name, "traceSchema", is_one=True)
        if (schema := manifest["traceSchema"]) != SCHEMA or manifest.get("schemaVersion") != VERSION:
            found = f"{schema}, version {manifest.get('schemaVersion')}"
            raise SuiteError(f"{name}: is {found}, and this version reads {SCHEMA}, version {VERSION}.")
        events = path.with_name("events.jsonl")
        entries = [*map(_entry, _objects(events, name.replace(MANIFEST, events.name), "traceSchema"))]
    else:
        entries = [*_objects(path, name, "type")]
    parents = {one["id"]: one.get("parentId") for one in entries if isinstance(one.get("id"), str)}
    branch, last = {None}, next(reversed(parents), None)
    while last not in branch:  # a user may have gone back, and a broken record may have a circle
        branch.add(last)
        parent = parents.get(last)
        last = parent if isinstance(parent, str) else None
    return [one for one in entries if not isinstance(one.get("id"), str) or one["id"] in branch]


def read_file(path: Path, name: str) -> bytes:
    """Return the content of a session's file; raise `SuiteError` if it is too large, or a link or a pipe."""
    try:
        return read_whole(path, most_bytes=MOST_BYTES)
    except OpenClawError as error:
        why = str(error).partition("; is ")[0].removeprefix(str(path)).strip(": ")
        raise SuiteError(f"{name}: cannot be read ({why}). Export it again.") from None


def _objects(path: Path, name: str, key: str, *, is_one: bool = False) -> Iterator[JsonObject]:
    data = read_file(path, name)
    if not data.strip():
        raise SuiteError(f"{name}: is empty. Export the session again.")
    for number, line in enumerate([data] if is_one else data.splitlines(), start=1):
        if _UNUSED.search(line, 0, 300):
            continue
        value = read_json(line.decode("utf-8-sig", "replace"))
        if not isinstance(value, dict) or not isinstance(value.get(key), str):
            why = f"it is not a JSON object with {key}, or is nested too deep"
            raise SuiteError(f"{name}: line {number} is not one of OpenClaw's: {why}.")
        yield value


def _entry(event: JsonObject) -> JsonObject:
    """Return an event of a bundle as an entry of a transcript."""
    kind, data = event.get("type"), event.get("data")
    data = data if isinstance(data, dict) else {}
    if event.get("source") != "transcript":
        return {"type": kind, "data": data}  # of which only the requests count
    ids = {"id": event.get("entryId"), "parentId": event.get("parentEntryId")}
    return {**data, **ids, "type": str(kind).removeprefix("session.")}


def is_cut(value: Any) -> bool:
    """Whether OpenClaw has left out a part of a value."""
    return bool(_CUT.search(json.dumps(value)))


# --- the steps ------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Step:
    """A message of the recorded model.

    Attributes:
        id: `2.3` is the third step after the user's second message.
        before: the conversation before it, which ends with a message of the user or with results.
        calls: the recorded calls; without any it is an answer in text.
        context: the `release`, the `systemPrompt` and the `tools` of its request, as far as recorded.
        results: of its calls; None if the record has none.
        failed: its calls that had no success, by their index.
        left_out: why it is not asked.
    """

    id: str
    before: tuple[Turn, ...]
    calls: tuple[ToolCall, ...]
    context: JsonObject
    results: list[str | None]
    failed: set[int] = field(default_factory=set)
    left_out: str = ""


@dataclass
class _Kept:
    """A turn that is still in the conversation, and why no step after it can be asked; empty if it can."""

    turn: Turn
    flaw: str = ""

    @property
    def size(self) -> int:
        return TURN_CHARS + len(self.turn.text or self.turn.user or "") + sum(map(len, self.turn.results))


class Session:
    """Reads the steps of a session, entry by entry."""

    def __init__(self, entries: Iterable[JsonObject]) -> None:
        self.steps: list[Step] = []
        self._context: JsonObject = {}
        self._summary: list[_Kept] = []  # of the last compaction
        self._kept: list[_Kept] = []  # the turns since then
        self._size = 0  # characters of both
        self._n_turns = 0  # since the start
        self._run: list[Step] = []  # since the user's last message
        self._open: dict[Any, tuple[Step, int]] = {}  # calls of the last turn without a result, by their ids
        self._n_messages = 0
        n_before: dict[Any, int] = {}  # turns before an entry, by its id
        for entry in entries:
            message, kind, entry_id = entry.get("message"), entry["type"], entry.get("id")
            if isinstance(entry_id, str):
                n_before[entry_id] = self._n_turns
            if kind in ("context.compiled", "trace.metadata"):
                self._take_context(entry.get("data"))
            elif kind in ("compaction", "reset"):
                first = entry.get("firstKeptEntryId")
                n = n_before.get(first, self._n_turns) if isinstance(first, str) else self._n_turns
                self._compact(entry.get("summary"), n_kept=self._n_turns - n)
            elif message is not None:
                self._take_message(message if isinstance(message, dict) else {"content": message})

    def _take_context(self, data: Any) -> None:
        data = data if isinstance(data, dict) else {}
        found = {key: data[key] for key in ("systemPrompt", "tools") if data.get(key) is not None}
        if isinstance(harness := data.get("harness"), dict):
            found["release"] = str(harness.get("version"))
        if any(value != self._context.get(key) for key, value in found.items()):
            self._context = self._context | found  # most runs of a session share one object

    def _compact(self, summary: Any, *, n_kept: int) -> None:
        self._kept = self._kept[-n_kept:] if n_kept else []
        self._open = self._open if self._kept else {}
        turn, flaw = Turn(user=_SUMMARY.format(summary)), _FLAW if is_cut(summary) else ""
        self._summary = [_Kept(turn, flaw)] if isinstance(summary, str) else []
        self._size = sum(one.size for one in self._summary + self._kept)

    def _take_message(self, message: JsonObject) -> None:
        text, calls, flaw = _content(message.get("content"))
        role, call_id = message.get("role"), message.get("toolCallId")
        turn = None
        if role == "toolResult":
            if isinstance(call_id, str) and call_id in self._open:
                self._take_result(message, text, flaw, *self._open.pop(call_id))
        elif role == "assistant":
            step = self._step(tuple(calls.values()), flaw)
            is_own = message.get("provider") == "openclaw"  # a notice of OpenClaw itself
            if message.get("stopReason") not in ("error", "aborted") and not is_own:
                self.steps.append(step)
                self._run.append(step)
            if (text or calls or flaw) and not is_own:
                turn = Turn(text=text, calls=step.calls, results=(NO_RESULT,) * len(calls))
                self._open = {one: (step, n) for n, one in enumerate(calls)}
        elif role in ("user", None):  # a message without a role is cut
            if _OBJECTIONS.match(text.strip()):
                for step in self._run:
                    step.left_out = step.left_out or "the user objected to what followed this message"
            self._n_messages, self._run, self._open = self._n_messages + (role == "user"), [], {}
            turn = Turn(user=text)
        if turn is not None:
            self._kept.append(_Kept(turn, flaw))
            self._n_turns += 1
            self._size += self._kept[-1].size

    def _step(self, calls: tuple[ToolCall, ...], flaw: str) -> Step:
        before = self._summary + self._kept
        last = before[-1].turn if before else Turn()
        if not any(one.turn.user is not None for one in before):
            why = "no message of the user comes before it"
        elif last.user is None and not last.calls:
            why = "it follows a text of the model"
        elif self._size > MOST_CONTEXT_CHARS:
            why = f"the conversation before it has more than {MOST_CONTEXT_CHARS >> 10} KiB"
        elif any("<redacted" in call.arguments for call in calls):
            why = "a part of its call is masked in the record"
        else:
            why = flaw or next((one.flaw for one in before if one.flaw), "")
        return Step(
            id=f"{self._n_messages}.{len(self._run) + 1}",
            before=() if why else tuple(one.turn for one in before),
            calls=calls,
            context=self._context,
            results=[None] * len(calls),
            left_out=why,
        )

    def _take_result(self, message: JsonObject, text: str, flaw: str, step: Step, n: int) -> None:
        step.results[n], last, details = text, self._kept[-1], message.get("details")
        results = tuple(NO_RESULT if one is None else one for one in step.results)
        last.turn, last.flaw = replace(last.turn, results=results), last.flaw or flaw
        self._size += len(text)
        code = details.get("exitCode") if isinstance(details, dict) else 0
        if message.get("isError") or code not in (0, None) or _EXITED.search(text):
            step.failed.add(n)


def _content(content: Any) -> tuple[str, dict[str, ToolCall], str]:
    """Return the text of a message, its calls by their ids, and why the record of it is not whole."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    texts: list[str] = []
    calls: dict[str, ToolCall] = {}
    flaw = "" if isinstance(blocks, list | tuple) else _FLAW
    for block in blocks if isinstance(blocks, list) else ():
        part = block if isinstance(block, dict) else {}
        text, arguments = part.get("text"), part.get("arguments")
        match part.get("type"):
            case "text" if isinstance(text, str) and not is_cut(text):
                texts.append(text)
            case "toolCall" if isinstance(arguments, dict):
                written = json.dumps(arguments, ensure_ascii=False)
                calls[str(part.get("id"))] = ToolCall(name=str(part.get("name")), arguments=written)
                flaw = flaw or (_FLAW if is_cut(arguments) else "")
                if len(calls) > MOST_CALLS or len(str(part.get("name"))) > MAX_NAME_BYTES:
                    return "", {}, "a message has too many calls, or one with too long a name"
            case "thinking":
                pass
            case kind:
                flaw = "an image before it is not in the record" if kind == "image" else flaw or _FLAW
    return "\n".join(texts), calls, flaw


# --- the suite ------------------------------------------------------------------------------------


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
    # Prompts are stored unchanged, but their names come from the recorded model, and may contain a key.
    hide = Redactor.of_run((), os.environ).text
    shown = (replace(one, name=hide(one.name), category=hide(one.category or "")) for one in prompts)
    return Suite(
        path=name, prompts=tuple(shown), left_out={cell: hide(why) for cell, why in left_out.items()}
    )


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
        if step.results[n] is not None and n not in step.failed and call.name.strip()
    )
    names = [*dict.fromkeys([*(sent or catalogue.surfaces[DIRECT]), *called])]
    with within_steps(MOST_KEYWORDS):
        found = {name: _definition(name, own.get(name, {}), catalogue) for name in names[:MOST_TOOLS]}
    cut += ["tools"] if names[MOST_TOOLS:] else []
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
        captured = installed_catalogue(may_capture=False)
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


class Pair(Struct):
    """The `parsed_output` of a step."""

    agreement: str
    recorded: list[MadeCall]
    answered: list[MadeCall]
    differs: list[str] = []


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
        with prefixed(f"{file.name}: line {number} is not a label:", SuiteError):
            label = converted(parse_json(line), Label)
        if label.session == path.name:
            found[label.step].append(label)
    return found
