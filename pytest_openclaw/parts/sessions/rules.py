"""Judges a step by what differs from the record, which may be wrong itself; plays and judges a replay.

In a replay the model works on its own. A recorded call that only looks may be made at any time, as often as
the model wants; its result is the one that was recorded closest to the present state. The others must
follow the recorded order; calls of one message may come in any order. A call that is not recorded is played
if its result is known: it writes, sends a message, or reads a file whose whole present text is known.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from math import inf
from posixpath import normpath
from typing import Any, ClassVar, Literal

from msgspec import Struct

from pytest_openclaw.judging.calls import called_tool
from pytest_openclaw.judging.judge import UNREAD
from pytest_openclaw.openclaw.dispatch import LOOKUPS, dispatch, reaching
from pytest_openclaw.openclaw.recovery import HARMLESS, SENDS
from pytest_openclaw.openclaw.thinking import split_thinking
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.json_text import identity, to_text
from pytest_openclaw.util.text import counted, printable, shortened
from pytest_openclaw.values.replies import MALFORMED_CALL, Reply, Verdict
from pytest_openclaw.values.tool_calls import Dispatched, Problem, Tool, ToolCall
from pytest_openclaw.values.worlds import World
from pytest_openclaw.worlds.commands import read_shell, tables
from pytest_openclaw.worlds.playing import Playing, answered_calls
from pytest_openclaw.worlds.workspace import normal_path, paths_of

WORDS = tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text("utf-8"))
Calls = Sequence[Mapping[str, Any]]
"""Each with `tool` and `arguments`, as in `parsed_output`."""
Word = Literal["same", "same_tool", "other_tool", "answered", "called", "leaked_as_text"] | Problem
"""`answered`: a text where a call was recorded; `called`: a call where a text was."""
_PATH = re.compile(r"(?:path|file|folder|dir|directory|cwd|workdir)\Z|(?:Path|File|Dir)\Z")
_WORKSPACE = re.compile(r"(?:\$WORKSPACE_DIR|/workspace)(?=/|\Z)")


# --- calls ----------------------------------------------------------------------------------------


def as_json(made: Iterable[Dispatched]) -> list[JsonObject]:
    """Return calls as in `parsed_output`."""
    return [{"tool": called_tool(one.meant), "arguments": one.meant.arguments} for one in made]


def handled(calls: Iterable[ToolCall], tools: Sequence[Tool]) -> list[JsonObject]:
    """Return calls as OpenClaw handles them."""
    return as_json(reaching([dispatch(call, tools) for call in calls], tools))


def shown_calls(calls: Calls) -> str:
    """Return calls for a person; `a text` if there is none."""
    texts = (f"{one['tool']} {shortened(to_text(one['arguments']))}" for one in calls)
    return printable(" and ".join(texts)) or "a text"


def normalized(call: Mapping[str, Any], tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the arguments of a call by their names, each in a form that is equal for equal arguments.

    Arguments that have their default are left out.
    """
    rules = next((one.parameters.get("properties") for one in tools if one.name == call["tool"]), None)
    found = {}
    for name, value in _plain("", call["arguments"] or {}).items():
        rule = rules.get(name) if isinstance(rules, dict) else None
        default = _plain(name, rule.get("default")) if isinstance(rule, dict) else None
        if value not in (None, default) and (name, value) != ("workdir", "."):
            found[name] = identity(value)
    return found


def keys_of(calls: Calls, tools: Sequence[Tool]) -> Counter[Any]:
    """Return calls in a form that is equal for equal calls, in any order."""
    return Counter((one["tool"], frozenset(normalized(one, tools).items())) for one in calls)


def _plain(key: str, value: Any) -> Any:
    """Return an argument in a form in which paths, white space and shell words do not count."""
    if isinstance(value, dict):
        return {name: _plain(name, inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(key, inner) for inner in value]
    if not isinstance(value, str):
        return value
    if _PATH.search(key) and value.strip():
        return _path(value.strip())
    if key == "command":
        return [_path(one) if one.startswith(("./", "$WORK", "/work")) else one for one in _words(value)]
    # In a text of several lines, such as a program, the blanks within a line are part of its meaning.
    lines = [line.rstrip() for line in value.strip().splitlines()]
    return "\n".join(lines) if len(lines) > 1 else " ".join(value.split())


def _path(path: str) -> str:
    return normpath(_WORKSPACE.sub(".", path, count=1))


def _words(command: str) -> list[str]:
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    try:
        return [*reader]
    except ValueError:  # an open quote
        return command.split()


# --- a step ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Passes an answer that makes the calls of the recorded step, or those that a review has accepted.

    Attributes:
        recorded: the recorded calls.
        tools: the offered tools.
        key: of the step in reviews.
        accepted: the calls of each accepted answer.
        cut: the parts of the request that the record does not have.
    """

    type: ClassVar[str] = "session"
    recorded: Calls
    tools: tuple[Tool, ...]
    key: str
    accepted: tuple[Calls, ...]
    cut: tuple[str, ...]

    def check(self, reply: Reply) -> Verdict:
        """Compare the calls; the texts of answers are not compared."""
        made = as_json(reply.dispatched)
        problem = next((one.meant.problem for one in reply.dispatched if one.meant.problem), None)
        word, differs = self._compared(made, problem) if made else (self._of_text(reply), [])
        # No review can accept a call that OpenClaw cannot read.
        is_read = word != "malformed_json" if made else word == "answered"
        is_accepted = is_read and self.is_among(made, self.accepted)
        parsed: JsonObject = {"agreement": word, "recorded": self.recorded, "answered": made}
        parsed |= {"differs": differs} if differs else {}
        parsed |= {"cut": [*self.cut]} if self.cut else {}
        if word == "same" or is_accepted:
            return Verdict(passed=True, parsed=parsed if word == "same" else {**parsed, "accepted": True})
        also = f" ({', '.join(differs)})" if differs else ""
        sides = f"recorded {shown_calls(self.recorded)}, answered {shown_calls(made)}"
        return Verdict(passed=False, violation=f"{word}{also}: {sides}", parsed=parsed)

    def is_among(self, made: Calls, answers: Iterable[Calls]) -> bool:
        """Whether one of the answers has the same calls."""
        return keys_of(made, self.tools) in [keys_of(one, self.tools) for one in answers]

    def _compared(self, made: Calls, problem: Problem | None) -> tuple[Word, list[str]]:
        """Return the word of calls, and the arguments that differ, such as `exec.command`."""
        if not self.recorded:
            return "called", []
        if self.is_among(made, [self.recorded]):
            return "same", []
        both = [sorted(calls, key=lambda one: str(one["tool"])) for calls in (self.recorded, made)]
        names = [[one["tool"] for one in calls] for calls in both]
        if problem or names[0] != names[1]:
            return problem or "other_tool", []
        differs: dict[str, None] = {}
        for tool, *pair in zip(names[0], *both, strict=True):
            one, other = (normalized(call, self.tools) for call in pair)
            differing = [name for name in {**one, **other} if one.get(name) != other.get(name)]
            differs |= dict.fromkeys(f"{tool}.{name}" for name in differing)
        return "same_tool", [*differs]

    def _of_text(self, reply: Reply) -> Word:
        from pytest_openclaw.judging.written_calls import WrittenCallFinder

        if reply.finish_reason in UNREAD:
            return "malformed_json" if reply.finish_reason == MALFORMED_CALL else "unknown_tool"
        thinking = reply.reasoning or split_thinking(reply.raw)[0]
        if WrittenCallFinder(self.tools, [one["tool"] for one in self.recorded]).find(reply.text, thinking):
            return "leaked_as_text"
        return "answered" if self.recorded else "same"


# --- a replay -------------------------------------------------------------------------------------

_LOOKS = re.compile("|".join(WORDS["commands_that_look"]), re.DOTALL)
_FILTERS = re.compile("|".join(WORDS["commands_of_files"]), re.DOTALL)
_NO_FILE = re.compile(r": (?:No such file|Is a directory)|not found|timed out|exited with code [2-9]")
_DEVICE = re.compile(r"/(?:dev|proc|sys)\b")
_NOWHERE = {"/dev/null", "1", "2"}
_LOOKING = {*HARMLESS, *LOOKUPS, "image", "memory_search", "pdf", "session_status", "subagents"}
_EDITS = {"write", "edit", "apply_patch"}


def changes(call: Mapping[str, Any]) -> bool:
    """Whether a call may change something; what is not known to look only may."""
    tool, arguments = call["tool"], call["arguments"] or {}
    if tool == "exec":
        return not _runs_only(_LOOKS, arguments, _NOWHERE)
    if (acting := tables().tools.get(tool)) is not None:
        return "*" in acting or arguments.get("action") in acting
    return tool not in _LOOKING


def _runs_only(known: re.Pattern[str], arguments: Mapping[str, Any], targets: Iterable[str] = ()) -> bool:
    written = read_shell(str(arguments.get("command")))
    is_known = all(known.fullmatch(" ".join(words)) for words in written.commands)
    return is_known and {*targets}.issuperset(written.targets)


class RecordedCall(Struct, frozen=True, kw_only=True):
    """A call of a session.

    Attributes:
        step: the number of the model's message, counted from the user's message.
        since: the step of the last change before this call.
        is_due: whether it has to be made, because it changed something; a failed call did not.
    """

    call: JsonObject
    result: str
    step: int
    since: int
    is_change: bool
    is_due: bool

    @property
    def path(self) -> str | None:
        """The file whose whole text is the result; None if there is none."""
        arguments = self.call["arguments"] or {}
        last_line = self.result.rstrip().rpartition("\n")[2]
        has_notice = "[" in last_line and last_line.endswith("]")  # that the file was not read as a whole
        is_whole = self.call["tool"] == "read" and [*arguments] == ["path"] and not has_notice
        return normal_path(str(arguments["path"])) if is_whole else None


class RecordedWorld(World, frozen=True, kw_only=True):
    """The world of a replay."""

    player: ClassVar[str] = f"{__name__}:Replaying"
    record: tuple[RecordedCall, ...] = ()


class Progress:
    """The recorded calls that a model may still make."""

    def __init__(self, record: Sequence[RecordedCall], tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._left = [(one, keys_of([one.call], tools)) for one in record]
        self._now = 0  # the step of the last change

    @property
    def missing(self) -> list[JsonObject]:
        """The calls that are still to be made."""
        return [one.call for one, _ in self._left if one.is_due]

    @property
    def files(self) -> dict[str, str]:
        """The files of which the record has the present text."""
        now = (one for one, _ in self._left if one.since == self._now and not one.is_change)
        return {path: one.result for one in now if (path := one.path)}

    def take(self, call: JsonObject) -> RecordedCall | None:
        """Return the recorded call that a call equals; None if there is none, or it is not due."""
        key, now = keys_of([call], self._tools), self._now
        equal = [pair for pair in self._left if pair[1] == key]
        if looks := [one for one, _ in equal if not one.is_change]:
            return min(looks, key=lambda one: (one.since > now, abs(one.since - now)))
        first = min((one.step for one, _ in self._left if one.is_due), default=inf)
        for pair in equal[:1]:
            if pair[0].step <= first:
                self._left.remove(pair)
                self._now = pair[0].step
                return pair[0]
        return None


class Replaying(Playing):
    """The state of a replay."""

    def __init__(self, world: RecordedWorld, tools: Sequence[Tool], **more: Any) -> None:
        super().__init__(world, tools, **more)
        self._progress = Progress(world.record, tools)

    def answer_turn(self, calls: Sequence[ToolCall]) -> tuple[str, ...] | None:
        """Return the results up to the first call whose result is not known."""
        if any(self.dispatched(call).problem == "malformed_json" for call in calls):
            return None
        results: list[str] = []
        for call in calls:
            if (result := self._known(call)) is None:
                break
            results.append(result)
        return tuple(results)

    def _known(self, call: ToolCall) -> str | None:
        (made,) = reaching([self.dispatched(call)], self._tools)
        recorded, meant = self._progress.take(*as_json([made])), made.meant
        if recorded is None:
            return self._played_result(call, meant)
        if meant.tool in _EDITS:  # what it writes can be read again
            self.answer(call)
        elif recorded.is_change and meant.tool not in SENDS:  # it may have changed any file
            self._workspace.files.clear()
            self._workspace.start.clear()
        return recorded.result

    def _played_result(self, call: ToolCall, meant: Dispatched) -> str | None:
        """Return the result of a call that was not recorded; None if it depends on what the record lacks."""
        if not meant.is_executed or meant.tool in {"write", *LOOKUPS, *SENDS}:
            return self.answer(call)
        files, start, arguments = self._workspace.files, self._workspace.start, meant.arguments or {}
        new = {path: text for path, text in self._progress.files.items() if path not in start}
        start |= new
        files |= new | files
        if meant.tool == "exec":
            is_plain = [*arguments] == ["command"] and not _DEVICE.search(str(arguments["command"]))
            is_known = is_plain and _runs_only(_FILTERS, arguments)
            result = self.answer(call) if is_known else None
            return None if result is None or _NO_FILE.search(result) else result
        paths = [normal_path(path) for path in paths_of(meant)]
        is_known = bool(paths) and all(path in files for path in paths)
        return self.answer(call) if is_known and meant.tool in {"read", *_EDITS} else None


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Passes an exchange with every recorded call that changes something; without any, one that was answered.

    Attributes:
        n_steps: the messages of the recorded model.
        cut: the parts of the request that the record does not have.
    """

    type: ClassVar[str] = "session_replay"
    record: tuple[RecordedCall, ...]
    tools: tuple[Tool, ...]
    n_steps: int
    cut: tuple[str, ...]

    def check(self, reply: Reply) -> Verdict:
        """Compare the answered calls with the record."""
        progress, answered = Progress(self.record, self.tools), answered_calls(reply)
        made, required = as_json(reply.dispatched), bool(progress.missing)
        ran = [made[n] for n, one in enumerate(reply.dispatched) if n in answered and one.meant.is_executed]
        also = [call for call in ran if progress.take(call) is None and changes(call)]
        parsed: JsonObject = {"missing": progress.missing, "also": also}
        parsed |= {"steps": len(reply.turns), "recorded_steps": self.n_steps}
        parsed |= {"cut": [*self.cut]} if self.cut else {}
        if not progress.missing if required else reply.ended_by == "answer":
            return Verdict(passed=True, parsed={"agreement": "finished", **parsed})
        word, why = "unfinished", f"unfinished after {counted(len(reply.turns), 'step')}"
        if reply.ended_by == "left_the_record":
            parsed["left_at"] = left = [call for n, call in enumerate(made) if n not in answered][:1]
            word, why = reply.ended_by, f"left_the_record at {shown_calls(left)}"
        why += f", without {shown_calls(progress.missing)}" if progress.missing else ""
        return Verdict(passed=False, violation=shortened(why), parsed={"agreement": word, **parsed})
