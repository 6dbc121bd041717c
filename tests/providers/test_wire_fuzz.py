"""Whatever a server sends, a cell ends as a reply or a fault that a row can have, and not in an error of ours."""

import ast
import copy
import json
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.asking import sending
from pytest_openclaw.asking.sending import bounded_fault, bounded_reply
from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.text import Exact
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.claude_stream import Stream
from pytest_openclaw.providers.server_errors import error_of_body
from pytest_openclaw.providers.stream import AnswerBody
from pytest_openclaw.runs.rows import record_of
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.values.faults import CallFailed, refused_by_server
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.replies import CallResult, Reply, Timing, Turn
from pytest_openclaw.values.requests import Request, Target
from pytest_openclaw.values.rows import to_row
from pytest_openclaw.values.run_files import load_schema
from tests.providers.fake_claude.cli import assistant, result
from tests.providers.servers.apis import CHAT, GEMINI, MESSAGES, READ, RESPONSES, Said, chat_chunk
from tests.providers.servers.ollama import OLLAMA
from tests.searching import examples

CALLED = Said(text="Hi.", reasoning="Hm.", calls=(("read", '{"path": "a"}'),), reason="tool_calls")
MORE = {
    "error": {
        "message": "no",
        "code": 429,
        "details": [{"retryDelay": "3s", "violations": [{"quotaId": "q"}]}],
    },
    "base_resp": {"status_code": 1002, "status_msg": "no"},
}
SIGNED = {
    "content": [{"type": "text", "text": "a", "thinking": [{"text": "b"}]}],
    "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a", "summary": "b"}],
    "extra_content": {"google": {"thought_signature": "s"}},
    "tool_calls": [
        {"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}, "extra_content": {}}
    ],
    "function_call": {"name": "read", "arguments": "{}"},
}
TIMINGS = {
    "prompt_n": 3,
    "cache_n": 1,
    "predicted_n": 5,
    "predicted_per_second": 9.5,
    "prompt_per_second": 9.5,
}
USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 5,
    "total_tokens": 8,
    "prompt_tokens_details": {"cached_tokens": 1},
}


def payloads_of(data):
    lines = (line.removeprefix("data: ") for line in data.decode().splitlines())
    return [json.loads(line) for line in lines if line.startswith("{")]


def streamed(api):
    return payloads_of(api.reasoning("Hm.") + api.text("Hi.") + api.end())


SAMPLES = {
    api.kind.name: (api, [streamed(api), [api.answer_of(CALLED)], [MORE], *more])
    for api, more in (
        (CHAT, [[chat_chunk(SIGNED), {**chat_chunk({}, "stop"), "usage": USAGE, "timings": TIMINGS}]]),
        (RESPONSES, []),
        (MESSAGES, []),
        (GEMINI, []),
        (OLLAMA, []),
    )
}
LINES = [
    {"type": "system", "subtype": "init", "tools": ["mcp__openclaw__read"]},
    *({"type": "stream_event", "event": payload} for payload in streamed(MESSAGES)),
    assistant([{"type": "tool_use", "id": "t", "name": "read", "input": {}}]),
    {"type": "user", "message": {"content": [{"tool_use_id": "t", "content": [{"text": "a"}]}]}},
    result(result="Hi.", usage={"input_tokens": 1}),
]

NUMBERS = st.sampled_from(
    [*range(-1, 20), 2**40, 2**53, 2**53 + 1, 2**64, 10**400, 0.5, 1e-320, 1e308, inf, -inf, nan]
)
TEXTS = st.text(st.characters(), max_size=8) | st.sampled_from(
    [*["stop", "error", "tool_use", "function_call", "thinking", "{"], "", "\ud800", '{"error": {"error": 1}}', "9" * 400, "a" * 5000]
)  # fmt: skip
WORDS = sorted(
    {
        word
        for module in Path(sending.__file__).parents[1].glob("providers/*.py")
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80
        for word in (node.value, *node.value.replace(".", " ").split())
    }
)
"""The names and values that readers know, and other short texts in their modules."""
KEYS = st.sampled_from(WORDS)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | TEXTS, inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def put(value, path, new, key):
    if not path:
        return {**value, key: new} if key and isinstance(value, dict) else new
    copied = copy.copy(value)
    copied[path[0]] = put(value[path[0]], path[1:], new, key)
    return copied


@st.composite
def disturbed(draw, payloads):
    events = list(payloads)
    for _ in range(draw(st.integers(0, 2)) if len(events) > 1 else 0):
        again = draw(st.sampled_from(events))
        events.insert(draw(st.integers(0, len(events))), again)
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(events) - 1))
        path = draw(st.sampled_from([*places(events[number])]))
        key = draw(st.none() | KEYS)
        events[number] = put(events[number], path, draw(VALUES), key)
    return events


def check(outcome, api):
    prompt = Prompt(
        suite="s.toml", id="P1", name="one", prompt="x", validator=Exact(value="x"), tools=(READ,)
    )
    cell = Cell(prompt=prompt, target=Target(provider="p", model="m"))
    timing = outcome.timing or Timing(started_at_ms=1, ended_at_ms=2, e2e_ms=1.0)
    judged = judge(prompt, outcome) if isinstance(outcome, Reply) else None
    row = to_row(record_of("r", cell, CallResult(result=outcome, timing=timing), judged, Redactor()))
    jsonschema.validate(json.loads(line_of(row)), load_schema("row"))
    if isinstance(outcome, Reply):
        results = ("r",) * len(outcome.tool_calls)
        turn = replace(outcome.as_turn(results=results), carried=outcome.carried)
        request = Request(model="m", prompt="x", history=(turn, Turn(user="y")), tools=(READ,))
        json.dumps(api.kind.dialect.body(request, frozenset())).encode()


def read(api, payloads, *, whole):
    """The result of a body with these events."""
    answer = Answer(streaming=not whole)
    body = AnswerBody("p", "m", api.kind.dialect, answer)
    try:
        for payload in payloads:
            data = json.dumps(payload).encode()
            body.feed(data if whole else b"data: " + data + b"\n\n")
        body.close()
    except CallFailed as failed:
        return bounded_fault(body.lost(failed.fault) or failed.fault)
    return bounded_reply(sending._checked(answer.reply()))


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", SAMPLES)
@examples(60, 2000)
@given(data=st.data())
def test_any_value_at_any_place(name, data):
    """No value of an event or answer breaks its reader, the row or the next request."""
    api, samples = SAMPLES[name]
    payloads = data.draw(disturbed(data.draw(st.sampled_from(samples))))
    check(read(api, payloads, whole=len(payloads) == 1 and data.draw(st.booleans())), api)


@pytest.mark.hypothesis
@examples(60, 2000)
@given(data=st.data(), is_exchange=st.booleans())
def test_any_line_of_the_claude_cli(data, is_exchange):
    """No value of a line breaks its reader."""
    stream = Stream(Answer, offered={"mcp__openclaw__read": "read"}, is_exchange=is_exchange)
    for line in data.draw(disturbed(LINES)):
        stream.receive_line(json.dumps(line).encode())

    reply = bounded_reply(sending._checked(stream.reply()))

    check(reply, MESSAGES)


@pytest.mark.hypothesis
@examples(100, 5000)
@given(
    body=VALUES | st.builds(lambda new: {"error": new, "metadata": {"raw": new}}, VALUES),
    status=st.integers(400, 599),
)
def test_any_error_body(body, status):
    """No value of an error breaks its reader."""
    error = error_of_body(status, json.dumps(body).encode())

    check(bounded_fault(refused_by_server("p", "m", error)), CHAT)
