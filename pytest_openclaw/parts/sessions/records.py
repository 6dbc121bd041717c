"""Reads recorded sessions of OpenClaw as steps: exported bundles, and the transcripts of older releases.

A bundle is a folder with `events.jsonl` (docs.openclaw.ai/tools/trajectory), which has each message whole;
`session-branch.json` and `tools.json` are cut after some kilobytes. A transcript is a file
`agents/<id>/sessions/<session>.jsonl` with the same messages.
"""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.util.files import parse_json
from pytest_openclaw.util.text import valid_text, valid_value
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_openclaw.util.files import JsonObject

MANIFEST, EVENTS, SCHEMA, VERSION = "manifest.json", "events.jsonl", "openclaw-trajectory", 1
MOST_BYTES, MOST_CONTEXT_BYTES, TURN_BYTES = 256 << 20, 1 << 20, 200
"""Of a file; of the conversation before a step, which OpenClaw compacts earlier; of a turn without texts."""
NO_RESULT, _IS_CUT = "(the record has no result of this call)", "a message is cut in the record"
CUT_TEXT, _CUT_END = "[Truncated]", "...<truncated>"
# OpenClaw 2026.9.6: `COMPACTION_SUMMARY_PREFIX`.
_SUMMARY = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{}"
    "\n</summary>"
)
# Most of a bundle: copies of the conversation, such as in `model.completed`.
_UNUSED = re.compile(rb'"source": ?"runtime", ?"type": ?"(?!context\.compiled|trace\.metadata)')
_EXITED = re.compile(r"\(Command exited with code [1-9]\d*\)\s*\Z")
_WORDS = tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text("utf-8"))
_OBJECTIONS = re.compile("|".join(_WORDS["objections"]), re.IGNORECASE)


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
        events = _objects(path.with_name(EVENTS), name.replace(MANIFEST, EVENTS), "traceSchema")
        entries = [entry for event in events if (entry := _entry(event))]
    else:
        entries = [*_objects(path, name, "type")]
    parents = {one["id"]: one.get("parentId") for one in entries if isinstance(one.get("id"), str)}
    branch, last = {None}, next(reversed(parents), None)
    while last not in branch:  # a user may have gone back, and a broken record may have a circle
        branch.add(last)
        last = parents.get(last)
    return [one for one in entries if one.get("id") in branch]


def _objects(path: Path, name: str, key: str, *, is_one: bool = False) -> Iterator[JsonObject]:
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise SuiteError(f"{name}: has {size >> 20} MiB, and at most {MOST_BYTES >> 20} MiB are read.")
        data = path.read_bytes()
    except OSError as error:
        raise SuiteError(f"{name}: cannot be read ({error.strerror or error}). Export it again.") from None
    if not data.strip():
        raise SuiteError(f"{name}: is empty. Export the session again.")
    for number, line in enumerate([data] if is_one else data.splitlines(), start=1):
        if _UNUSED.search(line, 0, 300):
            continue
        try:
            value = _value(line)
            if not isinstance(value, dict) or not isinstance(value.get(key), str):
                raise ValueError(f"it is not an object with {key}")
            yield value
        except (ValueError, RecursionError) as error:
            why = str(error) or "it is nested too deep"
            raise SuiteError(f"{name}: line {number} is not one of OpenClaw's: {why}.") from None


def _value(line: bytes) -> Any:
    try:
        return parse_json(line)
    except ValueError:  # JavaScript writes halves of surrogate pairs
        return parse_json(json.dumps(valid_value(json.loads(line))))


def _entry(event: JsonObject) -> JsonObject | None:
    """Return an event of a bundle as an entry of a transcript; None if it says nothing about the steps."""
    kind, data = event.get("type"), event.get("data")
    data = data if isinstance(data, dict) else {}
    if event.get("source") != "transcript":
        return {"type": kind, "data": data} if kind in ("context.compiled", "trace.metadata") else None
    ids = {"id": event.get("entryId"), "parentId": event.get("parentEntryId")}
    return {**data, **ids, "type": "compaction" if kind == "session.compaction" else "message"}


# --- the steps ------------------------------------------------------------------------------------


class Context(NamedTuple):
    """The parts of a request next to the conversation, as far as the record has them."""

    system: str = ""
    is_cut: bool = True
    tools: tuple[JsonObject, ...] = ()
    release: str = ""


@dataclass(kw_only=True)
class Step:
    """A message of the recorded model.

    Attributes:
        id: `2.3` is the third step after the user's second message.
        before: the conversation before it, which ends with a message of the user or with results.
        calls: the recorded calls; without any it is an answer in text.
        turn: its number among the turns of the session.
        failed: its calls that had no success, by their index.
        left_out: why it is not asked.
    """

    id: str
    before: tuple[Turn, ...]
    calls: tuple[ToolCall, ...]
    context: Context
    turn: int
    failed: set[int] = field(default_factory=set)
    left_out: str = ""

    @property
    def why_failed(self) -> str:
        """Why the step itself says nothing; empty if no call of it failed."""
        return f"its call of {self.calls[min(self.failed)].name} failed" if self.failed else ""


class Session:
    """The steps of a session, its turns, and `called`, the tools whose calls were not refused."""

    def __init__(self, entries: Iterable[JsonObject]) -> None:
        self.steps: list[Step] = []
        self.called: dict[str, None] = {}
        self.turns: list[Turn] = []
        self._sizes: list[int] = []  # of each turn
        self._flaws: list[str] = []  # why no step after a turn can be asked; empty if it can
        self._start = 0  # the first turn since the last compaction
        self._summary: tuple[Turn, ...] = ()
        self._context = Context()
        self._run: list[Step] = []  # since the user's last message
        self._open: dict[str, int] = {}  # ids of calls without a result
        self._n_messages = 0
        positions: dict[Any, int] = {}
        for entry in entries:
            message = entry.get("message")
            positions[entry.get("id")] = len(self.turns)
            if entry["type"] in ("context.compiled", "trace.metadata"):
                self._take_context(entry["data"])
            elif entry["type"] == "compaction" and isinstance(entry.get("summary"), str):
                self._start = positions.get(entry.get("firstKeptEntryId"), len(self.turns))
                self._summary = (Turn(user=_SUMMARY.format(entry["summary"])),)
            elif isinstance(message, dict):
                self._take_message(message)
            elif message is not None:
                self._add(Turn(user=""), {}, _IS_CUT)

    def _take_context(self, data: JsonObject) -> None:
        harness, system, tools = (data.get(key) for key in ("harness", "systemPrompt", "tools"))
        if isinstance(harness, dict):
            self._context = self._context._replace(release=str(harness.get("version")))
        if system is None:
            return
        text, end, _ = system.partition(_CUT_END) if isinstance(system, str) else ("", "cut", "")
        listed = tools if isinstance(tools, list) else ()
        named = tuple(one for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str))
        context = Context(text, bool(end), named, self._context.release)
        if context != self._context:  # most runs of a session have the same
            self._context = context

    def _take_message(self, message: JsonObject) -> None:
        text, calls, flaw = _content(message.get("content"))
        role, call_id = message.get("role"), message.get("toolCallId")
        if role == "user":
            if _OBJECTIONS.match(text.strip()):
                for step in self._run:
                    step.left_out = step.left_out or "the user objected to what followed this message"
            self._n_messages, self._run = self._n_messages + 1, []
            self._add(Turn(user=text), {}, flaw)
        elif role == "assistant" and message.get("provider") != "openclaw":  # its own notices
            if message.get("stopReason") not in ("error", "aborted"):
                self._add_step(tuple(calls.values()), flaw)
            if text or calls:
                made, none = tuple(calls.values()), (NO_RESULT,) * len(calls)
                self._add(Turn(text=text, calls=made, results=none), calls, flaw)
        elif role == "toolResult" and call_id in self._open:
            self._take_result(message, text, self._open.pop(call_id))
            self._sizes[-1] += len(text)
            self._flaws[-1] = self._flaws[-1] or flaw

    def _add(self, turn: Turn, calls: Iterable[str], flaw: str) -> None:
        self._open = {call_id: n for n, call_id in enumerate(calls)}
        self.turns.append(turn)
        self._sizes.append(TURN_BYTES + len(turn.text or turn.user or ""))
        self._flaws.append(flaw)

    def _add_step(self, calls: tuple[ToolCall, ...], flaw: str) -> None:
        before = (*self._summary, *self.turns[self._start :])
        last = before[-1] if before else Turn()
        if not any(turn.user is not None for turn in before):
            why = "no message of the user comes before it"
        elif last.user is None and not last.calls:
            why = "it follows a text of the model"
        elif sum(self._sizes[self._start :]) > MOST_CONTEXT_BYTES:
            why = f"the conversation before it has more than {MOST_CONTEXT_BYTES >> 10} KiB"
        else:
            why = flaw or next(filter(None, self._flaws[self._start :]), "")
        step_id = f"{self._n_messages}.{len(self._run) + 1}"
        kept = () if why else before
        turn, context = len(self.turns), self._context
        self._run.append(Step(id=step_id, before=kept, calls=calls, context=context, turn=turn, left_out=why))
        self.steps.append(self._run[-1])

    def _take_result(self, message: JsonObject, text: str, n: int) -> None:
        turn, details = self.turns[-1], message.get("details")
        results = (*turn.results[:n], text, *turn.results[n + 1 :])
        self.turns[-1] = replace(turn, results=results)
        if not message.get("isError"):
            self.called[turn.calls[n].name] = None
        code = details.get("exitCode") if isinstance(details, dict) else 0
        is_failed = message.get("isError") or code not in (0, None) or _EXITED.search(text)
        if is_failed and self._run and self._run[-1].turn == len(self.turns) - 1:
            self._run[-1].failed.add(n)


def _content(content: Any) -> tuple[str, dict[str, ToolCall], str]:
    """Return the text of a message, its calls by their ids, and why the record of it is not whole."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    texts: list[str] = []
    calls: dict[str, ToolCall] = {}
    flaw = ""
    for block in blocks if isinstance(blocks, list) else [CUT_TEXT]:
        part = block if isinstance(block, dict) else {}
        text, arguments = part.get("text"), part.get("arguments")
        match part.get("type"):
            case "text" if isinstance(text, str) and text != CUT_TEXT:
                texts.append(text)
            case "toolCall" if isinstance(arguments, dict):
                written = valid_text(json.dumps(arguments, ensure_ascii=False))
                flaw = flaw or (_IS_CUT if f'"{CUT_TEXT}"' in written else "")
                calls[str(part.get("id"))] = ToolCall(name=str(part.get("name")), arguments=written)
            case "thinking":
                pass
            case kind:
                flaw = "an image before it is not in the record" if kind == "image" else flaw or _IS_CUT
    return "\n".join(texts), calls, flaw
