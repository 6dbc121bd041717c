"""Compares the verdicts of BFCL's checker with ours on the same replies, and names each class of disagreement."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, permutations
from pathlib import Path

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import build_validator
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import ToolCall
from tests.bfcl.checker import check
from tests.bfcl.scripted_replies import scripted_replies
from tests.builtin import REGISTRY
from tests.docs.reference import load_file

ROOT = Path(__file__).parents[2]


@dataclass
class Tally:
    """The verdicts by kind of reply, classes of disagreement with their cases, and outcomes of written calls."""

    kinds: dict[str, Counter[str]] = field(default_factory=dict)
    classes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    written: Counter[str] = field(default_factory=Counter)
    cases: int = 0

    def add(self, case, kind, *, theirs, ours, why):
        self.kinds.setdefault(kind, Counter())[f"{theirs:d}{ours:d}"] += 1
        if theirs != ours:
            self.classes.setdefault(why, []).append((case, kind))


def load_converter():
    return load_file(ROOT / "docs/examples/bfcl_suites.py")


def compare(folder, *, every=1):
    """Compare both checkers on the replies to every n-th case of each category; `folder` takes the suites."""
    converter = load_converter()
    tally = Tally()
    for category in converter.CATEGORIES:
        has_answers = category not in converter.NO_ANSWERS
        answers = dict(converter.read(category, "possible_answer")) if has_answers else {}
        entries = dict(converter.read(category))
        for prompt in load_prompts(converter, category, folder, every=every):
            answer = answers.get(prompt.id, {}).get("ground_truth")
            entry = entries[prompt.id]
            tally.cases += 1
            for reply in scripted_replies(category, entry, answer):
                theirs = check(category, entry, answer, reply)
                judgment = judge(prompt, reply_of(reply))
                ours = judgment.verdict.passed is True
                accepts = partial(check, category, entry, answer)
                why = "" if theirs == ours else class_of(prompt, reply, judgment, accepts, theirs=theirs)
                if reply.dialect != "wire" and prompt.validator_spec["calls"]:
                    tally.written[str(judgment.tool_outcome)] += 1
                tally.add(prompt.id, reply.kind, theirs=theirs, ours=ours, why=why)
    return tally


def load_prompts(converter, category, folder, *, every=1):
    prompts, _ = converter.convert(category)
    path = folder / f"prompts_{category}.json"
    path.write_text(json.dumps(prompts[::every]), "utf-8")
    return load_suite(path, name=path.name, registry=REGISTRY).prompts


def reply_of(reply):
    calls = tuple(ToolCall(name=name, arguments=arguments) for name, arguments in reply.calls)
    return Reply(text=reply.text, tool_calls=calls, finish_reason="tool_calls" if calls else "stop")


CLASSES = {
    "converted types": (
        'OpenClaw converts an argument to the type of the schema, such as `"5"` to 5, and runs the tool',
        "the argument must be of the type of the schema, or of the answer",
    ),
    "a name in another spelling": (
        "OpenClaw ignores case and a prefix such as `functions.`",
        "names are compared exactly",
    ),
    "a refused call next to the right ones": (
        "OpenClaw answers it with an error and executes nothing else",
        "the number of calls is wrong",
    ),
    "another sign in a text": (
        "`ignore_punctuation` ignores all signs, in all texts",
        "only blanks and `,./-_*^` are ignored, but not `$`, and nothing in nested lists and names of variables",
    ),
    "another case of a text": (
        "`ignore_case` holds for all texts",
        "texts in nested lists and names of variables are compared exactly",
    ),
    "calls that fit several answers": (
        "each answer is assigned a call so that all fit, if that is possible",
        "the first call that fits an answer is taken, and is missing for a later one",
    ),
    "a value written as code": (
        "Java and JavaScript are matched as a whole: texts of an array in quotes, objects at any depth",
        "quotes in a Java array are part of its texts, nested objects are not read, what follows is ignored",
    ),
    "the tool's own types or values": (
        "the schema refuses the argument: another type, or none of its `enum`",
        "an `enum` is not checked, and a value of the answer's type is accepted",
    ),
    "null for an argument": (
        "OpenClaw converts null to 0, false or an empty text, and the tool acts on it",
        "the answer lists null",
    ),
    "arguments that are not JSON": (
        "OpenClaw repeats the request or ends the run; a call was attempted where none was due",
        "what cannot be decoded is not a call",
    ),
    "a call that OpenClaw refuses": (
        "no tool is executed, so the request was not served",
        "any call that can be decoded is enough, and is wrong where no call is due",
    ),
    "a call written as text": (
        "OpenClaw offers tools on the wire and shows such a text to the user",
        "the text is decoded as a call",
    ),
    "JSON that the prompt shows": (
        "a prompt with such JSON may be answered by it, so it is no attempt to call",
        "the text is decoded as a call",
    ),
}
"""Each class of disagreement: what we do and what BFCL does."""
UNEXPLAINED = "unexplained"
_CODE = re.compile(r"^[\[{]|\bnew \w+[<\[]")
"""An array or object in Java or JavaScript."""


def class_of(prompt, reply, judgment, accepts, *, theirs):
    """Return the class of a disagreement; `accepts` is BFCL's verdict on another reply to the case."""
    found = _why_not_ours(reply, judgment) if theirs else _why_not_theirs(prompt, reply, judgment, accepts)
    return next(found, UNEXPLAINED)


def _why_not_ours(reply, judgment):
    """Yield why only we reject a reply, by the fate of its calls."""
    made = judgment.reply.dispatched
    problems = {call.problem for call in made}
    if not reply.calls:
        yield "a call written as text"
    if "malformed_json" in problems:
        yield "arguments that are not JSON"
    if "bad_arguments" in problems:
        yield "the tool's own types or values"
    if "unknown_tool" in problems:
        yield "a call that OpenClaw refuses"
    if any("null" in arguments for _, arguments in reply.calls):
        yield "null for an argument"
    if any(_CODE.search(text) for call in made for text in _texts(call.arguments)):
        yield "a value written as code"


def _why_not_theirs(prompt, reply, judgment, accepts):
    made = judgment.reply.dispatched
    notes = " ".join(note for call in made for note in call.notes)
    if any(call.problem for call in made):
        yield "a refused call next to the right ones"
    if "was taken for" in notes:
        yield "a name in another spelling"
    if "converted" in notes or accepts(_parsed(reply)):
        yield "converted types"
    if any(accepts(replace(reply, calls=order)) for order in islice(permutations(reply.calls), 120)):
        yield "calls that fit several answers"
    if any(_CODE.search(text) for call in made for text in _texts(call.arguments)):
        yield "a value written as code"
    keys = {"ignore_punctuation": "another sign in a text", "ignore_case": "another case of a text"}
    for key, name in keys.items():
        if not judge(_without(prompt, key), reply_of(reply)).verdict.passed:
            yield name
    if not made:
        yield "JSON that the prompt shows"


def _parsed(reply):
    made = [(name, json.loads(arguments).items()) for name, arguments in reply.calls]
    calls = ((name, json.dumps({key: _value(value) for key, value in items})) for name, items in made)
    return replace(reply, calls=tuple(calls))


def _value(value):
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _without(prompt, key):
    spec = prompt.validator_spec
    calls = [{name: one for name, one in call.items() if name != key} for call in spec["calls"]]
    return replace(prompt, validator=build_validator({**spec, "calls": calls}, REGISTRY))


def _texts(value):
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)
