"""The Gemini API: what is sent, and how chunks and whole answers are read."""

from __future__ import annotations

import pytest

from pytest_openclaw.providers.gemini import gemini_body, read_gemini
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from pytest_openclaw.values.worlds import World
from tests.providers.servers.apis import GEMINI, GEMINI_USAGE, ask, gemini_answer, play, reading
from tests.providers.servers.misbehaving import Script, pieces, sse

PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = Tool(name="read", description="Reads a file.", parameters=PARAMETERS)
SIGNATURE = "EjQKMgEMOdbHmocvG1k="
STREAM = "/v1beta/models/m:streamGenerateContent?alt=sse"
WHOLE = "/v1beta/models/m:generateContent"


read = reading(read_gemini)


def call_part(name, args, id_=None, signature=None):
    """A part that calls a function."""
    part = {
        "functionCall": {"name": name, "args": args}
        if id_ is None
        else {"id": id_, "name": name, "args": args}
    }
    return part if signature is None else {**part, "thoughtSignature": signature}


PARTS = (
    {"text": "I should ", "thought": True},
    {"text": "read it.", "thought": True},
    {"text": "Let me"},
    {"text": " look."},
    call_part("read", {"path": "a.md"}, "fc1", SIGNATURE),
    call_part("ls", {}, "fc2"),
)
THINKS_AND_CALLS = [
    gemini_answer(PARTS[0], usage={"promptTokenCount": 11, "thoughtsTokenCount": 3, "totalTokenCount": 14}),
    *(gemini_answer(part) for part in PARTS[1:4]),
    gemini_answer(*PARTS[4:]),
    gemini_answer({"text": ""}, reason="stop", usage=GEMINI_USAGE),
]
"""A stream of a model that thinks; only the first call of an answer is signed:
https://ai.google.dev/gemini-api/docs/thought-signatures"""
READS = ToolCall(name="read", arguments='{"path": "a.md"}', id="fc1")
LISTS = ToolCall(name="ls", arguments="{}", id="fc2")


# --- what is sent -------------------------------------------------------------------------------


def test_body():
    """The least that says what is asked; model and streaming are in the path."""
    assert gemini_body(Request(model="m", prompt="Hi")) == {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {"maxOutputTokens": 1024, "temperature": 0.0},
    }


def test_a_system_prompt_and_tools():
    """Schemas of tools are sent whole, since the older `parameters` takes a part of JSON Schema only."""
    body = gemini_body(Request(model="m", prompt="Hi", system="Be brief.", tools=(READ,)))

    declared = {"name": "read", "description": "Reads a file.", "parametersJsonSchema": PARAMETERS}
    assert body["tools"] == [{"functionDeclarations": [declared]}]
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}


@pytest.mark.parametrize(
    ("model", "stream", "path"),
    [
        pytest.param("m", True, STREAM, id="stream"),
        pytest.param("m", False, WHOLE, id="whole"),
        pytest.param("models/m", False, WHOLE, id="full-name"),
        pytest.param("tunedModels/mine", False, "/v1beta/tunedModels/mine:generateContent", id="tuned"),
        pytest.param("a b?c", False, "/v1beta/models/a%20b%3Fc:generateContent", id="odd-characters"),
    ],
)
def test_paths(server, model, stream, path):
    """The model is a part of the path, and cannot leave it."""
    server.on(path, Script.answer(GEMINI.whole()))

    reply = ask(GEMINI.provider(server.url), model=model, stream=stream)

    assert (reply.text, [request.path for request in server.requests]) == ("Hi.", [path])


# --- conversations ------------------------------------------------------------------------------


def contents(*history):
    """What is sent after the prompt."""
    return gemini_body(Request(model="m", prompt="Hi", history=history))["contents"][1:]


def test_signed_parts_are_sent_back_as_they_were():
    """Each part keeps its place and its signature."""
    said, _ = contents(Turn(text="Let me look.", calls=(READS, LISTS), results=("a", "b"), carried=PARTS))

    assert said == {"role": "model", "parts": [*PARTS]}


SKIPPED = "skip_thought_signature_validator"


def test_a_signed_turn_of_which_a_call_is_forgotten():
    """Its first call has the API's word for a missing signature."""
    said, *_ = contents(Turn(text="Let me look.", calls=(LISTS,), results=("a",), carried=PARTS))

    assert said["parts"] == [{"text": "Let me look."}, {**PARTS[5], "thoughtSignature": SKIPPED}]


def test_signatures_reach_the_next_request(server):
    """In a scripted exchange the server gets its parts back; neither reply nor turns keep them."""
    server.enqueue(Script.stream(sse(*THINKS_AND_CALLS)), Script.answer(GEMINI.whole("Done.")))

    reply = play(GEMINI.provider(server.url), tools=(READ,), world=World(files={"a.md": "alpha"}))

    _, second = (request.json["contents"] for request in server.requests)
    assert second[1] == {"role": "model", "parts": [*PARTS, {"text": ""}]}
    assert "alpha" in second[2]["parts"][0]["functionResponse"]["response"]["output"]
    assert (reply.text, len(reply.turns), reply.input_tokens) == ("Done.", 2, 11 + 11)
    assert (reply.carried, [turn.carried for turn in reply.turns]) == ((), [(), ()])


# --- how answers are read -----------------------------------------------------------------------


def test_a_stream_of_gemini(server):
    """A stream as the API sends it: thoughts, text and two calls, cut anywhere."""
    data = sse(*THINKS_AND_CALLS)
    server.enqueue(Script.stream(*pieces(data, range(7, len(data), 13))))

    reply = ask(GEMINI.provider(server.url))

    assert (reply.text, reply.reasoning, reply.tool_calls) == (
        "Let me look.",
        "I should read it.",
        (READS, LISTS),
    )
    assert (reply.finish_reason, reply.effective_model) == ("tool_calls", "m-served")
    counts = (reply.input_tokens, reply.output_tokens, reply.reasoning_tokens, reply.cached_tokens)
    assert counts == (11, 7, 5, 3)
    assert 0 <= reply.timing.ttft_ms <= reply.timing.ttfo_ms <= reply.timing.e2e_ms


def test_what_is_carried():
    """Every part is kept as it was."""
    assert read(*THINKS_AND_CALLS).carried == (*PARTS, {"text": ""})


def test_a_blocked_prompt(server, stream):
    """A prompt that is blocked has no candidates; it was filtered, and what was read is counted."""
    payload = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 11, "totalTokenCount": 11},
        "modelVersion": "m-served",
    }
    server.enqueue(Script.stream(sse(payload)) if stream else Script.answer(payload))

    reply = ask(GEMINI.provider(server.url), stream=stream)

    assert (reply.raw, reply.finish_reason, reply.input_tokens) == (
        "PROHIBITED_CONTENT",
        "content_filter",
        11,
    )


@pytest.mark.parametrize(
    ("part", "calls"),
    [
        pytest.param(
            call_part("read", {"path": "ü"}, "fc1"), [("read", '{"path": "ü"}', "fc1")], id="with-an-id"
        ),
        pytest.param(call_part("read", {"path": "a"}), [("read", '{"path": "a"}', None)], id="without-an-id"),
        pytest.param({"functionCall": {"name": "ls"}}, [("ls", "{}", None)], id="without-arguments"),
        pytest.param({"functionCall": {"args": {"path": "a"}}}, [], id="without-a-name"),
        pytest.param({"functionCall": "read"}, [], id="no-object"),
    ],
)
def test_tool_calls(part, calls):
    """A call always comes whole."""
    reply = read(gemini_answer(part, reason="stop"))

    assert [(call.name, call.arguments, call.id) for call in reply.tool_calls] == calls


BUSY = {
    "code": 429,
    "status": "RESOURCE_EXHAUSTED",
    "message": "You exceeded your current quota, please check your plan and billing details.",
    "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "15.5s"}],
}
"""An error as Google's services word it: https://cloud.google.com/apis/design/errors."""


@pytest.mark.parametrize(
    ("script", "wait_s"),
    [
        pytest.param(Script.answer({"error": BUSY}, status=429), 15.5, id="in-the-body"),
        pytest.param(Script.stream(sse({"error": BUSY})), 15.5, id="in-a-stream"),
        pytest.param(Script.answer({"error": BUSY}, status=429, retry_after="3"), 3.0, id="header-first"),
    ],
)
def test_a_wait(server, script, wait_s):
    """It may be in the body; a header is of the server that answers, and the body of the one behind it."""
    server.enqueue(script)

    fault = ask(GEMINI.provider(server.url))

    assert (fault.failure_type, fault.retryable, fault.retry_after_s) == ("http_429", True, wait_s)
