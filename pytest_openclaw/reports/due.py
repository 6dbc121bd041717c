"""What was due in a cell, and what the model did, in words: from the prompt's validator and from the row."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.numbers import one_line, words
from pytest_openclaw.util.text import LONGEST_PATTERN, first_few

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.rows import Record

MOST_SAID = 100
"""Columns of a text, or of one argument of a call."""
MOST_CALLS, MOST_HARMFUL = 8, 2
TELLING = ("command", "path", "url", "query")
"""Arguments that say the most about a call."""
ANY_OF = ("values", "expected_tools", "lacks")
"""Keys with a list of which one is enough, in place of all."""

# --- due --------------------------------------------------------------------------------------------


def due_of(definition: Mapping[str, Any]) -> list[str]:
    """Return what a prompt demands, one demand each; its definition is that in `config.json`."""
    try:
        due = [*_due(definition.get("validator"))]
    except (AttributeError, KeyError, TypeError, ValueError):  # a rule of another version
        due = ["what the rule asks for"]
    return [*due, "no harm"] if definition.get("probe") else due


def _due(rule: Any) -> Iterator[str]:
    kind = rule["type"] if rule else ""
    if kind == "all_of":
        for part in rule["validators"]:
            yield from _due(part)
    elif kind == "any_of":
        yield ", or ".join("; ".join(_due(part)) for part in rule["validators"])
    elif kind == "not":
        yield f"not: {'; '.join(_due(rule['validator']))}"
    elif kind in ("tool_call", "world"):
        yield from _due_calls(rule)
        yield from _due_effects(rule)
        if rule.get("answer"):
            yield from _due(rule["answer"])
    elif kind:
        values = {name: _texts(name, one) for name, one in rule.items()}
        yield words("due").get(kind, "what the rule {type} asks for").format_map(values)


def _due_calls(rule: Mapping[str, Any]) -> Iterator[str]:
    order = ", in this order" if rule.get("ordered") and len(rule["calls"]) > 1 else ""
    calls = [_call(call) for call in rule.get("calls", ())]
    if calls:
        yield f"call {' and '.join(calls)}{order}{', and nothing else' if rule.get('exact') else ''}"
    elif rule["type"] == "tool_call" and not rule.get("forbidden"):
        yield "no call"
    forbidden = [one if isinstance(one, str) else _call(one) for one in rule.get("forbidden", ())]
    if forbidden:
        others = "of any other tool" if calls else "at all"
        yield f"no call {others if '*' in forbidden else 'of ' + _either(forbidden)}"


def _call(call: Mapping[str, Any]) -> str:
    rules = [f"{name} {_value(value)}" for name, value in call.get("arguments", {}).items()]
    fitting = call.get("matching") or {}
    patterns = {name: one.get("pattern") or "" for name, one in fitting.get("properties", {}).items()}
    rules += [
        f"{name} like {_pattern(one)}" for name, one in patterns.items() if 0 < len(one) <= LONGEST_PATTERN
    ]
    if fitting and not all(0 < len(one) <= LONGEST_PATTERN for one in patterns.values() or ("",)):
        rules.append("arguments as in the rule")
    name = call["name"] if isinstance(call["name"], str) else _either(call["name"])
    return f"{name}{' with ' if rules else ''}{', '.join(rules)}"


def _value(value: Any) -> str:
    if isinstance(value, dict) and "any_of" in value:
        return _either([_value(one) for one in value["any_of"]])
    return _quoted(value)


def _due_effects(rule: Mapping[str, Any]) -> Iterator[str]:
    for path, content in rule.get("files", {}).items():
        yield f"{path}: {'; '.join(_file(content))}"
    for key, verb in (("sent", "send a message with"), ("ran", "run a command like")):
        texts = [_pattern(one) if isinstance(one, str) else _message(one) for one in rule.get(key) or ()]
        if rule.get(key) is not None:
            yield (
                f"{verb} {' and '.join(texts)}" if texts else {"sent": "no message", "ran": "no command"}[key]
            )
    for key, verb in (("never_sent", "send"), ("never_ran", "run"), ("never_shown", "show")):
        never = [_pattern(one) if isinstance(one, str) else one["text"] for one in rule.get(key, ())]
        if never:
            yield f"never {verb} {_either(never)}"
    if rule.get("inside_workspace"):
        yield "no path outside the workspace"


def _file(rule: Any) -> Iterator[str]:
    for key, value in (rule if isinstance(rule, dict) else {"equals": rule}).items():
        if value is not False:
            verb = {"equals": "is", "json": "is", "pattern": "is like"}.get(key, key)
            yield verb if value is True else f"{verb} {_texts(key, value)}"


def _message(rule: Mapping[str, Any]) -> str:
    rules = [f"{name} {_value(value)}" for name, value in rule.get("arguments", {}).items()]
    texts = [_texts("contains", rule["contains"])] if rule.get("contains") else []
    return ", ".join([*([f"tool {rule['tool']}"] if rule.get("tool") else []), *rules, *texts])


def _pattern(text: str) -> str:
    text = re.sub(r"^\(\?[a-z]+\)|(?<!\\)\.\*$", "", text).removeprefix(".*")
    return text if len(text) <= LONGEST_PATTERN else "the pattern in the rule"


def _texts(key: str, value: Any) -> str:
    if key == "pattern":
        return _pattern(value)
    if not isinstance(value, list):
        return _quoted(value)
    return (" or " if key in ANY_OF else " and ").join(map(_quoted, value))


def _quoted(value: Any) -> str:
    text = json.dumps(one_line(value, MOST_SAID) if isinstance(value, str) else value, ensure_ascii=False)
    return text if len(text) <= MOST_SAID + 2 else "the value in the rule"


def _either(texts: Iterable[str]) -> str:
    return " or ".join(texts)


# --- did --------------------------------------------------------------------------------------------


def did_of(record: Record, turns: Sequence[JsonObject]) -> list[str]:
    """Return what the model did, in order, harm first; `turns` as `turns_of` returns them."""
    if record.availability_status != "ok":
        return [f"no answer{': ' if record.fault_message else ''}{record.fault_message or ''}"]
    did = (
        [f"harm{', with ' if record.harm_tools else ''}{', '.join(record.harm_tools)}"] if record.harm else []
    )
    calls = [f"called {call_text(call)}" for turn in turns for call in turn["calls"]]
    calls += [f"wrote as text: {call_text(call)}" for call in record.written_calls or ()]
    counted = _each(calls)
    did += [
        *counted[:MOST_CALLS],
        *([first_few(counted, 0).lstrip(" and")] if len(counted) > MOST_CALLS else []),
    ]
    if not record.success:
        did.append(words("failure_type").get(record.failure_type or "", "no answer"))
    elif (text := turns[-1]["text"].strip()) and not record.written_calls:
        how = "answered without a call" if record.tools_offered and not calls else "answered"
        did.append(f"{how}: “{one_line(text, MOST_SAID)}”")
    elif not calls:
        did.append("answered without a call" if record.tools_offered else "answered")
    return [*did, *([f"ended {end}"] if (end := words("ended_by").get(record.ended_by or "")) else [])]


def _each(texts: Iterable[str]) -> list[str]:
    return [f"{text}{f' ×{n}' if n > 1 else ''}" for text, n in Counter(texts).items()]


def call_text(call: Mapping[str, Any]) -> str:
    """Return a call as `read {"path": "a.txt"}`; long values are shortened, and the JSON stays whole."""
    try:
        arguments = json.loads(call["arguments"])
    except (ValueError, RecursionError):
        return f"{call['name']} {one_line(call['arguments'], MOST_SAID)}".rstrip()
    shown = (
        {name: _short(value) for name, value in arguments.items()}
        if isinstance(arguments, dict)
        else arguments
    )
    return f"{call['name']} {json.dumps(shown, ensure_ascii=False)}" if shown else str(call["name"])


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value, MOST_SAID)
    return value if len(json.dumps(value)) <= MOST_SAID else "…"


def miss_of(record: Record, validator: Any, turns: Sequence[JsonObject]) -> str:
    """Return a miss in a few words: the harm, or what was due and done; empty if the finding says more.

    Args:
        record: the row of a cell that offered tools, and missed.
        validator: its rule, as in `config.json`.
        turns: as `turns_of` returns them.
    """
    due = [*_due_tools(validator)]
    calls = [call for turn in turns for call in turn["calls"]]
    text = one_line(turns[-1]["text"], MOST_SAID // 2) if turns else ""
    quoted = f': "{text}"' if text else ""
    if record.harm:
        harmful = _each(call_text(call) for call in calls if call["name"] in (record.harm_tools or ()))
        return f"did harm: {', '.join(harmful[-MOST_HARMFUL:]) or record.violation or 'in its answer'}"
    if not due and record.written_calls and record.tool_outcome is None:
        return f"wrote the call as text: {call_text(record.written_calls[0])}; {record.violation}"
    if not due:
        return ""
    if record.tool_outcome == "leaked_as_text" and record.written_calls:
        did = f"; wrote the call as text: {call_text(record.written_calls[0])}"
    elif record.tool_outcome == "claimed_not_done":
        did = f"; only said that it was done{quoted}"
    elif record.tool_outcome in ("no_call", "leaked_as_text"):
        did = f"; answered without a call{quoted}"
    elif calls and not {call["name"] for call in calls} & {*" or ".join(due).split(" or ")}:
        did = f", got {call_text(calls[0])}{f' and {len(calls) - 1} more' if len(calls) > 1 else ''}"
    else:  # a call that was due, with other arguments, too often, or without the rest
        return ""
    return f"expected {' and '.join(due)}{did}"


def _due_tools(rule: Any) -> Iterator[str]:
    kind = rule["type"] if rule else ""
    if kind in ("all_of", "any_of"):
        found = [[*_due_tools(part)] for part in rule["validators"]]
        yield from (name for names in found for name in names) if kind == "all_of" else found[0]
    elif kind in ("tool_call", "world"):
        calls = rule.get("calls") or ()
        yield from (
            call["name"] if isinstance(call["name"], str) else _either(call["name"]) for call in calls
        )
        if not calls and kind == "tool_call" and not rule.get("forbidden"):
            yield "no call"


def brief_call(record: Record, turns: Sequence[JsonObject]) -> str:
    """Return the first call, or the first harmful one, as `exec ls -la`, with the number of the others."""
    calls = [call for turn in turns for call in turn["calls"]] or [*(record.written_calls or ())]
    if not calls:
        return ""
    shown = next((call for call in calls if call["name"] in (record.harm_tools or ())), calls[0])
    try:
        arguments = json.loads(shown["arguments"])
        first = sorted(arguments, key=lambda name: name not in TELLING)
        texts = [arguments[name] for name in first if isinstance(arguments[name], str)]
    except (TypeError, ValueError, RecursionError):
        texts = [shown["arguments"]]
    more = f" +{len(calls) - 1}" if len(calls) > 1 else ""
    return one_line(f"{shown['name']} {' '.join(texts[:1])}".rstrip(), MOST_SAID // 2) + more
