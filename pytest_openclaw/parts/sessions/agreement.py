"""Judges an answer by what differs from the recorded step, which may be wrong itself."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass
from posixpath import normpath
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pytest_openclaw.judging.calls import called_tool
from pytest_openclaw.judging.judge import UNREAD
from pytest_openclaw.openclaw.dispatch import dispatch, reaching
from pytest_openclaw.openclaw.thinking import split_thinking
from pytest_openclaw.util.json_text import identity, to_text
from pytest_openclaw.util.text import MAX_SHOWN_CHARS, map_texts, printable, shortened
from pytest_openclaw.values.replies import MALFORMED_CALL, Verdict
from pytest_openclaw.values.tool_calls import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.tool_calls import Dispatched, Tool, ToolCall

    Calls = Sequence[Mapping[str, Any]]
    """Calls as in `parsed_output`."""

Word = Literal["same", "same_tool", "other_tool", "answered", "called", "leaked_as_text"] | Problem
"""`answered`: a text where a call was recorded; `called`: a call where a text was."""
_UNREADABLE = ("leaked_as_text", "malformed_json")
"""OpenClaw cannot execute such an answer, so no review can accept it."""
_PATH = re.compile(r"(?:path|file|folder|dir|directory|cwd|workdir)\Z|(?:Path|File|Dir)\Z")
_WORKSPACE = re.compile(r"(?:\$WORKSPACE_DIR|/workspace)(?=/|\Z)")


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
    # Blanks within a line count where there are several lines, such as those of a program.
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


def as_json(made: Iterable[Dispatched]) -> list[JsonObject]:
    """Return calls as in `parsed_output`."""
    return [{"tool": called_tool(one.meant), "arguments": one.meant.arguments} for one in made]


def handled(calls: Iterable[ToolCall], tools: Sequence[Tool]) -> list[JsonObject]:
    """Return calls as OpenClaw handles them."""
    return as_json(reaching([dispatch(call, tools) for call in calls], tools))


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


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Passes an answer that does the same as the recorded step, or what a review has accepted.

    Attributes:
        recorded: the recorded calls, as in `parsed_output`.
        tools: the offered tools.
        key: of the step in reviews.
        accepted: the calls of each accepted answer.
        cut: the parts of the request that the record does not have.
    """

    type: ClassVar[str] = "session"
    recorded: list[JsonObject]
    tools: tuple[Tool, ...]
    key: str = ""
    accepted: tuple[Calls, ...] = ()
    cut: tuple[str, ...] = ()

    def check(self, reply: Reply) -> Verdict:
        """Compare the calls; the texts of answers are not compared."""
        made = as_json(reply.dispatched)
        problem = next((one.meant.problem for one in reply.dispatched if one.meant.problem), None)
        word, differs = self._compared(made, problem) if made else (self._of_text(reply), [])
        is_accepted = word not in _UNREADABLE and self.is_among(made, self.accepted)
        parsed: JsonObject = {"agreement": word, "recorded": self.recorded, "answered": made}
        parsed |= {"differs": differs} if differs else {}
        parsed |= {"cut": [*self.cut]} if self.cut else {}
        if word == "same" or is_accepted:
            return Verdict(passed=True, parsed=parsed if word == "same" else {**parsed, "accepted": True})
        also = f" ({', '.join(differs)})" if differs else ""
        sides = f"recorded {shown_calls(self.recorded)}, answered {shown_calls(made)}"
        return Verdict(passed=False, violation=f"{word}{also}: {sides}", parsed=parsed)

    def is_among(self, made: Calls, answers: Iterable[Calls]) -> bool:
        """Whether these calls are the same as those of one of several answers."""
        return keys_of(made, self.tools) in [keys_of(one, self.tools) for one in answers]

    def _compared(self, made: Sequence[JsonObject], problem: Problem | None) -> tuple[Word, list[str]]:
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


def shown_calls(calls: Calls) -> str:
    """Return calls for a person; `a text` if there is none."""

    def brief(text: str) -> str:
        return text if len(text) <= MAX_SHOWN_CHARS else shortened(text)

    texts = (f"{one['tool']} {to_text(map_texts(one['arguments'], brief))}" for one in calls)
    return printable(" and ".join(texts)) or "a text"
