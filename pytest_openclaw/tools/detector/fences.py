"""Reads the fenced code of a reply: lines that are commands, and parts that cannot be tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import atomic

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCRIPT_TAGS = frozenset(
    {"bash", "sh", "shell", "zsh", "ksh", "fish", "powershell", "pwsh", "ps1", "bat", "cmd"}
)
_SESSION_TAGS = frozenset(
    {"console", "terminal", "shell-session", "shellsession", "sh-session", "bash-session", "shell_session"}
)

# Models open a fence behind a colon or a list mark as often as on a line of its own.
_FENCE = re.compile(
    r"^(?P<before>[ \t]*+(?=~~~)|[^`\n]*+)(?P<mark>`{3,}+|~{3,}+)(?P<info>[^`\n]*)$", re.MULTILINE
)
_TAG = re.compile(r"\s*\{?\.?([\w+-]*)")
_LINE = re.compile(r"[^\n]+")
_PROMPT = re.compile(
    r"^[ \t]*(?:\([\w.-]{1,64}\)[ ])?(?:\[[^\]\n]{1,200}+\]|[^\s$#]{0,200}+)"
    r"(?:\$|(?<=[\w~/\]])#)[ \t]",
    re.MULTILINE,
)
_COMMENT = re.compile(r"(?:^|(?<=[ \t;]))#[^\n]*", re.MULTILINE)
_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*['\"]?(\w+)")

_WORD = r"[a-z][a-z0-9._-]{0,63}+(?=[\s;|&<>)]|$)"
_COMMAND = re.compile(
    r"[ \t]*+"
    + atomic(r"(?:(?:if|then|else|elif|while|until|do|time|!|\{|[A-Za-z_]\w*=[^\s\"']*+)[ \t]++)*")
    + r"(?!(?:for|case|select|function|fi|done|esac|in|if|then|else|elif|while|until|do|rem)\b)"
    rf"(?P<name>{_WORD})"
)


@dataclass(frozen=True, kw_only=True)
class Fenced:
    """A reply with its fences parsed.

    Attributes:
        text: the reply with its original length, with blanks for fence marks, their tags and shell comments.
        commands: the first word of each command line in a fence tagged as shell, with its place.
    """

    text: str
    commands: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class _Fence:
    start: int
    end: int
    tag: str


def read_fences(text: str) -> Fenced:
    """Find the fences of `text`; one that is never closed reaches to its end.

    A command line is a line of a fence tagged as shell. If some of its lines carry a `$` prompt, the
    others are output. Continued lines, here-documents, assignments, comments and the words of `if` and
    `for` are not commands; in a pipeline or after `sudo`, as in backticks, only the first word counts.
    """
    blanked: list[tuple[int, int]] = []
    commands: list[tuple[int, str]] = []
    for fence in _fences(text, blanked):
        body = text[fence.start : fence.end]
        if fence.tag in _SCRIPT_TAGS:
            blanked += [(fence.start + c.start(), fence.start + c.end()) for c in _COMMENT.finditer(body)]
        if fence.tag in _SCRIPT_TAGS | _SESSION_TAGS and not _PROMPT.search(body):
            commands += [(fence.start + place, name) for place, name in _commands(body)]
    return Fenced(text=_blank(text, blanked), commands=tuple(commands))


def _fences(text: str, marks: list[tuple[int, int]]) -> Iterator[_Fence]:
    """Yield the fences; the places of their marks and tags are added to `marks`."""
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None and _opens(match):
            opened = match
        elif opened is not None and _closes(opened, match):
            yield _Fence(opened.end(), match.start("mark"), _tag(opened))
            opened = None
        else:
            continue
        marks.append((match.start("mark"), match.end()))
    if opened is not None:
        yield _Fence(opened.end(), len(text), _tag(opened))


def _opens(match: re.Match[str]) -> bool:
    words = match["info"].split()
    return len(words) <= 1 or not match["before"].strip(" \t>*-+.0123456789")


def _closes(opened: re.Match[str], match: re.Match[str]) -> bool:
    return match["mark"].startswith(opened["mark"]) and not match["info"].strip()


def _tag(opened: re.Match[str]) -> str:
    found = _TAG.match(opened["info"])
    return found[1].lower() if found else ""


def _commands(body: str) -> Iterator[tuple[int, str]]:
    """Yield place and name of the first word of each command line."""
    continued = False
    until: str | None = None
    for line in _LINE.finditer(body):
        words = line[0].rstrip()
        if until is not None:
            until = None if words.strip() == until else until
            continue
        if not continued and (command := _COMMAND.match(words)):
            yield line.start() + command.start("name"), command["name"]
        continued = words.endswith(("\\", "|", "&&"))
        heredoc = _HEREDOC.search(words)
        until = heredoc[1] if heredoc else None


def _blank(text: str, places: list[tuple[int, int]]) -> str:
    if not places:
        return text
    pieces: list[str] = []
    position = 0
    for start, end in sorted(places):
        pieces += [text[position:start], " " * (end - start)]
        position = end
    return "".join([*pieces, text[position:]])
