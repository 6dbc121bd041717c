"""Dispatches a tool call as OpenClaw 2026.9.6 does: the tool that it reaches, or the error for the model.

Observed on the released program, over the chat completions API:

- A name need not be exact: case and blanks do not matter, three old names still work, the part before a dot
  or a slash is ignored (`functions.read`, `tools/exec`), and so are a counter at the end (`read_1`,
  `functions.read:0`) and the rest of a broken tag (`read"`, `read<path`).
- Arguments are converted before the schema is checked: `"5"` becomes 5 if a number is required, 5 a text if
  a text is, null the empty value of its type, and a JSON text its array or object. A value that cannot be
  converted is unchanged, and fails the check.
- The messages for arguments that violate a schema have the release's words and order.
- If arguments are not a JSON object, no call of the turn is executed; it may end the run (`recovery.py`).
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import valid_text, valid_value
from pytest_openclaw.values.tool_calls import Dispatched

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from jsonschema.exceptions import ValidationError

    from pytest_openclaw.util.json_schema import BoundedSchema
    from pytest_openclaw.values.tool_calls import Tool, ToolCall


ALIASES = {"bash": "exec", "apply-patch": "apply_patch", "cron": "automations"}
MAX_NAME_CHARS = 128
"""Longer names match nothing, so that not all their parts have to be tried."""

_NAMESPACE = re.compile(r"^(?:functions?|tools?)[./]", re.IGNORECASE)
_WRAPPER = re.compile(r"^(?:functions?|tools?)[._-]?", re.IGNORECASE)
_COUNTER = re.compile(r"(?:[:._/-]\d+|\d+)$")
_REPEATED = re.compile(r"[A-Za-z0-9_:.-]{1,64}")
_TAG = re.compile(r"(?<=.)[\"'<]", re.DOTALL)


def find_name(name: str, offered: Collection[str]) -> str | None:
    """Return the offered name that `name` means; None if there is none, or more than one."""
    bare = name.strip()
    if not bare or len(bare) > MAX_NAME_CHARS:
        return None
    if exact := _exact(bare, offered):
        return exact
    reached = {found for guess in _without_counters(bare) if (found := _part(guess, offered))}
    if len(reached) == 1:
        return reached.pop()
    if _WRAPPER.match(bare) and _COUNTER.search(bare):
        return None
    return _part(bare, offered)


def is_repeated(name: str) -> bool:
    """Whether an unknown name is sent to the model again, with the result of its call.

    OpenClaw 2026.9.6 leaves a call with any other name out of the next request, as if it had not been made.
    """
    return _REPEATED.fullmatch(name.strip()) is not None


def same_tool(name: str, other: str) -> bool:
    """Whether two names are one tool's: case, blanks, old names and the usual namespaces left out."""
    return _plain(_NAMESPACE.sub("", name.strip(), count=1)) == _plain(
        _NAMESPACE.sub("", other.strip(), count=1)
    )


def edit_distance(name: str, other: str) -> int:
    """Return how many characters must be added, removed or replaced between two names (Levenshtein)."""
    row: list[int] = [*range(len(other) + 1)]
    for n, char in enumerate(name, 1):
        before, row = row, [n]
        for m, wanted in enumerate(other, 1):
            row.append(min(before[m] + 1, row[-1] + 1, before[m - 1] + (char != wanted)))
    return row[-1]


def _plain(name: str) -> str:
    lower = name.strip().lower()
    return ALIASES.get(lower, lower)


def _exact(name: str, offered: Collection[str]) -> str | None:
    for spelled in (name, _plain(name)):
        if spelled in offered:
            return spelled
    return _ignoring_case(name, offered) or _ignoring_case(_plain(name), offered)


def _ignoring_case(name: str, offered: Collection[str]) -> str | None:
    found = {known for known in offered if known.strip().lower() == name.strip().lower()}
    return found.pop() if len(found) == 1 else None


def _part(name: str, offered: Collection[str]) -> str | None:
    """Look for the name, or for the part behind one of its dots and slashes."""
    guesses = [spelled for guess in _parts(name.strip()) for spelled in (guess, _plain(guess))]
    for guess in guesses:
        if guess in offered:
            return guess
    return next((found for guess in guesses if (found := _ignoring_case(guess, offered))), None)


def _parts(name: str) -> Iterator[str]:
    whole = [name]
    if tag := _TAG.search(name):
        whole.append(name[: tag.start()].strip())
    yield from whole
    for text in whole:
        dotted = text.replace("/", ".")
        yield dotted
        steps = [step.strip() for step in dotted.split(".") if step.strip()]
        yield from (".".join(steps[n:]) for n in range(1, len(steps)))


def _without_counters(name: str) -> Iterator[str]:
    for text in dict.fromkeys((name, name.partition(":")[0].strip())):
        dotted = text.replace("/", ".")
        for form in dict.fromkeys((text, dotted, _WRAPPER.sub("", dotted, count=1))):
            yield form
            yield re.sub(r"[:._/-]\d+$", "", form)
            yield re.sub(r"\d+$", "", form)


MAX_ARGUMENT_BYTES = 256_000
MAX_DEPTH = 64
"""The depth that validators, rows, reports and recursive schemas can handle."""

MAX_VALUES = 5000
"""The most values in arguments: the schema's check takes some microseconds for each."""

RENAMED = {("exec", "timeout"): "timeoutSeconds"}
SELECTORS = ("id", "toolId", "name")
"""The keys with a tool's id in a call through the bridge."""
_DISPATCHERS = ("tool_call", "tool_describe")
_MESSAGE_ALIASES = ("SendMessage", "content", "text")
_LONGEST_INTEGER = 308
_BROKEN = object()


class _Undefined:
    """Marks a key that JavaScript has without a value: it exists, and has no type."""

    def __deepcopy__(self, memo: object) -> _Undefined:
        return self


UNDEFINED = _Undefined()


def read_json(text: str) -> Any:
    """Parse a JSON text; return a special object, equal to nothing, if it is malformed.

    Numbers beyond a double stay text and are not numbers, as in the release.
    """
    try:
        value = json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _BROKEN
    return value if excess(value) else valid_value(value)


def excess(value: Any) -> str | None:
    """Return why rows and schemas cannot handle a value; None if they can."""
    level = [value]
    n_values = 0
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        n_values += len(level)
        if n_values > MAX_VALUES:
            return f"more than {MAX_VALUES} values"
        if not level:
            return None
    is_deeper = any(isinstance(inner, dict | list) for inner in level)
    return f"nested more than {MAX_DEPTH} levels deep" if is_deeper else None


def prepare(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Convert arguments in an older form to the current one, for tools that still accept them."""
    known = tool.parameters.get("properties", {})
    if tool.name == "edit" and "edits" in known:
        return _prepare_edit(arguments)
    if tool.name == "sessions_send" and "message" in known:
        return _prepare_message(arguments)
    if tool.name in _DISPATCHERS and "id" in known:
        return _prepare_selector(arguments)
    return arguments


def as_sent(value: Any) -> Any:
    """Return arguments as JavaScript shows them: keys without a value are left out, 2.0 is 2."""
    if isinstance(value, dict):
        return {name: as_sent(inner) for name, inner in value.items() if inner is not UNDEFINED}
    if isinstance(value, list):
        return [as_sent(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def unusable(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Return the tool's own error for arguments that the schema allows; None if it would run."""
    known = tool.parameters.get("properties", {})
    for name in arguments:
        renamed = RENAMED.get((tool.name, name))
        if renamed in known and name not in known:
            return f'{tool.name} parameter "{name}" is unsupported; use "{renamed}" instead'
    if tool.name == "exec" and arguments.get("command") == "":
        return "Provide a command to start."
    if tool.name == "edit" and arguments.get("edits") == []:
        return (
            "Missing required parameter: edits (received: path, edits=<array>)."
            " Supply correct parameters before retrying."
        )
    return None


def _prepare_edit(arguments: dict[str, Any]) -> dict[str, Any]:
    edits = arguments.get("edits", UNDEFINED)
    if isinstance(edits, str) and isinstance(held := read_json(edits), list):
        edits = held
    if isinstance(edits, list):
        edits = [_edit(edit) if isinstance(edit, dict) else edit for edit in edits]
    old, new = arguments.get("oldText"), arguments.get("newText")
    if isinstance(old, str) and isinstance(new, str):
        batch = edits if isinstance(edits, list) else []
        single = {"oldText": old, "newText": new}
        edits = batch if single in batch else [*batch, single]
    return {"path": arguments.get("path", UNDEFINED), "edits": edits}


def _edit(edit: Mapping[str, Any]) -> dict[str, Any]:
    return {name: edit.get(name, UNDEFINED) for name in ("oldText", "newText")}


def _prepare_message(arguments: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in arguments.items() if name not in _MESSAGE_ALIASES}
    texts = [arguments.get(name) for name in ("message", *_MESSAGE_ALIASES)]
    said = next((text for text in texts if isinstance(text, str) and text.strip()), None)
    return kept if said is None else {**kept, "message": said}


def _prepare_selector(arguments: dict[str, Any]) -> dict[str, Any]:
    """Move the id of a tool out of the inner arguments, if the outer ones have none."""
    nested = next((arguments[key] for key in ("args", "input") if arguments.get(key) is not None), None)
    if not isinstance(nested, dict) or any(key in arguments for key in SELECTORS):
        return arguments
    named = next((nested[key] for key in SELECTORS if nested.get(key) is not None), None)
    if not isinstance(named, str) or not named.strip():
        return arguments
    outer = {name: value for name, value in arguments.items() if name not in ("args", "input")}
    return {**outer, **nested, "id": named}


def _number(written: str) -> int | float | str:
    if written.lstrip("-").isdigit():
        return int(written) if len(written) <= _LONGEST_INTEGER else written
    value = float(written)
    return value if math.isfinite(value) else written


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


if TYPE_CHECKING:
    Fits = Callable[[Mapping[str, Any], Any], bool]

MAX_JSON_CHARS = 65_536
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LARGEST_SAFE = 2**53 - 1


def coerce(value: Any, schema: Mapping[str, Any], fits: Fits) -> Any:
    """Return the value with the type of the schema, if it can be converted."""
    for part in _list(schema, "allOf"):
        value = coerce(value, part, fits)
    for keyword in ("anyOf", "oneOf"):
        if parts := _list(schema, keyword):
            value = _as_one_of(value, parts, fits)
    kinds = _kinds(schema)
    if not (len(kinds) > 1 and any(_is(value, kind) for kind in kinds)):
        value = _first_conversion(value, kinds)
    if "object" in kinds and isinstance(value, dict):
        return _members(value, schema, fits)
    if "array" in kinds and isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [coerce(item, schema["items"], fits) for item in value]
    return value


def _list(schema: Mapping[str, Any], keyword: str) -> Sequence[Mapping[str, Any]]:
    parts = schema.get(keyword)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else ()


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _members(value: dict[str, Any], schema: Mapping[str, Any], fits: Fits) -> dict[str, Any]:
    known = schema.get("properties", {})
    others = schema.get("additionalProperties")
    wanted = {name: known.get(name, others) for name in value}
    return {
        name: coerce(inner, wanted[name], fits) if isinstance(wanted[name], dict) else inner
        for name, inner in value.items()
    }


def _as_one_of(value: Any, parts: Sequence[Mapping[str, Any]], fits: Fits) -> Any:
    if value is None and any("null" in _kinds(part) and fits(part, None) for part in parts):
        return None
    for part in parts:
        if value is not None and _kinds(part) == ["null"]:
            continue
        converted = coerce(value, part, fits)
        if fits(part, converted):
            return converted
    return value


def _first_conversion(value: Any, kinds: Sequence[str]) -> Any:
    for kind in kinds:
        if kind == "null" and value is not None and len(kinds) > 1:
            continue
        converted = _CONVERSIONS[kind](value) if kind in _CONVERSIONS else value
        if converted is not value:
            return converted
    return value


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (kind == "number" or float(value).is_integer())
    types = {"boolean": bool, "string": str, "null": type(None), "array": list, "object": dict}
    return kind in types and isinstance(value, types[kind])


def _to_number(value: Any) -> Any:
    if value is None:
        return 0
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        number = float(value)
        if math.isfinite(number):
            return int(number) if number.is_integer() else number
    return value


def _to_integer(value: Any) -> Any:
    number = _to_number(value)
    if isinstance(value, str) and not (isinstance(number, int) and abs(number) <= _LARGEST_SAFE):
        return value
    return number


def _to_boolean(value: Any) -> Any:
    if value is None or value == "false":
        return False
    if value == "true":
        return True
    if isinstance(value, int | float) and not isinstance(value, bool) and value in (0, 1):
        return bool(value)
    return value


def _to_text(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value) if isinstance(value, bool | int | float) else value


def _to_null(value: Any) -> Any:
    return None if value == "" or value is False or _is_zero(value) else value


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and value == 0


def _read_as(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, str) or not 0 < len(value.strip()) <= len(value) <= MAX_JSON_CHARS:
            return value
        held = read_json(value)
        return held if isinstance(held, kind) else value

    return read


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "number": _to_number,
    "integer": _to_integer,
    "boolean": _to_boolean,
    "string": _to_text,
    "array": _read_as(list),
    "object": _read_as(dict),
    "null": _to_null,
}


MAX_COMPLAINTS = 8
"""The most messages that the release sends."""

_ORDER = """
    type required additionalProperties dependentRequired dependentSchemas patternProperties properties
    propertyNames minProperties maxProperties contains items maxContains maxItems minContains minItems
    prefixItems uniqueItems maxLength minLength format pattern exclusiveMaximum exclusiveMinimum maximum
    minimum multipleOf $ref $dynamicRef const enum if not allOf anyOf oneOf
"""
_RANKS = {keyword: rank for rank, keyword in enumerate(_ORDER.split())}
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs")

_WORDS = {
    "enum": "must be equal to one of the allowed values",
    "const": "must be equal to constant",
    "additionalProperties": "must not have additional properties",
    "anyOf": "must match a schema in anyOf",
    "oneOf": "must match exactly one schema in oneOf",
    "not": "must not be valid",
    "uniqueItems": "must not have duplicate items",
    "minimum": "must be >= {0}",
    "maximum": "must be <= {0}",
    "exclusiveMinimum": "must be > {0}",
    "exclusiveMaximum": "must be < {0}",
    "multipleOf": "must be multiple of {0}",
    "minLength": "must not have fewer than {0} characters",
    "maxLength": "must not have more than {0} characters",
    "minItems": "must not have fewer than {0} items",
    "maxItems": "must not have more than {0} items",
    "minProperties": "must not have fewer than {0} properties",
    "maxProperties": "must not have more than {0} properties",
    "pattern": 'must match pattern "{0}"',
    "format": 'must match format "{0}"',
}


def in_order(schema: Any) -> Any:
    """Return the same schema with its keywords in the order in which the release checks them."""
    if isinstance(schema, list):
        return [in_order(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    keywords = sorted(schema, key=lambda keyword: _RANKS.get(keyword, len(_RANKS)))
    return {keyword: _part_in_order(keyword, schema[keyword]) for keyword in keywords}


def _part_in_order(keyword: str, part: Any) -> Any:
    if keyword in ("const", "enum", "default", "examples"):
        return part
    if keyword in _MAPS and isinstance(part, dict):
        return {name: in_order(inner) for name, inner in part.items()}
    return in_order(part)


def error_text(tool: str, error: str) -> str:
    """Return an error of a tool in the form in which OpenClaw sends it to the model."""
    return json.dumps({"status": "error", "tool": tool, "error": error}, ensure_ascii=False, indent=2)


def worded(errors: Iterable[ValidationError]) -> list[str]:
    """Return a line for each violation, eight at most; all keys that an object lacks are one violation."""
    return list(islice(_lines(errors), MAX_COMPLAINTS))


def worded_by_bridge(errors: Iterable[ValidationError]) -> list[str]:
    """Return the same in the words of the bridge: a line for each missing key, and what is allowed."""
    return list(islice((line for error in errors for line in _bridge_lines(error)), MAX_COMPLAINTS))


def _bridge_lines(error: ValidationError) -> Iterator[str]:
    place = _place(error) if error.absolute_path else "<root>"
    value: Any = error.validator_value
    if error.validator == "required":
        # One error for each key that is missing.
        (name,) = re.findall(r"^'(.*)' is a required property$", error.message, re.DOTALL)
        yield f"{_place(error, name)}: must have required property '{name}'"
    elif error.validator == "additionalProperties":
        names = ", ".join(json.dumps(name, ensure_ascii=False) for name in _unknown(error))
        yield f"{place}: must not have additional properties: {names}"
    elif error.validator == "enum":
        allowed = ", ".join(json.dumps(one, ensure_ascii=False) for one in value)
        yield f"{place}: must be equal to one of the allowed values (allowed: {allowed})"
    else:
        for inner in error.context or ():
            yield from _bridge_lines(inner)
        yield f"{place}{_line(error)[len(_place(error)) :]}"


def _lines(errors: Iterable[ValidationError]) -> Iterator[str]:
    sent = set()
    for error in errors:
        yield from _lines(error.context or ())
        if error.validator in ("required", "additionalProperties"):
            whole = (tuple(error.absolute_path), tuple(error.absolute_schema_path))
            if whole in sent:
                continue
            sent.add(whole)
        if error.validator == "additionalProperties":
            yield from (f"{_place(error, name)}: schema is false" for name in _unknown(error))
        yield _line(error)


def _place(error: ValidationError, *further: str) -> str:
    return ".".join(str(step) for step in (*error.absolute_path, *further)) or "root"


def _line(error: ValidationError) -> str:
    wanted: Any = error.validator_value
    if error.validator == "required":
        missing = [name for name in wanted if name not in _keys(error.instance)]
        return f"{_place(error, missing[0])}: must have required properties {', '.join(missing)}"
    if error.validator == "type":
        kinds = wanted if isinstance(wanted, str) else f"either {' or '.join(wanted)}"
        return f"{_place(error)}: must be {kinds}"
    words = _WORDS.get(str(error.validator))
    return f"{_place(error)}: {words.format(wanted) if words else error.message[:200]}"


def _unknown(error: ValidationError) -> Iterator[str]:
    """Return the keys of an object that the schema does not allow."""
    from pytest_openclaw.util.bounded_regex import searches

    schema: Any = error.schema
    patterns = schema.get("patternProperties", {})
    for name in _keys(error.instance):
        if name not in schema.get("properties", {}) and not any(searches(text, name) for text in patterns):
            yield name


def _keys(instance: Any) -> Mapping[str, Any]:
    return instance if isinstance(instance, dict) else {}


CHECK_STEPS = 50_000
"""The most keywords of a schema that are checked."""
PATTERNS_S = 0.25
"""Seconds for the patterns of a schema, whose steps cannot be counted."""
MAX_SHOWN_CHARS = 16_000
MAX_ERRORS = 256
"""Several violations may form one complaint; the release sends eight complaints."""
_MALFORMED = "Provider returned an incomplete or malformed tool call"
_TOO_LONG = "Exceeded tool-call argument buffer limit"


def dispatch(call: ToolCall, tools: Sequence[Tool], *, over_bridge: bool = False) -> Dispatched:
    """Dispatch a call to the offered tools, in bounded time for any call.

    Args:
        call: the call.
        tools: the offered ones.
        over_bridge: whether the bridge carries it, which converts nothing and has other words for errors.

    Raises:
        OpenClawError: a tool's schema cannot be used.
    """
    tools = () if call.unoffered else tools
    tool = _reached(call.name, tools)
    name = tool.name if tool else None
    shortest = call.arguments[: MAX_ARGUMENT_BYTES + 1]  # each of these is a byte or more
    if len(shortest.encode("utf-8", "surrogatepass")) > MAX_ARGUMENT_BYTES:
        return Dispatched(call=call, tool=name, problem="malformed_json", message=_TOO_LONG)
    arguments = read_json(call.arguments)
    if not isinstance(arguments, dict) or not call.name.strip():
        return Dispatched(call=call, tool=name, problem="malformed_json", message=_MALFORMED)
    if tool is None:
        message = f"Tool {valid_text(call.name.strip()[:200])} not found"
        kept = None if excess(arguments) else arguments
        return Dispatched(call=call, arguments=kept, problem="unknown_tool", message=message)
    notes = () if call.name == tool.name else (f"{call.name!r} was taken for {tool.name}",)
    if too_much := excess(arguments):
        message = _framed(tool, [f"root: {too_much}"], "")
        return Dispatched(call=call, tool=name, problem="bad_arguments", message=message, notes=notes)
    return _checked(call, tool, arguments, notes, over_bridge=over_bridge)


def is_forgotten(made: Dispatched) -> bool:
    """Whether a call and its error are not sent to the model again, because no tool has such a name."""
    return made.problem == "unknown_tool" and not is_repeated(made.call.name)


def _checked(
    call: ToolCall, tool: Tool, arguments: dict[str, Any], notes: tuple[str, ...], *, over_bridge: bool
) -> Dispatched:
    prepared = arguments if over_bridge else prepare(tool, arguments)
    if not _same(as_sent(prepared), arguments):
        notes = (*notes, f"arguments were put into the form that {tool.name} takes")
    checker = _checker(tool.name, json.dumps(tool.parameters))
    try:
        converted, wrong = checker.check(prepared, over_bridge=over_bridge)
    except OpenClawError:
        converted, wrong = prepared, ["root: cannot be checked in bounded time"]
        notes = (*notes, f"the arguments could not be checked within {CHECK_STEPS} steps")
    if not _same(as_sent(converted), as_sent(prepared)):
        notes = (*notes, "arguments were converted to the types of the schema")
    given = as_sent(converted)
    if wrong:
        message = _framed(tool, wrong, as_sent(prepared))
    elif said := unusable(tool, given):
        message = error_text(tool.name, said)
    else:
        return Dispatched(call=call, tool=tool.name, arguments=given, notes=notes)
    return Dispatched(
        call=call, tool=tool.name, arguments=given, problem="bad_arguments", message=message, notes=notes
    )


def _same(value: Any, other: Any) -> bool:
    """Whether two values are the same JSON; in Python alone, 0 equals False."""
    return json.dumps(value, sort_keys=True) == json.dumps(as_sent(other), sort_keys=True)


def _reached(name: str, tools: Sequence[Tool]) -> Tool | None:
    by_name = {tool.name: tool for tool in tools}
    found = find_name(name, by_name)
    return by_name[found] if found else None


def _framed(tool: Tool, wrong: Sequence[str], arguments: Any) -> str:
    lines = "\n".join(f"  - {complaint}" for complaint in wrong)
    received = json.dumps(arguments, ensure_ascii=False, indent=2)
    if len(received) > MAX_SHOWN_CHARS:
        received = f"{received[:MAX_SHOWN_CHARS]}\n… (cut)"
    return f'Validation failed for tool "{tool.name}":\n{lines}\n\nReceived arguments:\n{received}'


class _Checker:
    """Converts and checks the arguments of one tool."""

    def __init__(self, parameters: Any) -> None:
        self._schema = in_order(parameters)
        self._parts: dict[int, BoundedSchema | None] = {}
        self._whole = _bounded(self._schema)

    def check(self, arguments: Mapping[str, Any], *, over_bridge: bool) -> tuple[Any, list[str]]:
        """Return the arguments as the tool would get them, and their errors.

        Raises:
            OpenClawError: it cannot be decided in time.
        """
        from pytest_openclaw.util.bounded_regex import within
        from pytest_openclaw.util.json_schema import within_steps

        with within(PATTERNS_S), within_steps(CHECK_STEPS):
            converted = arguments if over_bridge else coerce(arguments, self._schema, self._fits)
            if too_much := excess(converted):
                return arguments, [f"root: {too_much}"]
            errors = self._whole.errors(converted, limit=MAX_ERRORS)
            return converted, worded_by_bridge(errors) if over_bridge else worded(errors)

    def _fits(self, part: Mapping[str, Any], value: Any) -> bool:
        if id(part) not in self._parts:
            try:
                self._parts[id(part)] = _bounded(part)
            except ValueError:
                # such as a $ref to the whole; the release does not convert there either
                self._parts[id(part)] = None
        schema = self._parts[id(part)]
        return schema is not None and schema.violation(value) is None


@lru_cache(maxsize=256)
def _checker(name: str, parameters: str) -> _Checker:
    try:
        return _Checker(json.loads(parameters))
    except ValueError as error:
        raise OpenClawError(f"tool {name}: parameters {error}") from error


def _bounded(schema: Mapping[str, Any]) -> BoundedSchema:
    from pytest_openclaw.util.json_schema import BoundedSchema

    return BoundedSchema(schema)
