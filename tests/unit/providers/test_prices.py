"""The cost of calls: own prices, nothing on this machine, list prices."""

import sys
from dataclasses import replace

import pytest

from pytest_openclaw.providers import prices
from pytest_openclaw.providers.anthropic_messages import AnthropicMessages
from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.claude_code_cli import ClaudeCodeCLI
from pytest_openclaw.providers.gemini import Gemini
from pytest_openclaw.providers.llama_cpp.provider import LlamaCpp
from pytest_openclaw.providers.ollama_native import OllamaNative
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.providers.prices import Prices, total_usd
from pytest_openclaw.values import faults
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Reply, Usage
from pytest_openclaw.values.requests import Request, Target
from pytest_openclaw.values.settings import OwnPrice, Settings

AT_MS = 1_763_800_000_000
KEYS = {"OPENAI_API_KEY": "dummy", "ANTHROPIC_API_KEY": "dummy"}


def prices_of(kind, *own, url=None, name="p", **environ):
    setup = ProviderSetup(name=name, base_url=url, environ={**KEYS, **environ})
    return Prices({name: kind(setup)}, Settings(prices=own))


def target_of(model, name="p", level=None):
    return Target(provider=name, model=model, thinking_level=level)


def price(pattern, *usd):
    return OwnPrice(pattern=pattern, input_usd=usd[0], output_usd=usd[1], cached_usd=(*usd, usd[0])[2])


OPENAI, GOOGLE = "https://api.openai.com/v1", "https://generativelanguage.googleapis.com"
THOUSAND = {"input_tokens": 1000, "output_tokens": 100}
CACHED = {**THOUSAND, "cached_tokens": 400, "reasoning_tokens": 60}
WRITTEN = Usage(
    model="claude-opus-4-5-20251101",
    **THOUSAND,
    cached_tokens=500,
    cache_write_tokens=200,
    cache_write_1h_tokens=100,
)
OPUS = Usage(model="claude-opus-4-5", input_tokens=100, output_tokens=10)


@pytest.mark.parametrize(
    ("kind", "url", "model", "reply", "usd"),
    [
        # 1.75 and 14 USD a million, 0.175 from the cache: OpenAI's list of November 2026.
        pytest.param(OpenAIResponses, OPENAI, "gpt-5.3-codex", Reply(**CACHED), 600 * 1.75 + 400 * 0.175 + 100 * 14, id="cached-input-is-cheaper-and-reasoning-is-output"),
        pytest.param(OpenAIResponses, OPENAI, "my-alias", Reply(**THOUSAND, effective_model="gpt-5.3-codex"), 1000 * 1.75 + 100 * 14, id="the-model-that-answered-counts"),
        pytest.param(OpenAIResponses, OPENAI, "gpt-5.3-codex", Reply(**THOUSAND, effective_model="unknown-model"), None, id="the-model-that-answered-is-unknown"),
        pytest.param(OpenAIResponses, OPENAI, "gpt-5.3-codex", Reply(input_tokens=1000), None, id="a-count-is-unknown"),
        pytest.param(OpenAIResponses, "https://gateway.example/v1", "gpt-5.3-codex", Reply(**THOUSAND), None, id="a-gateway"),
        pytest.param(OllamaOpenAI, "http://192.168.1.20:8000/v1", "gpt-5.3-codex", Reply(**THOUSAND), None, id="a-server-of-the-network"),
        # 5 and 25 USD a million, 0.5 from the cache, 6.25 into it and 10 for an hour: Anthropic's list.
        pytest.param(ClaudeCodeCLI, None, "claude-opus-4-5", Reply(**THOUSAND, usage=(WRITTEN,)), 300 * 5 + 500 * 0.5 + 100 * 6.25 + 100 * 10 + 100 * 25, id="what-goes-into-a-cache-costs-more"),
        pytest.param(AnthropicMessages, "https://api.anthropic.com", "claude-opus-4-5", Reply(**THOUSAND), 1000 * 5 + 100 * 25, id="anthropic"),
        pytest.param(Gemini, GOOGLE, "gemini-2.5-flash", Reply(**CACHED), 600 * 0.3 + 400 * 0.03 + 100 * 2.5, id="gemini-whose-thoughts-are-output"),
        pytest.param(ClaudeCodeCLI, None, "opus", Reply(usage=(OPUS, Usage(model="claude-haiku-4-5", **THOUSAND))), 100 * 5 + 10 * 25 + 1000 * 1 + 100 * 5, id="each-request-at-the-price-of-its-model"),
        pytest.param(ClaudeCodeCLI, None, "opus", Reply(usage=(OPUS, Usage(model="smollm2:135m", **THOUSAND))), None, id="one-of-two-models-is-unknown"),
    ],
)  # fmt: skip
def test_list_prices(kind, url, model, reply, usd):
    """A reply costs the list price of the model that answered, token by token; else the cost is unknown."""
    cost = prices_of(kind, url=url).cost_usd(target_of(model), reply, AT_MS)

    assert cost == (None if usd is None else pytest.approx(usd / 1e6))


@pytest.mark.parametrize(
    ("kind", "environ", "is_free"),
    [
        pytest.param(LlamaCpp, {}, True, id="embedded"),
        pytest.param(OllamaOpenAI, {}, True, id="ollama-here"),
        pytest.param(OllamaNative, {"OLLAMA_HOST": "http://[::1]:11434"}, True, id="ollama-here-ipv6"),
        pytest.param(OllamaNative, {"OLLAMA_HOST": "http://192.168.1.9:11434"}, False, id="ollama-in-the-network"),
        pytest.param(OllamaNative, {"OLLAMA_HOST": "ollama.com"}, False, id="ollama-in-the-cloud"),
        pytest.param(OpenAIResponses, {"OPENAI_BASE_URL": "http://localhost:9/v1"}, True, id="responses-here"),
        pytest.param(OpenAIResponses, {}, False, id="openai"),
        pytest.param(ClaudeCodeCLI, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, True, id="claude-cli-here"),
        pytest.param(ClaudeCodeCLI, {}, False, id="anthropic"),
    ],
)  # fmt: skip
def test_a_server_on_this_machine_costs_nothing(kind, environ, is_free):
    """Without a count or a price a server on this machine costs 0; elsewhere the cost is unknown."""
    known = prices_of(kind, name=kind.name, **environ)
    target = target_of("some-model", kind.name)

    for result in (Reply(), faults.timed_out("p", 1.0)):
        assert known.cost_usd(target, result, AT_MS) == (0.0 if is_free else None)
    assert known.is_known(target) is is_free


@pytest.mark.parametrize(
    ("own", "model", "level", "usd"),
    [
        pytest.param([price("p/*", 2, 8, 0.5)], "m", None, 600 * 2 + 400 * 0.5 + 100 * 8, id="all-three"),
        pytest.param([price("p/*", 2, 8)], "m", None, 1000 * 2 + 100 * 8, id="cached-costs-what-input-does"),
        pytest.param([price("P/M", 2, 8)], "m", None, 1000 * 2 + 100 * 8, id="case-is-free"),
        pytest.param([price("p/m", 2, 8)], "m", "high", 1000 * 2 + 100 * 8, id="any-level"),
        pytest.param([price("p/m@low", 2, 8)], "m", "high", None, id="one-level"),
        pytest.param([price("p/*", 9, 9), price("p/m", 2, 8)], "m", None, 2800, id="the-last-line-counts"),
        pytest.param([price("q/*", 2, 8)], "m", None, None, id="another-target"),
        pytest.param([price("p/*", 0, 0)], "m", None, 0, id="nothing"),
    ],
)
def test_own_prices(own, model, level, usd):
    """The last price whose glob matches a target counts, for a million tokens of each kind."""
    known = prices_of(OllamaOpenAI, *own, url="http://192.168.1.20:8000/v1")
    reply = Reply(input_tokens=1000, cached_tokens=400, output_tokens=100)

    cost = known.cost_usd(target_of(model, level=level), reply, AT_MS)

    assert cost == (None if usd is None else pytest.approx(usd / 1e6))


def test_own_prices_go_before_list_and_machine():
    """Negotiated prices, and the cost of a private server, are known to the user only."""
    reply = Reply(**THOUSAND)
    at_openai = prices_of(OpenAIResponses, price("p/*", 1, 1), url=OPENAI)
    here = prices_of(OllamaOpenAI, price("p/*", 1, 1), url="http://127.0.0.1:9/v1")

    assert at_openai.cost_usd(target_of("gpt-5.3-codex"), reply, AT_MS) == pytest.approx(1100 / 1e6)
    assert here.cost_usd(target_of("m"), reply, AT_MS) == pytest.approx(1100 / 1e6)
    assert here.cost_usd(target_of("m"), Reply(), AT_MS) is None


def test_a_fault_costs_what_the_server_had_counted():
    """A broken stream has reported its input tokens, and they are charged."""
    known = prices_of(OllamaOpenAI, price("p/*", 2, 8), url="http://192.168.1.20:8000/v1")
    broken = faults.stream_broken("p", "lost")
    counted = replace(broken, usage=(Usage(input_tokens=1000),))

    assert known.cost_usd(target_of("m"), broken, AT_MS) is None
    assert known.cost_usd(target_of("m"), counted, AT_MS) == pytest.approx(2000 / 1e6)


@pytest.mark.parametrize(
    ("attempts", "usd"),
    [
        pytest.param([(Reply(), 0.25)], 0.25, id="one"),
        pytest.param([(faults.timed_out("p", 1.0), None), (Reply(), 0.25)], 0.25, id="fault-without-counts"),
        pytest.param([(faults.timed_out("p", 1.0), 0.5), (Reply(), 0.25)], 0.75, id="fault-with-counts"),
        pytest.param([(Reply(), 0.25), (Reply(), None)], None, id="reply-without-counts"),
        pytest.param([(faults.timed_out("p", 1.0), None)], None, id="only-a-fault"),
        pytest.param([], None, id="no-request"),
    ],
)
def test_attempts_and_turns_add_up(attempts, usd):
    """All known costs are summed up, unless that of a reply is unknown."""
    assert total_usd(attempts) == usd


def test_the_most_that_a_request_may_cost():
    """A call without counts costs at most its bytes as input, and all the output it was allowed."""
    known = prices_of(OllamaOpenAI, price("p/*", 0, 8), url="http://192.168.1.20:8000/v1")
    request = Request(model="m", prompt="Say hi.", max_output_tokens=100)

    assert known.most_usd(target_of("m"), request) == pytest.approx(800 / 1e6)


def test_without_the_extra_a_cloud_price_is_not_known(monkeypatch):
    """Without the list there is no cost, and nothing fails."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    prices._price_list.cache_clear()
    try:
        known = prices_of(OpenAIResponses, url="https://api.openai.com/v1")
        cost = known.cost_usd(target_of("gpt-5.3-codex"), Reply(input_tokens=1, output_tokens=1), AT_MS)
        assert (cost, prices.has_list()) == (None, False)
    finally:
        prices._price_list.cache_clear()
