"""The Gemini API: paths, signed parts, chunks and whole answers."""

import pytest

from pytest_openclaw.providers.gemini import gemini_body, read_gemini
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import World
from tests.providers.servers.apis import GEMINI, GEMINI_USAGE, READ, ask, gemini_answer, play, reading
from tests.providers.servers.misbehaving import Script, sse

SIGNATURE = "EjQKMgEMOdbHmocvG1k="
SKIPPED = "skip_thought_signature_validator"
STREAM = "/v1beta/models/m:streamGenerateContent?alt=sse"
WHOLE = "/v1beta/models/m:generateContent"
read = reading(read_gemini)


def call_part(name, args, id_=None, signature=None):
    signed = {} if signature is None else {"thoughtSignature": signature}
    return {"functionCall": {**({} if id_ is None else {"id": id_}), "name": name, "args": args}, **signed}


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
LISTS = ToolCall(name="ls", arguments="{}", id="fc2")


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


def test_a_signed_turn_of_which_a_call_is_forgotten():
    """Its first call has the API's word for a missing signature."""
    turn = Turn(text="Let me look.", calls=(LISTS,), results=("a",), carried=PARTS)

    _, said, *_ = gemini_body(Request(model="m", prompt="Hi", history=(turn,)))["contents"]

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
