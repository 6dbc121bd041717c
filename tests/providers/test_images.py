"""Pictures on the wire: how each API has them, who sends none, and what a model without vision ends in."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from pytest_openclaw.providers.ollama import OllamaOpenAI
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Image, Reply, Turn
from tests.images import JPEG, png
from tests.providers.servers.apis import ask, described, of_events
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OllamaServer, native

PNG = png()
CHART = Image(path="chart.png", media_type="image/png", data=PNG)
PHOTO = Image(path="photo.jpg", media_type="image/jpeg", data=JPEG)
PNG_64, JPEG_64 = base64.b64encode(PNG).decode(), base64.b64encode(JPEG).decode()
SENT: dict[str, Any] = {
    "ollama_openai": [
        {"type": "text", "text": "Say hi."},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG_64}"}},
        {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{JPEG_64}"}},
    ],
    "openai_responses": [
        {"type": "input_text", "text": "Say hi."},
        {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG_64}"},
        {"type": "input_image", "detail": "auto", "image_url": f"data:image/jpeg;base64,{JPEG_64}"},
    ],
    "anthropic_messages": [
        {"type": "text", "text": "Say hi."},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_64}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": JPEG_64}},
    ],
    "gemini": [{"text": "Say hi."}, {"inlineData": {"mimeType": "image/png", "data": PNG_64}}, {"inlineData": {"mimeType": "image/jpeg", "data": JPEG_64}}],
}  # fmt: skip
TALK = (Turn(user="Hello."), Turn(text="Hello, what is it?"))


def questions(body: dict[str, Any]) -> list[Any]:
    """The content of each message of the user, in order."""
    messages = body.get("messages") or body.get("contents") or body["input"]
    return [one.get("parts", one.get("content")) for one in messages if one["role"] == "user"]


@of_events
@pytest.mark.parametrize("before", [(), TALK], ids=["alone", "after-a-talk"])
def test_pictures_follow_the_text(server, api, stream, before):
    """Each API gets text and pictures in its own form, in the order of the suite, only in the prompt."""
    server.on("*", Script.stream(api.text("Hi."), api.end()) if stream else Script.answer(api.whole("Hi.")))

    reply = ask(api.provider(server.url), images=(CHART, PHOTO), messages=before, stream=stream)

    (body,) = [request.json for request in server.requests if api.answers(request.path)]
    *earlier, asked = questions(body)
    assert isinstance(reply, Reply)
    assert asked == SENT[api.kind.name]
    assert earlier == (
        [] if not before else [[{"text": "Hello."}] if api.kind.name == "gemini" else "Hello."]
    )


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_pictures_of_ollama(stream):
    """Ollama's own API has pictures next to the text, as plain base64."""
    with OllamaServer(models={"m:latest": ["completion", "vision"]}) as server:
        reply = ask(native(server.url), images=(CHART, PHOTO), stream=stream)

    (chat,) = server.chats
    assert isinstance(reply, Reply)
    assert chat["messages"] == [{"role": "user", "content": "Say hi.", "images": [PNG_64, JPEG_64]}]


@pytest.mark.parametrize("kind", [native, None], ids=["native", "chat-completions"])
def test_ollama_is_not_asked_about_pictures_that_its_model_cannot_see(kind):
    """Ollama has many a model answer without the pictures, so a model without vision is not asked.

    It is an outcome of its own, for that prompt only; prompts without pictures are asked.
    """
    with OllamaServer() as server:

        def provider():
            return (
                kind(server.url)
                if kind
                else OllamaOpenAI(ProviderSetup(name="ollama_openai", environ={"OLLAMA_HOST": server.url}))
            )

        fault = ask(provider(), images=(CHART,))
        asked = [request.path for request in server.requests]
        text = ask(provider())

    name = provider().name
    assert described(fault)[:3] == (
        "no_image_input",
        "skipped_unavailable",
        f"{name}: not asked: the server says that m takes no pictures. Ask a model with vision.",
    )
    assert (fault.sent, fault.scope, fault.retryable) == (False, "cell", False)
    assert asked == ["/api/show"]
    assert isinstance(text, Reply)
