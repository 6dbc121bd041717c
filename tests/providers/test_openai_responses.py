"""The Responses API: events and whole responses."""

from pytest_openclaw.providers.openai_responses import read_responses
from tests.providers.servers.apis import reading

read = reading(read_responses)


def deltas(kind, *texts, **more):
    """Delta events of one kind."""
    return [{"type": f"response.{kind}.delta", "delta": text, **more} for text in texts]


def completed(**more):
    """The event that ends a stream."""
    response = {"object": "response", "status": "completed", "model": "m-served", "output": [], **more}
    return {"type": f"response.{response['status']}", "response": response}


def test_parts_that_were_not_streamed_are_in_the_last_event():
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
