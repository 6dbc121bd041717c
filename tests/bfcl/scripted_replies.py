"""Replies to BFCL's cases, right and wrong, made from BFCL's own answers by rules and without chance."""

import json
from dataclasses import dataclass
from functools import partial

TOOL_TYPES = {"integer": 7, "float": 7.5, "boolean": True, "array": [], "tuple": [], "dict": {}}
"""A value of each type, where nothing says which is right."""


@dataclass(frozen=True, kw_only=True)
class BfclReply:
    """A reply as both checkers get it; `dialect` is `wire`, or the form in which its calls are written as text."""

    kind: str
    calls: tuple[tuple[str, str], ...] = ()
    text: str = ""
    dialect: str = "wire"


def scripted_replies(category, entry, answer):
    tools = {tool["name"].replace(".", "_"): tool for tool in entry["function"]}
    yield BfclReply(kind="no call", text="I cannot help with that.")
    if answer is None:
        yield from _free(tools)
        return
    language = {"simple_java": "Java", "simple_javascript": "JavaScript"}.get(category)
    makers = [_Maker(call, tools, language) for call in answer]
    right = [maker.call() for maker in makers]
    full = [maker.call(every=True) for maker in makers]
    yield _wire("right", right)
    yield _wire("right, with every optional argument", full)
    yield _wire("right, in other words", [maker.call(choice=-1, every=True) for maker in makers])
    yield from _reordered(right)
    yield from _spelled(right, full)
    yield from _wrong(right, tools)
    if language is None:
        yield from _written(right)


def _free(tools):
    """Yield replies where no call, or any call, is right."""
    yield _wire("a call of no tool", [("no_such_tool", {"a": 1})])
    if not tools:
        return
    name, tool = next(iter(tools.items()))
    call = (name, _made_up(tool))
    yield _wire("a call", [call])
    yield _wire("a call without arguments", [(name, {})])
    yield BfclReply(kind="a call that is no JSON", calls=((name, json.dumps(call[1])[:-1]),))
    yield from _written([call])


def _made_up(tool):
    parameters = tool["parameters"]
    specs = {name: parameters["properties"].get(name, {}) for name in parameters.get("required", ())}
    return {
        name: spec["enum"][0] if "enum" in spec else TOOL_TYPES.get(spec.get("type", ""), "something")
        for name, spec in specs.items()
    }


def _reordered(right):
    yield _wire("arguments in another order", [(name, dict(reversed(made.items()))) for name, made in right])
    if len(right) > 1:
        yield _wire("calls in another order", right[::-1])


def _spelled(right, full):
    def each(change):
        return [(name, change(made)) for name, made in right]

    yield _wire(
        "texts in capitals, without commas",
        each(partial(_each_text, change=lambda text: text.upper().replace(",", ""))),
    )
    yield _wire("texts with another sign", each(partial(_each_text, change=lambda text: f"${text}")))
    yield _wire("numbers and booleans as texts", each(_as_texts))
    yield _wire("lists and objects as texts", each(partial(_as_texts, nested=True)))
    yield _wire("names in capitals", [(name.upper(), made) for name, made in right])
    yield _wire("names behind `functions.`", [(f"functions.{name}", made) for name, made in right])
    pairs = zip(right, full, strict=True)
    optional = [(name, {key: made.get(key) for key in every}) for (name, made), (_, every) in pairs]
    if optional != right:
        yield _wire("null for each optional argument", optional)


def _wrong(right, tools):
    """Yield calls with one thing wrong, or one too many."""
    *before, (name, made) = right
    for key in list(made)[:3]:
        yield _wire("a wrong value", [*before, (name, {**made, key: _other(made[key])})])
        yield _wire("an argument missing", [*before, (name, {one: made[one] for one in made if one != key})])
    yield _wire("an argument too many", [*before, (name, {**made, "surplus": 1})])
    yield _wire("a call twice", [*right, right[-1]])
    yield _wire("another call of no tool", [*right, ("no_such_tool", {})])
    yield _wire("another call that is refused", [*right, *_refused(tools)])
    other = next((one for one in tools if one != name), "no_such_tool")
    yield _wire("another tool's name", [*before, (other, made)])
    if before:
        yield _wire("a call missing", before)
    sent = [(name, json.dumps(made)) for name, made in right]
    yield BfclReply(kind="a call that is no JSON", calls=(*sent[:-1], (name, sent[-1][1][:-1])))


def _refused(tools):
    return [(name, {}) for name, tool in tools.items() if tool["parameters"].get("required")][:1]


def _written(right):
    """Yield calls as text, in the forms that BFCL decodes for models without an API for tools."""
    listed = ", ".join(f"{name}({', '.join(f'{key}={made[key]!r}' for key in made)})" for name, made in right)
    yield BfclReply(kind="written as Python", text=f"[{listed}]", dialect="python")
    tagged = [json.dumps({"name": name, "arguments": made}) for name, made in right]
    text = "\n".join(f"<tool_call>\n{one}\n</tool_call>" for one in tagged)
    yield BfclReply(kind="written in `<tool_call>`", text=text, dialect="qwen")
    bare = [json.dumps({"name": name, "parameters": made}) for name, made in right]
    yield BfclReply(kind="written as bare JSON", text="; ".join(bare), dialect="llama")


class _Maker:
    """Makes a right call from an answer of BFCL."""

    def __init__(self, call, tools, language):
        ((name, self._answer),) = call.items()
        self._name = name.replace(".", "_")
        self._specs = tools[self._name]["parameters"]["properties"]
        self._required = tools[self._name]["parameters"].get("required", ())
        self._language = language

    def call(self, *, choice=0, every=False):
        """Return a call with the first or last of all alternatives, and with every optional argument or none."""
        made = {}
        for key, values in self._answer.items():
            right = [value for value in values if value != ""]
            if right and (every or "" not in values or key in self._required):
                made[key] = self._value(right[choice], self._specs.get(key, {}), choice)
            elif "" not in values:
                made[key] = []
        return self._name, made

    def _value(self, value, spec, choice):
        if isinstance(value, dict):
            value = _chosen(value, choice)
        elif isinstance(value, list):
            value = [_chosen(item, choice) if isinstance(item, dict) else item for item in value]
        if self._language is None or isinstance(value, str):
            return value
        return _as_code(value, self._language, spec["type"])


def _chosen(answer, choice):
    return {
        key: ([value for value in values if value != ""] or values)[choice]
        if isinstance(values, list)
        else values
        for key, values in answer.items()
        if not (isinstance(values, list) and "" in values and choice == 0)
    }


def _as_code(value, language, kind):
    if not isinstance(value, list | dict) or language == "JavaScript":
        return json.dumps(value) + ("L" if kind == "long" else "")
    if isinstance(value, dict):
        entries = " ".join(f"put({json.dumps(key)}, {json.dumps(inner)});" for key, inner in value.items())
        return f"new HashMap<String, Object>() {{{{ {entries} }}}}"
    items = ", ".join(map(json.dumps, value))
    return f"new Object[]{{{items}}}" if kind == "Array" else f"new ArrayList<>(Arrays.asList({items}))"


def _wire(kind, calls):
    return BfclReply(kind=kind, calls=tuple((name, json.dumps(made)) for name, made in calls))


def _each_text(value, change):
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _each_text(inner, change) for key, inner in value.items()}
    return [_each_text(inner, change) for inner in value] if isinstance(value, list) else value


def _as_texts(made, *, nested=False):
    kinds = (list, dict) if nested else (int, float)
    return {key: json.dumps(value) if isinstance(value, kinds) else value for key, value in made.items()}


def _other(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return [*value, *(value[:1] or ["another"])]
    return {**value, "another": 1} if isinstance(value, dict) else f"{value} or another"
