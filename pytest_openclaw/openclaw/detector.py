"""Finds the tools that a reply invokes in its text, as the original schema defines them.

Five patterns, for comparability with runs of the original harness: backticks, quotes, shell prompts,
`<tool>name</tool>` and `[tool: name]`; in addition, the command lines of fenced shell code. A reply that only
echoes a command, or names it in a refusal, counts here too; native calls are read from the wire.

Known names (`commands.toml`) decide only where a text is ambiguous: `"ps aux"` is a command and `"free will"`
is not, although both are two plain words in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import NamedTuple

from pytest_openclaw.openclaw.thinking import without_thinking
from pytest_openclaw.util.text import atomic
from pytest_openclaw.values.replies import Reply

_VERSION = re.compile(r"[\d.]+$")
_OPTION_OR_PATH = re.compile(r"\s*(?:--?[A-Za-z]|~(?:/|\s*$)|\.{0,2}/[\w.*~$-])")
_OPERAND = re.compile(r"\s*(?:-\d|\+%|[*$]\w*|[/.](?=\s|$)|[\w./-]{1,80}\.[A-Za-z]\w{0,5}(?=\s|$)|\d+\s*$)")
_PIPED = re.compile(r"(?:^|\s)\|\s*([a-z][a-z0-9._-]{0,63})")


class Names(NamedTuple):
    """The names in `commands.toml`, by its keys; `commands` has the well-known and the everyday ones."""

    well_known: frozenset[str]
    everyday: frozenset[str]
    openclaw_tools: frozenset[str]
    commands: frozenset[str]


@cache
def names() -> Names:
    """Return the known names; they are loaded on demand, because few texts need them."""
    import tomllib
    from importlib import resources

    text = resources.files("pytest_openclaw.openclaw").joinpath("commands.toml").read_text("utf-8")
    kinds = {kind: frozenset(words.split()) for kind, words in tomllib.loads(text).items()}
    return Names(**kinds, commands=kinds["well_known"] | kinds["everyday"])


def is_known(name: str) -> bool:
    """Whether `name`, in lower case, is a command or a tool of OpenClaw; `python3.11` counts as `python`."""
    known = names()
    return name in known.openclaw_tools or not known.commands.isdisjoint((name, _VERSION.sub("", name)))


def takes_arguments(name: str, rest: str) -> bool:
    """Whether `rest` looks like the arguments of `name`: an option, a path, or a pipe into a command.

    After an everyday word, a file name, a single number, `*`, `$x`, `.` or `/` also counts.
    """
    if _OPTION_OR_PATH.match(rest):
        return True
    if name in names().everyday and _OPERAND.match(rest):
        return True
    return any(piped[1] in names().commands for piped in _PIPED.finditer(rest))


Found = tuple[int, str]
"""The index of a name in the text, and the name."""

_SCRIPT_TAGS = frozenset(
    {"bash", "sh", "shell", "zsh", "ksh", "fish", "powershell", "pwsh", "ps1", "bat", "cmd"}
)
_SESSION_TAGS = frozenset(
    {"console", "terminal", "shell-session", "shellsession", "sh-session", "bash-session", "shell_session"}
)

# Models open a fence after a colon or a list mark as often as on its own line.
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


def read_fences(text: str) -> tuple[str, list[Found]]:
    """Return the text with blanks for fence marks, tags and shell comments; and the commands in fences.

    A fence that is never closed reaches to the end. A command line is a line in a fence with a shell tag. If
    some lines of a fence have a `$` prompt, the others are output. Continued lines, here-documents,
    assignments, comments and the words of `if` and `for` are not commands; as in backticks, only the first
    word of a pipeline or a `sudo` line counts.
    """
    blanked: list[tuple[int, int]] = []
    commands = []
    for opening, closing in _fences(text):
        start, end = opening.end(), closing.start("mark") if closing else len(text)
        marks = [mark for mark in (opening, closing) if mark]
        blanked += [(mark.start("mark"), mark.end()) for mark in marks]
        word = _TAG.match(opening["info"])
        tag, body = word[1].lower() if word else "", text[start:end]
        if tag in _SCRIPT_TAGS:
            blanked += [(start + found.start(), start + found.end()) for found in _COMMENT.finditer(body)]
        if tag in _SCRIPT_TAGS | _SESSION_TAGS and not _PROMPT.search(body):
            commands += [(start + position, name) for position, name in _commands(body)]
    chars = [*text]
    for first, last in blanked:
        chars[first:last] = " " * (last - first)
    return "".join(chars), commands


def _fences(text: str) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            words = match["info"].split()
            if len(words) <= 1 or not match["before"].strip(" \t>*-+.0123456789"):
                opened = match
        elif match["mark"].startswith(opened["mark"]) and not match["info"].strip():
            yield opened, match
            opened = None
    if opened is not None:
        yield opened, None


def _commands(body: str) -> Iterator[tuple[int, str]]:
    continued, until = False, ""
    for line in _LINE.finditer(body):
        words = line[0].rstrip()
        if until:
            until = "" if words.strip() == until else until
            continue
        if not continued and (command := _COMMAND.match(words)):
            yield line.start() + command.start("name"), command["name"]
        continued = words.endswith(("\\", "|", "&&"))
        heredoc = _HEREDOC.search(words)
        until = heredoc[1] if heredoc else ""


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

_WINDOW = 200
_IDENTIFIER = re.compile(r"[._]|[a-z][A-Z]")
_CONTRACTIONS = frozenset({"s", "t", "d", "m", "re", "ve", "ll"})
_FUNCTION_WORDS = frozenset(["a", "and", "each", "for", "in", "is", "of", "or", "per", "the", "to"])


def detect_tools(text: str) -> tuple[str, ...]:
    """Return the tools that `text` invokes, in lower case, each once, in order of first appearance.

    A name starts with a letter, has at most 64 letters, digits, `-`, `_` and `.`, and no `.` or `-` at
    its end. Takes linear time, and never raises.
    """
    text, commands = read_fences(without_thinking(text))
    tags = (match for pattern in (_XML, _BRACKET) for match in pattern.finditer(text))
    tagged = ((match.start(1), match[1]) for match in tags)
    first: dict[str, int] = {}
    for position, name in chain(commands, _in_backticks(text), _in_quotes(text), _at_prompts(text), tagged):
        tool = name.rstrip(".-").lower()
        first[tool] = min(position, first.get(tool, position))
    return tuple(sorted(first, key=first.__getitem__))


def _in_backticks(text: str) -> Iterator[Found]:
    """Yield names directly after an opening run of backticks; an unclosed run ends with its line."""
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
    # `my_tool x` is a command; an identifier by itself or a file name is not.
    return "." not in lower and bool(rest.strip())


def _in_quotes(text: str) -> Iterator[Found]:
    for match in _QUOTED.finditer(text):
        quote, name = match.groups()
        after = text[match.end() : match.end() + _WINDOW]
        if name in names().well_known or takes_arguments(name, _up_to(quote, after)):
            yield match.start(2), name


def _up_to(mark: str, text: str) -> str:
    """Return the text before `mark` on the first line of `text`."""
    return text.partition("\n")[0].partition(mark)[0]


def _at_prompts(text: str) -> Iterator[Found]:
    yield from ((match.start(1), match[1]) for match in _HOST.finditer(text))
    for match in _DOLLAR.finditer(text):
        # Money ("in $ per month") and formulas ("$ x $") are not prompts.
        if match[1] not in _FUNCTION_WORDS and (len(match[1]) > 1 or match[1] in names().everyday):
            yield match.start(1), match[1]
    for match in _HASH.finditer(text):
        name, rest = match.groups()
        n_words = len(rest.split())
        # Others are headings of plain words.
        is_command = is_known(name) if not n_words else n_words == 1 and name in names().well_known
        if is_command or takes_arguments(name, rest):
            yield match.start(1), name


def invoked_tools(reply: Reply) -> tuple[str, ...]:
    """Return the names of the tools that `reply` invokes, including calls through the bridge.

    Each name appears once, ignoring case: first native calls, as the model wrote them, then names found in
    the text, in lower case.
    """
    names: dict[str, str] = {}
    carried = (call.meant.call.name for call in reply.dispatched)
    for name in (*(call.name for call in reply.tool_calls), *carried, *detect_tools(reply.text)):
        names.setdefault(name.casefold(), name)
    return tuple(names.values())
