"""The Responses API: request bodies, events and whole responses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.openai_responses import read_responses, responses_body
from pytest_openclaw.values.faults import WireError, refused_by_server
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall
from tests.providers.servers.apis import RESPONSES, ask, reading
from tests.providers.servers.misbehaving import Script, sse

read = reading(read_responses)


def deltas(kind, *texts, **more):
    """Delta events of one kind."""
    return [{"type": f"response.{kind}.delta", "delta": text, **more} for text in texts]


def completed(**more):
    """The event that ends a stream."""
    response = {"object": "response", "status": "completed", "model": "m-served", "output": [], **more}
    return {"type": f"response.{response['status']}", "response": response}


# --- what is sent -------------------------------------------------------------------------------


def test_body():
    """The minimal body; nothing is stored at the server."""
    assert responses_body(Request(model="m", prompt="Hi")) == {
        "model": "m",
        "input": "Hi",
        "max_output_tokens": 1024,
        "temperature": 0.0,
        "stream": True,
        "store": False,
    }


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        pytest.param({"stream": False}, {"stream": False}, id="whole"),
        pytest.param({"max_output_tokens": 5}, {"max_output_tokens": 5}, id="max-tokens"),
        pytest.param({"system": "Be brief."}, {"instructions": "Be brief."}, id="system"),
        pytest.param({"thinking_level": "xhigh"}, {"reasoning": {"effort": "xhigh"}}, id="thinking"),
    ],
)
def test_body_of(request_, part):
    """Each field of a request has its place in the body."""
    body = responses_body(Request(model="m", prompt="Hi", **request_))

    assert body | part == body


def test_requests_in_flight_are_each_repeated_without_it():
    """Each of them was sent before the first refusal arrived; one without a temperature is not repeated."""
    provider = RESPONSES.provider("http://127.0.0.1:9")
    request = Request(model="m", prompt="Say hi.", temperature=0.0)
    error = WireError(status=400, message="'temperature' is not supported with this model.")
    fault, body = refused_by_server("openai_responses", "m", error), provider.body(request)

    assert [provider.adapt(request, body, fault) for _ in range(2)] == [True, True]
    assert not provider.adapt(request, provider.body(request), fault)


# --- how answers are read -----------------------------------------------------------------------


def item(key, call_id, arguments=""):
    """A call's item; None is left out."""
    said = {"id": key, "call_id": call_id, "name": "read", "arguments": arguments}
    return {"type": "function_call", **{name: value for name, value in said.items() if value is not None}}


def items(*events):
    """The events of items: (`added` or `done`, item)."""
    return [{"type": f"response.output_item.{kind}", "item": fields} for kind, fields in events]


CALL = '{"p":1}'
PIECES = ('{"p"', ":1}")
STARTED, WHOLE = (
    {"output_index": 0, "type": "response.output_item.added", "item": item("fc", "c")},
    item("fc", "c", CALL),
)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([STARTED, *deltas("function_call_arguments", *PIECES, item_id="fc"), {"type": "response.function_call_arguments.done", "item_id": "fc", "arguments": CALL}, *items(("done", WHOLE))], id="openai"),
        pytest.param([*items(("added", item(None, "c"))), *deltas("function_call_arguments", *PIECES, item_id="c"), *items(("done", item(None, "c", CALL)))], id="llama.cpp"),
        pytest.param([STARTED, *deltas("function_call_arguments", *PIECES, output_index=0)], id="deltas-by-index-alone"),
        pytest.param(items(("done", WHOLE)), id="whole-items"),
        pytest.param([], id="in-the-last-event-only"),
    ],
)  # fmt: skip
def test_tool_calls(events):
    """A call's pieces are joined once, however often a server repeats them."""
    reply = read(*events, completed(output=[WHOLE]))

    assert reply.tool_calls == (ToolCall(name="read", arguments=CALL, id="c"),)


PATHS = ('{"path": "a.md"}', '{"path": "b.md"}')
ALL_AT_ONCE = [item("fc0", "c0", PATHS[0]), item("fc1", "c1", PATHS[1])]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            [
                *items(("added", item("fc0", "c0")), ("added", item("fc1", "c1"))),
                *deltas("function_call_arguments", PATHS[0][:5], item_id="fc0"),
                *deltas("function_call_arguments", PATHS[1][:5], item_id="fc1"),
                *deltas("function_call_arguments", PATHS[0][5:], item_id="fc0"),
                *deltas("function_call_arguments", PATHS[1][5:], item_id="fc1"),
                completed(output=ALL_AT_ONCE),
            ],
            id="interleaved",
        ),
        pytest.param(
            [
                *items(("added", item("fc0", "c0"))),
                *deltas("function_call_arguments", *PATHS[0], item_id="other"),
                *items(("done", item("again", "c0", PATHS[0])), ("added", item("fc1", "c1"))),
                *deltas("function_call_arguments", *PATHS[1], item_id="another"),
                *items(("done", item("again1", "c1", PATHS[1]))),
                completed(output=ALL_AT_ONCE),
            ],
            id="another-item-id-in-each-event",
        ),
        pytest.param(
            [
                *items(("added", item(None, "c0"))),
                *deltas("function_call_arguments", PATHS[0], item_id="c0"),
                *items(("done", item("fc0", "c0", PATHS[0])), ("added", item(None, "c1"))),
                *deltas("function_call_arguments", PATHS[1], item_id="c1"),
                *items(("done", item("fc1", "c1", PATHS[1]))),
                completed(),
            ],
            id="llama.cpp-with-ids-at-the-end",
        ),
        pytest.param(
            [
                *items(("added", item("fc0", "c0"))),
                *deltas("function_call_arguments", '{"path":"a.md"}', item_id="fc0"),
                *items(("done", item("fc0", "c0", PATHS[0])), ("added", item("fc1", "c1"))),
                *deltas("function_call_arguments", '{"path":"b.md"}', item_id="fc1"),
                *items(("done", item("fc1", "c1", PATHS[1]))),
                completed(),
            ],
            id="the-end-in-other-words",
        ),
        pytest.param([*deltas("output_text", "Let me look."), completed(output=ALL_AT_ONCE)], id="text-streamed-and-calls-at-the-end"),
        pytest.param([completed(output=ALL_AT_ONCE)], id="all-at-the-end"),
    ],
)  # fmt: skip
def test_several_calls(events):
    """Each call is there once with its own arguments, however the server sends and repeats them."""
    reply = read(*events)

    assert reply.tool_calls == tuple(
        ToolCall(name="read", arguments=path, id=f"c{n}") for n, path in enumerate(PATHS)
    )


def test_done_is_no_end_mark(server):
    """`[DONE]` without `response.completed` is a stream that was cut."""
    server.enqueue(Script.stream(RESPONSES.text("Hel"), sse("[DONE]")))

    fault = ask(RESPONSES.provider(server.url))

    assert (fault.failure_type, fault.raw) == ("stream_error", "Hel")


def test_what_was_not_streamed_is_in_the_last_event():
    """A server without deltas is read by its last event; text from deltas is not read twice."""
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "type": "message",
            "content": [{"type": "output_text", "text": "Hi"}, {"type": "refusal", "refusal": "No."}],
        },
    ]

    unheard = read(completed(output=output))
    received = read(*deltas("reasoning_text", "hm"), *deltas("output_text", "Hi"), completed(output=output))

    assert (unheard.reasoning, unheard.text, unheard.refusal) == ("hm", "Hi", "No.")
    assert (received.reasoning, received.text, received.refusal) == ("hm", "Hi", "No.")


# Of few characters: a model's own repetition, which is kept.
_TEXT = st.text("a🦞\n", max_size=12)
_CALLS = st.lists(st.tuples(st.sampled_from(["read", "exec"]), _TEXT), max_size=3)


@settings(deadline=None)
@given(texts=st.lists(_TEXT, max_size=5), thoughts=st.lists(_TEXT, max_size=3), calls=_CALLS, data=st.data())
def test_a_stream_reads_like_a_whole_answer(texts, thoughts, calls, data):
    """However a reply is cut into deltas, it equals the reply from one response."""
    events = deltas("reasoning_summary_text", *thoughts) + deltas("output_text", *texts)
    for index, (name, arguments) in enumerate(calls):
        cut = data.draw(st.integers(0, len(arguments)))
        item = {
            "type": "function_call",
            "id": f"fc{index}",
            "call_id": f"c{index}",
            "name": name,
            "arguments": "",
        }
        events.append({"type": "response.output_item.added", "item": item})
        events += deltas("function_call_arguments", arguments[:cut], arguments[cut:], item_id=f"fc{index}")
    whole = RESPONSES.whole("".join(texts), "stop", "".join(thoughts), tuple(calls))

    streamed = read(*events, {"type": "response.completed", "response": whole})

    assert replace(streamed, timing=None) == replace(read(whole), timing=None)
