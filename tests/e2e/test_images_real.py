"""Images for a real llama.cpp without a vision model, over all its APIs."""

import os

import pytest

from pytest_openclaw.providers.anthropic_messages import AnthropicMessages
from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Image
from tests.images import png
from tests.providers.servers.apis import ask, described

pytestmark = pytest.mark.engine

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
