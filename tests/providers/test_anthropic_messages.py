"""The Messages API: signed thinking, events and whole messages."""

from pytest_openclaw.providers.anthropic_messages import messages_body, read_messages
from pytest_openclaw.values.replies import Turn, Usage
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import World
from tests.providers.servers.apis import MESSAGES, READ, ask, event, play, reading
from tests.providers.servers.messages import deltas, ended, start, stop
from tests.providers.servers.misbehaving import Script, sse

SIGNATURE = "EqQBCkYIBRgCKkB="
read = reading(read_messages)


def began(**usage):
    message = {
        **MESSAGES.whole(None),
        "stop_reason": None,
        "usage": {"input_tokens": 8, "output_tokens": 1, **usage},
    }
    return {"type": "message_start", "message": message}


THINKS_AND_CALLS = [
    began(cache_read_input_tokens=3, cache_creation_input_tokens=2),
    {"type": "ping"},
    start(0, "thinking", thinking="", signature=""),
    *deltas(0, "thinking_delta", "thinking", "I should ", "read it."),
    *deltas(0, "signature_delta", "signature", SIGNATURE),
    stop(0),
    start(1, "redacted_thinking", data="c2VjcmV0"),
    stop(1),
    start(2, "text", text=""),
    *deltas(2, "text_delta", "text", "Let me", " look."),
    stop(2),
    start(3, "tool_use", id="toolu_1", name="read", input={}),
    *deltas(3, "input_json_delta", "partial_json", "", '{"path": "a', '.md"}'),
    stop(3),
    start(4, "tool_use", id="toolu_2", name="ls", input={}),
    stop(4),
    *ended("tool_use"),
]
"""A stream as the API sends it: https://platform.claude.com/docs/en/build-with-claude/streaming"""
CARRIED = (
    {"type": "thinking", "thinking": "I should read it.", "signature": SIGNATURE},
    {"type": "redacted_thinking", "data": "c2VjcmV0"},
)
LISTS = ToolCall(name="ls", arguments="{}", id="toolu_2")
SAID = [
    *CARRIED,
    {"type": "text", "text": "Let me look."},
    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.md"}},
    {"type": "tool_use", "id": "toolu_2", "name": "ls", "input": {}},
]


def test_signed_thoughts_reach_the_next_request(server):
    """In a scripted exchange the server gets its thinking back; neither reply nor turns keep it."""
    server.enqueue(Script.stream(sse(*THINKS_AND_CALLS)), Script.answer(MESSAGES.whole("Done.")))
    world = World(files={"a.md": "alpha"})

    reply = play(MESSAGES.provider(server.url), tools=(READ,), world=world, thinking_level="low")

    first, second = (request.json["messages"] for request in server.requests)
    assert [*first, *second[1:2]] == [
        {"role": "user", "content": "Say hi."},
        {"role": "assistant", "content": SAID},
    ]
    assert "alpha" in second[2]["content"][0]["content"]
    assert (reply.text, len(reply.turns), reply.input_tokens) == ("Done.", 2, 13 + 11)
    assert (reply.carried, [turn.carried for turn in reply.turns]) == ((), [(), ()])


def test_signed_thoughts_next_to_a_blank_text():
    """A blank text is left out; the thinking is before the calls."""
    turn = Turn(text=" ", calls=(LISTS,), carried=CARRIED)

    _, said = messages_body(Request(model="m", prompt="Hi", history=(turn,)))["messages"]

    assert said["content"] == [*CARRIED, SAID[-1]]


def test_thoughts_that_are_not_shown():
    """A signature without text is kept, and is not a token."""
    signed = deltas(0, "signature_delta", "signature", SIGNATURE)

    reply = read(began(), start(0, "thinking", thinking="", signature=""), *signed, stop(0), *ended())

    assert (reply.reasoning, reply.timing.ttft_ms) == ("", None)
    assert reply.carried == ({"type": "thinking", "thinking": "", "signature": SIGNATURE},)


def test_later_counts_replace_earlier_ones_each():
    """The end repeats counts, or corrects them; missing ones stay."""
    reply = read(
        began(cache_read_input_tokens=3, cache_creation={"ephemeral_1h_input_tokens": 1}),
        *ended(input_tokens=20, output_tokens_details={"thinking_tokens": 4}),
    )

    assert (reply.input_tokens, reply.cached_tokens, reply.reasoning_tokens) == (23, 3, 4)
    assert reply.usage[0].cache_write_1h_tokens == 1


def test_a_broken_stream_has_the_counts_of_its_start(server):
    """The input is charged for, even without a result; the output has no count yet."""
    server.enqueue(Script.stream(event(began(cache_read_input_tokens=3)), MESSAGES.text("Hel")))

    fault = ask(MESSAGES.provider(server.url))

    assert (fault.failure_type, fault.raw) == ("stream_error", "Hel")
    assert fault.usage == (Usage(model="m-served", input_tokens=11, cached_tokens=3),)
