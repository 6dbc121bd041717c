"""Reads recorded sessions of OpenClaw as steps: exported bundles, and the transcripts of older releases.

A bundle is a folder with `events.jsonl` (docs.openclaw.ai/tools/trajectory); `session-branch.json` and
`tools.json` are cut earlier. A transcript is a file `agents/<id>/sessions/<session>.jsonl` with the same
messages. Both are read as entries of a transcript, in one pass.
"""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.dispatch import read_json
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_openclaw.util.files import JsonObject

MANIFEST, SCHEMA, VERSION = "manifest.json", "openclaw-trajectory", 1
NO_RESULT, _FLAW = "(the record has no result of this call)", "a message is cut in the record"
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
WORDS = tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text("utf-8"))
_OBJECTIONS = re.compile("|".join(WORDS["objections"]), re.IGNORECASE)


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
        if (size := path.lstat().st_size) > MOST_BYTES:
            raise SuiteError(f"{name}: has {size >> 20} MiB, and at most {MOST_BYTES >> 20} MiB are read.")
        if not S_ISREG(path.lstat().st_mode):
            raise OSError("it is not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise SuiteError(f"{name}: cannot be read ({error.strerror or error}). Export it again.") from None


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
            case "thinking":
                pass
            case kind:
                flaw = "an image before it is not in the record" if kind == "image" else flaw or _FLAW
    return "\n".join(texts), calls, flaw
