"""Plays a session again: the model works on its own, and its calls get the recorded results.

A recorded call that only looks may be made at any time, as often as the model wants; its result is the one
that was recorded closest to the present state. The others are made in the recorded order, those of one
message in any order. Of other calls, those are played whose results are known: writes and messages, and
reading, also by a command, of files whose present text is known because it was written or read as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from pytest_openclaw.openclaw.dispatch import LOOKUPS, reaching
from pytest_openclaw.openclaw.recovery import HARMLESS, SENDS
from pytest_openclaw.parts.sessions.agreement import as_json, keys_of, shown_calls
from pytest_openclaw.parts.sessions.records import WORDS
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import counted, shortened
from pytest_openclaw.values.replies import Verdict
from pytest_openclaw.values.worlds import World
from pytest_openclaw.worlds.commands import read_shell, tables
from pytest_openclaw.worlds.playing import Playing, answered_calls
from pytest_openclaw.worlds.workspace import normal_path, paths_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.tool_calls import Dispatched, Tool, ToolCall

_LOOKS = re.compile("|".join(WORDS["commands_that_look"]), re.DOTALL)
_FILTERS = re.compile("|".join(WORDS["commands_of_files"]), re.DOTALL)
_NO_FILE = re.compile(r": (?:No such file|Is a directory)|not found|exited with code [2-9]")
_NOTICE = re.compile(r"\[[^\n]*\]\s*\Z")
"""At the end of a file that was not read as a whole."""
_NOWHERE = {"/dev/null", "1", "2"}
_LOOKING = {*HARMLESS, *LOOKUPS, "image", "memory_search", "pdf", "session_status", "subagents"}


class RecordedCall(Struct, frozen=True, kw_only=True):
    """A call of a session.

    Attributes:
        step: the number of its message since the user's.
        failed: whether it need not be made, because it had no success.
    """

    call: JsonObject
    result: str
    step: int
    failed: bool

    @property
    def path(self) -> str | None:
        """The file whose whole text is the result; None if there is none."""
        arguments = self.call["arguments"] or {}
        is_whole = self.call["tool"] == "read" and [*arguments] == ["path"] and not self.failed
        return normal_path(str(arguments["path"])) if is_whole and not _NOTICE.search(self.result) else None


class RecordedWorld(World, frozen=True, kw_only=True):
    """The world of a replay."""

    player: ClassVar[str] = f"{__name__}:Replaying"
    record: tuple[RecordedCall, ...] = ()


def changes(call: Mapping[str, Any]) -> bool:
    """Whether a call may change something; what is not known to look only may."""
    tool, arguments = call["tool"], call["arguments"] or {}
    if tool == "exec":
        return not _runs_only(_LOOKS, arguments)
    if (acting := tables().tools.get(tool)) is not None:
        return "*" in acting or arguments.get("action") in acting
    return tool not in _LOOKING


def _runs_only(known: re.Pattern[str], arguments: Mapping[str, Any]) -> bool:
    written = read_shell(str(arguments.get("command")))
    is_known = all(known.fullmatch(" ".join(words)) for words in written.commands)
    return is_known and _NOWHERE.issuperset(written.targets)


class Progress:
    """The recorded calls that a model has not made so far."""

    def __init__(self, record: Sequence[RecordedCall], tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._left: list[tuple[RecordedCall, Any]] = []
        self._looks: list[tuple[RecordedCall, Any, int]] = []
        self._now = since = 0  # the steps of the last changes, made and recorded
        for one in record:
            key = keys_of([one.call], tools)
            if changes(one.call):
                self._left.append((one, key))
                since = one.step
            else:
                self._looks.append((one, key, since))

    @property
    def missing(self) -> list[JsonObject]:
        """The calls that are still to be made."""
        return [one.call for one, _ in self._left if not one.failed]

    @property
    def files(self) -> dict[str, str]:
        """The files of which the record has the present text."""
        looks = [one for one, _, since in self._looks if since == self._now]
        return {path: one.result for one in looks if (path := one.path)}

    def take(self, call: JsonObject) -> RecordedCall | None:
        """Return the recorded call that a call equals; None if there is none, or it is not due."""
        key = keys_of([call], self._tools)
        due = min((one.step for one, _ in self._left if not one.failed), default=inf)
        for n, (one, own) in enumerate(self._left):
            if own == key and one.step <= due:
                del self._left[n]
                self._now = one.step
                return one
        now, looks = self._now, [(since, one) for one, own, since in self._looks if own == key]
        return min(looks, key=lambda look: (look[0] > now, abs(look[0] - now)))[1] if looks else None


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
        if meant.tool != "exec":  # what it writes can be read again
            self.answer(call)
        elif changes(recorded.call):  # it may have changed any file
            self._workspace.files.clear()
        return recorded.result

    def _played_result(self, call: ToolCall, meant: Dispatched) -> str | None:
        """Return the result of a call that was not recorded; None if it depends on what the record lacks."""
        if not meant.is_executed or meant.tool in {"write", *LOOKUPS, *SENDS}:
            return self.answer(call)
        files = self._workspace.files
        for path, text in self._progress.files.items():
            files.setdefault(path, text)
        if meant.tool == "exec" and files and _runs_only(_FILTERS, arguments := meant.arguments or {}):
            result = self.answer(call) if [*arguments] == ["command"] else None
            return None if result is None or _NO_FILE.search(result) else result
        paths = [normal_path(path) for path in paths_of(meant)]
        is_known = bool(paths) and all(path in files for path in paths)
        return self.answer(call) if is_known and meant.tool in ("read", "edit", "apply_patch") else None


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
    cut: tuple[str, ...] = ()

    @cached_property
    def required(self) -> list[JsonObject]:
        """The calls that must be made."""
        return Progress(self.record, self.tools).missing

    def check(self, reply: Reply) -> Verdict:
        """Compare the answered calls with the record."""
        progress, answered = Progress(self.record, self.tools), answered_calls(reply)
        made = as_json(reply.dispatched)
        ran = [made[n] for n, one in enumerate(reply.dispatched) if n in answered and one.meant.is_executed]
        also = [call for call in ran if progress.take(call) is None and changes(call)]
        parsed: JsonObject = {"missing": progress.missing, "also": also}
        parsed |= {"steps": len(reply.turns), "recorded_steps": self.n_steps}
        parsed |= {"cut": [*self.cut]} if self.cut else {}
        if not progress.missing if self.required else reply.ended_by == "answer":
            return Verdict(passed=True, parsed={"agreement": "finished", **parsed})
        word, why = "unfinished", f"unfinished after {counted(len(reply.turns), 'step')}"
        if reply.ended_by == "left_the_record":
            parsed["left_at"] = left = [call for n, call in enumerate(made) if n not in answered][:1]
            word, why = reply.ended_by, f"left_the_record at {shown_calls(left)}"
        why += f", without {shown_calls(progress.missing)}" if progress.missing else ""
        return Verdict(passed=False, violation=shortened(why), parsed={"agreement": word, **parsed})
