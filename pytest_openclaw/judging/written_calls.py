"""Finds calls that a reply writes into its text or its thinking, where no server executes them.

The server's chat template or parser has not turned such a call into a native call. An explanation that shows
the format of a call is not a call, nor is JSON that the prompt asked for. `as_call` reads the arguments of a
written call, to judge the call as if it had been made.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_openclaw.judging.written_forms import (
    NAME,
    TEMPLATES,
    WORK_FACTOR,
    ToolNames,
    WrittenCall,
    end_of_object,
    marked_calls,
    object_calls,
    parameters_of,
    required_of,
)
from pytest_openclaw.openclaw.claims import load_wordings
from pytest_openclaw.openclaw.thinking import without_blocks
from pytest_openclaw.util.text import atomic
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.values.tool_calls import Tool


MOST_CALLS = 256


_WORDINGS = load_wordings("examples")


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


def asked_by(texts: Sequence[str], *, may_show: bool) -> Asked:
    """Return the requests of a prompt whose answers may look like calls.

    Args:
        texts: the messages of the user and the system prompt.
        may_show: whether the prompt forbids calls, so that a call shown in the answer is not an attempt.
    """
    whole = "\n".join(texts)
    return Asked(
        shows=bool(may_show and _WORDINGS["shows"].search(whole)),
        codes=bool(_WORDINGS["codes"].search(whole)),
        words=frozenset(re.findall(r"\w+", whole)) if _WORDINGS["json"].search(whole) else frozenset(),
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
    names, asked = ToolNames(tools, expected), asked or Asked()
    answer = without_blocks(text)
    if not answer.strip():
        return _in_thoughts(text if text.strip() else thinking, names, asked, is_all=True)
    made = _own_acts(answer, _found(answer, names), asked)
    return made or _in_thoughts(thinking, names, asked, is_all=False)


def _found(text: str, names: ToolNames) -> list[WrittenCall]:
    """Return the outermost calls; a call of a known tool has precedence over overlapping unknown ones."""
    found = [*marked_calls(text, names), *object_calls(text, names), *_code_calls(text, names)]
    known = _outermost(call for call in found if call.is_known)
    starts = [call.start for call in known]
    others = []
    for call in found:
        before = bisect_left(starts, call.end) - 1  # the last known call that begins before this one ends
        if not call.is_known and (before < 0 or known[before].end <= call.start):
            others.append(call)
    return _outermost([*known, *others])[:MOST_CALLS]


def _outermost(found: Iterable[WrittenCall]) -> list[WrittenCall]:
    """Drop calls within other calls: the JSON of a tagged call is the same call."""
    kept: list[WrittenCall] = []
    for call in sorted(found, key=lambda call: (call.start, -call.end)):
        if not kept or call.start >= kept[-1].end:
            kept.append(call)
    return kept


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
        if is_doubtful and not call.is_known and call.form not in TEMPLATES:
            continue
        if is_only_calls or not _is_shown(text, call):
            acts.append(call)
    return tuple(acts)


def _in_thoughts(thinking: str, names: ToolNames, asked: Asked, *, is_all: bool) -> tuple[WrittenCall, ...]:
    """Return the calls that end the thinking, or whose form does not occur in prose.

    Unless the thinking is all that there is (`is_all`), calls must fulfill both conditions.
    """
    found = [
        call
        for call in _found(thinking, names)
        if call.is_known or not asked.words.issuperset(call.keys or ("",))
    ]
    if not found:
        return ()
    last = found[-1]
    ends = not _letters(thinking[last.end :])
    marked = tuple(call for call in found if call.form in TEMPLATES)
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
    if _WORDINGS["example"].search(_paragraph_before(text, call)):
        return True
    if call.form in TEMPLATES:  # regardless of its arguments and the text after it
        return False
    after = _TAG.sub(" ", _FENCE_MARK.sub("", text[call.end : call.end + _NEAR]))
    return bool(_PLACEHOLDER.search(call.arguments) or _WORDINGS["explained"].search(after))


def _is_announced(text: str, call: WrittenCall) -> bool:
    """Whether the sentence before the call announces that the reply makes the call."""
    return bool(_WORDINGS["act"].search(_SENTENCE.split(_paragraph_before(text, call))[-1]))


def _paragraph_before(text: str, call: WrittenCall) -> str:
    before = _FENCE_MARK.sub("", text[max(0, call.start - _NEAR) : call.start]).rstrip()
    return _TAG.sub(" ", before.rpartition("\n\n")[2] if before.endswith(":") else before[-250:]).strip()


def _is_inline(text: str, call: WrittenCall) -> bool:
    """Whether the call is in backticks within a line of prose, or in a quotation."""
    before = text[max(0, call.start - _NEAR) : call.start].rpartition("\n")[2]
    is_quoted = before.count("`") % 2 == 1 and "```" not in before and any(map(str.isalpha, before))
    return is_quoted or before.lstrip().startswith("> ")


# --- Code: `read(path="notes.md")`, `[read(path="notes.md")]`, `read({…})` -----------------------------

_CALL = re.compile(r"(?<![\w.\-/$\\])((?:[A-Za-z_]\w{0,40}+\.){0,3}[A-Za-z_][\w-]{0,63}+)\(")
_TOKEN = re.compile(
    r"\"(?:[^\"\\]|\\.)*(?:\"|\Z)|'(?:[^'\\\n]|\\.)*(?:'|$)|[()]",
    re.DOTALL | re.MULTILINE,
)
_BEFORE = re.compile(
    r"^[ \t]*+"
    + atomic(r"(?:(?:[-*]|\d{1,3}[.)]|>>>|<\w{1,40}>|<\|[\w]{1,40}\|>|\[TOOL_CALLS\])[ \t]*+)*")
    + atomic(
        r"(?:(?:print|await|return|result|call|Calling|Call|Action|Tool[ _]?[Cc]all)[ \t]*+[:(]?[ \t]*+"
        r"|[A-Za-z_]\w{0,40}[ \t]*+=[ \t]*+)*"
    )
    + r"[`\[({0,4}[ \t]*+(?:await[ \t]+)?$"
)
_AFTER = re.compile(r"^[\s)\]`;,.]*+(?:$|#|//|</?\w|<\||\w[\w.]{0,60}\()")
_NAMED_ARGUMENT = re.compile(r"\s*(?:([A-Za-z_]\w{0,40})\s*=(?!=)|\{\s*[\"']?([A-Za-z_]\w{0,40})[\"']?\s*:)")
_POSITIONAL = re.compile(r"\s*(?:[frb]?[\"'])")
_SHELL = frozenset({"bash", "sh", "shell", "zsh", "console", "powershell", "cmd", "terminal", "diff", "sql"})
_TOOL_CODE = frozenset({"tool_code", "tool_call", "tool_calls", "tool", "tools", "tool_use", "function_call"})
_PROGRAM = re.compile(
    r"^[ \t]*(?:def|import|from|class|function|const|let|var|async|with|for|while|if)\b", re.MULTILINE
)
"""Code before a call in a fence, which makes the call a part of a program."""
_BUILTINS = frozenset(dir(builtins))
_MOST_ARGUMENTS = 200_000


def _code_calls(text: str, names: ToolNames) -> Iterator[WrittenCall]:
    """Yield the calls that are on a line of their own, or in a list of calls."""
    fences = [*_FENCE_MARK.finditer(text)]
    starts = [fence.start() for fence in fences]
    programs = [word.start() for word in _PROGRAM.finditer(text)] if fences else []
    budget = WORK_FACTOR * len(text) + 10_000
    after_last = 0
    for match in _CALL.finditer(text):
        known = names.find(match[1])
        tool = known or names.unknown(match[1])
        if tool is None or budget <= 0 or match.start() < after_last:
            continue
        if not known and ("." in tool.name or tool.name in _BUILTINS):
            continue
        end = _end_of_call(text, match.end() - 1)
        budget -= end - match.start()
        arguments = text[match.end() : end].removesuffix(")")
        n_before = bisect_left(starts, match.start())
        fence = fences[n_before - 1] if n_before % 2 else None
        tag = fence[0].strip(" \t`~").lower() if fence else ""
        is_of_program = tag not in _TOOL_CODE and fence and _any_between(programs, fence.end(), match.start())
        is_alone = not is_of_program and _is_alone(text, match.start(), end, after_last)
        if is_alone and _is_call(tool, arguments, tag, known=known is not None):
            after_last = end
            yield WrittenCall(
                tool=tool,
                is_known=known is not None,
                arguments=arguments,
                form="code",
                start=match.start(),
                end=end,
            )


def _any_between(places: Sequence[int], start: int, end: int) -> bool:
    return bisect_left(places, start) < bisect_left(places, end)


def _end_of_call(text: str, opening: int) -> int:
    depth = 0
    limit = min(len(text), opening + _MOST_ARGUMENTS)
    for match in _TOKEN.finditer(text, opening, limit):
        if match[0] in ("(", ")"):
            depth += 1 if match[0] == "(" else -1
            if depth == 0:
                return match.end()
    return limit


def _is_alone(text: str, start: int, end: int, after_last: int) -> bool:
    line = text.rfind("\n", max(0, start - 300), start) + 1 or max(0, start - 300)
    before = text[max(line, min(after_last, start)) : start]
    if after_last > line:
        before = before.lstrip(" \t,;)]")
    newline = text.find("\n", end, end + 300)
    after = text[end : newline if newline >= 0 else end + 300]
    return bool(_BEFORE.match(before) and _AFTER.match(after))


def _is_call(tool: Tool, arguments: str, tag: str, *, known: bool) -> bool:
    """Whether code with these arguments, in a fence with this tag, is a call of a tool."""
    if tag in _SHELL:
        return False
    if not arguments.strip():
        return not required_of(tool) and (known or tag in _TOOL_CODE)
    if named := _NAMED_ARGUMENT.match(arguments):
        known_names = parameters_of(tool)
        return not known_names or tag in _TOOL_CODE or (named[1] or named[2]) in known_names
    is_program = tag in ("python", "py", "javascript", "js", "ts")
    return known and not is_program and _POSITIONAL.match(arguments) is not None


_LEAD = re.compile(r"(?:<[|｜][^<>|｜]{1,40}[|｜]>|[^<{(])*")
_PARAMETER = re.compile(
    rf"<(?:[|｜]DSML[|｜] ?|[\w.]{{1,40}}:)?parameter(?:\s?=|\s+name=)\s?[\"']?({NAME})[\"']?[^<>]{{0,200}}>"
)
_ARGUMENT_KEY = re.compile(
    rf"<(?:\w{{1,40}}_)?arg_key>\s{{0,9}}({NAME})\s{{0,9}}</(?:\w{{1,40}}_)?arg_key>\s{{0,99}}<(?:\w{{1,40}}_)?arg_value>"
)
_TAGGED = (
    (
        _PARAMETER,
        re.compile(
            r"</(?:[|｜]DSML[|｜] ?|[\w.]{1,40}:)?parameter>"
            r"|(?=\n<parameter=)|(?=\s</function>)|(?=</invoke>)"
        ),
    ),
    (_ARGUMENT_KEY, re.compile(r"</(?:\w{1,40}_)?arg_value>|(?=</tool_call>)")),
    (
        re.compile(rf"<\|open\|>argument key=\"({NAME})\"[^<>]{{0,99}}<\|sep\|>"),
        re.compile(r"<\|close\|>argument<\|sep\|>"),
    ),
)
_CHILD = re.compile(r"<([A-Za-z_][\w.-]{0,99})>")
_CONTAINERS = frozenset({"parameters", "arguments", "args", "input", "params", "action_input", "tool_input"})
_QUOTED = re.compile(r"(<escape>|<\|\"\|>)(.*?)\1", re.DOTALL)
_BARE_KEY = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|([{,]\s*)([A-Za-z_][\w-]*)(?=\s*:)", re.DOTALL
)
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


def as_call(written: WrittenCall) -> ToolCall:
    """Return a written call as the native one that a server's parser would make of it.

    Arguments that cannot be read stay as they are written.
    """
    try:
        value = _value_of(written.arguments, written.tool, written.form)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        value = None
    is_read = isinstance(value, dict)
    arguments = json.dumps(value, ensure_ascii=False) if is_read else written.arguments
    return ToolCall(name=written.name, arguments=arguments)


def _value_of(text: str, tool: Tool, form: str) -> Any:
    if form == "code":
        return _called_with(text)
    if form == "kimi" and "{" not in text[:1] and _TAGGED[-1][0].search(text):
        return _tagged(text, tool)
    if form == "json" and text.startswith("["):
        return None  # a list of arguments, which OpenClaw refuses
    lead = _LEAD.match(text)
    begins = lead.end() if lead else 0
    first = text[begins : begins + 1]
    if first == "{":
        return _object(text[begins:])
    if first == "(":
        return _called_with(text[begins + 1 :].rstrip().removesuffix("]").rstrip().removesuffix(")"))
    return _tagged(text, tool) if first == "<" else _plain_text(text, tool)


def _object(text: str) -> Any:
    """Return the object that begins a text, also if it is nearly JSON; None if it has no end."""
    end = end_of_object(text, 0)
    if end is None:
        return None
    quoted = _QUOTED.sub(lambda found: json.dumps(found[2], ensure_ascii=False), text[:end])
    keyed = _BARE_KEY.sub(lambda found: f'{found[1]}"{found[2]}"' if found[2] else found[0], quoted)
    for candidate in (text[:end], re.sub(r",(?=\s*[}\]])", "", keyed)):
        with suppress(ValueError, RecursionError):
            return json.loads(candidate, strict=False)
    return ast.literal_eval(keyed)


def _called_with(text: str) -> Any:
    """Return the arguments of code: by keyword, or one object; None by position, which no parser reads."""
    if text.lstrip().startswith("{"):
        return _object(text.lstrip())
    call = ast.parse(f"f({text.strip()})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args:
        return None
    return {one.arg: _literal(one.value) for one in call.keywords if one.arg}


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    return ast.literal_eval(node)


def _tagged(text: str, tool: Tool) -> Any:
    """Return arguments that have a tag each; None if one is unclosed."""
    for opening, closing in _TAGGED:
        if opening.search(text):
            return _typed(_between(text, opening, closing), tool)
    begins = text.find("{")
    if "arg_key>" in text:  # without a value
        return _object(text[begins:]) if begins >= 0 else None
    if found := _between(text, _CHILD):
        return _typed(found, tool)
    return _object(text[begins:]) if begins >= 0 else {}


def _between(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str] | None = None
) -> dict[str, str] | None:
    """Return texts by name, from a tag to its end, by default `</name>`; None if one has no end."""
    found: dict[str, str] = {}
    position = 0
    while match := opening.search(text, position):
        if opening is _CHILD and match[1] in _CONTAINERS:
            position = match.end()
            continue
        end = closing or re.compile(f"</{re.escape(match[1])}>")
        ended = end.search(text, match.end())
        if ended is None:
            return None
        found[match[1]] = text[match.end() : ended.start()]
        position = ended.end()
    return found


def _typed(found: dict[str, str] | None, tool: Tool) -> dict[str, Any] | None:
    """Return texts as values of the types in a tool's schema."""
    if found is None:
        return None
    schemas = tool.parameters.get("properties", {})
    values: dict[str, Any] = {}
    for name, text in found.items():
        schema = schemas.get(name)
        is_text = isinstance(schema, dict) and schema.get("type") == "string"
        plain = text[1:].removesuffix("\n") if text.startswith("\n") else text
        values[name] = plain if is_text else _json_or_text(plain)
    return values


def _json_or_text(text: str) -> Any:
    if text.strip() in _WORDS:
        return _WORDS[text.strip()]
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text


def _plain_text(text: str, tool: Tool) -> Any:
    """Return a text as the only argument that a tool requires: `[tool: exec] df -h`."""
    plain = text.strip()
    if not plain.strip("]`)"):
        return {}
    required = tool.parameters.get("required", ())
    return {required[0]: plain} if len(required) == 1 else None
