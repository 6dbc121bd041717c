"""Plays a session again: the model works on its own, and its calls get the recorded results.

A recorded call that only looks may be made at any time, as often as the model wants; its result is the one
that was recorded closest to the present state. The others are made in the recorded order, those of one
message in any order. Of other calls, those are played whose results do not depend on what the record lacks.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from pytest_openclaw.openclaw.dispatch import LOOKUPS, reaching
from pytest_openclaw.openclaw.recovery import HARMLESS, SENDS
from pytest_openclaw.parts.sessions.agreement import as_json, call_key, shown_calls
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import counted, shortened
from pytest_openclaw.values.replies import Verdict
from pytest_openclaw.values.worlds import World
from pytest_openclaw.worlds.commands import read_shell, tables
from pytest_openclaw.worlds.playing import Playing, answered_calls
from pytest_openclaw.worlds.workspace import normal_path, paths_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.tool_calls import Dispatched, Tool, ToolCall

_WORDS = tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text("utf-8"))
_LOOKS = re.compile("|".join(_WORDS["commands_that_look"]), re.DOTALL)
_NOWHERE = {"/dev/null", "1", "2"}
_LOOKING = {*HARMLESS, *LOOKUPS, "image", "memory_search", "pdf", "session_status", "subagents"}
_OWN_FILES = ("read", "edit", "apply_patch")


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
    def is_change(self) -> bool:
        """Whether it may have changed something."""
        return changes(self.call)


class RecordedWorld(World, frozen=True, kw_only=True):
    """The world of a replay."""

    player: ClassVar[str] = f"{__name__}:Replaying"
    record: tuple[RecordedCall, ...] = ()


def changes(call: Mapping[str, Any]) -> bool:
    """Whether a call may change something; what is not known to look only may."""
    tool, arguments = call["tool"], call["arguments"] or {}
    if tool == "exec":
        written = read_shell(str(arguments.get("command")))
        looks = all(_LOOKS.fullmatch(" ".join(words)) for words in written.commands)
        return not looks or not _NOWHERE.issuperset(written.targets)
    if (acting := tables().tools.get(tool)) is not None:
        return "*" in acting or arguments.get("action") in acting
    return tool not in _LOOKING


class Progress:
    """The recorded calls that a model has not made so far."""

    def __init__(self, record: Sequence[RecordedCall], tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._left: list[tuple[RecordedCall, Any]] = []
        self._looks: list[tuple[RecordedCall, Any, int]] = []
        self._now = since = 0  # the steps of the last changes, made and recorded
        for one in record:
            key = call_key(one.call, tools)
            if one.is_change:
                self._left.append((one, key))
                since = one.step
            else:
                self._looks.append((one, key, since))

    @property
    def missing(self) -> list[RecordedCall]:
        """The calls that are still to be made."""
        return [one for one, _ in self._left if not one.failed]

    def take(self, call: JsonObject) -> RecordedCall | None:
        """Return the recorded call that a call equals; None if there is none, or it is not due."""
        key = call_key(call, self._tools)
        due = min((one.step for one in self.missing), default=inf)
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
        meant = made.meant
        recorded = self._progress.take(*as_json([made]))
        if recorded is None:
            return self.answer(call) if self._is_played(meant) else None
        if meant.tool != "exec":  # what it writes can be read again
            self.answer(call)
        return recorded.result

    def _is_played(self, meant: Dispatched) -> bool:
        if not meant.is_executed or meant.tool in {"write", *LOOKUPS, *SENDS}:
            return True
        paths = [normal_path(path) for path in paths_of(meant)]
        is_own = bool(paths) and all(path in self._workspace.files for path in paths)
        return meant.tool in _OWN_FILES and is_own


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
        return [one.call for one in self.record if one.is_change and not one.failed]

    def check(self, reply: Reply) -> Verdict:
        """Compare the answered calls with the record."""
        progress, answered = Progress(self.record, self.tools), answered_calls(reply)
        made = as_json(reply.dispatched)
        ran = [made[n] for n, one in enumerate(reply.dispatched) if n in answered and one.meant.is_executed]
        also = [call for call in ran if progress.take(call) is None and changes(call)]
        missing = [one.call for one in progress.missing]
        parsed: JsonObject = {"missing": missing, "also": also}
        parsed |= {"steps": len(reply.turns), "recorded_steps": self.n_steps}
        parsed |= {"cut": [*self.cut]} if self.cut else {}
        if not missing if self.required else reply.ended_by == "answer":
            return Verdict(passed=True, parsed={"agreement": "finished", **parsed})
        why = f"unfinished after {counted(len(reply.turns), 'step')}"
        if has_left := reply.ended_by == "left_the_record":
            left = [call for n, call in enumerate(made) if n not in answered][:1]
            parsed["left_at"], why = left, f"left_the_record at {shown_calls(left)}"
        lacks = f", without {shown_calls(missing)}" if missing else ""
        word = "left_the_record" if has_left else "unfinished"
        return Verdict(passed=False, violation=shortened(why + lacks), parsed={"agreement": word, **parsed})
