"""Native calls as servers stream them: each shape was observed, or is documented by its maker."""

import json
import time

import pytest

from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.anthropic_messages import read_messages
from pytest_openclaw.providers.chat_completions import read_chat
from pytest_openclaw.providers.gemini import read_gemini
from pytest_openclaw.providers.ollama_native import read_ollama
from pytest_openclaw.providers.openai_responses import read_responses
from pytest_openclaw.values.tool_calls import ToolCall
from tests.providers.servers import ollama
from tests.providers.servers.apis import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    ask,
    chat_chunk,
    event,
    gemini_answer,
    reading,
    rows_in,
)
from tests.providers.servers.misbehaving import Script, sse

read = reading(read_chat)


def function(name=None, arguments=None, **more):
    said = {"name": name, "arguments": arguments}
    return {**more, "function": {key: value for key, value in said.items() if value is not None}}


def read_call_lines(*sent):
    """Ollama's calls in one line; they may also be in a whole answer or in a line each."""
    replies = [
        reading(read_ollama)(ollama.said(tool_calls=[*sent]), ollama.done()),
        reading(read_ollama)(ollama.done(message={"tool_calls": [*sent]})),
        reading(read_ollama)(*(ollama.said(tool_calls=[one]) for one in sent), ollama.done()),
    ]
    assert {reply.tool_calls for reply in replies} == {replies[0].tool_calls}
    return replies[0]


READERS = {
    "chat": lambda *sent: read(
        *(chat_chunk({"tool_calls": one}) for one in sent), chat_chunk({}, "tool_calls")
    ),
    "responses": reading(read_responses),
    "messages": reading(read_messages),
    "gemini": reading(read_gemini),
    "ollama": read_call_lines,
}


@pytest.mark.parametrize("row", rows_in("tool_calls.jsonl"), ids=lambda row: row["id"])
def test_calls_as_servers_send_them(row):
    """Fragments and events of servers and gateways give the model's calls: none lost, doubled or malformed."""
    reply = READERS[row["api"]](*row["sent"])

    made = [[call.name, call.arguments, call.id] for call in reply.tool_calls]
    assert made == [[*call, *one[len(call) :]] for call, one in zip(row["calls"], made, strict=True)]


def calls_of(reply):
    return [(call.name, call.arguments) for call in reply.tool_calls]


OSLO, ROME = '{"city": "Oslo"}', '{"city": "Rome"}'
BOTH = [("get", OSLO), ("get", ROME)]
A, B = (function("get", city, index=n, id=id_) for n, (city, id_) in enumerate(((OSLO, "a"), (ROME, "b"))))


def whole(*calls):
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param([{"id": "a"}, {"id": "b"}], id="ids"),
        pytest.param([{}, {}], id="no-ids"),
        pytest.param([{"id": "x"}, {"id": "x"}], id="one-id"),
        pytest.param([{"index": 0, "id": ""}, {"index": 0, "id": ""}], id="one-index"),
        pytest.param([{"index": 1}, {"index": 0}], id="another-order"),
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(('{"path": "a"}', '{"path": "b"}'), id="different"),
        pytest.param(('{"path": "a"}', '{"path": "a"}'), id="equal"),
        pytest.param(('{"path": ', '{"path": "a"}'), id="broken"),
        pytest.param(("", ""), id="none"),
    ],
)
def test_each_entry_of_a_whole_message_is_a_call(more, arguments):
    """Whole calls are not joined, whatever numbers and ids they have."""
    entries = [function("read", text, **rest) for text, rest in zip(arguments, more, strict=True)]

    reply = read(whole(*entries))

    assert calls_of(reply) == [("read", text) for text in arguments]


def test_the_older_form():
    """`function_call` is read, in pieces too."""
    parts = ({"name": "get", "arguments": ""}, {"arguments": OSLO[:5]}, {"arguments": OSLO[5:]})
    deltas = [chat_chunk({"function_call": part, "tool_calls": None}) for part in parts]

    assert calls_of(read(*deltas)) == BOTH[:1]


def test_calls_in_later_choices(server, stream):
    """Copilot sends the text as the first choice, and each call as a further one."""
    messages = [{"content": "I look."}, *({"tool_calls": [{**one, "index": 0}]} for one in (A, B))]
    kind = "delta" if stream else "message"
    choices = [{"index": n, kind: one, "finish_reason": "tool_calls"} for n, one in enumerate(messages)]
    one_each = [{"object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    server.enqueue(
        Script.stream(sse(*one_each, "[DONE]"))
        if stream
        else Script.answer({"object": "chat.completion", "choices": choices})
    )

    reply = ask(CHAT.provider(server.url), stream=stream)

    assert (reply.text, calls_of(reply)) == ("I look.", BOTH)


TOOL = {"type": "tool_use", "id": "a", "name": "get", "input": {"city": "Oslo"}}
STARTED = event({"type": "content_block_start", "index": 0, "content_block": TOOL})
PART = sse(gemini_answer({"functionCall": {"id": "a", "name": "get", "args": {"city": "Oslo"}}}))


def _function(kind, **more):
    item = {"type": "function_call", "name": "get", "call_id": "a", "arguments": "", **more}
    return event({"type": f"response.output_item.{kind}", "output_index": 0, "item": item})


@pytest.mark.parametrize(
    ("api", "events"),
    [
        pytest.param(MESSAGES, [STARTED, event(MESSAGES.whole(None) | {"content": [TOOL]})], id="messages-whole-at-the-start-and-the-end"),
        pytest.param(RESPONSES, [_function("added", id="1"), _function("done", id="2", arguments=OSLO)], id="responses-other-item-ids"),
        pytest.param(GEMINI, [PART, PART], id="gemini-the-same-id-again"),
    ],
)  # fmt: skip
def test_a_call_sent_again_is_made_once(server, api, events):
    """The other APIs' gateways repeat calls too."""
    server.enqueue(Script.stream(*events, api.end("tool_calls", text=None)))

    assert calls_of(ask(api.provider(server.url))) == BOTH[:1]


@pytest.mark.parametrize("is_again", [False, True], ids=["others", "again"])
def test_thousands_of_calls(is_again):
    """All calls after the first 300 are left out: comparing each with each would block other requests."""
    began = time.process_time()
    lots = (
        [function("read", {"n": one, "text": "x" * 200}) for one in range(n, n + 50)]
        for n in range(0, 3000, 50)
    )
    lines = [ollama.said(tool_calls=lot) for lot in lots]

    reply = reading(read_ollama)(*lines, *(reversed(lines) if is_again else ()), ollama.done())

    assert len(reply.tool_calls) == 300
    assert time.process_time() - began < 10


MILLIONS = [{}] * 3_000_000


@pytest.mark.parametrize(
    ("api", "payload"),
    [
        pytest.param(CHAT, {"choices": MILLIONS}, id="choices"),
        pytest.param(CHAT, {"choices": [{"delta": {"tool_calls": MILLIONS}}]}, id="calls"),
        pytest.param(CHAT, {"choices": [{"delta": {"content": MILLIONS}}]}, id="content"),
        pytest.param(RESPONSES, {"object": "response", "output": MILLIONS}, id="output"),
        pytest.param(MESSAGES, {"type": "message", "content": MILLIONS}, id="blocks"),
        pytest.param(GEMINI, {"candidates": [{"content": {"parts": MILLIONS}}]}, id="parts"),
        pytest.param(ollama.OLLAMA, {"message": {"tool_calls": MILLIONS}}, id="ollama"),
    ],
)
def test_millions_of_items(api, payload):
    """All items of an array after the first 10,000 are left out: reading them would block other requests."""
    began = time.process_time()

    assert reading(api.kind.dialect.read)(*[payload] * 9).text == ""
    assert time.process_time() - began < 5


@pytest.mark.parametrize("piece", ["x", "{", "{}", "}"])
def test_arguments_in_pieces_of_one_byte(piece):
    """Their time is linear: 60,000 pieces would take minutes if each read all before it."""
    began = time.process_time()
    answer = Answer()
    answer.receive_tool_call(ToolCall(id="c", name="read", arguments='{"path": "'), key=0)
    for _ in range(60_000):
        answer.receive_tool_call(ToolCall(name="", arguments=piece), key=0)
    answer.receive_tool_call(ToolCall(name="", arguments='"}'), key=0)

    (call,) = answer.reply().tool_calls
    assert json.loads(call.arguments) == {"path": piece * 60_000}
    assert time.process_time() - began < 15
