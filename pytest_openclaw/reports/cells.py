"""Cells as text: a failed cell, which reads like a good assertion, and any cell of a stored run.

Also here is what was due in a cell, and what the model did, in words: from the validator and from the row.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.openclaw.thinking import split_thinking
from pytest_openclaw.reports.numbers import (
    DASH,
    LEAST_TEXT,
    WIDTH,
    columns,
    one_line,
    render_ms,
    render_time,
    render_usd,
    shorten,
    words,
    wrapped_rows,
)
from pytest_openclaw.suites.cells import tools_sha256
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import LONGEST_PATTERN, first_few, printable
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.rows import Record, call_of, to_row
from pytest_openclaw.values.tool_calls import Tool

MOST_TURNS = 12
LONGEST = {"prompt": 400, "user": 400, "reply": 1200}
"""Characters of texts of a failed cell."""
LONGEST_OTHER = 300
LABEL_WIDTH = 9
MOST_SAID = 100
"""Columns of a text, or of one argument of a call."""
MOST_CALLS, MOST_HARMFUL = 8, 2
TELLING = ("command", "path", "url", "query")
"""Arguments that say the most about a call."""
ANY_OF = ("values", "expected_tools", "lacks")
"""Keys with a list of which one is enough, in place of all."""


def render_failure(record: Record, prompt: Mapping[str, Any], tools: Sequence[Tool] | None) -> str:
    """Return what was due and done, or the fault; then target, prompt and reply; long texts are shortened.

    `prompt` has `prompt`, `messages` and `validator` as in `config.json`, and offered these `tools`.
    """
    turns, why = turns_of(record, tools), miss_of(record, prompt, tools)
    times = f"e2e {render_ms(record.e2e_ms)}, TTFT {render_ms(record.ttft_ms)}"
    ended = f", ended by {one_line(record.finish_reason, 40)}" if record.finish_reason else ""
    texts = [
        ("target", record.target.label),
        ("times", f"{times}{ended}"),
        *[*message_texts(prompt.get("messages"))][-1:],
        ("prompt", prompt["prompt"]),
        *([("finding", record.violation)] if record.violation not in (None, why) else []),
        *_conversation(record, turns, most=MOST_TURNS),
        *_facts(record),
        *([("ended", end)] if (end := words("ended_by").get(record.ended_by or "")) else []),
    ]
    what = one_line(f"{record.prompt_name}: {why or record.failure_type or 'failed'}", 360)
    lines = [f"{record.prompt_id} {what}"]
    for label, text in texts:
        lines += _block(label, shorten(text.strip(), LONGEST.get(label, LONGEST_OTHER)))
    return "\n".join(lines)


def render_cell(
    name: str,
    record: Record,
    prompt: Mapping[str, Any],
    turns: Sequence[JsonObject],
    of_run: Iterable[Record] = (),
    *,
    width: int = WIDTH,
) -> list[str]:
    """Return the lines that show a cell in full, without fields in which it is like the cells of its run.

    Our own sentences are wrapped at `width`; texts of suites and models are not.

    `prompt` is its definition in `config.json`, or empty.
    """

    def wrapped(text: str) -> str:
        room = max(LEAST_TEXT, width - LABEL_WIDTH - 3)
        return "\n".join(textwrap.wrap(printable(text), room, break_on_hyphens=False))

    why = _why(record)
    parsed = {
        key: value
        for key, value in (record.parsed_output or {}).items()
        if record.tools_offered is None or (key != "calls" and value != [])  # calls are in the turns
    }
    texts = [
        ("suite", record.suite),
        ("name", record.prompt_name),
        ("verdict", wrapped(f"{verdict_of(record)}{f': {why}' if why else ''}")),
        ("due", "\n".join(map(wrapped, due_of(prompt)))),
        ("did", "\n".join(map(wrapped, did_of(record, turns)))),
        *((label, wrapped(text)) for label, text in _facts(record)),
        (
            "measured",
            "\n".join(f"{label}: {text}" for label, text in measured(record, usual_of(of_run)).items()),
        ),
        ("validator", as_text(prompt.get("validator"))),
        ("parsed", as_text(parsed or None)),
        ("system", prompt.get("system") or ""),
        *message_texts(prompt.get("messages")),
        ("prompt", prompt.get("prompt") or ""),
        *(("image", f"{image['path']}, sha256 {image['sha256']}") for image in record.images or ()),
        *_conversation(record, turns),
    ]
    return [printable(name), *(line for label, text in texts if text for line in _block(label, text))]


def _why(record: Record) -> str:
    return (
        record.violation or record.fault_message or words("failure_type").get(record.failure_type or "", "")
    )


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    if record.tool_outcome and record.tools_offered is not None:
        yield "outcome", f"{record.tool_outcome}: {words('outcome')[record.tool_outcome]}"
    if record.tool_calls and record.tools_offered is None:
        yield "tools", ", ".join(record.tool_calls)


def _conversation(
    record: Record, turns: Sequence[JsonObject], most: int | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the messages of each turn with labels; above `most` turns, leave the middle ones out."""
    shown = joined(turns)
    if most and (left_out := len(shown) - most) > 0:
        shown[most // 2 : most // 2 + left_out] = [{"left_out": left_out}]
    for turn in shown:
        if n := turn.get("left_out"):
            yield "...", f"{n} turns are left out"
            continue
        times = f" ×{turn['times']}" if turn["times"] > 1 else ""
        label = f"turn {turn['number']}{times}" if record.turns else ""
        if turn.get("user"):
            yield "user", turn["user"]
        if turn.get("reasoning") and not most:
            yield "thinking", turn["reasoning"]
        if turn.get("text") or not turn["calls"]:
            yield label or "reply", turn.get("text") or ""
        for call in turn["calls"]:
            problem = f" ({call['problem']})" if call["problem"] else ""
            arguments = " ".join(call["arguments"].split()) if most else call["arguments"]
            made = f"{call['name']}{problem} {arguments}"
            yield label or "call", made
            for answer in (call["message"], *call["notes"], call["result"]):
                if answer:
                    yield "->", answer


def joined(turns: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the turns with their `number`; equal ones in a row are one, that happened `times`."""
    found: list[JsonObject] = []
    for number, turn in enumerate(turns, 1):
        same = ("user", "reasoning", "text", "calls")
        if found and all(turn.get(name) == found[-1].get(name) for name in same):
            found[-1]["times"] += 1
        else:
            found.append({**turn, "number": number, "times": 1})
    return found


def _block(label: str, text: str) -> Iterator[str]:
    # Split at line feeds only, because `printable` escapes every other end of a line.
    for line in printable(text).rstrip("\n").split("\n"):
        yield f"  {printable(label):<{LABEL_WIDTH}} {line}".rstrip()
        label = ""


def render_cells(
    cells: Iterable[tuple[str, Record]],
    prompts: Mapping[tuple[str, str], Mapping[str, Any]],
    width: int = WIDTH,
) -> Iterator[str]:
    """Yield for each cell its name, its verdict, its time, and what was due and done if it did not pass.

    From the first name that is too long on, the suite is a heading.
    `prompts` has the definitions of `config.json` by suite and id.
    """
    tools = {key: offered_tools(definition) for key, definition in prompts.items()}
    rows: list[tuple[str, ...]] = [("cell", "verdict", "took", "why")]
    heading = ""
    for name, record in cells:
        key = record.suite, record.prompt_id
        has_suite = name.startswith(f"{record.suite}::")
        if record.suite != heading and (heading or (has_suite and columns(name) > width // 2)):
            heading = record.suite
            rows.append((heading,))
        took = render_ms(record.e2e_ms) if record.attempts else DASH
        why = miss_of(record, prompts.get(key, {}), tools.get(key)) if is_miss(record) else ""
        rows.append((one_line(name.removeprefix(f"{heading}::"), width // 2), verdict_of(record), took, why))
    yield from wrapped_rows(rows, width) if rows[1:] else ["no cell fits"]


# --- the parts of a row -----------------------------------------------------------------------------


def message_texts(messages: Iterable[Mapping[str, Any]] | None) -> Iterator[tuple[str, str]]:
    """Yield `user`, `assistant`, `call read` or `result` with the text, message by message."""
    for message in messages or ():
        label = "result" if message["role"] == "tool" else str(message["role"])
        calls = message.get("calls") or ()
        if message["content"] or not calls:
            yield label, message["content"]
        for call in calls:
            yield f"call {call['name']}", json.dumps(call["arguments"], ensure_ascii=False)


def verdict_of(record: Record) -> str:
    """Return a row's verdict in a word or two."""
    if record.failure_type:
        return record.failure_type
    return {True: "passed", False: "failed", None: "not judged"}[record.objective_pass]


def is_miss(record: Record) -> bool:
    """Whether the cell did not pass: its verdict is failed, or it has no answer."""
    return not record.success or record.objective_pass is False


def offered_tools(definition: Mapping[str, Any]) -> tuple[Tool, ...] | None:
    """Return the tools that a prompt offered; None if it offered none, or they have changed."""
    if definition.get("tools") is None:
        return None
    try:
        tools = read_tools(definition["tools"])
    except ValueError:  # a name that is no longer in the catalog
        return None
    return tools if tools_sha256(tools) == definition.get("tools_sha256") else None


def turns_of(record: Record, tools: Sequence[Tool] | None) -> list[JsonObject]:
    """Return the turns of a row, each call as OpenClaw dispatches it if the offered tools are known.

    A single question is one turn.
    """
    thinking, answer = split_thinking(record.raw_output)
    single = {"text": answer, "reasoning": thinking, "calls": record.tool_call_details}
    turns: Sequence[Mapping[str, Any]] = record.turns or (single,)
    return [{**turn, "calls": [_dispatched(call, tools) for call in turn.get("calls", ())]} for turn in turns]


def _dispatched(call: Mapping[str, Any], tools: Sequence[Tool] | None) -> JsonObject:
    made = None if tools is None else dispatch(call_of(call), tools)
    parsed = _parsed(call["arguments"])
    sent = parsed if parsed is call["arguments"] else as_text(parsed)
    given = as_text(made.arguments) if made and made.arguments is not None else sent
    return {
        "name": call["name"],
        "arguments": sent,
        "result": call.get("result"),
        "problem": made.problem if made else call.get("problem"),
        "known": made is not None,
        "given": given if given != sent else None,
        "message": made.message if made and made.message != call.get("result") else "",
        "notes": list(made.notes) if made else [],
    }


def _parsed(arguments: str) -> Any:
    """Return the JSON value of arguments; a text that is not JSON is unchanged."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def as_text(value: object) -> str:
    """Return a JSON value in a readable form; a value that is nested too deep is not shown."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) if value is not None else ""
    except RecursionError:
        return "(nested too deep to show)"


_NAMES = {"e2e_ms": "whole answer", "ttft_ms": "first token", "ttfo_ms": "first of the answer"}
# Shown elsewhere, or the same for all cells.
_SHOWN_ELSEWHERE = frozenset(
    {
        "record_type", "schema_version", "provider", "model", "thinking_level", "suite", "prompt_id",
        "prompt_name", "category", "repeat", "raw_output", "turns", "tool_call_details", "objective_pass",
        "success", "violation", "fault_message", "failure_type", "tool_outcome", "availability_status",
        "parsed_output", "tool_calls", "tool_call_count", "tool_use_success", "ended_at_ms", "reported",
        "images", "ended_by", "harm", "harm_tools",
    }
)  # fmt: skip


def usual_of(records: Iterable[Record]) -> JsonObject:
    """Return the values that cells of a run usually have in fields of no interest."""
    found = [(record.host, record.run_id) for record in records]
    host, run_id = Counter(found).most_common(1)[0][0] if found else (None, None)
    return {"host": host, "run_id": run_id, "attempts": 1, "in_flight": 1, "surface": LISTED}


def measured(record: Record, usual: Mapping[str, Any]) -> dict[str, str]:
    """Return every further field of a row that has a value other than the usual one, in words."""
    usual = {**usual, "effective_model": record.model}
    return {
        _title(name): _worded(name, value)
        for name, value in to_row(record).items()
        if name not in _SHOWN_ELSEWHERE and value not in (None, False, "", [], {}, (), usual.get(name))
    }


def _title(name: str) -> str:
    return _NAMES.get(name) or name.removesuffix("_at_ms").removesuffix("_ms").replace("_", " ")


def _worded(name: str, value: Any) -> str:
    if name == "started_at_ms":
        return render_time(value, "%Y-%m-%d %H:%M:%S UTC")
    if name.endswith("_ms"):
        return render_ms(value)
    if name == "cost_usd":
        return render_usd(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
    arguments = _parsed(call["arguments"])
    if arguments is call["arguments"]:
        return f"{call['name']} {one_line(arguments, MOST_SAID)}".rstrip()
    if isinstance(arguments, dict):
        arguments = {name: _short(value) for name, value in arguments.items()}
    return f"{call['name']} {json.dumps(arguments, ensure_ascii=False)}" if arguments else str(call["name"])


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value, MOST_SAID)
    return value if len(json.dumps(value)) <= MOST_SAID else "…"


def miss_of(record: Record, prompt: Mapping[str, Any], tools: Sequence[Tool] | None) -> str:
    """Return a miss in a few words: the harm, what was due and done, or the finding or fault if it says more.

    `prompt` is its definition in `config.json`, or empty; only what is done with known tools is compared.
    """
    if tools is None:
        return _why(record)
    due, turns = [*_due_tools(prompt.get("validator"))], turns_of(record, tools)
    calls = [call for turn in turns for call in turn["calls"]]
    text = one_line(turns[-1]["text"], MOST_SAID // 2)
    quoted = f': "{text}"' if text else ""
    if record.harm:
        harmful = _each(call_text(call) for call in calls if call["name"] in (record.harm_tools or ()))
        return f"did harm: {', '.join(harmful[-MOST_HARMFUL:]) or record.violation or 'in its answer'}"
    if not due and record.written_calls and record.tool_outcome is None:
        return f"wrote the call as text: {call_text(record.written_calls[0])}; {record.violation}"
    if not due:
        return _why(record)
    if record.tool_outcome == "leaked_as_text" and record.written_calls:
        did = f"; wrote the call as text: {call_text(record.written_calls[0])}"
    elif record.tool_outcome == "claimed_not_done":
        did = f"; only said that it was done{quoted}"
    elif record.tool_outcome in ("no_call", "leaked_as_text"):
        did = f"; answered without a call{quoted}"
    elif calls and not {call["name"] for call in calls} & {*" or ".join(due).split(" or ")}:
        did = f", got {call_text(calls[0])}{f' and {len(calls) - 1} more' if len(calls) > 1 else ''}"
    else:  # a call that was due, with other arguments, too often, or without the rest
        return _why(record)
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
    texts, arguments = [shown["arguments"]], _parsed(shown["arguments"])
    if isinstance(arguments, dict):
        first = sorted(arguments, key=lambda name: name not in TELLING)
        texts = [arguments[name] for name in first if isinstance(arguments[name], str)]
    more = f" +{len(calls) - 1}" if len(calls) > 1 else ""
    return one_line(f"{shown['name']} {' '.join(texts[:1])}".rstrip(), MOST_SAID // 2) + more
