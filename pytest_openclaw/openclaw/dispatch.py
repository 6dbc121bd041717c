"""Dispatches a tool call as OpenClaw 2026.9.6 does: the tool that it reaches, or the error for the model.

Observed on the released program, over the chat completions API:

- A name need not be exact: case and blanks do not matter, and three old names still work. Ignored are the
  part before a dot or a slash (`functions.read`, `tools/exec`), a counter at the end (`read_1`,
  `functions.read:0`) and the rest of a broken tag (`read"`, `read<path`).
- Arguments are converted before the schema is checked: `"5"` becomes 5 if a number is required, 5 becomes a
  text if a text is required, null the empty value of its type, and a JSON text its array or object. A value
  that cannot be converted is unchanged, and fails the check.
- The messages for arguments that violate a schema have the release's words and order.
- If arguments are not a JSON object, no call of the turn is executed; it may end the run (`recovery.py`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.catalog import CALL, UNKNOWN, Bridge, load_catalogue, plugin_of, signature
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_deeper
from pytest_openclaw.util.text import cut, valid_text, valid_value
from pytest_openclaw.util.typed import prefixed
from pytest_openclaw.values.tool_calls import Dispatched, Tool, ToolCall

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

    from pytest_openclaw.util.bounded import BoundedSchema


# --- names --------------------------------------------------------------------------------------

ALIASES = {"bash": "exec", "apply-patch": "apply_patch", "cron": "automations"}
MAX_NAME_CHARS = 128
"""Longer names match no tool, so that not all their parts have to be tried."""

_NAMESPACE = re.compile(r"^(?:functions?|tools?)[./]", re.IGNORECASE)
_WRAPPER = re.compile(r"^(?:functions?|tools?)[._-]?", re.IGNORECASE)
_REPEATED = re.compile(r"[A-Za-z0-9_:.-]{1,64}")
_TAG = re.compile(r"(?<=.)[\"'<]", re.DOTALL)


def find_name(name: str, offered: Collection[str]) -> str | None:
    """Return the offered name that `name` means; None if there is none, or more than one."""
    bare = name.strip()
    if not bare or len(bare) > MAX_NAME_CHARS:
        return None
    if found := _spelled(bare, offered):
        return found
    reached = {found for guess in _without_counters(bare) if (found := _part(guess, offered))}
    return reached.pop() if len(reached) == 1 else _part(bare, offered)


def _spelled(name: str, offered: Collection[str]) -> str | None:
    for form in (name, plain_name(name)):
        if form in offered:
            return form
        by_case = [known for known in offered if known.lower() == form.lower()]
        if len(by_case) == 1:
            return by_case[0]
    return None


def _part(name: str, offered: Collection[str]) -> str | None:
    """Look for the name, or for the part after one of its dots and slashes."""
    for text in (name, _TAG.split(name, maxsplit=1)[0]):
        steps = [step.strip() for step in text.replace("/", ".").split(".") if step.strip()]
        for guess in (text.strip(), *(".".join(steps[n:]) for n in range(len(steps)))):
            if found := _spelled(guess, offered):
                return found
    return None


def _without_counters(name: str) -> Iterator[str]:
    for text in (name, name.partition(":")[0].strip()):
        for form in (text, _WRAPPER.sub("", text.replace("/", "."), count=1)):
            yield from (form, re.sub(r"[:._/-]\d+$", "", form), re.sub(r"\d+$", "", form))


def same_tool(name: str, other: str) -> bool:
    """Whether two names are the same tool's, apart from case, blanks, old names and usual namespaces."""
    one, two = (plain_name(_NAMESPACE.sub("", each.strip(), count=1)) for each in (name, other))
    return one == two


def plain_name(name: str) -> str:
    """Return a tool's present name in lower case."""
    lower = name.strip().lower()
    return ALIASES.get(lower, lower)


# --- arguments ----------------------------------------------------------------------------------

MAX_ARGUMENT_BYTES = 256_000
MAX_DEPTH = 64
"""The depth that validators, rows, reports and recursive schemas can handle."""
RENAMED = {("exec", "timeout"): "timeoutSeconds"}
SELECTORS = ("id", "toolId", "name")
"""The keys with a tool's id in a call through the bridge."""
_LONGEST_INTEGER = 308
_LARGEST_SHOWN = 1e21
"""From here on JavaScript shows a number with an exponent."""


def read_json(text: str) -> Any:
    """Parse a JSON text; None if it is malformed, or nested too deep.

    Numbers beyond a double stay text and are not numbers, and 2.0 is 2, as in the release.
    """
    try:
        value = json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return None if is_deeper(value, MAX_DEPTH) else valid_value(value)


def _number(written: str) -> int | float | str:
    if written.lstrip("-").isdigit():
        return int(written) if len(written) <= _LONGEST_INTEGER else written
    value = float(written)
    if not math.isfinite(value):
        return written
    return int(value) if value.is_integer() and abs(value) < _LARGEST_SHOWN else value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _with_edits(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `edit` in their current form: with a list of edits, and no other keys."""
    given: dict[str, Any] = {name: arguments[name] for name in ("path", "edits") if name in arguments}
    edits = given.get("edits")
    if isinstance(edits, str) and isinstance(held := read_json(edits), list):
        edits = held
    if isinstance(edits, list):
        edits = [_texts_of(one) if isinstance(one, dict) else one for one in edits]
    single = {name: text for name, text in _texts_of(arguments).items() if isinstance(text, str)}
    if len(single) == 2:
        batch = edits if isinstance(edits, list) else []
        edits = batch if single in batch else [*batch, single]
    return given if edits is None else {**given, "edits": edits}


def _texts_of(edit: Mapping[str, Any]) -> dict[str, Any]:
    return {name: edit[name] for name in ("oldText", "newText") if name in edit}


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


# --- conversion to the types of a schema --------------------------------------------------------

MAX_JSON_CHARS = 65_536
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LARGEST_SAFE = 2**53 - 1


def coerce(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return the value with the type of the schema, if it can be converted."""
    if parts := schema.get("anyOf"):
        return _as_one_of(value, parts)
    kind = schema.get("type")
    if isinstance(kind, str):
        value = _converted(value, kind)
    if kind == "object" and isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        rules = {name: known.get(name, others) for name in value}
        return {
            name: coerce(inner, rules[name]) if isinstance(rules[name], dict) else inner
            for name, inner in value.items()
        }
    if kind == "array" and isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [coerce(item, schema["items"]) for item in value]
    return value


def _as_one_of(value: Any, parts: Sequence[Any]) -> Any:
    """Return the first conversion that fits a part; null stays null if a part takes it."""
    schemas = [part for part in parts if isinstance(part, dict)]
    if value is None and any(part.get("type") == "null" for part in schemas):
        return None
    for part in schemas:
        converted = coerce(value, part)
        if _fits(part, converted):
            return converted
    return value


def _converted(value: Any, kind: str) -> Any:
    """Return the value as a `kind` of JSON Schema; unchanged if it cannot be converted."""
    if value is None:
        return {"number": 0, "integer": 0, "boolean": False, "string": ""}.get(kind)
    if kind == "string":
        return json.dumps(value) if isinstance(value, bool | int | float) else value
    if kind == "boolean":
        words = {"false": False, 0: False, "true": True, 1: True}
        return value if isinstance(value, list | dict) else words.get(value, value)
    if kind in ("number", "integer"):
        if isinstance(value, bool):
            return int(value)
        is_number = isinstance(value, str) and _NUMBER.fullmatch(value.strip())
        number = _number(value.strip()) if is_number else value
        is_safe = isinstance(number, int) and abs(number) <= _LARGEST_SAFE
        return number if is_safe or (kind == "number" and isinstance(number, float | int)) else value
    if kind in ("array", "object") and isinstance(value, str) and len(value) <= MAX_JSON_CHARS:
        held = read_json(value)
        return held if isinstance(held, list if kind == "array" else dict) else value
    return value


def _fits(part: Mapping[str, Any], value: Any) -> bool:
    try:
        return _schema(json.dumps(part)).violation(value) is None
    except ValueError:
        return False  # such as a $ref to the whole; the release does not convert there either


@lru_cache(maxsize=256)
def _schema(text: str) -> BoundedSchema:
    from pytest_openclaw.util.bounded import BoundedSchema

    return BoundedSchema(_in_order(json.loads(text)))


# --- complaints ---------------------------------------------------------------------------------

MAX_COMPLAINTS = 8
"""The most messages that the release sends."""
# The release checks these keywords of a schema first.
_FIRST = ("type", "required", "additionalProperties", "properties")

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


def _in_order(schema: Any) -> Any:
    """Return the same schema with its keywords in the order in which the release checks them."""
    if isinstance(schema, list):
        return [_in_order(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    first = [keyword for keyword in _FIRST if keyword in schema]
    return {keyword: _in_order(schema[keyword]) for keyword in dict.fromkeys([*first, *schema])}


def error_text(tool: str, error: str) -> str:
    """Return an error of a tool in the form in which OpenClaw sends it to the model."""
    return json.dumps({"status": "error", "tool": tool, "error": error}, ensure_ascii=False, indent=2)


def _complaints(error: ValidationError, *, over_bridge: bool) -> Iterator[str]:
    """Yield the lines about a violation, in the words of the release or of its bridge."""
    for inner in error.context or ():
        yield from _complaints(inner, over_bridge=over_bridge)
    path = [*map(str, error.absolute_path)]
    limit: Any = error.validator_value
    instance: Any = error.instance
    words = _WORDS.get(str(error.validator), cut(error.message, 200)).replace("{0}", str(limit))
    if error.validator == "required":
        missing = [name for name in limit if name not in instance]
        if over_bridge:
            for name in missing:
                yield f"{'.'.join([*path, name])}: must have required property '{name}'"
        else:
            yield f"{'.'.join([*path, missing[0]])}: must have required properties {', '.join(missing)}"
        return
    if error.validator == "additionalProperties":
        schema: Any = error.schema
        unknown = [name for name in instance if name not in schema.get("properties", {})]
        if over_bridge:
            words += f": {_listed(unknown)}"
        else:
            yield from (f"{'.'.join([*path, name])}: schema is false" for name in unknown)
    elif error.validator == "enum" and over_bridge:
        words += f" (allowed: {_listed(limit)})"
    elif error.validator == "type":
        kinds = limit if isinstance(limit, str) else f"either {' or '.join(limit)}"
        words = f"must be {kinds}"
    yield f"{'.'.join(path) or ('<root>' if over_bridge else 'root')}: {words}"


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(json.dumps(one, ensure_ascii=False) for one in values)


# --- the call -----------------------------------------------------------------------------------

CHECK_STEPS = 50_000
"""The most keywords of a schema that are checked."""
PATTERNS_S = 0.25
"""Seconds for the patterns of a schema, whose steps cannot be counted."""
MAX_SHOWN_CHARS = 16_000
MAX_ERRORS = 256
"""Several violations may form one complaint."""
_MALFORMED = "Provider returned an incomplete or malformed tool call"
_TOO_LONG = "Exceeded tool-call argument buffer limit"


def dispatch(call: ToolCall, tools: Sequence[Tool], *, over_bridge: bool = False) -> Dispatched:
    """Dispatch a call to the offered tools, in bounded time; the bridge converts nothing.

    Raises:
        OpenClawError: a tool's schema cannot be used.
    """
    by_name = {} if call.unoffered else {tool.name: tool for tool in tools}
    name = find_name(call.name, by_name)
    if len(call.arguments.encode("utf-8", "surrogatepass")) > MAX_ARGUMENT_BYTES:
        return Dispatched(call=call, tool=name, problem="malformed_json", message=_TOO_LONG)
    arguments = read_json(call.arguments)
    if not isinstance(arguments, dict) or not call.name.strip():
        return Dispatched(call=call, tool=name, problem="malformed_json", message=_MALFORMED)
    if name is None:
        message = f"Tool {valid_text(cut(call.name.strip(), 200))} not found"
        return Dispatched(call=call, arguments=arguments, problem="unknown_tool", message=message)
    tool = by_name[name]
    notes = [] if call.name == name else [f"{call.name!r} was taken for {name}"]
    prepared = arguments
    if name == "edit" and not over_bridge and "edits" in tool.parameters.get("properties", {}):
        prepared = _with_edits(arguments)
    if prepared != arguments:
        notes.append(f"arguments were put into the form that {name} takes")
    schema = _schema_of(tool)
    try:
        given, wrong = _checked(schema, tool.parameters, prepared, converts=not over_bridge)
    except OpenClawError:
        given, wrong = prepared, ["root: cannot be checked in bounded time"]
        notes.append(f"the arguments could not be checked within {CHECK_STEPS} steps")
    if json.dumps(given) != json.dumps(prepared):  # in Python 0 equals False
        notes.append("arguments were converted to the types of the schema")
    message = ""
    if wrong:
        message = _refusal(tool, wrong, prepared)
    elif why := unusable(tool, given):
        message = error_text(name, why)
    return Dispatched(
        call=call,
        tool=name,
        arguments=given,
        problem="bad_arguments" if message else None,
        message=message,
        notes=tuple(notes),
    )


def is_forgotten(made: Dispatched) -> bool:
    """Whether a call is left out of the next request, as if it had not been made: no tool has such a name."""
    return made.problem == "unknown_tool" and not _REPEATED.fullmatch(made.call.name.strip())


def _schema_of(tool: Tool) -> BoundedSchema:
    with prefixed(f"tool {tool.name}: parameters", OpenClawError):
        return _schema(json.dumps(tool.parameters))


def _checked(
    schema: BoundedSchema, parameters: Mapping[str, Any], arguments: dict[str, Any], *, converts: bool
) -> tuple[Any, list[str]]:
    """Return the arguments as the tool would get them, and their errors; raise if that takes too long."""
    from pytest_openclaw.util.bounded import within, within_steps

    with within(PATTERNS_S), within_steps(CHECK_STEPS):
        given = coerce(arguments, parameters) if converts else arguments
        errors = schema.errors(given, limit=MAX_ERRORS)
    lines = (line for error in errors for line in _complaints(error, over_bridge=not converts))
    return given, [*dict.fromkeys(lines)][:MAX_COMPLAINTS]


def _refusal(tool: Tool, wrong: Sequence[str], arguments: Any) -> str:
    lines = "\n".join(f"  - {complaint}" for complaint in wrong)
    received = json.dumps(arguments, ensure_ascii=False, indent=2)
    if len(received) > MAX_SHOWN_CHARS:
        received = f"{cut(received, MAX_SHOWN_CHARS)}\n… (cut)"
    return f'Validation failed for tool "{tool.name}":\n{lines}\n\nReceived arguments:\n{received}'


# --- the bridge -----------------------------------------------------------------------------------

# `tool_search`, `tool_describe` and `tool_call` are OpenClaw's default for local models: a few tools are
# sent, and all others are reached through these three.

SEARCH, DESCRIBE = "tool_search", "tool_describe"
BRIDGE = (SEARCH, DESCRIBE, CALL)
LOOKUPS = frozenset({SEARCH, DESCRIBE})
LONGEST_NAME = 200
MOST_MEANT = 3
_WORD = re.compile("[a-z0-9]+")
_RECOVERY = (
    "Use tool_search to find a tool, tool_describe to inspect it, then tool_call with the exact id or name."
)


def reached_tools(offered: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools that can be called: those offered and those deferred."""
    return (*(tool for tool in offered if tool.name not in BRIDGE), *deferred_tools(offered))


def deferred_tools(offered: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools that can only be reached through the bridge."""
    names = {tool.name for tool in offered}
    captured = next((tool.reaches for tool in offered if isinstance(tool, Bridge)), None)
    deferred = load_catalogue().deferred_tools() if captured is None else captured
    return tuple(tool for tool in deferred if tool.name not in names)


def inner_call(made: Dispatched, offered: Sequence[Tool]) -> Dispatched | None:
    """Return the dispatch of the call that a `tool_call` carries; None if `made` carries none.

    Unlike in a call on the wire, the name must be exact, and types are not converted.
    """
    if made.tool != CALL or not made.is_executed or not made.arguments:
        return None
    reached = reached_tools(offered)
    by_name = {tool.name: tool for tool in reached}
    tool_id, arguments = _carried(made.arguments)
    call = ToolCall(name=name_of(tool_id), arguments=arguments, id=made.call.id)
    if (tool := by_name.get(call.name)) is None:
        why = unknown_id(tool_id, reached)
        return replace(dispatch(call, ()), tool=None, problem="unknown_tool", message=why)
    inner = dispatch(call, (tool,), over_bridge=True)
    if inner.is_executed:
        return inner
    wrong = "; ".join(line[4:] for line in inner.message.split("\n") if line.startswith("  - "))
    expected = signature(tool.parameters)
    shown = "" if expected == UNKNOWN else f" Expected input: {expected}."
    refusal = f'Invalid arguments for tool "{id_of(tool.name)}": {wrong or inner.message}.{shown}'
    # The run continues despite malformed arguments.
    return replace(inner, problem="bad_arguments", message=refusal)


def unknown_id(tool_id: str, reached: Sequence[Tool]) -> str:
    """Return the bridge's message for an unknown id."""
    needle = tool_id.strip().lower()[:LONGEST_NAME]
    words = {*_WORD.findall(needle)}

    def score(tool: Tool) -> int:
        name, known_id = tool.name.lower(), id_of(tool.name).lower()
        near = 40 * (name in needle or needle in known_id) + 40 * (name in words)
        return near + 12 * len(
            words.intersection(_WORD.findall(f"{name} {known_id} {tool.description}".lower()))
        )

    near = sorted((-points, tool.name) for tool in reached if (points := score(tool)))[:MOST_MEANT]
    meant = f" Did you mean: {', '.join(name for _, name in near)}?" if near else ""
    return f"Unknown tool id: {cut(tool_id.strip(), 200)}.{meant} {_RECOVERY}"


def reaching(made: Sequence[Dispatched], offered: Sequence[Tool]) -> tuple[Dispatched, ...]:
    """Return the calls, each with the call that it carries through the bridge."""
    return tuple(
        replace(call, inner=inner_call(call, offered)) if call.tool == CALL else call for call in made
    )


def id_of(tool: str) -> str:
    """Return a tool's id for the bridge."""
    return f"openclaw:{plugin_of(tool)}:{tool}"


def name_of(tool_id: str) -> str:
    """Return the name in an id, which may be only the name."""
    return tool_id.strip().rpartition(":")[2]


def _carried(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the id and the inner arguments as JSON.

    The arguments are under `args` or `input`, as an object or a text; if that is empty, next to the id.
    """
    selector = next(key for key in SELECTORS if isinstance(arguments.get(key), str))
    inner: Any = next((arguments[key] for key in ("args", "input") if arguments.get(key) is not None), {})
    if inner == {}:
        inner = {key: arguments[key] for key in arguments if key not in ("args", "input", selector)}
    return arguments[selector], inner if isinstance(inner, str) else json.dumps(inner)


def with_inner_calls(made: Sequence[Dispatched]) -> tuple[Dispatched, ...]:
    """Return the calls, each followed by the call that it carries through the bridge, if any."""
    return tuple(one for call in made for one in (call, call.inner) if one is not None)


# --- calls in a text ------------------------------------------------------------------------------

# OpenClaw also executes calls that a model writes as `[name]`, the arguments and `[END_TOOL_REQUEST]`, if the
# reply contains nothing else and each name reaches an offered tool.
NOTE = "written as [name] … [END_TOOL_REQUEST], which OpenClaw takes for a call"
MOST_BYTES = 256_000
"""Longer arguments are left as text."""
MOST_CHARS = 1_000_000
"""A longer reply is left as text."""

_OPEN = re.compile(r"\s*\[(?P<tool>tool:)?(?P<name>[A-Za-z0-9_-]{1,120})\](?(tool)\s*|[ \t]*\r?\n\s*)(?=\{)")
_CLOSE = re.compile(r"\s*(?:\[(?P<mark>END_TOOL_REQUEST|/[A-Za-z0-9_-]{1,120})\]\s*)?")
_DECODER = json.JSONDecoder()


def promoted_calls(text: str, tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    """Return the calls that OpenClaw reads from a reply's text; empty if the text has anything else."""
    calls: list[ToolCall] = []
    position = 0 if len(text) <= MOST_CHARS else len(text)
    while position < len(text):
        if not (opening := _OPEN.match(text, position)):
            return ()
        name = opening["name"]
        try:
            arguments, end = _DECODER.raw_decode(text, opening.end())
        except (ValueError, RecursionError):
            return ()
        written = text[opening.end() : end]
        is_usable = isinstance(arguments, dict) and any(same_tool(tool.name, name) for tool in tools)
        closing = _CLOSE.match(text, end)
        if not (closing and is_usable) or len(written.encode("utf-8", "replace")) > MOST_BYTES:
            return ()
        if closing["mark"] not in ("END_TOOL_REQUEST", f"/{name}") and (
            closing["mark"] or not opening["tool"]
        ):
            return ()
        calls.append(ToolCall(name=name, arguments=written))
        position = closing.end()
    return tuple(calls)
