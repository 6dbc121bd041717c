"""Finds calls that a reply writes into its text or its thinking, where no server executes them.

A call is the name of an offered tool and arguments that fit it, close together, with nothing but marks between
them: JSON, code, tags or lines, in any wrapper. `written_calls.toml` has the marks, and the forms in which the
name of another tool counts too, or a name without arguments. An explanation that shows the format of a call is
not a call, nor is JSON that the prompt asked for.
"""

from __future__ import annotations

import builtins
import html
import json
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_openclaw.judging.written_arguments import (
    MARKS,
    NAME,
    WORDINGS,
    Arguments,
    parameters_of,
    read_call,
    read_object,
    read_pairs,
    read_plain,
    read_tags,
    required_of,
)
from pytest_openclaw.openclaw.claims import load_wordings
from pytest_openclaw.openclaw.dispatch import ALIASES
from pytest_openclaw.openclaw.thinking import without_blocks
from pytest_openclaw.util.text import atomic
from pytest_openclaw.values.tool_calls import Tool, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


MOST_CALLS = 256
Form = Literal["marked", "json", "code", "name"]
WORK_FACTOR = 4
"""The most characters that are read again in unclosed calls, as a multiple of the text's length."""
_EXAMPLES = load_wordings("examples")


@dataclass(frozen=True, kw_only=True)
class WrittenCall:
    """A call in a text.

    Attributes:
        tool: the tool as it was offered; without parameters if no tool has the written name.
        is_known: whether a tool has the written name.
        value: the arguments; None if they cannot be read or are cut off.
        text: the arguments as they were written; empty without arguments.
        form: `marked` by tags or tokens that do not occur in prose, an object (`json`), `code`, or a `name` with
            arguments after it.
        start, end: the position in the text.
        keys: in JSON, the keys of the name and the arguments.
    """

    tool: Tool
    is_known: bool
    form: Form
    start: int
    end: int
    value: Any = None
    text: str = ""
    keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name

    @property
    def as_call(self) -> ToolCall:
        """The native call that a server's parser would make of it; unreadable arguments stay as written."""
        is_read = isinstance(self.value, dict)
        return ToolCall(name=self.name, arguments=_text(self.value) if is_read else self.text)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The requests of a prompt whose answers may look like calls.

    Attributes:
        shows: whether it asks to explain or show a call, so that a call in a fence is not an attempt.
        codes: whether it asks for code.
        words: all words of a prompt that asks for JSON, keys included; empty for another prompt.
    """

    shows: bool = False
    codes: bool = False
    words: frozenset[str] = frozenset()


def asked_by(texts: Sequence[str], *, may_show: bool, system: str = "") -> Asked:
    """Return the requests of a prompt whose answers may look like calls.

    Args:
        texts: the messages of the user.
        may_show: whether the prompt forbids calls, so that a call shown in the answer is not an attempt.
        system: the system prompt, whose format is one to use, not to show.
    """
    said = "\n".join(texts)
    whole = f"{said}\n{system}"
    return Asked(
        shows=bool(may_show and _EXAMPLES["shows"].search(said)),
        codes=bool(_EXAMPLES["codes"].search(whole)),
        words=frozenset(re.findall(r"\w+", whole)) if _EXAMPLES["json"].search(whole) else frozenset(),
    )


def find_written_calls(
    text: str,
    tools: Sequence[Tool],
    expected: Iterable[str] = (),
    *,
    asked: Asked | None = None,
    thinking: str = "",
) -> tuple[WrittenCall, ...]:
    """Return the calls that a reply makes in writing, in order; takes linear time and never raises.

    Calls in the thinking count if the thinking ends with them; if there is an answer, they must also have a
    form that does not occur in prose. At most `MOST_CALLS` are found.
    """
    names, asked = _ToolNames(tools, expected), asked or Asked()
    answer = without_blocks(text)
    if not answer.strip():
        return _in_thoughts(text if text.strip() else thinking, names, asked, is_all=True)
    made = _own_acts(answer, _found(answer, names, asked), asked)
    return made or _in_thoughts(thinking, names, asked, is_all=False)


def _found(text: str, names: _ToolNames, asked: Asked) -> list[WrittenCall]:
    """Return the outermost calls; a call of a known tool has precedence over overlapping unknown ones."""
    plain = _Plain(text)
    objects = [*_objects(plain.text)]
    found = [*_in_objects(plain.text, objects, names), *_named(plain.text, objects, names)]
    if not found and not asked.words:
        found = [*_bare_arguments(plain.text, objects, names)]
    known = _outermost(call for call in found if call.is_known)
    starts = [call.start for call in known]
    others = []
    for call in found:
        before = bisect_left(starts, call.end) - 1  # the last known call that begins before this one ends
        if not call.is_known and (before < 0 or known[before].end <= call.start):
            others.append(call)
    return [plain.placed(call) for call in _outermost([*known, *others])[:MOST_CALLS]]


def _outermost(found: Iterable[WrittenCall]) -> list[WrittenCall]:
    """Drop calls within other calls: the JSON of a tagged call is the same call."""
    kept: list[WrittenCall] = []
    for call in sorted(found, key=lambda call: (call.start, -call.end)):
        if not kept or call.start >= kept[-1].end:
            kept.append(call)
    return kept


class _Plain:
    """A text without marks that have no meaning, such as a tag's namespace; it knows the original places."""

    _MEANINGLESS = tuple(WORDINGS["marks"][key] for key in ("nothing", "suffix", "namespace"))
    # The tags of Kimi K3 are three tokens each: `<|open|>call tool="read"<|sep|>`.
    _TOKENS = re.compile(r"(?<=<)\|open\|>|(?<=<)\|close\|>|<\|sep\|(?=>)")
    _ENTITY = re.compile(r"&(?:lt|gt|quot|amp|#39);")
    _WIDE = str.maketrans({"\uff5c": "|", "\u2581": "_", "\uff1c": "<", "\uff1e": ">"})

    def __init__(self, text: str) -> None:
        self.text, self._removed = text.translate(self._WIDE), list[list[tuple[int, int]]]()
        if WORDINGS["marks"]["escaped"].search(self.text):
            self._replace(self._ENTITY, lambda found: html.unescape(found[0]))
        for pattern in self._MEANINGLESS:
            self._replace(pattern, lambda found: found[1] if found.lastindex else "")
        self._replace(self._TOKENS, lambda found: "/" if found[0] == "|close|>" else "")

    def _replace(self, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> None:
        pieces, shifts, position, shift = list[str](), list[tuple[int, int]](), 0, 0
        for match in pattern.finditer(self.text):
            kept = by(match)
            pieces += self.text[position : match.start()], kept
            position = match.end()
            shift += len(match[0]) - len(kept)
            shifts.append((match.end() - shift, shift))
        if pieces:
            self.text = "".join((*pieces, self.text[position:]))
            self._removed.append(shifts)

    def placed(self, call: WrittenCall) -> WrittenCall:
        """Return a call with its place in the original text."""
        return replace(call, start=self._place(call.start), end=self._place(call.end))

    def _place(self, position: int) -> int:
        for shifts in reversed(self._removed):
            before = bisect_right(shifts, position, key=lambda one: one[0]) - 1
            position += shifts[before][1] if before >= 0 else 0
        return position


# --- Names ------------------------------------------------------------------------------------------

_PREFIX = re.compile(
    r"(?:(?:default_api|functions?|tools?|api|assistant|openclaw|multi_tool_use|self|client)[./:])+",
    re.IGNORECASE,
)
_LONG_NAME_CHARS = 8
_NUMBER = re.compile(r":\d{1,4}$")
_CHANNEL = re.compile(r"(?<=\w)(?:commentary|analysis)?(?:json)?$")
"""The words that follow a name if a server removed the tokens between them."""
_NO_TOOL = {"none", "null", "no_tool", "no_call", "no_function", "function", "json"}
"""Names that mean "no call"; small models write `{"name": "none", "arguments": {}}`."""
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,99}")


class _ToolNames:
    """The tools that count, found by the names that models write."""

    def __init__(self, tools: Sequence[Tool], expected: Iterable[str] = ()) -> None:
        """Set the offered tools, and further expected names."""
        self.tools = tuple(tools)
        self._tools = {_key(tool.name): tool for tool in reversed(tools)}
        for name in expected:
            if self.find(name) is None:
                self._tools[_key(name)] = Tool(name=name.strip())
        self._tools |= {
            _key(alias): self._tools[_key(name)]
            for alias, name in ALIASES.items()
            if _key(name) in self._tools and _key(alias) not in self._tools
        }
        self.pattern = _pattern_of(tuple(self._tools))

    def find(self, name: str) -> Tool | None:
        """Return the tool that a written name means, or None."""
        return self._tools.get(_key(_plain_name(name).removesuffix(".call")))  # of Llama's built-in tools

    def unknown(self, name: str, *, is_any: bool = False) -> Tool | None:
        """Return a new tool for an unknown name; None if a tool has the name, or if it cannot be a name.

        With `is_any`, any short text is a name: small models write `{"name": "Late Note", "arguments": …}`.
        """
        plain = " ".join(name.split()) if is_any else _plain_name(name)
        is_name = 0 < len(plain) <= 100 and (is_any or _NAME.fullmatch(plain))
        return (
            Tool(name=plain)
            if is_name and plain.casefold() not in _NO_TOOL and self.find(name) is None
            else None
        )


def _plain_name(name: str) -> str:
    return _PREFIX.sub("", _NUMBER.sub("", name.strip().strip("`'\"*")), count=1)


def _key(name: str) -> str:
    return re.sub(r"[\s.-]", "_", name.strip()).casefold()


@lru_cache(maxsize=64)
def _pattern_of(keys: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return the pattern of tools' names in a text, as a word of its own or, if long, before an object."""
    spelled = [re.escape(key).replace("_", "[ _.-]?") for key in sorted(keys, key=len, reverse=True) if key]
    if not spelled:
        return None
    long = [
        one
        for one, key in zip(spelled, sorted(keys, key=len, reverse=True), strict=False)
        if len(key) >= _LONG_NAME_CHARS
    ]
    prefix = rf"(?:(?<![\w.\-/$\\])(?:{_PREFIX.pattern})?|(?<=function))"
    word = rf"{prefix}(?P<name>{'|'.join(spelled)})(?:\.call(?=\())?(?!\w)"
    glued = rf"(?P<channel>{'|'.join(spelled)})(?=[aj]|comm)(?:commentary|analysis)?(?:json)?(?=[\s{{])"
    inside = rf"(?P<long>{'|'.join((*long, rf'(?<![A-Za-z0-9_])(?:{"|".join(spelled)})'))})(?=\{{)"
    return re.compile(rf"{word}|{glued}|{inside}", re.IGNORECASE)


# --- Made or shown ----------------------------------------------------------------------------------

_NEAR = 400
_PLACEHOLDER = re.compile(
    r"[>=:]\s*[\"']?(?:\.\.\.|…|<[\w ./-]{2,40}>|\{\{?[\w ]{1,40}\}?\}|/?path/to/[\w./-]*"
    r"|your[_ -][\w ./-]{1,40}|[A-Z]+_(?:HERE|NAME))[\"'<,}\s]|\.\.\.\s*[})\]]"
)
_FENCE_MARK = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_TAG = re.compile(r"<[^<>\n]{1,80}>|\[/?[A-Z_]{2,40}\]|^[ \t]*print\(", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")


def _own_acts(text: str, calls: Sequence[WrittenCall], asked: Asked) -> tuple[WrittenCall, ...]:
    """Return the calls that the reply makes itself."""
    is_only_calls = is_nothing_else(text, calls)
    fences = [match.start() for match in _FENCE_MARK.finditer(text)] if calls else []
    acts = []
    for call in calls:
        announced = _is_announced(text, call)
        is_fenced = bisect_left(fences, call.start) % 2 == 1
        if asked.shows and not announced and (is_fenced or _is_inline(text, call)):
            continue
        if call.keys and call.form == "json" and asked.words.issuperset(call.keys):
            continue  # the JSON that was asked for
        is_doubtful = not (is_only_calls or announced) or (call.form == "code" and asked.codes)
        if is_doubtful and not call.is_known and call.form != "marked":
            continue
        if is_only_calls or not _is_shown(text, call):
            acts.append(call)
    return tuple(acts)


def _in_thoughts(thinking: str, names: _ToolNames, asked: Asked, *, is_all: bool) -> tuple[WrittenCall, ...]:
    """Return the calls that end the thinking, or whose form does not occur in prose.

    Unless the thinking is all that there is (`is_all`), calls must fulfill both conditions.
    """
    found = [
        call
        for call in _found(thinking, names, asked)
        if call.is_known or not asked.words.issuperset(call.keys or ("",))
    ]
    if not found:
        return ()
    last = found[-1]
    ends = not _letters(thinking[last.end :])
    marked = tuple(call for call in found if call.form == "marked")
    if marked or not is_all:
        return marked if ends or is_all else ()
    return (last,) if ends and not _is_inline(thinking, last) else ()


def is_nothing_else(text: str, calls: Sequence[WrittenCall]) -> bool:
    """Whether a text has no prose next to these calls."""
    kept, position = [], 0
    for call in calls:
        kept.append(text[position : call.start])
        position = max(position, call.end)
    kept.append(text[position:])
    return not _letters(" ".join(kept))


def _letters(text: str) -> bool:
    rest = _TAG.sub(" ", _FENCE_MARK.sub(" ", text))
    return any(char.isalpha() for char in rest)


def _is_shown(text: str, call: WrittenCall) -> bool:
    if _is_inline(text, call):
        return True
    if _is_announced(text, call):
        return False
    if _EXAMPLES["example"].search(_paragraph_before(text, call)):
        return True
    if call.form == "marked":  # regardless of its arguments and the text after it
        return False
    after = _TAG.sub(" ", _FENCE_MARK.sub("", text[call.end : call.end + _NEAR]))
    return bool(_PLACEHOLDER.search(call.text) or _EXAMPLES["explained"].search(after))


def _is_announced(text: str, call: WrittenCall) -> bool:
    """Whether the sentence before the call announces that the reply makes the call."""
    return bool(_EXAMPLES["act"].search(_SENTENCE.split(_paragraph_before(text, call))[-1]))


def _paragraph_before(text: str, call: WrittenCall) -> str:
    before = _FENCE_MARK.sub("", text[max(0, call.start - _NEAR) : call.start]).rstrip()
    return _TAG.sub(" ", before.rpartition("\n\n")[2] if before.endswith(":") else before[-250:]).strip()


def _is_inline(text: str, call: WrittenCall) -> bool:
    """Whether the call is in backticks within a line of prose, or in a quotation."""
    before = text[max(0, call.start - _NEAR) : call.start].rpartition("\n")[2]
    is_quoted = before.count("`") % 2 == 1 and "```" not in before and any(map(str.isalpha, before))
    return is_quoted or before.lstrip().startswith("> ")


# --- A name, marks, arguments -----------------------------------------------------------------------

_MOST_BETWEEN = 400
_LEADS = "|".join(
    f"(?P<{kind}>{'|'.join(one.pattern for one in patterns)})" for kind, patterns in WORDINGS["lead"].items()
)
_LED = re.compile(rf"(?:{_LEADS})(?P<name>{NAME})", re.IGNORECASE)
_CODE_NAME = re.compile(r"(?<![\w.\-/$\\])(?:[A-Za-z_]\w{0,40}\.){0,3}[A-Za-z_][\w-]{0,63}(?=\()")
_CLOSES = re.compile(
    r"(?::\d+)?[\"']?(?:\s[\w-]{1,20}=[\"'][^\"'<>]{0,60}[\"']){0,3}\s?>?\s{0,99}(?:/>|</|<\|[^<>]{0,40}end|<\|call\||argument key|calltools|\Z)"
)
_CODE = WORDINGS["code"]


@dataclass(frozen=True, kw_only=True)
class _Name:
    """The name of a tool in a text; `kind` is the group of the lead before it, if there is one."""

    tool: Tool
    is_known: bool
    start: int
    end: int
    begins: int
    kind: str | None = None

    def call(self, form: Form, read: Arguments, text: str = "") -> WrittenCall:
        """Return the call with these arguments; `text` is how they are written."""
        return WrittenCall(
            tool=self.tool,
            is_known=self.is_known,
            form="marked" if self.kind else form,
            start=self.begins,
            end=max(read.end, self.end),
            value=read.value if read.is_closed else None,
            text=text,
        )


def _named_in(text: str, names: _ToolNames) -> list[_Name]:
    """Return the names of tools in a text, in order; unknown ones only after a lead or before a parenthesis."""
    leads: dict[int, re.Match[str]] = {}
    found: dict[int, _Name] = {}
    for lead in _LED.finditer(text):
        prefix = _PREFIX.match(lead["name"])
        leads[lead.start("name") + (prefix.end() if prefix else 0)] = lead

    def add(start: int, end: int, name: str, *, is_known: bool) -> None:
        lead = leads.get(start)
        tool = names.find(name) if is_known else names.unknown(name)
        is_tag = text[start - 1 : start] in ("<", "/", "|") and WORDINGS["marks"]["wrapper"].fullmatch(name)
        if tool and start not in found and not is_tag:
            kind = next(kind for kind in WORDINGS["lead"] if lead[kind] is not None) if lead else None
            begins = lead.start() if lead else start
            found[start] = _Name(tool=tool, is_known=is_known, start=start, end=end, begins=begins, kind=kind)

    for match in names.pattern.finditer(text) if names.pattern else ():
        group = match.lastgroup or "name"
        add(match.start(group), match.end(), match[group], is_known=True)
    for start, lead in leads.items():
        name = text[start : lead.end()]
        name = _CHANNEL.sub("", name) if "to=" in lead[0] else name
        add(start, lead.end(), name, is_known=names.find(name) is not None)
    for match in _CODE_NAME.finditer(text):
        add(*match.span(), match[0], is_known=False)
    return [found[start] for start in sorted(found)]


def _named(text: str, objects: Sequence[_Object], names: _ToolNames) -> Iterator[WrittenCall]:
    """Yield the calls whose arguments follow the name of a tool, outside of objects that were read."""
    code = _Code(text)
    read = [one for one in objects if one.value is not None and one.is_closed]
    starts = [one.start for one in read]
    budget = WORK_FACTOR * len(text) + 10_000
    for name in _named_in(text, names):
        around = bisect_right(starts, name.start) - 1
        is_in_object = around >= 0 and name.start < read[around].end
        if budget > 0 and name.start >= code.after_last and not is_in_object:
            call, end = _call_at(text, name, code)
            budget -= end - name.end
            if call:
                code.after_last = call.end
                yield call


def _call_at(text: str, name: _Name, code: _Code) -> tuple[WrittenCall | None, int]:
    """Return the call that a name begins if fitting arguments follow, and the last place that was read."""
    tool, end, kind = name.tool, name.end, name.kind
    marks = MARKS.match(text, end, end + _MOST_BETWEEN)
    place = marks.end() if marks else end
    following = text[place : place + 1]
    if following == "(" and not text[end:place].strip("\"'`* "):
        read = read_call(text, place + 1, tool)
        written = text[place + 1 : read.end].removesuffix(")")
        is_made = kind or code.is_call(name, written, read)
        return (name.call("code", read, written) if is_made else None), read.end
    if not (kind or name.is_known):
        return None, place
    if tags := read_tags(text, end, tool):
        return name.call("marked", tags, text[end : tags.end]), tags.end
    if following == "{":
        read = read_object(text, place)
        written = text[place : read.end]
        read = read._replace(value=_unwrapped(read.value))
        if kind and read.value is None:
            return name.call("name", read._replace(is_closed=False), written), read.end
        if isinstance(read.value, dict) and not _DEFINES.match(written):
            is_empty = not read.value and place == end and not required_of(tool)
            fits = _fits(read.value, tool, is_closed=read.is_closed) and not code.is_program(name.start, is_code=False)
            if kind or is_empty or fits:
                return name.call("name", read, written), read.end
    is_line = code.begins_line(name.start) and not code.is_program(name.start, is_code=False)
    if (kind or is_line) and (pairs := read_pairs(text, (end, place), tool)):
        if not _CODE["described"].match(str(next(iter(pairs.value.values())))):
            return name.call("name", pairs, text[end : pairs.end]), pairs.end
    return _plain_call(text, name, place), place


def _plain_call(text: str, name: _Name, place: int) -> WrittenCall | None:
    """Return the call of a name with plain text as its only argument, or without arguments."""
    required = required_of(name.tool)
    if name.kind == "plain":
        stop = text.find("\n", place)
        stop = len(text) if stop < 0 else stop
        written = text[place:stop]
        return name.call("name", Arguments(read_plain(written, name.tool), stop), written)
    if name.kind == "alone" and _CLOSES.match(text, name.end):
        return name.call("name", Arguments({}, name.end))
    spoken = text[name.end + 1 :].strip()
    if not text[: name.start].strip() and text[name.end : name.end + 1] == ":" and "\n" not in spoken:
        if spoken and len(required) == 1 and _CODE["spoken"].fullmatch(required[0]):
            return name.call("name", Arguments({required[0]: spoken}, len(text)), spoken)
    return None


def _fits(arguments: Any, tool: Tool, *, is_closed: bool = True) -> bool:
    """Whether an object has the required keys of a tool, unless it is cut off, and no keys but its own."""
    if not isinstance(arguments, dict) or not arguments:
        return False
    return arguments.keys() <= parameters_of(tool).keys() and (
        not is_closed or arguments.keys() >= {*required_of(tool)}
    )


def _unwrapped(value: Any) -> Any:
    """Return the arguments in an object whose only key is that of arguments."""
    if isinstance(value, dict) and len(value) == 1:
        ((key, inner),) = value.items()
        return inner if key in _ARGUMENTS and isinstance(inner, dict) else value
    return value


# --- Code: `read(path="notes.md")`, `[read(path="notes.md")]`, `read({…})` -----------------------------

_BEFORE = re.compile(
    r"^[ \t]*+"
    + atomic(
        r"(?:(?P<bullet>[-*\u2022]|\d{1,3}[.)]|>>>)[ \t]*+|<[^<>\n]{1,60}>[ \t]*+|\[TOOL_CALLS\][ \t]*+)*"
    )
    + atomic(
        r"(?:(?:print|await|return|result|call|Calling|Call|Action|Tool[ _]?[Cc]all)[ \t]*+[:(]?[ \t]*+"
        r"|[A-Za-z_]\w{0,40}[ \t]*+=[ \t]*+)*"
    )
    + r"(?:[`\[({\\]|(?<=\[)\\?[\"']){0,5}[ \t]*+(?:await[ \t]+)?(?:\w{1,20}[./])*$"
)
_AFTER = re.compile(r"^[\s)\]`;,.\\]*+(?:[\"']\s?[\],]|$|#|//|</?\w|<\||\w[\w.]{0,60}\()")
_NAMED_ARGUMENT = re.compile(
    r"\s*(?:([A-Za-z_]\w{0,40})\s*=(?!=)|\{\s*\\?[\"']?([A-Za-z_]\w{0,40})\\?[\"']?\s*:)"
)
_POSITIONAL = re.compile(r"\s*(?:[frb]?\\?[\"'])")
_SHELL = frozenset({"bash", "sh", "shell", "zsh", "console", "powershell", "cmd", "terminal", "diff", "sql"})
_TOOL_CODE = frozenset({"tool_code", "tool_call", "tool_calls", "tool", "tools", "tool_use", "function_call"})
_PROGRAMS = frozenset({"python", "py", "javascript", "js", "ts"})
_BUILTINS = frozenset(dir(builtins))


class _Code:
    """The fences and programs of a text, which say whether code is a call; `after_last` is the last call's end."""

    def __init__(self, text: str) -> None:
        self.text, self.after_last = text, 0
        self._fences = [*_FENCE_MARK.finditer(text)]
        self._starts = [fence.start() for fence in self._fences]
        self._programs = [word.start() for word in _CODE["program"].finditer(text)]
        self._statements = [word.start() for word in _CODE["in_fence"].finditer(text)] if self._fences else []

    def _tag(self, start: int) -> tuple[str, int]:
        """Return the tag of the fence around a place, empty without one, and where the last fence mark ends."""
        n_before = bisect_left(self._starts, start)
        begins = self._fences[n_before - 1].end() if n_before else 0
        return self._fences[n_before - 1][0].strip(" \t`~").lower() if n_before % 2 else "", begins

    def is_program(self, start: int, *, is_code: bool = True) -> bool:
        """Whether a place is in a program: by the code before its line in the same fence, or as a text in code."""
        tag, begins = self._tag(start)
        before = self._before(start)[1]
        if not is_code and (tag in _SHELL or before.startswith("|")):
            return True
        if not is_code and tag in _PROGRAMS and not self.begins_line(start):
            return True
        line = self._before(start)[0]
        is_fenced = bisect_left(self._starts, start) % 2
        for words in (self._programs, self._statements if is_fenced else []):
            if tag not in _TOOL_CODE and bisect_left(words, begins) < bisect_left(words, line):
                return True
        return False

    def is_call(self, name: _Name, written: str, read: Arguments) -> bool:
        """Whether code is on a line of its own, or in a list, and its arguments fit."""
        tool, is_known = name.tool, name.is_known
        tag = self._tag(name.start)[0]
        line, before = self._before(name.start)
        if tag in _SHELL or self.is_program(name.start):
            return False
        if not is_known and ("." in name.tool.name or name.tool.name in _BUILTINS):
            return False
        lead = _BEFORE.match(before)
        newline = self.text.find("\n", read.end, read.end + 300)
        after = self.text[read.end : newline if newline >= 0 else read.end + 300]
        is_nested = not before.strip() and self.text[:line].rstrip().endswith("(")
        if lead is None or is_nested or not _AFTER.match(after) or _CODE["types"].search(written):
            return False
        if not written.strip():
            return not required_of(tool) and (is_known or tag in _TOOL_CODE) and not lead["bullet"]
        if named := _NAMED_ARGUMENT.match(written):
            known_names = parameters_of(tool)
            return not known_names or tag in _TOOL_CODE or (named[1] or named[2]) in known_names
        return is_known and tag not in _PROGRAMS and _POSITIONAL.match(written) is not None

    def begins_line(self, start: int) -> bool:
        """Whether nothing but marks is before a place on its line."""
        return MARKS.fullmatch(self._before(start)[1].removesuffix("<")) is not None

    def _before(self, start: int) -> tuple[int, str]:
        """Return where a line begins, and its text up to a place, without calls."""
        line = self.text.rfind("\n", max(0, start - 300), start) + 1 or max(0, start - 300)
        before = self.text[max(line, min(self.after_last, start)) : start]
        return line, before.lstrip(" \t,;)]\"'`") if self.after_last > line else before


# --- Objects ----------------------------------------------------------------------------------------

_NAMES = (
    "name", "tool_name", "toolName", "tool", "function_name", "function", "action", "tool_call",
    "recipient_name", "api_name", "command_name",
)  # fmt: skip
_ARGUMENTS = (
    "arguments", "parameters", "args", "input", "params", "action_input", "tool_input", "tool_args",
    "tool_arguments", "tool_parameters", "kwargs", "inputs", "actionInput", "function_args", "payload",
)  # fmt: skip
_SURE = frozenset({"arguments", "parameters", "args"})
"""Next to these keys any text is a name: small models write `{"name": "Late Note", "arguments": …}`."""
_NEXT_TO_NAME = frozenset(
    {"type", "id", "call_id", "tool_call_id", "thought", "reasoning", "explanation", "description", "index"}
    | {"role", "status"}
)
_WRAPPERS = frozenset(
    {"tool_calls", "toolCalls", "tool_call", "toolCall", "tool_uses", "tool_use", "function_calls", "calls"}
    | {"function_call", "functionCall", "function", "actions", "message", "choices"}
)
"""Keys whose value is a call or a list of calls, even to an unknown tool."""
_HEAD = re.compile(r"\{(?=\s{0,200}+(?:\\?[\"'\u201c]|(?:--)?[A-Za-z_]\w{0,40}+\s{0,9}+[:=]))")
_DEFINES = re.compile(
    r"\{\s*[\"']?type[\"']?\s*:\s*[\"']object"
    r"|\{\s*[\"']?\w+[\"']?\s*:\s*\{\s*[\"']?(?:type|description)[\"']?\s*:\s*[\"']\w"
)
_LOOKBACK = 160
_MOST_NESTED = 6
_MOST_LISTED = 200


class _Object(NamedTuple):
    """An object in a text; `value` is None if it is not one."""

    start: int
    end: int
    value: Any
    is_closed: bool


def _objects(text: str) -> Iterator[_Object]:
    """Yield the outermost objects.

    What is not an object, or is cut off, may contain others, so the search continues within it, up to a bound
    that keeps it linear.
    """
    position, budget = 0, WORK_FACTOR * len(text) + 10_000
    while budget > 0 and (head := _HEAD.search(text, position)):
        read = read_object(text, head.start())
        yield _Object(head.start(), read.end, read.value, read.is_closed)
        budget -= read.end - head.start()
        position = read.end if read.value is not None and read.is_closed else head.end()


def _in_objects(text: str, objects: Sequence[_Object], names: _ToolNames) -> Iterator[WrittenCall]:
    """Yield the calls written as objects: bare, fenced, after a family's marker, or cut off."""
    for start, end, value, is_closed in objects:
        before = text[max(0, start - _LOOKBACK) : start]
        if value is None or WORDINGS["object"]["final"].search(before):
            continue
        is_marked = WORDINGS["object"]["marked"].search(before) is not None
        for tool, is_known, keys, arguments in _calls_in(value, names, 0, is_marked=is_marked):
            given = read_object(arguments, 0).value if isinstance(arguments, str) else arguments
            is_read = is_closed and isinstance(given, dict)
            yield WrittenCall(
                tool=tool,
                is_known=is_known,
                form="marked" if is_marked else "json",
                start=start,
                end=end,
                value=given if is_read else None,
                text=_text(arguments) if is_closed else text[start:end],
                keys=keys,
            )


def _bare_arguments(text: str, objects: Sequence[_Object], names: _ToolNames) -> Iterator[WrittenCall]:
    """Yield the arguments of the only tool that they fit, if the text has nothing else."""
    if (
        len(objects) == 1
        and objects[0].is_closed
        and not _letters(text[: objects[0].start] + text[objects[0].end :])
    ):
        fitting = [tool for tool in names.tools if required_of(tool) and _fits(objects[0].value, tool)]
        if len(fitting) == 1:
            start, end, value, _ = objects[0]
            yield WrittenCall(
                tool=fitting[0],
                is_known=True,
                form="json",
                start=start,
                end=end,
                value=value,
                text=text[start:end],
            )


class _Read(NamedTuple):
    """A call read from an object; `is_known` is false if no tool has the name."""

    tool: Tool
    is_known: bool
    keys: tuple[str, ...]
    arguments: Any


def _calls_in(
    value: Any, names: _ToolNames, depth: int, *, is_marked: bool, is_any: bool = True
) -> Iterator[_Read]:
    """Yield the calls in a value; an unknown name counts only where calls are expected (`is_any`)."""
    if depth > _MOST_NESTED or not isinstance(value, dict | list):
        return
    if isinstance(value, dict):
        if is_definition(value):
            return
        if call := _as_call(value, names, is_marked=is_marked, is_any=is_any):
            yield call
            return
    parts = [("calls", part) for part in value] if isinstance(value, list) else [*value.items()]
    for key, part in parts[:_MOST_LISTED]:
        tool = names.find(key) if isinstance(value, dict) else None
        if tool and _fits(part, tool):
            yield _Read(tool, True, (key,), part)
        else:
            inner = is_any and key in _WRAPPERS
            yield from _calls_in(part, names, depth + 1, is_marked=is_marked, is_any=inner)


def _as_call(value: dict[str, Any], names: _ToolNames, *, is_marked: bool, is_any: bool) -> _Read | None:
    """Read a name next to its arguments or parameters, as in `{"name": "read", "path": "notes.md"}`.

    If no tool has the name, the object must have nothing else but an object of arguments, which may be
    missing after a family's marker.
    """
    for key in sorted(value, key=lambda key: _NAMES.index(key) if key in _NAMES else len(_NAMES)):
        name, is_name = value[key], key in _NAMES
        if not isinstance(name, str) or len(name) > 200:
            continue
        given = next((other for other in value if other != key and _is_for_arguments(other, value)), None)
        if tool := names.find(name):
            given = given if is_name else None
            given = given or next((other for other, inner in value.items() if _fits(inner, tool)), None)
            if given:
                return _Read(tool, True, (key, given), value[given])
            rest = {other: inner for other, inner in value.items() if other not in {key, *_NEXT_TO_NAME}}
            if is_name and (rest.keys() <= parameters_of(tool).keys() if rest else not required_of(tool)):
                return _Read(tool, True, (key, *rest), rest)
        elif is_name and is_any and value.keys() <= {key, given, *_NEXT_TO_NAME}:
            unknown = names.unknown(name) or (names.unknown(name, is_any=True) if given in _SURE else None)
            arguments = value[given] if given else {} if is_marked else None
            arguments = read_object(arguments, 0).value if isinstance(arguments, str) else arguments
            if unknown and isinstance(arguments, dict):
                return _Read(unknown, False, (key, given) if given else (key,), arguments)
    if len(value) != 1 or not (is_any and is_marked):
        return None
    ((name, arguments),) = value.items()
    unknown = names.unknown(name) if name not in _WRAPPERS and isinstance(arguments, dict) else None
    return _Read(unknown, False, (name,), arguments) if unknown else None


def _is_for_arguments(key: str, value: dict[str, Any]) -> bool:
    """Whether a key is that of the arguments, or its beginning where a text is cut off."""
    is_cut = len(key) > 2 and value[key] == {} and any(name.startswith(key) for name in _ARGUMENTS)
    return is_cut or key in _ARGUMENTS


def is_definition(value: dict[str, Any]) -> bool:
    """Whether an object describes a tool: it has a schema of parameters instead of arguments."""
    for key in ("parameters", "input_schema", "arguments", "inputSchema"):
        schema = value.get(key)
        if isinstance(schema, dict) and "properties" in schema and schema.get("type") == "object":
            return True
        # Small models write the parameters themselves.
        types = [*schema.values()] if isinstance(schema, dict) and "description" in value else []
        if types and all(isinstance(one, dict) and "type" in one for one in types):
            return True
    return False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
