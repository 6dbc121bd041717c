"""Reads the arguments of a call that a reply writes into its text: objects, code, tags and lines with a key.

The readers accept what models write instead of JSON: Python, JavaScript, no quotes, other quotes, and text that
is cut off. Each takes bounded time and raises nothing; None means that there are no arguments at this place.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.openclaw.claims import load_wordings
from pytest_openclaw.util.text import valid_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_openclaw.values.tool_calls import Tool

NAME = r"[A-Za-z_][\w.:/-]{0,99}"
WORDINGS = load_wordings("written_calls", name=NAME)
MARKS: re.Pattern[str] = WORDINGS["marks"]["between"]
"""Between the name of a tool and its arguments: no words but those of a wrapper."""
_WRAPPER: re.Pattern[str] = WORDINGS["marks"]["wrapper"]
_MOST_NESTED = 30
_MOST_CHARS = 200_000
_MOST_NESTED_CHARS = 4000


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

_DECODER = json.JSONDecoder(strict=False)
_BETWEEN = re.compile(r"(?:[\s,]|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_KEY = re.compile(
    r"(?:\\?[\"'\u201c](?P<quoted>[^\"'\u201c\u201d\n\\]{1,100})\\?[\"'\u201d]|(?P<bare>[A-Za-z_$][\w$.-]{0,99}(?:[ ][\w$.-]{1,40}(?=[\w ]{0,99}:)){0,5}))"
    r"\s{0,99}(?::|=>?(?!=))\s{0,99}|--(?P<option>[A-Za-z][\w-]{0,99})(?:\s{0,9}:|\s)\s{0,9}"
)
_CUT_KEY = re.compile(r"[\"'](\w{0,99})[\"']?\s{0,99}\Z")
_STRING = re.compile(
    r"[rbfRBF]?(?:\"\"\"(.*?)\"\"\"|'''(.*?)'''|\\\"((?:(?!\\\").)*)\\\"|\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'"
    r"|`([^`]*)`)|\u201c([^\u201d]*)\u201d|<\|\"\|>(.*?)<\|\"\|>|<escape>(.*?)<escape>",
    re.DOTALL,
)
_UNESCAPED = (8, 9)
"""Groups of strings in tokens, in which a backslash is a character."""
_OPENS_STRING = re.compile(r"[rbfRBF]?\\?[\"'`]|\u201c|<\|\"\|>|<escape>")
_IN_BARE = re.compile(r"[()\[\]{}]|[,\n]\s*(?=(?P<next>[\"']?[\w$-]{1,100}(?:[\"']?\s{0,9}[:=]|(?: [\w$-]{1,40}){0,4}:)|[)\]}]|\Z)?)")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_SHORT_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


class _Reader:
    """Reads one value at a position of a text; raises ValueError if there is none."""

    def __init__(self, text: str, position: int) -> None:
        self.text, self.position, self.is_closed = text, position, True
        self.limit = min(len(text), position + _MOST_CHARS)

    def value(self, *, keyed: bool, depth: int) -> Any:
        """Read a value; `keyed` says whether a key is before it."""
        opening = self.text[self.position : self.position + 1]
        if opening and opening in "{[(":
            self.position += 1
            items, pairs = self.members({"{": "}", "[": "]", "(": ")"}[opening], depth)
            return pairs if opening == "{" else items
        if _OPENS_STRING.match(self.text, self.position, self.limit):
            return self._string()
        return self._bare(keyed=keyed)

    def members(self, closing: str, depth: int) -> tuple[list[Any], dict[str, Any]]:
        """Read the members up to a closing bracket: those without a key, and those with one."""
        items: list[Any] = []
        pairs: dict[str, Any] = {}
        if depth > _MOST_NESTED:
            raise ValueError("nested too deeply")
        while True:
            match = _BETWEEN.match(self.text, self.position, self.limit)
            self.position = match.end() if match else self.position
            if self.position >= self.limit:
                self.is_closed = False
                return items, pairs
            if self.text[self.position] == closing:
                self.position += 1
                return items, pairs
            key = None if closing == "]" else _KEY.match(self.text, self.position, self.limit)
            if key:
                self.position = key.end()
                name = (key["quoted"] or key["bare"] or key["option"]).strip()
                pairs[name] = self.value(keyed=True, depth=depth + 1)
            elif closing == "}" and pairs and self.text.startswith(("<", "```"), self.position):
                return items, pairs  # a brace too few before a mark
            elif closing == "}" and (cut := _CUT_KEY.match(self.text, self.position)):
                self.position, self.is_closed = self.limit, False
                return items, {**pairs, cut[1]: {}} if cut[1] else pairs
            elif closing == "}":
                raise ValueError("not a key")
            else:
                items.append(self.value(keyed=False, depth=depth + 1))

    def _string(self) -> str:
        match = _STRING.match(self.text, self.position, self.limit)
        if match is None:
            self.position, self.is_closed = self.limit, False
            return ""
        self.position = match.end()
        inner = next(group for group in match.groups() if group is not None)
        if match[3] is not None:
            inner = _unescaped(inner)
        return inner if match.lastindex in _UNESCAPED else _unescaped(inner)

    def _bare(self, *, keyed: bool) -> Any:
        """Read a value without quotes: a word, a number, or text up to the next member."""
        start, depth = self.position, 0
        for match in _IN_BARE.finditer(self.text, start, self.limit):
            if match[0] in ("(", "[", "{"):
                depth += 1
            elif match[0] in (")", "]", "}"):
                depth -= 1
                if depth < 0:
                    break
            elif depth == 0 and (match["next"] is not None or (not keyed and match[0][0] == ",")):
                break
        else:
            self.position, self.is_closed = self.limit, False
            return self.text[start : self.limit].strip()
        self.position = match.start()
        if not (bare := self.text[start : match.start()].strip()):
            raise ValueError("no value")
        return _json_or_text(bare)


def read_object(text: str, start: int) -> Arguments:
    """Read the object that begins at `start`; `value` is None if it is not one, up to `end`."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        return Arguments(value, end)
    except (ValueError, RecursionError):
        reader = _Reader(text, start)
    try:
        value = reader.value(keyed=False, depth=0)
    except ValueError:
        return Arguments(None, reader.position)
    return Arguments(value, reader.position, reader.is_closed)


def read_call(text: str, start: int, tool: Tool) -> Arguments:
    """Read the arguments of code after the opening parenthesis, at `start`."""
    reader = _Reader(text, start)
    try:
        items, pairs = reader.members(")", 0)
    except ValueError:
        return Arguments(None, reader.position, is_closed=False)
    value: Any = pairs
    if items:
        is_object = len(items) == 1 and isinstance(items[0], dict)
        value = None if pairs else items[0] if is_object else _only(items, tool)
    return Arguments(value, reader.position, reader.is_closed)


def _only(items: list[Any], tool: Tool) -> Any:
    """Return values without names as an object if only one parameter can be meant, else as they are."""
    names = required_of(tool) or (*parameters_of(tool),)
    return {names[0]: items[0]} if len(items) == len(names) == 1 else items


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return valid_text(_ESCAPE.sub(_character, text))


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _SHORT_ESCAPES.get(found[3], found[3])


def _json_or_text(text: str) -> Any:
    if text.strip() in _WORDS:
        return _WORDS[text.strip()]
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text


# --- Tags and lines ---------------------------------------------------------------------------------

_PARAMETER = re.compile(
    rf"<(?P<tag>\w{{0,20}}(?:param|arg|input|field|propert)\w{{0,20}})(?:\s?=|\s{{1,9}}(?:name|key)\s?=)\s?"
    rf"[\"']?(?P<named>{NAME})[\"']?[^<>]{{0,200}}>"
    rf"|<[^<>/]{{0,40}}(?:key|_arg\b|param_name|parameter_name)[^<>/]{{0,40}}>\s{{0,9}}(?P<key>{NAME})\s{{0,9}}"
    r"<[^<>]{1,60}>\s{0,99}(?:<[^<>]{0,40}type[^<>]{0,40}>[^<>]{0,99}<[^<>]{1,60}>\s{0,99})?"
    r"(?:<[^<>]{0,40}value[^<>]{0,40}>)?"
    rf"|<(?P<element>{NAME})>"
)
_ENDS_KEYED = r"(?:</[^<>]{0,40}value[^<>]{0,40}>|<\|[^<>]{0,40}end[^<>]{0,40}>)"
_ENDS = r"(?=\s{0,99}(?:<|```|\Z))"
_ENDS_UNCLOSED = re.compile(r"\n?(?=\s{0,99}(?:</(?:\w{0,20}_)?(?:function|invoke|tool|call)|<param))")
_CHILD = re.compile(r"\s*<(\w{1,100})>(.*?)</\1>\s*", re.DOTALL)


def read_tags(text: str, start: int, tool: Tool) -> Arguments | None:
    """Read arguments that have a tag each, with nothing but marks between them."""
    known = parameters_of(tool)
    values: dict[str, Any] = {}
    end = start
    while (tag := _PARAMETER.search(text, end, end + 400)) and MARKS.fullmatch(text, end, tag.start()):
        name = tag["named"] or tag["key"] or tag["element"]
        if tag["element"] and name not in known:
            if _WRAPPER.fullmatch(name) and not values:
                end = tag.end()
                continue
            if known:
                break
        ends = _ENDS_KEYED if tag["key"] else rf"</{re.escape(tag['tag'] or name)}>"
        closing = re.compile(ends + _ENDS)
        closed = closing.search(text, tag.end(), tag.end() + _MOST_CHARS)
        cut = _ENDS_UNCLOSED.search(text, tag.end(), closed.start() if closed else tag.end() + _MOST_CHARS)
        if closed is None or (cut and tag["tag"] and _PARAMETER.match(text, cut.end())):
            closed = cut
        if closed is None:
            return Arguments(None, len(text), is_closed=False)
        values[name] = text[tag.end() : closed.start()]
        end = closed.end()
    if not values:
        return None
    return Arguments({name: typed(value, known.get(name)) for name, value in values.items()}, end)


def read_pairs(text: str, starts: Iterable[int], tool: Tool) -> Arguments | None:
    """Read lines, or words, of the form `path: notes.md` or `path="notes.md"`, with all required names."""
    known = {name.casefold(): name for name in parameters_of(tool)}
    if not known:
        return None
    names = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    pair, following = _pairs_of(names)
    for start in starts:
        values: dict[str, Any] = {}
        end = start
        while key := pair.match(text, end):
            name = known[(key[1] or key[2]).casefold()]
            reader = _Reader(text, key.end())
            if name in values:
                break
            if _OPENS_STRING.match(text, key.end()) or text[key.end() : key.end() + 1] in ("[", "{"):
                try:
                    values[name] = reader.value(keyed=True, depth=0)
                except ValueError:
                    break
                end = reader.position
                continue
            ended = following.search(text, key.end())
            end = ended.start() if ended else len(text)
            values[name] = typed(text[key.end() : end].strip(" \t`,;*"), parameters_of(tool)[name])
        if values and values.keys() >= {*required_of(tool)}:
            return Arguments(values, end)
    return None


@lru_cache(maxsize=64)
def _pairs_of(names: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a name with its separator, and of what follows a value without quotes."""
    pair = rf"[^\w({{]{{0,40}}(?<!\w)(?:({names})[`\"'*]{{0,3}}\s?(?::|=>?)[*`]{{0,2}}|--({names})[= ])[ \t]{{0,9}}"
    following = rf"\n|\Z|[ ,;]\s?(?=(?:--)?(?:{names})\s?[:=])|(?=</)"
    return re.compile(pair, re.IGNORECASE), re.compile(following, re.IGNORECASE)


def read_plain(text: str, tool: Tool) -> Any:
    """Return a text as the only argument that a tool requires; None if several could be meant."""
    plain = text.strip().strip("`")
    if not plain.strip("])"):
        return {}
    required = required_of(tool)
    return {required[0]: typed(plain, parameters_of(tool).get(required[0]))} if len(required) == 1 else None


def typed(text: str, schema: Any) -> Any:
    """Return a text as a value of the type in a schema."""
    plain = text[1:].removesuffix("\n") if text.startswith("\n") else text
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "string":
        return plain
    if kind in ("array", "object") and plain.lstrip().startswith("<") and len(plain) <= _MOST_NESTED_CHARS:
        return _nested(plain)
    return _json_or_text(plain)


def _nested(text: str) -> Any:
    """Return elements as an object, or as a list if all have the same name."""
    children = [*_CHILD.finditer(text)]
    if not children or sum(len(child[0]) for child in children) != len(text):
        return _json_or_text(text)
    names = [child[1] for child in children]
    values = [_nested(child[2]) for child in children]
    is_list = len({*names}) == 1 and (len(names) > 1 or names == ["item"])
    return values if is_list else dict(zip(names, values, strict=True))
