"""Reads the arguments of a call that a reply writes into its text: objects, code, tags and lines with a key.

The readers accept what models write instead of JSON: Python, JavaScript, no quotes, other quotes, and text
that is cut off; `written_calls.toml` has the patterns. Each takes bounded time and raises nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from pytest_openclaw.openclaw.claims import load_wordings
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values.tool_calls import Tool

NAME = r"[A-Za-z_][\w.:/-]{0,99}"
WORDINGS = load_wordings("written_calls", name=NAME)
MARKS: re.Pattern[str] = WORDINGS["marks"]["between"]
"""What may come between a tool's name and its arguments: marks, and the words of a wrapper."""
_VALUE, _TAG = WORDINGS["value"], WORDINGS["tag"]
_MOST_NESTED = 30
_MOST_CHARS = 200_000
_MOST_OF_ELEMENTS = 4000
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_SHORT_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


class Arguments(NamedTuple):
    """Arguments, and where they end.

    Attributes:
        value: an object; a list if they have no names; None if they cannot be read.
        end: the position after them.
        is_closed: false if the text ends within them.
    """

    value: Any
    end: int
    is_closed: bool = True


def parameters_of(tool: Tool) -> Mapping[str, Any]:
    """Return the schemas of a tool's parameters by name."""
    properties = tool.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def required_of(tool: Tool) -> tuple[str, ...]:
    """Return the names of the required parameters."""
    return tuple(tool.parameters.get("required") or ())


# --- Objects and code -------------------------------------------------------------------------------


class _Reader:
    """Reads a value at a position of a text; raises ValueError if there is none."""

    def __init__(self, text: str, position: int) -> None:
        self.text, self.position, self.is_closed = text, position, True
        self.limit = min(len(text), position + _MOST_CHARS)

    def value(self, *, keyed: bool = False, depth: int = 0) -> Any:
        """Read a value; `keyed` says whether a key is before it."""
        if constructor := _VALUE["constructor"].match(self.text, self.position, self.limit):
            self.position = constructor.end()
        opening = self.text[self.position : self.position + 1]
        if closing := _CLOSING.get(opening):
            self.position += 1
            items, pairs = self.members(closing, depth)
            return pairs if pairs or opening == "{" else items
        if not _VALUE["opens_text"].match(self.text, self.position, self.limit):
            return self._bare(keyed=keyed)
        if quoted := _VALUE["text"].match(self.text, self.position, self.limit):
            self.position = quoted.end()
            return _unquoted(quoted)
        self._cut_off()
        return ""

    def members(self, closing: str, depth: int = 0) -> tuple[list[Any], dict[str, Any]]:
        """Read the members up to a closing bracket: those without a key, and those with one."""
        items: list[Any] = []
        pairs: dict[str, Any] = {}
        if depth > _MOST_NESTED:
            raise ValueError("nested too deeply")
        while True:
            self.position = _VALUE["between"].match(self.text, self.position, self.limit).end()
            if self.position >= self.limit:
                self._cut_off()
                return items, pairs
            if self.text[self.position] == closing:
                self.position += 1
                return items, pairs
            key = None if closing == "]" else _VALUE["key"].match(self.text, self.position, self.limit)
            if key:
                self.position = key.end()
                pairs[key[key.lastgroup].strip()] = self.value(keyed=True, depth=depth + 1)
            elif closing != "}":
                items.append(self.value(depth=depth + 1))
            elif pairs and self.text.startswith(("<", "```"), self.position):
                return items, pairs  # a brace too few before a mark
            elif cut := _VALUE["cut_key"].match(self.text, self.position):
                self._cut_off()
                return items, {**pairs, cut[1]: {}}
            else:
                raise ValueError("not a key")

    def _bare(self, *, keyed: bool) -> Any:
        """Read a value without quotes: a word, a number, or text up to the next member."""
        start, depth = self.position, 0
        self._cut_off()
        for match in _VALUE["bare"].finditer(self.text, start, self.limit):
            depth += (match[0] in _CLOSING) - (match[0] in _CLOSING.values())
            is_next = match["next"] is not None or (match[0][0] == "," and not keyed)
            if depth < 0 or (depth == 0 and match[0][0] in ",\n" and is_next):
                self.position, self.is_closed = match.start(), True
                break
        bare = self.text[start : self.position].strip()
        if not bare and self.is_closed:
            raise ValueError("no value")
        return _json_or_text(bare)

    def _cut_off(self) -> None:
        self.position, self.is_closed = self.limit, False


def read_object(text: str, start: int = 0) -> Arguments:
    """Read the object that begins at `start`; the value is None if it is not one."""
    reader = _Reader(text, start)
    if _VALUE["json"].match(text, start):  # an error of the decoder counts all lines before it
        with suppress(ValueError, RecursionError):
            return Arguments(*_DECODER.raw_decode(text, start))
    with suppress(ValueError):
        return Arguments(reader.value(), reader.position, reader.is_closed)
    return Arguments(None, reader.position)


_DECODER = json.JSONDecoder(strict=False)


def read_call(text: str, start: int, tool: Tool) -> Arguments:
    """Read the arguments of code after the opening parenthesis; one without a name may be the only one."""
    reader = _Reader(text, start)
    try:
        items, pairs = reader.members(")")
    except ValueError:
        return Arguments(None, reader.position, is_closed=False)
    value: Any = pairs
    if items:
        names = required_of(tool) or (*parameters_of(tool),)
        only = items[0] if isinstance(items[0], dict) else {names[0]: items[0]} if len(names) == 1 else items
        value = only if len(items) == 1 and not pairs else None
    return Arguments(value, reader.position, reader.is_closed)


def _unquoted(quoted: re.Match[str]) -> str:
    kind = quoted.lastgroup or ""
    text = _unescaped(quoted[kind]) if kind == "doubled" else quoted[kind]
    return text if kind[0] == "r" else _unescaped(text)


def _unescaped(text: str) -> str:
    return valid_text(_VALUE["escape"].sub(_character, text)) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _SHORT_ESCAPES.get(found[3], found[3])


def _json_or_text(text: str) -> Any:
    if text.strip() in _WORDS:
        return _WORDS[text.strip()]
    with suppress(ValueError, RecursionError):
        return json.loads(text, strict=False)
    return text


# --- Tags and lines ---------------------------------------------------------------------------------


def read_tags(text: str, start: int, tool: Tool) -> Arguments | None:
    """Read arguments that have a tag each, with nothing but marks between them; None if there are none."""
    known = parameters_of(tool)
    values: dict[str, str] = {}
    end = start
    while (tag := _TAG["parameter"].search(text, end, end + 400)) and MARKS.fullmatch(text, end, tag.start()):
        begins, name = tag.end(), tag["named"] or tag["key"] or tag["element"]
        if tag["element"] and name not in known:
            if values or not WORDINGS["marks"]["wrapper"].fullmatch(name):
                if known or values:
                    break
            else:
                end = begins
                continue
        ends = _TAG["ends_value"].pattern if tag["key"] else rf"</{re.escape(tag['tag'] or name)}>"
        closed = re.compile(rf"{ends}(?=\s{{0,99}}(?:<|```|\Z))").search(text, begins, begins + _MOST_CHARS)
        cut = _TAG["unclosed"].search(text, begins, closed.start() if closed else begins + _MOST_CHARS)
        if closed is None or (cut and tag["tag"] and _TAG["parameter"].match(text, cut.end())):
            closed = cut
        if closed is None:
            return Arguments({**values, name: text[begins:]}, len(text), is_closed=False)
        values[name], end = text[begins : closed.start()], closed.end()
    typed = {name: _typed(value, known.get(name)) for name, value in values.items()}
    return Arguments(typed, end) if values else None


def read_pairs(text: str, starts: Iterable[int], tool: Tool) -> Arguments | None:
    """Read lines, or words, of the form `path: notes.md` or `path="notes.md"`, with all required names."""
    known = {name.casefold(): name for name in parameters_of(tool)}
    pair, following = _patterns_of("|".join(map(re.escape, sorted(known, key=len, reverse=True))))
    for start in starts if known else ():
        values: dict[str, Any] = {}
        end = start
        while (key := pair.match(text, end)) and (name := known[(key[1] or key[2]).casefold()]) not in values:
            begins = key.end()
            if _VALUE["opens_text"].match(text, begins) or text[begins : begins + 1] in ("[", "{"):
                read = read_object(text, begins)
                values[name], end = read.value, read.end
            else:
                ended = following.search(text, begins)
                end = ended.start() if ended else len(text)
                plain = text[begins:end].strip(" \t`,;*")
                plain = plain if re.search(r"[\[({<]", plain) else plain.removesuffix("/>").rstrip("])}>% ")
                values[name] = _typed(plain, parameters_of(tool)[name])
        if values and values.keys() >= {*required_of(tool)}:
            return Arguments(values, end)
    return None


@lru_cache(maxsize=64)
def _patterns_of(names: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a name with its separator, and of what follows a value without quotes."""
    colon = r"[`\"'*]{0,3}\s?(?::|=>?)[*`]{0,2}"
    pair = rf"[^\w({{]{{0,40}}(?<!\w)(?:({names}){colon}|--({names})[= ])[ \t]{{0,9}}"
    following = rf"\n|\Z|[ ,;]\s?(?=(?:--)?(?:{names})\s?[:=])|(?=</)"
    return re.compile(pair, re.IGNORECASE), re.compile(following, re.IGNORECASE)


def read_plain(text: str, tool: Tool) -> Any:
    """Return a text as the only argument that a tool requires; None if several could be meant."""
    plain, required = text.strip().strip("`"), required_of(tool)
    if not plain.strip("])"):
        return {}
    return {required[0]: _typed(plain, parameters_of(tool).get(required[0]))} if len(required) == 1 else None


def _typed(text: str, schema: Any) -> Any:
    """Return a text as a value of the type in a schema."""
    plain = text[1:].removesuffix("\n") if text.startswith("\n") else text
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind in ("array", "object") and plain.lstrip().startswith("<") and len(plain) <= _MOST_OF_ELEMENTS:
        return _of_elements(plain)
    return plain if kind == "string" else _json_or_text(plain)


def _of_elements(text: str) -> Any:
    """Return elements as an object, or as a list if all have the same name."""
    children = [*_TAG["child"].finditer(text)]
    if sum(len(child[0]) for child in children) != len(text):
        return _json_or_text(text)
    names, values = [child[1] for child in children], [_of_elements(child[2]) for child in children]
    is_list = len({*names}) == 1 and (len(names) > 1 or names == ["item"])
    return values if is_list else dict(zip(names, values, strict=True))
