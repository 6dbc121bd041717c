"""Finds the tools that a reply invokes in its text, as defined by the seed.

Five patterns, for comparability with runs of the original harness: backticks, quotes, shell prompts,
`<tool>name</tool>` and `[tool: name]`. A reply that only echoes a command, or names it in a
refusal, counts here too; real calls are read from the wire.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from pytest_openclaw.tools.detector.commands import is_known, names, takes_arguments
from pytest_openclaw.tools.detector.fences import read_fences
from pytest_openclaw.tools.thinking import without_thinking

if TYPE_CHECKING:
    from collections.abc import Iterator

Found = tuple[int, str]

# Possessive quantifiers and bounded names keep every pattern linear for any repetition.
_NAME = r"[A-Za-z][A-Za-z0-9._-]{0,63}+"
_LOWER = r"[a-z][a-z0-9._-]{0,63}+"
# The following characters make the word part of something else: a call, an address, an assignment.
_END = r"(?![\w.=(/@\[{+%\\-]|:\S)"

_TICKS = re.compile(rf"(`++)(?:({_NAME}){_END})?|\n+")
_QUOTED = re.compile(rf"((?<!\w)'|(?<![A-Za-z0-9_])\")({_LOWER})\s")
_DOLLAR = re.compile(rf"(?<![A-Za-z0-9$])(?<![0-9][ ])\$[ \t]+({_LOWER}){_END}")
_HOST = re.compile(
    r"^[ \t]*(?:\([\w.-]{1,64}\)[ ])?"
    r"(?:\[?[\w.-]{1,64}@[\w.-]{1,64}(?:[ :][^\s$#]{0,200})?|(?:ba|z)?sh-[\d.]+)"
    rf"[$#][ \t]+({_LOWER}){_END}",
    re.MULTILINE,
)
_HASH = re.compile(rf"^[ \t]*#[ \t]+({_LOWER}){_END}([^\n]{{0,200}})", re.MULTILINE)
_XML = re.compile(rf"<[Tt][Oo]{{2}}[Ll]>({_NAME})</[Tt][Oo]{{2}}[Ll]>")
_BRACKET = re.compile(rf"\[(?:tool|TOOL):[ \t]*({_LOWER})\]")

_MARK = re.compile(r"[`'\"$#<\[~]")
"""One of them is in every match of these patterns, and in every fence; most short answers have none."""

_WINDOW = 200
_IDENTIFIER = re.compile(r"[._]|[a-z][A-Z]")
_CONTRACTIONS = frozenset({"s", "t", "d", "m", "re", "ve", "ll"})
_FUNCTION_WORDS = frozenset(["a", "and", "each", "for", "in", "is", "of", "or", "per", "the", "to"])


def detect_tools(text: str) -> tuple[str, ...]:
    """Return the tools that `text` invokes, in lower case, each once, in order of first appearance.

    A name starts with a letter, has at most 64 letters, digits, `-`, `_` and `.`, and no `.` or `-` at
    its end. Takes time linear in the length of `text`, and raises nothing.

    These are not tools: a Markdown heading, a fence's language tag, a number, an option, an
    apostrophe, a constant in capitals, a file name or identifier, a word of quoted prose, a shell
    comment, anything inside a thinking block.
    """
    if not _MARK.search(text):
        return ()
    fenced = read_fences(without_thinking(text))
    first: dict[str, int] = {}
    for place, name in chain(fenced.commands, _patterns(fenced.text)):
        tool = name.rstrip(".-").lower()
        first[tool] = min(place, first.get(tool, place))
    return tuple(sorted(first, key=first.__getitem__))


def _patterns(text: str) -> Iterator[Found]:
    yield from _in_backticks(text)
    yield from _in_quotes(text)
    yield from _at_prompts(text)
    for pattern in (_XML, _BRACKET):
        yield from ((match.start(1), match[1]) for match in pattern.finditer(text))


def _in_backticks(text: str) -> Iterator[Found]:
    """Names directly after an opening run of backticks; an unclosed one ends with its line."""
    open_ticks = 0
    for match in _TICKS.finditer(text):
        ticks = len(match[1] or "")
        before = text[match.start() - 1 : match.start()]
        if not ticks or (open_ticks == ticks and not (match[2] and before == " ")):
            open_ticks = 0
        elif open_ticks in (0, ticks) and not (before.isalpha() and match[2] in _CONTRACTIONS):
            open_ticks = ticks
            if match[2] and _is_command_in_code(match[2], text[match.end() : match.end() + _WINDOW]):
                yield match.start(2), match[2]


def _is_command_in_code(name: str, after: str) -> bool:
    """Whether a word at the start of code is a command, not a constant, an identifier or a file."""
    rest = _up_to("`", after)
    lower = name.rstrip(".-").lower()
    if rest.startswith(":") or rest.lstrip().startswith("="):
        return False
    if is_known(lower):
        return True
    if name.isupper():
        return False
    if takes_arguments(lower, rest) or not _IDENTIFIER.search(name.rstrip(".-")):
        return True
    # `my_tool x` is a command, and neither an identifier by itself nor a file.
    return "." not in lower and bool(rest.strip())


def _in_quotes(text: str) -> Iterator[Found]:
    for match in _QUOTED.finditer(text):
        quote, name = match.groups()
        after = text[match.end() : match.end() + _WINDOW]
        if name in names().well_known or takes_arguments(name, _up_to(quote, after)):
            yield match.start(2), name


def _up_to(mark: str, text: str) -> str:
    """The text before `mark` on the first line of `text`."""
    return text.partition("\n")[0].partition(mark)[0]


def _at_prompts(text: str) -> Iterator[Found]:
    yield from ((match.start(1), match[1]) for match in _HOST.finditer(text))
    for match in _DOLLAR.finditer(text):
        # Money ("in $ per month") and formulas ("$ x $") are no prompts.
        if match[1] not in _FUNCTION_WORDS and (len(match[1]) > 1 or match[1] in names().everyday):
            yield match.start(1), match[1]
    for match in _HASH.finditer(text):
        if _is_root_command(match[1], match[2]):
            yield match.start(1), match[1]


def _is_root_command(name: str, rest: str) -> bool:
    """Whether a `#` line is a root prompt; plain words make it a heading."""
    if takes_arguments(name, rest):
        return True
    words = rest.split()
    return is_known(name) if not words else name in names().well_known and len(words) == 1
