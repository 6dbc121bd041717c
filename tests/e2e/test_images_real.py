"""Pictures for a real llama.cpp, over all its APIs: with a vision model they arrive, and without one they are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_openclaw.providers.anthropic_messages import AnthropicMessages
from pytest_openclaw.providers.llama_cpp.weights import find_weights
from pytest_openclaw.providers.ollama_openai import OllamaOpenAI
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Image, Reply
from tests.e2e import vision_server
from tests.images import png
from tests.providers.servers.apis import ask, described

pytestmark = pytest.mark.engine

CHART = Image(path="chart.png", media_type="image/png", data=png(width=64, height=64))


@pytest.mark.parametrize(
    "kind", [OllamaOpenAI, OpenAIResponses, AnthropicMessages], ids=lambda kind: kind.name
)
def test_the_engine_refuses_pictures(kind, engine, served):
    """The picture arrives, and is refused with the engine's reason; a text alone would be answered."""
    environ = {"PATH": os.environ["PATH"], **served}
    provider = kind(ProviderSetup(name=kind.name, environ=environ))

    fault = ask(provider, model="smollm2:135m", prompt="How many?", images=(CHART,), max_output_tokens=4)

    assert described(fault)[:2] == ("no_image_input", "skipped_unavailable")


@pytest.fixture(scope="module")
def sighted(embedded_model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an engine that takes pictures."""
    words = [sys.executable, vision_server.__file__, str(find_weights(embedded_model))]
    with subprocess.Popen(
        [*words, str(tmp_path_factory.mktemp("vision"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = next((line.strip() for line in process.stdout if line.startswith("http")), "")
        assert url, "the engine has not started"
        yield url
        process.stdin.close()


@pytest.mark.nightly
@pytest.mark.parametrize(
    "kind", [OllamaOpenAI, OpenAIResponses, AnthropicMessages], ids=lambda kind: kind.name
)
def test_pictures_are_decoded_and_counted(kind, sighted):
    """The engine reads the pictures, each of which becomes as many tokens of the prompt as its vision model has."""
    names = ("OLLAMA_OPENAI_BASE", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")
    environ = {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", **dict.fromkeys(names, f"{sighted}/v1")}
    drawn = sorted(Path(__file__).parents[2].glob("benchmarks/images/*.png"))
    pictures = [Image(path=file.name, media_type="image/png", data=file.read_bytes()) for file in drawn[:2]]

    def input_tokens(*images: Image) -> int:
        provider = kind(ProviderSetup(name=kind.name, environ=environ))
        reply = ask(
            provider, model="m", prompt="How many?", images=images, max_output_tokens=1, timeout_s=300.0
        )
        assert isinstance(reply, Reply), reply
        assert reply.input_tokens is not None
        return reply.input_tokens

    assert input_tokens(*pictures) - input_tokens() >= len(pictures) * vision_server.N_TOKENS


@pytest.mark.nightly
def test_a_broken_picture_is_no_wrong_answer(sighted):
    """A file that only begins as a picture is the server's error, asked once."""
    broken = Image(path="a.png", media_type="image/png", data=b"\x89PNG\r\n\x1a\nnothing")
    provider = OllamaOpenAI(ProviderSetup(name="lab", base_url=f"{sighted}/v1", environ={}))

    fault = ask(provider, model="m", prompt="How many?", images=(broken,), timeout_s=300.0)

    assert described(fault)[:2] == ("http_400", "error")
    assert not fault.retryable
