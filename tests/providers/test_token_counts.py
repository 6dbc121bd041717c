"""Token counts and reading speeds of servers, in the conventions that they have."""

from __future__ import annotations

import asyncio

import pytest

from pytest_openclaw.asking.sending import ask_once
from pytest_openclaw.values.replies import Fault, Reply
from pytest_openclaw.values.requests import Request
from tests.providers.servers.apis import CHAT, GEMINI, MESSAGES, RESPONSES, ask, chat_chunk, sse
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OllamaServer, answer, done, lines, native


def chat(n_input, n_output, total=None, **more):
    """Counts of chat completions."""
    counts = {"prompt_tokens": n_input, "completion_tokens": n_output, "total_tokens": total, **more}
    return {name: count for name, count in counts.items() if count is not None}


def reasoning(count):
    """OpenAI's place of reasoning tokens."""
    return {"completion_tokens_details": {"reasoning_tokens": count}}


def cached(count, **more):
    """OpenAI's place of cached tokens."""
    return {"prompt_tokens_details": {"cached_tokens": count, **more}}


def responses(n_input, n_output, total, n_reasoning=0, **details):
    """Counts of the Responses API."""
    return {
        "input_tokens": n_input,
        "output_tokens": n_output,
        "total_tokens": total,
        "output_tokens_details": {"reasoning_tokens": n_reasoning},
        "input_tokens_details": details or None,
    }


def gemini(n_input, n_output, total=None, thoughts=None, **more):
    """Counts of Gemini's API."""
    counts = {
        "promptTokenCount": n_input,
        "candidatesTokenCount": n_output,
        "totalTokenCount": total,
        "thoughtsTokenCount": thoughts,
        **more,
    }
    return {name: count for name, count in counts.items() if count is not None}


def messages(**counts):
    """Counts of the Messages API."""
    return {"output_tokens": 7, **counts}


@pytest.mark.parametrize(
    ("api", "usage", "counts"),
    [
        # input, output, reasoning, cached
        pytest.param(CHAT, chat(11, 7), (11, 7, None, None), id="chat"),
        pytest.param(CHAT, chat(11, 7, 18, **reasoning(5)), (11, 7, 5, None), id="openai-reasoning-is-output"),
        pytest.param(CHAT, chat(10120, 1499, 14428, **cached(128), **reasoning(2809)), (10120, 4308, 2809, 128), id="xai-reasoning-is-additional"),
        pytest.param(CHAT, chat(279, 6, 374, **reasoning(89)), (279, 95, 89, None), id="xai-short"),
        pytest.param(CHAT, chat(21, 0, 81, **reasoning(60)), (21, 60, 60, None), id="nothing-but-reasoning"),
        pytest.param(CHAT, chat(21, 5, **reasoning(60)), (21, 65, 60, None), id="more-reasoning-than-output"),
        pytest.param(CHAT, chat(21, 5, 26, **reasoning(60)), (21, 65, 60, None), id="left-out-of-the-total"),
        pytest.param(CHAT, chat(8, 9, 600), (8, 592, 583, None), id="gemini-over-chat-hides-reasoning"),
        pytest.param(CHAT, chat(8, 9, 12), (8, 9, None, None), id="a-total-that-is-too-small"),
        pytest.param(CHAT, chat(11, 7, 18, reasoning_tokens=5), (11, 7, 5, None), id="sglang-reasoning"),
        pytest.param(CHAT, chat(11, 7, 18, **cached(0)), (11, 7, None, 0), id="nothing-cached"),
        pytest.param(CHAT, chat(11, 7, 18, prompt_tokens_details=None), (11, 7, None, None), id="vllm-says-nothing"),
        pytest.param(CHAT, chat(11, 7, prompt_cache_hit_tokens=8, prompt_cache_miss_tokens=3), (11, 7, None, 8), id="deepseek"),
        pytest.param(CHAT, chat(11, 7, 18, cached_tokens=8), (11, 7, None, 8), id="moonshot-together"),
        pytest.param(CHAT, chat(11, 7, 18, num_cached_tokens=8), (11, 7, None, 8), id="mistral"),
        pytest.param(CHAT, chat(11, 7, 18, cache_read_input_tokens=8, **cached(0)), (11, 7, None, 8), id="two-names"),
        pytest.param(CHAT, chat(479, 373, 14164, **cached(13312)), (13791, 373, None, 13312), id="apart"),
        pytest.param(CHAT, chat(1000, 10, 1910, **cached(900)), (1900, 10, None, 900), id="apart-and-less"),
        pytest.param(CHAT, chat(100, 10, 1060, cache_creation_input_tokens=50, **cached(900)), (1050, 10, None, 900), id="apart-with-what-was-written"),
        pytest.param(CHAT, chat(100, 10, 1050, **cached(900), **reasoning(40)), (1000, 50, 40, 900), id="both-apart"),
        pytest.param(CHAT, chat(0, 7, 7), (None, 7, None, None), id="no-prompt-has-0-tokens"),
        pytest.param(RESPONSES, responses(11, 7, 18, 5, cached_tokens=3), (11, 7, 5, 3), id="responses"),
        pytest.param(RESPONSES, responses(32, 9, 135, 94), (32, 103, 94, None), id="responses-of-xai"),
        pytest.param(RESPONSES, responses(100, 7, 1007, cached_tokens=900), (1000, 7, 0, 900), id="responses-cached-apart"),
        pytest.param(GEMINI, gemini(11, 2, 18, 5, cachedContentTokenCount=3), (11, 7, 5, 3), id="gemini"),
        pytest.param(GEMINI, gemini(11, 2, None, 5), (11, 7, 5, None), id="gemini-without-total"),
        pytest.param(GEMINI, gemini(21, None, 81, 60), (21, 60, 60, None), id="gemini-nothing-but-thoughts"),
        pytest.param(GEMINI, gemini(11, 7, 18, 5), (11, 7, 5, None), id="gateway-counts-thoughts-as-output"),
        pytest.param(GEMINI, gemini(11, 2, 18), (11, 7, 5, None), id="gateway-drops-thoughts"),
        pytest.param(MESSAGES, messages(input_tokens=8, cache_read_input_tokens=300, cache_creation_input_tokens=20), (328, 7, None, 300), id="messages"),
        pytest.param(MESSAGES, messages(input_tokens=8), (8, 7, None, None), id="messages-without-cache"),
        pytest.param(MESSAGES, messages(input_tokens=8, cache_creation_input_tokens=2), (10, 7, None, None), id="messages-cached-now"),
        pytest.param(MESSAGES, messages(input_tokens=8, output_tokens_details={"thinking_tokens": 5}), (8, 7, 5, None), id="messages-thinking-is-output"),
    ],
)  # fmt: skip
def test_counts(server, stream, api, usage, counts):
    """Cached tokens are input and reasoning is output, whichever way a server counts; the rest is null."""
    whole = Script.answer(api.whole("Hi.", usage=usage))
    server.enqueue(Script.stream(api.text("Hi."), api.end(usage=usage)) if stream else whole)

    reply = ask(api.provider(server.url), stream=stream)

    assert (reply.input_tokens, reply.output_tokens, reply.reasoning_tokens, reply.cached_tokens) == counts
    (used,) = reply.usage
    assert (used.input_tokens, used.output_tokens, used.cached_tokens) == (counts[0], counts[1], counts[3])
    assert used.cache_write_tokens == usage.get("cache_creation_input_tokens")


@pytest.mark.parametrize("holder", ["choice", "x_groq"])
def test_a_stream_with_the_counts_in_another_place(server, holder):
    """Moonshot has the usage in the last chunk's choice, Groq in an object of its own."""
    last = chat_chunk({}, "stop")
    place = last["choices"][0] if holder == "choice" else last.setdefault(holder, {})
    place["usage"] = chat(19, 13, 32, cached_tokens=16)
    server.enqueue(Script.stream(CHAT.text("Hi."), sse(last, "[DONE]")))

    reply = ask(CHAT.provider(server.url), stream=True)

    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (19, 13, 16)


def test_zeros_at_the_end_replace_no_counts(server):
    """Gateways repeat the counts of the start as zeros."""
    start = {"model": "m", "usage": {"input_tokens": 8, "cache_read_input_tokens": 300, "output_tokens": 0}}
    end = messages(input_tokens=0, cache_read_input_tokens=0)
    began = sse({"type": "message_start", "message": start}, event="message_start")
    server.enqueue(Script.stream(began, MESSAGES.text("Hi."), MESSAGES.end(usage=end)))

    reply = ask(MESSAGES.provider(server.url), stream=True)

    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (308, 7, 300)


@pytest.mark.parametrize(
    ("counts", "timings", "expected"),
    [
        # input, cached, tokens per second
        pytest.param(chat(10_000, 5), {"cache_n": 9900, "prompt_n": 100, "prompt_per_second": 50.0}, (10_000, 9900, 50.0), id="llama-cpp"),
        pytest.param(chat(10_000, 5), {"prompt_n": 100, "prompt_per_second": 50.0}, (10_000, 9900, 50.0), id="before-cache-n"),
        pytest.param(chat(10_000, 5, **cached(9900)), {"prompt_n": 100, "prompt_per_second": 50.0}, (10_000, 9900, 50.0), id="in-the-usage"),
        pytest.param(chat(100, 5), {"cache_n": 0, "prompt_n": 100, "prompt_per_second": 50.0}, (100, 0, 50.0), id="no-hit"),
    ],
)  # fmt: skip
def test_llama_cpp_times_new_tokens(server, stream, counts, timings, expected):
    """Its prompt speed is the speed of the tokens that were not cached."""
    body = {**CHAT.whole("Hi.", usage=counts), "timings": timings}
    last = {**chat_chunk({}, "stop"), "usage": counts, "timings": timings}
    server.enqueue(Script.stream(CHAT.text("Hi."), sse(last, "[DONE]")) if stream else Script.answer(body))

    reply = ask(CHAT.provider(server.url), stream=stream)

    assert (reply.input_tokens, reply.cached_tokens, reply.prompt_tokens_per_s) == expected


SECOND_NS = 1_000_000_000


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # input, cached, tokens per second
        pytest.param({"prompt_eval_count": 10_000, "prompt_eval_cached_count": 9900}, (10_000, 9900, 100.0), id="hit"),
        pytest.param({"prompt_eval_count": 500, "prompt_eval_cached_count": 0}, (500, 0, 500.0), id="no-hit"),
        pytest.param({"prompt_eval_count": 38, "prompt_eval_cached_count": 38}, (38, 38, None), id="all-cached"),
        pytest.param({"prompt_eval_count": 100, "prompt_eval_cached_count": 9900}, (10_000, 9900, 100.0), id="apart"),
        pytest.param({"prompt_eval_count": 500}, (500, None, None), id="not-said"),
        pytest.param({"prompt_eval_count": 0}, (None, None, None), id="old-versions-of-a-cached-prompt"),
    ],
)  # fmt: skip
def test_ollama_times_new_tokens(server, stream, counts, expected):
    """Its duration is the time of the tokens that were not cached."""
    last = done(content="Hi.", **{**counts, "prompt_eval_duration": SECOND_NS})
    server.enqueue(answer(lines(last)) if stream else Script.answer(last))

    reply = ask(native(server.origin), stream=stream)

    assert (reply.input_tokens, reply.cached_tokens, reply.prompt_tokens_per_s) == expected


# --- several requests to one model ----------------------------------------------------------------

LONG = " ".join(f"word{n}" for n in range(400))
OTHER = " ".join(f"other{n}" for n in range(400))


def ask_all(requests, answers):
    """Ask Ollama one request after another; each answer is the count of its prompt, read in a second."""
    left = iter(answers)

    def next_answer(body):
        del body
        counted = {"prompt_eval_count": next(left), "prompt_eval_duration": SECOND_NS}
        return Script.answer(done(content="Hi.", **counted))

    async def asking(url):
        provider = native(url)
        results: list[Reply | Fault] = []
        try:
            for one in requests:
                request = Request(model="m", timeout_s=60.0, stream=False, **one)
                replies = [result for result in results if isinstance(result, Reply)]
                most_read = max((reply.input_tokens or 0 for reply in replies), default=0)
                results.append((await ask_once(provider, request, most_read))[0])
            return results
        finally:
            await provider.aclose()

    with OllamaServer(next_answer) as server:
        return asyncio.run(asking(server.origin))


@pytest.mark.parametrize(
    ("requests", "counted", "cut"),
    [
        pytest.param([{"prompt": LONG}] * 3, [640, 4, 4], [False] * 3, id="only-new-tokens-are-counted"),
        pytest.param([{"prompt": "Hi.", "system": LONG}, {"prompt": "What is it?", "system": LONG}], [640, 90], [False, False], id="new-tokens-after-a-shared-system-prompt"),
        pytest.param([{"prompt": LONG}], [4], [False], id="cached-by-an-earlier-run"),
        pytest.param([{"prompt": LONG}] * 2, [200, 200], [True, True], id="cut-each-time"),
        pytest.param([{"prompt": LONG}, {"prompt": f"{LONG} {OTHER} {LONG}"}], [640, 700], [False, True], id="grown-beyond"),
        pytest.param([{"prompt": LONG}, {"prompt": f"{LONG} {OTHER} {LONG}"}], [640, 330], [False, True], id="cut-in-half"),
    ],
)  # fmt: skip
def test_cut_prompts(requests, counted, cut):
    """A cut prompt is found, and a count of new tokens is not taken for one."""
    results = ask_all(requests, counted)

    assert [isinstance(one, Fault) for one in results] == cut
    assert all(isinstance(one, Reply) or one.failure_type == "context_overflow" for one in results)
