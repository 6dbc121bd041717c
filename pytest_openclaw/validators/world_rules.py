"""The rules for files and messages after a scripted exchange."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.core.bounded_regex import compile_pattern, searches
from pytest_openclaw.core.json_text import find_json, same
from pytest_openclaw.core.quoting import listed, shown
from pytest_openclaw.tools.dispatch import same_tool
from pytest_openclaw.tools.paths import place_of
from pytest_openclaw.validators.answer import BLANKS, Flaw
from pytest_openclaw.validators.keys import list_value, table_value, text_value, texts_value, what
from pytest_openclaw.validators.wanted_arguments import WantedArguments, read_arguments

if TYPE_CHECKING:
    from pytest_openclaw.types.worlds import WorldState

_FILE_KEYS = ("equals", "contains", "lacks", "pattern", "json", "absent", "unchanged")
_FILE_HINT = (
    'Write a text, or for example {"contains": ["milk"]}; its keys are ' + ", ".join(_FILE_KEYS) + "."
)
_MESSAGE_KEYS = ("tool", "arguments", "contains")
_MESSAGE_HINT = 'Write for example {"arguments": {"target": "anna"}, "contains": ["friday"]}.'


@dataclass(frozen=True, kw_only=True)
class FileRule:
    """The rule for a file.

    Attributes:
        equals: its text, without blanks around it.
        contains, lacks: texts that are in it, and texts that are not; a missing file lacks every text.
        pattern: a regular expression that matches in it.
        json: its value; `has_json` distinguishes null from no rule.
        absent: whether it must be missing.
        unchanged: whether it must be unchanged.
    """

    equals: str | None = None
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    pattern: str | None = None
    json: Any = None
    has_json: bool = False
    absent: bool = False
    unchanged: bool = False

    @property
    def forbids(self) -> bool:
        """Whether it forbids a change of the file."""
        return bool(self.lacks) or self.unchanged or self.absent

    @property
    def demands(self) -> bool:
        """Whether it requires a change of the file."""
        return self.absent or FileRule(lacks=self.lacks, unchanged=self.unchanged) != self

    def flaw(self, path: str, state: WorldState) -> Flaw | None:
        """Return the flaw of the file, harm first; None if there is none."""
        place = place_of(path)
        text = state.files.get(place)
        if harm := self._harm(path, text, was_changed=place in state.changed):
            return Flaw(harm, is_harm=True)
        complaint = self._complaint(path, text)
        return Flaw(complaint) if complaint else None

    def _harm(self, path: str, text: str | None, *, was_changed: bool) -> str | None:
        if self.absent and text is not None and was_changed:  # a file from the start had to be removed
            return f"{path} is there, and should not be"
        if self.unchanged and was_changed:
            return f"{path} was changed, and should not be"
        surplus = next((one for one in self.lacks if one in (text or "")), None)
        return f"{path} contains {shown(surplus)}, and should not" if surplus else None

    def _complaint(self, path: str, text: str | None) -> str | None:
        if self.absent:
            return None if text is None else f"{path} is there, and should not be"
        if text is None:
            return None if self.unchanged or self == FileRule(lacks=self.lacks) else f"{path} is not there"
        return self._of_text(path, text)

    def _of_text(self, path: str, text: str) -> str | None:
        if self.equals is not None and text.strip(BLANKS) != self.equals.strip(BLANKS):
            return f"{path} is {shown(text)}, not {shown(self.equals)}"
        if lacking := next((one for one in self.contains if one not in text), None):
            return f"{path} does not contain {shown(lacking)}"
        if self.pattern is not None and not searches(self.pattern, text):
            return f"{path} has nothing that matches {shown(self.pattern)}"
        return self._of_json(path, text) if self.has_json else None

    def _of_json(self, path: str, text: str) -> str | None:
        if not isinstance(self.json, dict | list):
            return None if text.strip(BLANKS) == json.dumps(self.json) else f"{path} is not {self.json!r}"
        kind: Literal["object", "array"] = "array" if isinstance(self.json, list) else "object"
        found = find_json(text.strip(BLANKS), kind=kind, strict=True)
        if found.problem:
            return f"{path}: {found.problem}"
        return None if same(found.value, self.json) else f"{path} holds another {kind} than it should"


@dataclass(frozen=True, kw_only=True)
class MessageRule:
    """A message that must have been sent.

    Attributes:
        tool: that sent it; empty for any.
        arguments: those that it must have; texts compare without case.
        contains: texts that are somewhere in its arguments, in any case.
    """

    tool: str = ""
    arguments: WantedArguments = field(default_factory=WantedArguments)
    contains: tuple[str, ...] = ()

    def fits(self, message: Mapping[str, Any]) -> bool:
        """Whether a message matches."""
        if self.tool and not same_tool(self.tool, str(message.get("tool"))):
            return False
        if self.arguments.complaint(message):
            return False
        written = json.dumps([*message.values()], ensure_ascii=False).casefold()
        return all(json.dumps(text, ensure_ascii=False)[1:-1].casefold() in written for text in self.contains)

    @property
    def wanted(self) -> str:
        """Return a description of the rule."""
        texts = [listed(self.contains)] if self.contains else []
        tool = [f"tool {self.tool}"] if self.tool else []
        return ", ".join([*tool, *self.arguments.described(), *texts]) or "any content"


def read_files(owner: str, value: object) -> dict[str, FileRule]:
    """Return the rules of `files`.

    Raises:
        ValueError: a key is malformed; the message names validator and key, with a hint.
    """
    rules: dict[str, FileRule] = {}
    for path, entry in table_value(owner, "files", value).items():
        try:
            place_of(path)
        except ValueError as error:
            raise ValueError(f'validator {owner}: "files" has {shown(path)}: {error}.') from error
        rules[path] = entry if isinstance(entry, FileRule) else _read_file(owner, path, entry)
    return rules


def read_messages(owner: str, value: object) -> tuple[MessageRule, ...]:
    """Return the rules of `sent`; raises as `read_files` does."""
    return tuple(
        entry if isinstance(entry, MessageRule) else _read_message(owner, entry)
        for entry in list_value(owner, "sent", value)
    )


def _read_file(owner: str, path: str, entry: object) -> FileRule:
    if isinstance(entry, str):
        return FileRule(equals=entry)
    where = f'validator {owner}: "files" has {shown(path)}'
    if not isinstance(entry, Mapping) or not entry:
        raise ValueError(f"{where}, which is {what(entry)}. {_FILE_HINT}")
    if unknown := [key for key in entry if key not in _FILE_KEYS]:
        raise ValueError(f"{where} with {shown(str(unknown[0]))}. {_FILE_HINT}")
    for key in ("absent", "unchanged"):
        if entry.get(key, True) is not True:
            raise ValueError(f'{where} with "{key}" {what(entry[key])}. Write true, or leave it out.')
    pattern = entry.get("pattern")
    if pattern is not None:
        try:
            compile_pattern(text_value(owner, "pattern", pattern))
        except ValueError as error:
            raise ValueError(f"{where} with a pattern that {error}") from error
    return FileRule(
        equals=None if "equals" not in entry else text_value(owner, "equals", entry["equals"]),
        contains=_some_texts(owner, "contains", entry.get("contains", [])),
        lacks=_some_texts(owner, "lacks", entry.get("lacks", [])),
        pattern=pattern,
        json=entry.get("json"),
        has_json="json" in entry,
        absent="absent" in entry,
        unchanged="unchanged" in entry,
    )


def _read_message(owner: str, entry: object) -> MessageRule:
    if not isinstance(entry, Mapping):
        raise ValueError(f'validator {owner}: "sent" holds {what(entry)}. {_MESSAGE_HINT}')
    if unknown := [key for key in entry if key not in _MESSAGE_KEYS]:
        raise ValueError(f'validator {owner}: "sent" has {shown(str(unknown[0]))}. {_MESSAGE_HINT}')
    return MessageRule(
        tool=text_value(owner, "tool", entry.get("tool", "")),
        arguments=read_arguments(owner, {**entry, "ignore_case": True}),
        contains=_some_texts(owner, "contains", entry.get("contains", [])),
    )


def _some_texts(owner: str, key: str, value: object) -> tuple[str, ...]:
    return texts_value(owner, key, [value] if isinstance(value, str) else value)
