"""The real embedded engine: llama.cpp serving SmolLM2 on this machine, which sees no images."""

import asyncio
import contextlib
import hashlib
import os
import subprocess
import sys

import pytest

from pytest_openclaw.providers.anthropic_messages import AnthropicMessages
from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.llama_cpp.provider import LlamaCpp, engine_version, find_weights
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.providers.wire import fewest_tokens, most_tokens
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Image, Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from tests.e2e.processes import BOUND_S, is_gone, wait_until
from tests.images import png
from tests.providers.servers.apis import ask, described

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("embedded_model")]

MODEL = "smollm2:135m"
CAPITAL = "What is the capital of France?"
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
WEATHER = Tool(
    name="get_weather",
    description="Returns the weather in a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ANSWERED = Turn(
    text="Let me see.",
    calls=(ToolCall(name="get_weather", arguments='{"city": "Paris"}'),),
    results=("rain, 9 °C",),
)
OWNER = """
import asyncio
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.providers.llama_cpp.provider import LlamaCpp

async def use():
    provider = LlamaCpp(ProviderSetup(name="llama_cpp"))
    async with provider.serving("smollm2:135m") as engine:
        print(engine.process.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(use())
"""


class Lab:
    def __init__(self, runner, provider):
        self.run = runner.run
        self.provider = provider

    def ask(self, prompt, **how):
        return self.run(self.provider.ask(Request(**{"model": MODEL, "prompt": prompt, **how})))

    def fault(self, prompt, **how):
        with pytest.raises(CallFailed) as caught:
            self.ask(prompt, **how)
        return caught.value.fault

    def engine_pid(self, model=MODEL):
        async def look():
            async with self.provider.serving(model) as engine:
                return engine.process.pid

        return self.run(look())


@contextlib.contextmanager
def open_lab():
    with asyncio.Runner() as runner:
        provider = LlamaCpp(ProviderSetup(name="llama_cpp"))
        try:
            yield Lab(runner, provider)
        finally:
            runner.run(provider.aclose())


@pytest.fixture(scope="module")
def lab():
    with open_lab() as lab:
        yield lab


@pytest.mark.parametrize("stream", [True, False])
def test_tokens_are_counted_and_never_cached(stream, lab):
    """A repeated prompt is processed in full again, so its time to first token stays comparable."""
    replies = [lab.ask(CAPITAL, stream=stream, max_output_tokens=4) for _ in range(2)]

    assert [reply.cached_tokens for reply in replies] == [0, 0]
    assert [(reply.input_tokens, reply.output_tokens) for reply in replies] == [(16, 4), (16, 4)]
    assert replies[0].finish_reason == "length"


@pytest.mark.parametrize("stream", [True, False])
def test_native_tool_call_arrives(stream, lab):
    """A call in the template's format arrives as a native call, streamed or not."""
    asked = f"Repeat exactly this text and nothing else:\n{CALL}"

    reply = lab.ask(asked, stream=stream, tools=(WEATHER,))

    (call,) = reply.tool_calls
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Paris"}')
    assert call.id
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")


def test_a_prompt_beyond_the_context_is_its_own_fault(lab):
    """A prompt that leaves no token for a reply is refused, and does not affect the next one."""
    fault = lab.fault(" word" * 8183)  # the template itself has nine tokens

    assert (fault.failure_type, fault.scope) == ("context_overflow", "cell")
    assert "Paris" in lab.ask(CAPITAL).text


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"prompt": CAPITAL}, id="text"),
        pytest.param({"prompt": CAPITAL, "system": "Be brief."}, id="system"),
        pytest.param({"prompt": CAPITAL, "tools": (WEATHER,)}, id="tools"),
        pytest.param({"prompt": CAPITAL, "tools": (WEATHER,), "history": (ANSWERED,)}, id="history"),
    ],
)
def test_the_count_of_a_prompt_is_the_engines_own(lab, how):
    """The count beforehand equals the number of tokens that the engine reports."""

    async def count():
        async with lab.provider.serving(MODEL):
            provider = lab.provider
            body = provider.body(Request(**{"model": MODEL, **how}))
            counted = await provider.fetch(f"{provider.path}/input_tokens", body, timeout_s=BOUND_S)
            return counted["input_tokens"]

    counted = lab.run(count())

    assert counted == lab.ask(**how, max_output_tokens=1).input_tokens
    assert fewest_tokens(Request(**{"model": MODEL, **how})) <= counted
    assert counted <= most_tokens(Request(**{"model": MODEL, **how}))


def test_fingerprint_describes_the_server_without_a_path(lab):
    """It has version, weights, quantisation, context and template, but not the path of the weights."""
    found = lab.run(lab.provider.fingerprint(MODEL))

    assert found["server_version"] == f"xllamacpp {engine_version()}"
    assert found["digest"] == f"sha256:{hashlib.sha256(find_weights(MODEL).read_bytes()).hexdigest()}"
    assert (found["quantisation"], found["context_length"]) == ("Q4_1", 8192)
    assert len(found["template_sha256"]) == 64
    assert ".gguf" not in str(found)


def test_only_a_client_with_the_key_may_ask(lab, monkeypatch):
    """The engine answers only its own clients, though every process of the machine can reach its port."""
    pid = lab.engine_pid()
    assert len(lab.provider.key()) >= 32
    monkeypatch.setattr(lab.provider, "key", lambda: "wrong")

    with pytest.raises(CallFailed) as caught:
        lab.run(lab.provider.fetch(f"{lab.provider.address.base_url}/models", timeout_s=BOUND_S))

    assert caught.value.fault.failure_type == "http_401"
    assert lab.engine_pid() == pid


def test_a_file_is_served_under_the_name_that_the_user_gave(tmp_path, monkeypatch):
    """`llama_cpp/<path>` serves any GGUF file with its own template, after the previous engine has ended."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.gguf").symlink_to(find_weights(MODEL))
    with open_lab() as lab:
        embedded = lab.engine_pid()
        reply = lab.ask(CAPITAL, model="tiny.gguf", max_output_tokens=4)
        embedded_is_gone = wait_until(lambda: is_gone(embedded))
        pid = lab.engine_pid("tiny.gguf")

    assert (reply.effective_model, reply.output_tokens) == ("tiny.gguf", 4)
    assert reply.input_tokens > 16  # its own template adds a system prompt
    assert embedded_is_gone
    assert wait_until(lambda: is_gone(pid))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"hello, world", "invalid magic characters: 'hell', expected 'GGUF'", id="no-gguf"),
        pytest.param(None, "is not within the file bounds, model is corrupted or incomplete", id="cut-short"),
    ],
)
def test_broken_weights_are_one_clear_sentence(content, reason, tmp_path, monkeypatch):
    """The message names a file that cannot be loaded, with llama.cpp's reason; no process is left."""
    monkeypatch.chdir(tmp_path)
    content = content or find_weights(MODEL).read_bytes()[:40_000_000]
    (tmp_path / "bad.gguf").write_bytes(content)
    with open_lab() as lab:
        fault = lab.fault(CAPITAL, model="bad.gguf")

    assert (fault.failure_type, fault.scope) == ("not_installed", "target")
    assert "before it had loaded bad.gguf: " in fault.message
    assert fault.message.endswith(reason)
    assert str(tmp_path) not in fault.message


def test_the_engine_ends_with_its_owner():
    """If the process is killed that has started the engine, the engine exits by itself."""
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as owner:
        pid = int(owner.stdout.readline())
        owner.kill()
        owner.wait(BOUND_S)

    assert wait_until(lambda: is_gone(pid))


CHART = Image(path="chart.png", media_type="image/png", data=png(width=64, height=64))


@pytest.mark.parametrize(
    "kind", [OllamaOpenAI, OpenAIResponses, AnthropicMessages], ids=lambda kind: kind.name
)
def test_the_engine_refuses_images(kind, engine, served):
    """The image arrives, and is refused with the engine's reason; a text without an image would be answered."""
    environ = {"PATH": os.environ["PATH"], **served}
    provider = kind(ProviderSetup(name=kind.name, environ=environ))

    fault = ask(provider, model="smollm2:135m", prompt="How many?", images=(CHART,), max_output_tokens=4)

    assert described(fault)[:2] == ("no_image_input", "skipped_unavailable")
