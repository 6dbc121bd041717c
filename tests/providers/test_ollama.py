"""Ollama: how its two APIs are read, and which models are asked about images."""

from math import inf

import pytest

from pytest_openclaw.providers.chat_completions import OllamaOpenAI, read_chat
from pytest_openclaw.providers.ollama_native import read_ollama
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Image, Reply
from tests.images import png
from tests.providers.servers.apis import ask, chat_chunk, described, reading
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import COUNTS, OLLAMA, SPEED, OllamaServer, done

read = reading(read_chat)
read_native = reading(read_ollama)


def whole(message, finish_reason="stop", **more):
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}], **more}


@pytest.mark.parametrize(
    ("message", "text", "reasoning", "refusal"),
    [
        pytest.param({"content": "a"}, "a", "", None, id="text"),
        pytest.param({"content": None}, "", "", None, id="no-text"),
        pytest.param({"content": "a", "reasoning_content": "b"}, "a", "b", None, id="reasoning_content"),
        pytest.param({"content": "a", "reasoning": "b"}, "a", "b", None, id="reasoning"),
        pytest.param({"content": "a", "thinking": "b"}, "a", "b", None, id="thinking"),
        pytest.param({"reasoning": "b", "reasoning_content": "b"}, "", "b", None, id="one-thought-under-two-names"),
        pytest.param({"content": None, "refusal": "No."}, "", "", "No.", id="refusal"),
        pytest.param({"content": [{"type": "text", "text": "a"}, "b"]}, "ab", "", None, id="parts"),
        pytest.param({"content": [{"type": "refusal", "refusal": "No."}]}, "", "", "No.", id="refusal-part"),
        pytest.param({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "b"}]}, {"type": "text", "text": "a"}]}, "a", "b", None, id="thinking-part"),
        pytest.param({"content": [{"type": "thinking", "thinking": "b"}]}, "", "b", None, id="thinking-part-of-text"),
        pytest.param({"content": 5, "tool_calls": "x", "refusal": {}}, "", "", None, id="nonsense"),
    ],
)  # fmt: skip
def test_channels(message, text, reasoning, refusal):
    """Text, reasoning and refusal are kept apart, by whatever names, streamed or whole."""
    for reply in (read(whole(message)), read(chat_chunk(message), chat_chunk({}, "stop"))):
        assert (reply.text, reply.reasoning, reply.refusal) == (text, reasoning, refusal)


def chat(usage=None, **timings):
    return read(whole({"content": "a"}, usage=usage, timings=timings))


def ollama(**counts):
    return read_native(done(content="a", **counts))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        # input, output, tokens per second
        pytest.param(chat(predicted_n=20, predicted_per_second=104.25), (None, None, 104.25), id="llama.cpp"),
        pytest.param(chat(predicted_n=1, predicted_per_second=1e6), (None, None, None), id="of-one-token"),
        pytest.param(chat(predicted_n=20, predicted_per_second=inf), (None, None, None), id="infinite"),
        pytest.param(chat(predicted_n=20, predicted_per_second="fast"), (None, None, None), id="words"),
        pytest.param(read(whole({"content": "a"}, timings=[1])), (None, None, None), id="a-list"),
        pytest.param(chat({}), (None, None, None), id="chat-empty"),
        pytest.param(chat({"prompt_tokens": "11", "completion_tokens": True}), (None, None, None), id="chat-types"),
        pytest.param(chat({"prompt_tokens": -1, "completion_tokens": 1.5}), (None, None, None), id="chat-values"),
        pytest.param(chat({"prompt_tokens": 2**53 + 1, "completion_tokens": 10**30}), (None, None, None), id="chat-size"),
        pytest.param(ollama(**COUNTS), (11, 7, SPEED), id="ollama"),
        pytest.param(ollama(prompt_eval_count=None), (None, 7, SPEED), id="ollama-no-prompt"),
        pytest.param(ollama(eval_duration=0), (11, 7, None), id="ollama-no-time"),
        pytest.param(ollama(eval_duration="long"), (11, 7, None), id="ollama-no-number"),
        pytest.param(ollama(eval_count=1), (11, 1, None), id="ollama-of-one-token"),
        pytest.param(ollama(prompt_eval_count=-1, eval_count=1.5), (None, None, None), id="ollama-values"),
        pytest.param(ollama(prompt_eval_count=True, eval_count="7"), (None, None, None), id="ollama-types"),
    ],
)  # fmt: skip
def test_counts_and_speeds(reply, expected):
    """A missing or invalid figure is None and never 0; a speed is the server's own."""
    assert (reply.input_tokens, reply.output_tokens, reply.tokens_per_s) == expected
    assert reply.cached_tokens is None


@pytest.mark.parametrize("name", ["ollama_native", "ollama_openai"])
def test_a_model_without_vision_is_not_asked_about_images(name):
    """Ollama has many a model answer without the images; prompts without images are asked."""
    image = Image(path="chart.png", media_type="image/png", data=png())
    models = {"m:latest": ["completion"], "sees:latest": ["completion", "vision"]}
    with OllamaServer(models=models) as server:

        def provider():
            kind = OLLAMA.kind if name == "ollama_native" else OllamaOpenAI
            return kind(ProviderSetup(name=name, environ={"OLLAMA_HOST": server.url}))

        fault = ask(provider(), images=(image,))
        asked = [request.path for request in server.requests]
        replies = [ask(provider()), ask(provider(), model="sees", images=(image,))]

    assert described(fault)[:3] == (
        "no_image_input",
        "skipped_unavailable",
        f"{name}: not asked: the server says that m takes no images. Ask a model with vision.",
    )
    assert (fault.sent, fault.scope, fault.retryable) == (False, "cell", False)
    assert asked == ["/api/show"]
    assert [type(reply) for reply in replies] == [Reply, Reply]


def test_another_server_is_asked_about_images(api, server):
    """Only Ollama says which of its models take them."""
    answer = Script.answer(api.whole("Hi."))
    server.on("*", lambda request: answer if api.answers(request.path) else Script.answer(status=404))

    reply = ask(
        api.provider(server.url),
        images=(Image(path="a.png", media_type="image/png", data=png()),),
        stream=False,
    )

    assert reply.text == "Hi."
