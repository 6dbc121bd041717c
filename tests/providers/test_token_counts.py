"""Token counts and reading speeds of servers, in the conventions that they have."""

import pytest

from pytest_openclaw.asking.sending import ask_once
from pytest_openclaw.values.replies import Fault, Reply
from pytest_openclaw.values.requests import Request
from tests.providers.servers.apis import APIS, CHAT, MESSAGES, ask, chat_chunk, rows_in, using
from tests.providers.servers.misbehaving import Script, sse
from tests.providers.servers.ollama import OLLAMA, OllamaServer, done, lines, native


def chat(n_input, n_output, total=None, **more):
    counts = {"prompt_tokens": n_input, "completion_tokens": n_output, "total_tokens": total, **more}
    return {name: count for name, count in counts.items() if count is not None}


def cached(count, **more):
    return {"prompt_tokens_details": {"cached_tokens": count, **more}}


@pytest.mark.parametrize("row", rows_in("token_counts.jsonl"), ids=lambda row: row["id"])
def test_counts(server, stream, row):
    """Cached tokens are input and reasoning is output, whichever way a server counts; the rest is null."""
    (api,) = (api for api in APIS if api.kind.name == row["api"])
    usage, counts = row["usage"], tuple(row["counts"])
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
    end = {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 7}
    began = sse({"type": "message_start", "message": start}, event="message_start")
    server.enqueue(Script.stream(began, MESSAGES.text("Hi."), MESSAGES.end(usage=end)))

    reply = ask(MESSAGES.provider(server.url), stream=True)

    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (308, 7, 300)


SECOND_NS = 1_000_000_000
NEW = {"prompt_n": 100, "prompt_per_second": 50.0}
HIT = chat(10_000, 5)


def llama_cpp(counts, timings):
    more = {"usage": counts, "timings": timings}
    return CHAT, CHAT.whole("Hi.") | more, sse(chat_chunk({"content": "Hi."}, "stop") | more, "[DONE]")


def ollama(**counts):
    last = done(content="Hi.", **{**counts, "prompt_eval_duration": SECOND_NS})
    return OLLAMA, last, lines(last)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # input, cached, tokens per second
        pytest.param(llama_cpp(HIT, {"cache_n": 9900, **NEW}), (10_000, 9900, 50.0), id="llama-cpp"),
        pytest.param(llama_cpp(HIT, NEW), (10_000, 9900, 50.0), id="llama-cpp-before-cache-n"),
        pytest.param(llama_cpp(HIT | cached(9900), NEW), (10_000, 9900, 50.0), id="llama-cpp-in-the-usage"),
        pytest.param(llama_cpp(chat(100, 5), {"cache_n": 0, **NEW}), (100, 0, 50.0), id="llama-cpp-no-hit"),
        pytest.param(ollama(prompt_eval_count=10_000, prompt_eval_cached_count=9900), (10_000, 9900, 100.0), id="hit"),
        pytest.param(ollama(prompt_eval_count=500, prompt_eval_cached_count=0), (500, 0, 500.0), id="no-hit"),
        pytest.param(ollama(prompt_eval_count=38, prompt_eval_cached_count=38), (38, 38, None), id="all-cached"),
        pytest.param(ollama(prompt_eval_count=100, prompt_eval_cached_count=9900), (10_000, 9900, 100.0), id="apart"),
        pytest.param(ollama(prompt_eval_count=500), (500, None, None), id="not-counted"),
        pytest.param(ollama(prompt_eval_count=0), (None, None, None), id="old-versions-of-a-cached-prompt"),
    ],
)  # fmt: skip
def test_the_speed_of_new_tokens(server, stream, answer, expected):
    """The speed of reading a prompt is the speed of the tokens that were not cached."""
    api, whole, streamed = answer
    server.enqueue(Script.stream(streamed) if stream else Script.answer(whole))

    reply = ask(api.provider(server.url), stream=stream)

    assert (reply.input_tokens, reply.cached_tokens, reply.prompt_tokens_per_s) == expected


LONG = " ".join(f"word{n}" for n in range(400))
OTHER = " ".join(f"other{n}" for n in range(400))


def ask_all(requests, answers):
    left = iter(answers)

    def next_answer(_):
        counted = {"prompt_eval_count": next(left), "prompt_eval_duration": SECOND_NS}
        return Script.answer(done(content="Hi.", **counted))

    async def asking(provider):
        results = []
        for one in requests:
            request = Request(model="m", timeout_s=60.0, stream=False, **one)
            replies = [result for result in results if isinstance(result, Reply)]
            most_read = max((reply.input_tokens or 0 for reply in replies), default=0)
            results.append((await ask_once(provider, request, most_read))[0])
        return results

    with OllamaServer(next_answer) as server:
        return using(native(server.origin), asking)


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
