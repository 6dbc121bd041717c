"""Finds calls that a reply writes into its text or its thinking, where no server executes them.

A call is the name of an offered tool and arguments that fit it, close together, with nothing but marks
between them: JSON, code, tags or lines, in any wrapper. `written_calls.toml` has the marks, and the forms in
which the name of another tool counts too, or a name without arguments. An explanation that shows the format
of a call is not a call, nor is JSON that the prompt asked for.
"""

from __future__ import annotations

import builtins
import html
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

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
from pytest_openclaw.values.tool_calls import Tool, ToolCall

MOST_CALLS = 256
_WORK_FACTOR = 4
"""The most characters that are read again in unclosed calls, as a multiple of the text's length."""
_EXAMPLES = load_wordings("examples")
_PLAIN, _NAMES, _OBJECT, _CODE = (WORDINGS[key] for key in ("marks", "name", "object", "code"))
Form = Literal["marked", "json", "code", "name"]


@dataclass(frozen=True, kw_only=True)
class WrittenCall:
    """A call in a text.

    Attributes:
        tool: the tool as it was offered; without parameters if no tool has the written name.
        is_known: whether a tool has the written name.
        form: `marked` by tags or tokens that do not occur in prose, an object (`json`), `code`, or a `name`
            with arguments after it.
        start, end: the position in the text as `plain_text` returns it.
        value: the arguments; None if they cannot be read or are cut off.
        text: the arguments as they were written; empty without arguments.
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
        return ToolCall(name=self.name, arguments=self.text if self.value is None else _json_of(self.value))


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
    text = "\n".join(texts)
    whole = f"{text}\n{system}"
    return Asked(
        shows=bool(may_show and _EXAMPLES["shows"].search(text)),
        codes=bool(_EXAMPLES["codes"].search(whole)),
        words=frozenset(re.findall(r"\w+", whole)) if _EXAMPLES["json"].search(whole) else frozenset(),
    )


class WrittenCallFinder:
    """Finds the calls that replies make in writing; each text is searched once."""

    def __init__(self, tools: Sequence[Tool], expected: Iterable[str] = (), *, asked: Asked | None = None):
        """Set the offered tools, further names that are expected, and what the prompt asks for."""
        self._names = _ToolNames(tools, expected)
        self._asked = asked or Asked()
        self._found: dict[str, tuple[WrittenCall, ...]] = {}

    def find(self, text: str, thinking: str = "") -> tuple[WrittenCall, ...]:
        """Return the calls, in order; takes linear time and never raises.

        Calls in the thinking count if the thinking ends with them; if there is an answer, they must also have
        a form that does not occur in prose. At most `MOST_CALLS` are found.
        """
        answer, thoughts = plain_text(without_blocks(text)), plain_text(thinking)
        if not answer.strip():
            thoughts = plain_text(text) if text.strip() else thoughts
            return _in_thoughts(thoughts, self._names, self._asked, is_all=True)
        if answer not in self._found:
            self._found[answer] = _own_acts(answer, _found(answer, self._names, self._asked), self._asked)
        return self._found[answer] or _in_thoughts(thoughts, self._names, self._asked, is_all=False)


def plain_text(text: str) -> str:
    """Return a text without marks that mean nothing, such as the namespace of a tag."""
    text = text.translate(_WIDE)
    if _PLAIN["wide"].search(text):
        text = text.translate(_ALL_WIDE)
    if _PLAIN["escaped"].search(text):
        text = html.unescape(text)
    if _PLAIN["encoded"].match(text):
        with suppress(ValueError):
            text = str(json.loads(text))
    # The tags of Kimi K3 are three tokens each: `<|open|>call tool="read"<|sep|>`.
    text = text.replace("<|open|>", "<").replace("<|close|>", "</").replace("<|sep|>", ">")
    text = _PLAIN["suffix"].sub(r"\1", _PLAIN["nothing"].sub("", text))
    return str(_PLAIN["namespace"].sub(r"\1", text))


_WIDE = str.maketrans({"\uff5c": "|", "\u2581": "_", "\uff1c": "<", "\uff1e": ">"})
_ALL_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


def _found(text: str, names: _ToolNames, asked: Asked) -> list[WrittenCall]:
    """Return the outermost calls; a call of a known tool has precedence over overlapping unknown ones."""
    objects = [*_objects(text)]
    found = [*_in_objects(text, objects, names), *_named(text, objects, names)]
    if not found and not asked.words:
        found = [*_bare_arguments(text, objects, names)]
    kept: list[WrittenCall] = []
    for call in sorted(found, key=lambda call: (not call.is_known, call.start, -call.end)):
        places = (call.start, call.end)  # calls in one object have equal ones
        others = (one for one in kept if (one.start, one.end) != places)
        if len(kept) < MOST_CALLS and all(call.end <= one.start or one.end <= call.start for one in others):
            kept.append(call)
    return sorted(kept, key=lambda call: call.start)


# --- Made or shown ----------------------------------------------------------------------------------

_NEAR = 400
_FENCE_MARK = re.compile(r"^[ \t]*(?:(?:```|~~~)[^\n]*|</?(?:code|execute)>[ \t]*)$", re.MULTILINE)
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
    calls = _found(thinking, names, asked) if thinking else []
    found = [call for call in calls if call.is_known or not asked.words.issuperset(call.keys or ("",))]
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
    for start, end in sorted({(call.start, call.end) for call in calls}, reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return not _letters(text)


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
    return bool(_EXAMPLES["placeholder"].search(call.text) or _EXAMPLES["explained"].search(after))


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


class _ToolNames:
    """The tools that count, found by the names that models write."""

    def __init__(self, tools: Sequence[Tool], expected: Iterable[str] = ()) -> None:
        """Set the offered tools, and further expected names."""
        self.tools = tools
        self._tools = {_key(tool.name): tool for tool in reversed(tools)}
        self._tools |= {_key(name): Tool(name=name.strip()) for name in expected if self.find(name) is None}
        aliases = {alias: tool for alias, name in ALIASES.items() if (tool := self._tools.get(_key(name)))}
        self._tools = {_key(alias): tool for alias, tool in aliases.items()} | self._tools
        self.pattern = _pattern_of((*aliases, *(tool.name for tool in self._tools.values())))

    def find(self, name: str) -> Tool | None:
        """Return the tool that a written name means, or None."""
        bare = _bare_name(name).removesuffix(".call")  # of Llama's built-in tools
        return self._tools.get(_key(name)) or self._tools.get(_key(bare))

    def unknown(self, name: str, *, is_any: bool = False) -> Tool | None:
        """Return a tool for an unknown name, with `is_any` for any short text; None if it is not a name."""
        plain = " ".join(name.split()) if is_any else _bare_name(name)
        is_name = 0 < len(plain) <= 100 if is_any else _NAMES["unknown"].fullmatch(plain)
        return Tool(name=plain) if is_name and not _NAMES["none"].fullmatch(plain) else None


def _bare_name(name: str) -> str:
    return str(_NAMES["prefix"].sub("", re.sub(r":\d{1,4}$", "", name.strip().strip("`'\"*")), count=1))


def _key(name: str) -> str:
    return re.sub(r"[\s_.-]", "", name).casefold()


@lru_cache(maxsize=64)
def _pattern_of(names: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of tools' names: words of their own, or glued to a sentence and an object."""
    parts = ["[ _.-]?".join(map(re.escape, re.split(r"[\s_.-]+", name.strip()))) for name in names]
    spelled = "|".join(sorted(parts, key=len, reverse=True)) or "(?!)"
    return re.compile(
        rf"(?:(?:(?<![\w.\-/$\\])|(?<=\A/)|(?<=[\[\n{{(%]/))(?:{_NAMES['prefix'].pattern})?|(?<=function)|(?<=\.)(?=[\w-]{{1,99}}\{{))(?P<word>{spelled})(?:\.call(?=\())?(?!\w)",
        re.IGNORECASE,
    )


_MOST_BETWEEN = 400
_MOST_OF_LINE = 4000
_LEADS = {kind: "|".join(one.pattern for one in patterns) for kind, patterns in WORDINGS["lead"].items()}
_LED = re.compile(
    rf"(?:{'|'.join(f'(?P<{kind}>{lead})' for kind, lead in _LEADS.items())})(?P<name>{NAME})", re.IGNORECASE
)


class _Name(NamedTuple):
    """The name of a tool in a text; `kind` is the group of the lead before it, if there is one."""

    tool: Tool
    is_known: bool
    begins: int
    start: int
    end: int
    kind: str | None

    def call(self, form: Form, read: Arguments, text: str = "", keys: tuple[str, ...] = ()) -> WrittenCall:
        """Return the call with these arguments; `text` is how they are written."""
        return WrittenCall(
            tool=self.tool,
            is_known=self.is_known,
            form="marked" if self.kind else form,
            start=self.begins,
            end=max(read.end, self.end),
            value=read.value if read.is_closed and isinstance(read.value, dict) else None,
            text=text,
            keys=keys,
        )


def _names_in(text: str, names: _ToolNames) -> Iterator[_Name]:
    """Yield the names of tools in a text; unknown ones only after a lead or before a parenthesis."""
    leads: dict[int, re.Match[str]] = {}
    for lead in _LED.finditer(text):
        prefix = _NAMES["prefix"].match(lead["name"])
        leads[lead.start("name") + (prefix.end() if prefix else 0)] = lead
    ends = {match.start(): match.end() for match in _CODE["name"].finditer(text)}
    ends |= {start: lead.end() for start, lead in leads.items()}
    ends |= {match.start("word"): match.end() for match in names.pattern.finditer(text)}
    for start, end in sorted(ends.items()):
        lead_or_none = leads.get(start)
        name = _NAMES["channel"].sub("", text[start:end])
        tool = names.find(name)
        is_tag = text[start - 1 : start] in ("<", "/", "|") and _PLAIN["wrapper"].fullmatch(name)
        if not is_tag and (meant := tool or names.unknown(name)):
            begins = lead_or_none.start() if lead_or_none else start
            kind = next((kind for kind in _LEADS if lead_or_none and lead_or_none[kind] is not None), None)
            yield _Name(meant, tool is not None, begins, start, end, kind)


def _named(text: str, objects: _Objects, names: _ToolNames) -> Iterator[WrittenCall]:
    """Yield the calls whose arguments follow the name of a tool, outside of objects that were read."""
    code = _Code(text)
    ends = {start: read.end for start, read in objects if read.value is not None and read.is_closed}
    starts = [*ends]
    budget = _WORK_FACTOR * len(text) + 10_000
    for name in _names_in(text, names):
        around = bisect_right(starts, name.start) - 1
        is_in_object = around >= 0 and name.start < ends[starts[around]]
        if budget > 0 and name.start >= code.after_last and not is_in_object:
            call, end = _call_at(text, name, code)
            budget -= end - name.end
            if call:
                code.after_last = call.end
                yield call


def _call_at(text: str, name: _Name, code: _Code) -> tuple[WrittenCall | None, int]:
    """Return the call that a name begins if fitting arguments follow, and the last place that was read."""
    tool, end, kind = name.tool, name.end, name.kind
    place = MARKS.match(text, end, end + _MOST_BETWEEN).end()  # type: ignore[union-attr]  # it may be empty
    following = text[place : place + 1]
    if following == "(":
        read = read_call(text, place + 1, tool)
        written = text[place + 1 : read.end].removesuffix(")")
        is_made = kind or code.is_call(name, written, read.end)
        return (name.call("code", read, written) if is_made else None), read.end
    if not (kind or name.is_known):
        return None, place
    tags = read_tags(text, end, tool)
    if tags and (kind or not tags.value.keys().isdisjoint(parameters_of(tool) or tags.value)):
        return name.call("marked", tags, text[end : tags.end]), tags.end
    is_apart = not code.is_text(name.start)
    if following == "{":
        read = read_object(text, place)
        is_empty = read.value == {} and place == end and not required_of(tool)
        if kind or is_empty or (is_apart and _fits(read.value, tool, is_closed=read.is_closed)):
            return name.call("name", read, text[place : read.end]), read.end
    is_line = kind or (is_apart and code.begins_line(name.start))
    pairs = read_pairs(text, (end, place), tool) if is_line else None
    if pairs and not _CODE["described"].match(str(next(iter(pairs.value.values())))):
        return name.call("name", pairs, text[end : pairs.end]), pairs.end
    return _enclosed_call(text, name, code) or _plain_call(text, name, place), place


def _enclosed_call(text: str, name: _Name, code: _Code) -> WrittenCall | None:
    """Return the call of a name that is a tag, or the tag of a fence, with the only argument in it."""
    opened, word = _OBJECT["encloses"].fullmatch(code.before(name.start)[1]), text[name.start : name.end]
    begins = name.end + 1
    if not opened or text[name.end : begins] != (">" if opened[1] == "<" else "\n"):
        return None
    if opened[1] != "<" and (_CODE["shell"].fullmatch(word) or _CODE["language"].fullmatch(word)):
        return None  # the language of an example
    if text[begins : begins + 9].lstrip().startswith(("[{", '{"', "{'")):
        return None  # objects are calls themselves
    closing = f"</{word}>" if opened[1] == "<" else f"\n{opened[1]}"
    ends = text.find(closing, begins - 1, begins + _MOST_OF_LINE)
    written, end = text[begins : max(ends, begins)], ends + len(closing)
    is_last = not text[end : end + 40].partition("\n")[0].strip()
    value = read_plain(written, name.tool) if is_last else None
    return name.call("name", Arguments(value, end), written) if value else None


def _plain_call(text: str, name: _Name, place: int) -> WrittenCall | None:
    """Return the call of a name with plain text as its only argument, or without arguments."""
    if name.kind == "line":
        written = text[place : place + _MOST_OF_LINE].partition("\n")[0]
        written = written.rstrip(" \"']") if text[name.end : name.end + 1] == "[" else written
        return name.call("name", Arguments(read_plain(written, name.tool), place + len(written)), written)
    if name.kind == "complete" and _NAMES["closes"].match(text, name.end):
        return name.call("name", Arguments({}, name.end))
    required, is_first = required_of(name.tool), name.start < _LOOKBACK and not text[: name.start].strip()
    if is_first and text[name.end : name.end + 1] == ":" and len(required) == 1:
        spoken = text[name.end + 1 :].strip()
        if spoken and "\n" not in spoken and _CODE["spoken"].fullmatch(required[0]):
            return name.call("name", Arguments({required[0]: spoken}, len(text)), spoken)
    return None


def _fits(arguments: Any, tool: Tool, *, is_closed: bool = True) -> bool:
    """Whether an object has the required keys of a tool, unless it is cut off, and no keys but its own."""
    if not isinstance(arguments, dict) or not arguments:
        return False
    has_all = arguments.keys() >= {*required_of(tool)}
    return arguments.keys() <= parameters_of(tool).keys() and (has_all or not is_closed)


# --- Code: `read(path="notes.md")`, `[read(path="notes.md")]`, `read({…})` -----------------------------

_BUILTINS = frozenset(dir(builtins))


class _Code:
    """The fences and programs of a text; `after_last` is the end of the last call."""

    def __init__(self, text: str) -> None:
        """Find the fences and the words of programs."""
        self.text, self.after_last = text, 0
        self._fences = [*_FENCE_MARK.finditer(text)]
        self._starts = [fence.start() for fence in self._fences]
        self._words = [word.start() for word in _CODE["program"].finditer(text)]

    def is_call(self, name: _Name, written: str, end: int) -> bool:
        """Whether code is on a line of its own, or in a list, and its arguments fit."""
        tool, is_known, before = name.tool, name.is_known, self.before(name.start)[1]
        lead, after = _CODE["before"].match(before), self.text[end : end + _NEAR]
        if _CODE["types"].search(written):
            return False
        is_all = lead and not _letters(self.text[: name.start] + self.text[end:])
        if is_known and (is_all or _CODE["list"].fullmatch(before)):
            return True  # whatever its arguments
        if not lead or not _CODE["after"].match(after.partition("\n")[0]) or self.is_program(name.start):
            return False
        is_used = lead["variable"] and re.search(rf"\b{lead['variable']}\b", after)
        if is_used and not _CODE["tool_code"].fullmatch(self._fence(name.start)[0]):
            return False  # a program that uses the result
        if named := _CODE["named"].match(written):
            known = parameters_of(tool)
            is_own = is_known or not ("." in tool.name or tool.name in _BUILTINS)
            return (named["keyword"] or named["key"]) in known if known else is_own
        if not written.strip():
            return is_known and not required_of(tool) and not lead["bullet"]
        return is_known and _CODE["quoted"].match(written) is not None

    def is_program(self, start: int) -> bool:
        """Whether a place is in code for a shell or a part of a program: an argument, or after other code."""
        tag, begins = self._fence(start)
        line, before = self.before(start)
        is_argument = not before.strip() and self.text[max(0, line - 99) : line].rstrip().endswith("(")
        follows = bisect_left(self._words, begins) < bisect_left(self._words, line)
        follows = follows and not _CODE["tool_code"].fullmatch(tag)
        return is_argument or follows or _CODE["shell"].fullmatch(tag) is not None

    def is_text(self, start: int) -> bool:
        """Whether a name is only mentioned: in a program, in a line of code, or in a table."""
        is_in_line = _CODE["language"].fullmatch(self._fence(start)[0]) and not self.begins_line(start)
        return bool(is_in_line) or self.is_program(start) or self.before(start)[1].startswith("|")

    def begins_line(self, start: int) -> bool:
        """Whether nothing but marks is before a place on its line."""
        return MARKS.fullmatch(self.before(start)[1].rstrip("<{(%/ ")) is not None

    def _fence(self, start: int) -> tuple[str, int]:
        """Return the tag of the fence around a place, if there is one, and the end of the last fence mark."""
        n_before = bisect_left(self._starts, start)
        last = self._fences[n_before - 1] if n_before else None
        return (last[0].strip(" \t`~") if last and n_before % 2 else ""), last.end() if last else 0

    def before(self, start: int) -> tuple[int, str]:
        """Return where a line begins, and its text up to a place, without calls."""
        line = self.text.rfind("\n", max(0, start - 300), start) + 1 or max(0, start - 300)
        before = self.text[max(line, min(self.after_last, start)) : start]
        return line, before.lstrip(" \t,;)]\"'`") if self.after_last > line else before


# --- Objects ----------------------------------------------------------------------------------------

_LOOKBACK = 160
_MOST_NESTED = 6
_MOST_LISTED = 200
_Objects = Sequence[tuple[int, Arguments]]
"""The objects of a text, each with its start."""


def _objects(text: str) -> Iterator[tuple[int, Arguments]]:
    """Yield the outermost objects, each with its start.

    What is not an object, or is cut off, may contain others, so the search continues within it, up to a bound
    that keeps it linear.
    """
    position, budget = 0, _WORK_FACTOR * len(text) + 10_000
    while budget > 0 and (head := _OBJECT["head"].search(text, position)):
        read = read_object(text, head.start())
        yield head.start(), read
        budget -= read.end - head.start()
        position = read.end if read.value is not None and read.is_closed else head.end()


def _in_objects(text: str, objects: _Objects, names: _ToolNames) -> Iterator[WrittenCall]:
    """Yield the calls written as objects: bare, fenced, after a family's marker, or cut off."""
    for start, (value, end, is_closed) in objects:
        before = text[max(0, start - _LOOKBACK) : start]
        if value is None or _OBJECT["final"].search(before):
            continue
        is_marked = _OBJECT["marked"].search(before) is not None
        for tool, is_known, keys, arguments in _calls_in(value, names, 0, is_marked=is_marked):
            name = _Name(tool, is_known, start, start, end, "marked" if is_marked else None)
            read = Arguments(_object_in(arguments), end, is_closed)
            yield name.call("json", read, _json_of(arguments) if is_closed else text[start:end], keys)


def _bare_arguments(text: str, objects: _Objects, names: _ToolNames) -> Iterator[WrittenCall]:
    """Yield the arguments of the only tool that they fit, if they are the whole text or announced.

    If several fit, the text before may name one of them.
    """
    for start, (value, end, is_closed) in objects:
        fitting = [tool for tool in names.tools if required_of(tool) and _fits(value, tool)]
        if not is_closed or not fitting:
            continue
        before = text[max(0, start - _MOST_BETWEEN) : start]
        is_all = not _letters(text[:start] + text[end:])
        named = [names.find(match["word"]) for match in names.pattern.finditer(before)]
        meant = [tool for tool in fitting if tool in named] or fitting
        if len(meant) == 1 and (is_all or _EXAMPLES["act"].search(before)):
            name = _Name(meant[0], True, start, start, end, None)
            yield name.call("json", Arguments(value, end), text[start:end])


_Read = tuple[Tool, bool, tuple[str, ...], Any]
"""A call read from an object: the tool, whether a tool has the name, the keys, and the arguments."""


def _calls_in(
    value: Any, names: _ToolNames, depth: int, *, is_marked: bool, is_any: bool = True
) -> Iterator[_Read]:
    """Yield the calls in a value; an unknown name counts only where calls are expected (`is_any`)."""
    if depth > _MOST_NESTED or not isinstance(value, dict | list) or _is_definition(value):
        return
    if isinstance(value, dict) and (call := _as_call(value, names, is_marked=is_marked, is_any=is_any)):
        yield call
        return
    parts = [("calls", part) for part in value] if isinstance(value, list) else [*value.items()]
    for key, part in parts[:_MOST_LISTED]:
        tool = names.find(key) if isinstance(value, dict) else None
        if tool and _fits(part, tool) and (is_any or len(parts) == 1):
            yield (tool, True, (key,), part)
        else:
            inner = is_any and _OBJECT["calls"].fullmatch(key) is not None
            yield from _calls_in(part, names, depth + 1, is_marked=is_marked, is_any=inner)


def _as_call(value: dict[str, Any], names: _ToolNames, *, is_marked: bool, is_any: bool) -> _Read | None:
    """Read a name next to its arguments or parameters, as in `{"name": "read", "path": "notes.md"}`.

    If no tool has the name, the object must have nothing else but an object of arguments, which may be
    missing after a family's marker.
    """
    for key, name in value.items():
        if not isinstance(name, str):
            continue
        is_name = _OBJECT["names"].fullmatch(key) is not None
        others = {other: inner for other, inner in value.items() if other != key}
        given = next((other for other in others if _is_for_arguments(other, value)), None)
        rest = {one: inner for one, inner in others.items() if not _OBJECT["next_to_name"].fullmatch(one)}
        if tool := names.find(name):
            given = given if is_name else None
            given = given or next((other for other, inner in value.items() if _fits(inner, tool)), None)
            if given:
                return (tool, True, (key, given), value[given])
            is_flat = rest.keys() <= parameters_of(tool).keys() if rest else not required_of(tool)
            if is_flat and (is_name or _fits(rest, tool)):
                return (tool, True, (key, *rest), rest)
        elif is_name and is_any and rest.keys() <= {given}:
            unknown = names.unknown(name) or (names.unknown(name, is_any=True) if given else None)
            arguments = _object_in(value[given]) if given else {} if is_marked else None
            if unknown and isinstance(arguments, dict):
                return (unknown, False, (key, *rest), arguments)
    if len(value) == 1 and is_any and is_marked:
        ((name, arguments),) = value.items()
        unknown = None if _OBJECT["calls"].fullmatch(name) else names.unknown(name)
        return (unknown, False, (name,), arguments) if unknown and isinstance(arguments, dict) else None
    return None


def _is_for_arguments(key: str, value: dict[str, Any]) -> bool:
    """Whether a key is the key for arguments, or its beginning where a text is cut off."""
    is_beginning = len(key) > 2 and ("arguments".startswith(key) or "parameters".startswith(key))
    return (is_beginning and value[key] == {}) or _OBJECT["arguments"].fullmatch(key) is not None


def _is_definition(value: Any) -> bool:
    """Whether an object describes a tool: it has a schema, or types of parameters, instead of arguments."""
    for key in ("parameters", "input_schema", "arguments", "inputSchema") if isinstance(value, dict) else ():
        schema = value.get(key)
        types = [*schema.values()] if isinstance(schema, dict) and "description" in value else []
        is_schema = isinstance(schema, dict) and "properties" in schema and schema.get("type") == "object"
        if is_schema or (types and all(isinstance(one, dict) and "type" in one for one in types)):
            return True
    return False


def _object_in(value: Any) -> Any:
    """Return arguments, which may be JSON in a text, as an object."""
    return read_object(value).value if isinstance(value, str) else value


def _json_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
